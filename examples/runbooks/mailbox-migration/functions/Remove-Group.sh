#!/bin/sh
# The rollback of New-Group.
rm -f "$MAILBOX_STATE/group-$BATON_BATCH_ID.json"
