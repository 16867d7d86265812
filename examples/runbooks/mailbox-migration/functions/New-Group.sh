#!/bin/sh
# Makes the group of a wave: a file that holds what the step was given.
cat >"$MAILBOX_STATE/group-$BATON_BATCH_ID.json"
echo "made the group migration-$BATON_BATCH_ID" >>"$MAILBOX_STATE/ledger.txt"
echo "{\"group\": \"migration-$BATON_BATCH_ID\"}"
