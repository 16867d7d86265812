# What the runner does besides; see examples/run.
# shellcheck shell=bash disable=SC2034,SC2154
batches=2
show=(what-was-undone.txt)
export MAILBOX_STATE=$directory/files/tenant WAVES_CSV=$directory/files/waves.csv
ledger=$MAILBOX_STATE/ledger.txt

# Nobody wants to wait five days to see what happens: the intervals are shorter. All else is as it is.
prepare() {
  mkdir "$MAILBOX_STATE"
  : >"$ledger"
  definition=$directory/runbook.yaml
  sed -e 's/interval: 5m/interval: 1s/' -e 's/interval: 1m/interval: 1s/' "$example/runbook.yaml" >"$definition"
}

# The cut-over of the first wave is in a moment and that of the second soon after, so T-5d is long past, and due at once.
arrange() {
  local wait=${CUT_OVER_IN_SECONDS:-15} first second
  first=$(date -u -d "+$wait seconds" +%FT%TZ)
  second=$(date -u -d "+$((wait + 5)) seconds" +%FT%TZ)
  sed -e "s/2027-03-05T20:00:00Z/$first/" -e "s/2027-03-12T20:00:00Z/$second/" "$example/waves.csv" >"$WAVES_CSV"
  {
    echo "# The cut-over of wave 1 is at ${first:11:8}, that of wave 2 at ${second:11:8} (UTC). In the runbook:"
    diff "$example/runbook.yaml" "$definition" | sed -n 's/^[<>] /#  &/p' || true
  } >&2
}

# The people. When his mailbox is there, and before it moves, Ivan leaves the company: he is taken out of the file, nothing else.
# The mailboxes of a wave are verified when its cut-over is over, instead of a day later.
meanwhile() {
  local batch i
  for ((i = 0; i < 400; ++i)); do
    if grep -q 'licence .* for ivan@' "$ledger"; then break; fi
    sleep 0.05
  done
  echo "# Ivan leaves: waves.csv has him no longer." >&2
  grep -v '^ivan@' "$WAVES_CSV" >"$WAVES_CSV.new"
  mv "$WAVES_CSV.new" "$WAVES_CSV"
  for batch in "$@"; do
    await_phase "$batch" cut-over
    baton batch advance "$batch" --phase verify --by ada >&2
  done
  baton member show "$1" heidi@contoso.example >&2
  grep -E 'heidi@|ivan@' "$ledger" >what-was-undone.txt || true
}
