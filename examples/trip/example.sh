# What the runner does besides; see examples/run.
# shellcheck shell=bash disable=SC2034,SC2154
show=(ledger.txt letter.txt)
