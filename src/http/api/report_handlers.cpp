// A line for each member of a batch: what became of it.
#include <algorithm>
#include <limits>
#include <map>

#include "base/json_write.hpp"
#include "http/api/batch_reads.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"

namespace baton::http {

namespace {

using namespace runbook;

struct ReportPage {
  BatchSummary batch;
  std::vector<PhaseExecution> phases;
  std::vector<Member> members;
  std::vector<MatrixCell> cells;
};

struct ReportLine {
  std::string outcome;
  std::optional<Time> first_at, last_at;
  std::vector<std::string> phases_done;
  std::string failed_phase, failed_step, error;
};

using Cells = std::vector<const MatrixCell*>;

// Of a member that has neither failed nor left.
std::string outcome_of(const Cells& cells, const ReportPage& page) {
  const auto is_open = [](const MatrixCell* cell) { return !is_terminal(cell->status); };
  const bool any_open = std::ranges::any_of(cells, is_open);
  const bool has_begun = std::ranges::any_of(cells, [](const MatrixCell* cell) {
    return cell->status != StepStatus::pending || cell->retry_count > 0;
  });
  if (any_open) return has_begun ? "running" : "waiting";
  if (std::ranges::any_of(cells, [](const auto* cell) { return is_failure(cell->status); })) return "failed";
  if (std::ranges::any_of(cells, [](const auto* cell) { return cell->status == StepStatus::cancelled; })) return "cancelled";
  if (is_terminal(page.batch.batch.status)) return cells.empty() ? "nothing_done" : "done";
  return "waiting";  // for a phase to come
}

ReportLine line_of(const Member& member, const Cells& cells, const ReportPage& page) {
  ReportLine line;
  std::map<std::int64_t, bool> done;  // by phase
  const MatrixCell* failed = nullptr;
  for (const MatrixCell* cell : cells) {
    if (cell->dispatched_at) line.first_at = std::min(line.first_at.value_or(*cell->dispatched_at), *cell->dispatched_at);
    if (cell->completed_at) line.last_at = std::max(line.last_at.value_or(*cell->completed_at), *cell->completed_at);
    const auto [at, is_new] = done.emplace(cell->phase_execution_id, true);
    at->second = at->second && cell->status == StepStatus::succeeded;
    if (is_failure(cell->status) && (!failed || failed->completed_at < cell->completed_at)) failed = cell;
  }
  for (const PhaseExecution& phase : page.phases) {
    if (const auto at = done.find(phase.id); at != done.end() && at->second) line.phases_done.push_back(phase.phase_name);
    if (failed && failed->phase_execution_id == phase.id) line.failed_phase = phase.phase_name;
  }
  if (failed) {
    line.failed_step = failed->step_name;
    line.error = failed->error_message.value_or("");
  }
  if (member.moved_to)
    line.outcome = "moved";
  else if (member.status != MemberStatus::active)
    line.outcome = std::string(name(member.status));
  else
    line.outcome = outcome_of(cells, page);
  return line;
}

Result<ReportPage> read_page(Reads& reads, std::int64_t id, std::int64_t after, std::size_t limit) {
  ReportPage page;
  TRY_ASSIGN(page.batch, known_batch(reads, id));
  TRY_ASSIGN(page.phases, reads.phases(id));
  std::ranges::stable_sort(page.phases, std::greater{}, &PhaseExecution::offset_minutes);
  TRY_ASSIGN(page.members, reads.members(id, std::nullopt, after, limit));
  std::vector<std::int64_t> ids;
  for (const Member& member : page.members) ids.push_back(member.id);
  TRY_ASSIGN(page.cells, reads.cells(ids));
  return page;
}

}  // namespace

Task<Response> report_batch(Context& context) {
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(context.request, "after", 0, {0, largest}, errors);
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [id = captured_id(context.request), after, limit](Reads& reads) { return read_page(reads, id, after, limit); };
  auto page = co_await context.read(std::move(query));
  if (!page) co_return batch_problem(context.request, page.error());
  std::map<std::int64_t, Cells> cells;
  for (const MatrixCell& cell : page->cells) cells[cell.batch_member_id].push_back(&cell);
  auto response = json_response(200, "{");
  append_list(response.body, "members", page->members, [&](std::string& out, const Member& member) {
    const ReportLine line = line_of(member, cells[member.id], *page);
    append_object(out, "id", member.id, "member_key", member.member_key, "status", name(member.status), "outcome",
                  line.outcome, "first_at", line.first_at, "last_at", line.last_at, "phases_done", line.phases_done,
                  "failed_phase", line.failed_phase, "failed_step", line.failed_step, "error", line.error);
  });
  append_member(response.body, "next_after", page->members.empty() ? after : page->members.back().id);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
