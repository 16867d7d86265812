#!/usr/bin/env python3
"""Creates a shared mailbox, which nobody signs in to."""
import tenant

tenant.create("Shared")
