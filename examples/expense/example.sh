# What the runner does besides; see examples/run.
# shellcheck shell=bash disable=SC2034,SC2154
show=(letter.txt)

# Nobody wants to wait an hour to see what happens then.
prepare() {
  [ "$variant" = timeout ] || return 0
  sed 's/timeout_seconds: 3600/timeout_seconds: 1/' "$definition" >"$directory/workflow.yaml"
  definition=$directory/workflow.yaml
}

# The person: finds what waits for a decision, and decides.
meanwhile() {
  local waiting i
  case $variant in small | timeout) return ;; esac
  for ((i = 0; i < 400; ++i)); do
    waiting=$("$baton" approvals --json)
    if [[ $waiting == *"$1"* ]]; then break; fi
    sleep 0.05
  done
  baton approvals >&2
  if [ "$variant" = reject ]; then
    baton job reject "$1" ask --by grace --comment "take the night train" >&2
  else
    baton job approve "$1" ask --by grace >&2
  fi
}
