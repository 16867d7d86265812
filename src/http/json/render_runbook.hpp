// The JSON of runbooks and their batches: the names of members are those of the columns. Documents that are
// stored as JSON may have been written by others: what is none is shown as a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/json/render.hpp"
#include "ports/runbook_commands.hpp"
#include "ports/runbook_reads.hpp"

namespace baton::http {

// With Documents::all the text of the runbook too.
void append_runbook(std::string& out, const runbook::Runbook& row, Documents documents,
                    ObjectEnd ending = ObjectEnd::closed);
void append_batch(std::string& out, const runbook::Batch& batch, ObjectEnd ending = ObjectEnd::closed);
// completed_with_failures instead of completed when a part of it failed; else its status.
[[nodiscard]] std::string_view outcome_of(const BatchSummary& summary);
[[nodiscard]] std::string_view outcome_of(const runbook::PhaseExecution& phase, const std::vector<runbook::Count>& counts);
void append_batch(std::string& out, const BatchSummary& summary, ObjectEnd ending = ObjectEnd::closed);
void append_batch_event(std::string& out, const runbook::BatchEvent& event);
void append_phase(std::string& out, const runbook::PhaseExecution& phase,
                  ObjectEnd ending = ObjectEnd::closed);
// With Documents::all data_json and worker_data_json too.
void append_batch_member(std::string& out, const runbook::Member& member, Documents documents,
                         ObjectEnd ending = ObjectEnd::closed);
// A step, an init step or a cleanup; with Documents::all params_json and result_json too.
void append_execution(std::string& out, const ExecutionView& view, Documents documents,
                      ObjectEnd ending = ObjectEnd::closed);
// What waits for a person, as it is listed: with the answers that may be given while it is open.
void append_hold(std::string& out, const runbook::Hold& hold, const std::optional<std::string>& phase_name);
void append_step_reply(std::string& out, const StepReply& reply);
void append_members_reply(std::string& out, const MembersReply& reply);
void append_failure(std::string& out, const Failure& failure);

// "key":{"succeeded":12,…}: the sum of the counts of a lane, of one phase (0: of the batch as a whole), and
// of one step unless it is any.
inline constexpr std::int32_t any_step = -1;
struct CountFilter {
  std::string_view name;
  std::int64_t phase_execution_id = 0;
  std::int32_t step_index = any_step;
};
void append_counts(std::string& out, std::string_view key, const std::vector<runbook::Count>& counts,
                   CountFilter filter);
// The counters of a phase: of all its steps, of each, of its rollbacks and of those who catch up on it; and how many of
// them have succeeded because a person skipped them.
void append_phase_counts(std::string& out, const runbook::PhaseExecution& phase,
                         const std::vector<runbook::Count>& counts);

}  // namespace baton::http
