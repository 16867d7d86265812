// A job beside its states: whose it is, and what it says while it runs.
#include "base/result.hpp"
#include "core/runbook/machine/machine.hpp"

namespace baton::runbook {

JobContext context_of(Ref ref, Ledger& ledger) {
  const auto job = ledger.job(ref);
  ENSURE(job);
  JobContext found{.row = job->row};
  if (job->step) {
    const auto& phase = ledger.existing_phase(job->step->phase_execution_id).row;
    found.batch_id = phase.batch_id;
    found.runbook_version = phase.runbook_version;
  } else {
    found.batch_id = job->init ? job->init->batch_id : job->cleanup->batch_id;
    found.runbook_version = job->init ? job->init->runbook_version : job->cleanup->runbook_version;
  }
  const auto* book = ledger.runbook(ledger.existing_batch(found.batch_id).row.runbook_id);
  if (book) found.runbook_name = book->row.name;
  return found;
}

TakenLog take_log(const std::string& job_id, const std::optional<std::string>& lease,
                  std::span<const delivery::LogText> lines, Context context) {
  const auto named = parse_job_id(job_id);
  const auto job = named ? context.ledger.job(named->ref) : std::nullopt;
  if (!job) return {{Verdict::unknown, "there is no job '" + job_id + "'"}, {}};
  Execution& row = *job->row;
  if (row.job_id != job_id || row.job_state != JobState::leased || (lease && *lease != lease_token(row)))
    return {{Verdict::stale, "job '" + job_id + "' is not leased, or by another"}, {}};
  TakenLog taken{{Verdict::accepted, ""}, {}};
  lines = lines.first(delivery::take_log(row.log_bytes, lines, context.policy));
  if (!lines.empty()) job->state->changed = true;
  for (const delivery::LogText& line : lines)
    taken.lines.push_back({.job_id = workflow::JobId{log_name(named->ref)},
                           .node_id = "",
                           .retry_count = row.retry_count,
                           .stream = line.stream,
                           .logged_at = line.at,
                           .text = line.text});
  return taken;
}

}  // namespace baton::runbook
