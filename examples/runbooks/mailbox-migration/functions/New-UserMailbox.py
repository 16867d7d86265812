#!/usr/bin/env python3
"""Creates a user with a mailbox. Its id becomes {{TargetId}}."""
import tenant

tenant.create("User")
