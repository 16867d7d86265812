// Steps, init steps and cleanups: list those of a phase, show one and its logs, try it again, take it as done,
// give it up.
#include <fmt/format.h>

#include "core/runbook/machine/messages.hpp"
#include "http/api/batch_reads.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

Response no_such_step(const Request& request, runbook::RowType type) {
  return problem(404, "step_not_found", fmt::format("no {} '{}'", name(type), request.captures[0]));
}

Response no_such_phase(const Request& request) {
  return problem(404, "phase_not_found", "no phase '" + request.captures[0] + "'");
}

Response executions_response(std::string_view key, std::vector<ExecutionView>& rows, Page page) {
  const auto cursor = cut_page(rows, page.limit, [](const auto& row) { return row.ref.id; });
  auto response = json_response(200, "{");
  append_list(response.body, key, rows,
              [](std::string& out, const auto& row) { append_execution(out, row, Documents::none); });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  return response;
}

}  // namespace

Task<Response> list_steps(Context& context) {
  std::vector<FieldError> errors;
  const auto page = query_page(context.request, 100, 1000, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  const auto id = captured_id(context.request);
  if (id == 0) co_return no_such_phase(context.request);
  using Views = std::vector<ExecutionView>;
  auto query = [id, page](Reads& reads) -> Result<std::optional<Views>> {
    TRY_ASSIGN(auto rows, reads.steps_of_phase(id, page.from, page.limit + 1));
    if (!rows.empty()) return rows;
    TRY_ASSIGN(const auto phase, reads.phase(id));
    return phase ? std::optional(std::move(rows)) : std::nullopt;
  };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return problem(rows.error());
  if (!*rows) co_return no_such_phase(context.request);
  co_return executions_response("steps", **rows, page);
}

Task<Response> list_cleanups(Context& context) {
  std::vector<FieldError> errors;
  const auto page = query_page(context.request, 100, 1000, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Views = std::vector<ExecutionView>;
  auto query = [id = captured_id(context.request), page](Reads& reads) -> Result<Views> {
    TRY(known_batch(reads, id));
    return reads.cleanups(id, page.from, page.limit + 1);
  };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return batch_problem(context.request, rows.error());
  co_return executions_response("cleanups", *rows, page);
}

template <runbook::RowType type>
Task<Response> show_execution(Context& context) {
  const runbook::Ref ref{type, captured_id(context.request)};
  auto query = [ref](Reads& reads) { return reads.execution(ref); };
  auto row = co_await context.read(std::move(query));
  if (!row) co_return problem(row.error());
  if (!*row) co_return no_such_step(context.request, type);
  auto response = json_response(200, {});
  append_execution(response.body, **row, Documents::all, ObjectEnd::open);
  const BrokerState* broker = context.services.options.broker;
  const bool waits = (*row)->execution.job_state == runbook::JobState::queued;
  if (const auto trouble = broker && waits ? broker->trouble_of((*row)->execution.worker_id) : std::nullopt) append_member(response.body, "trouble", *trouble);
  response.body += '}';
  co_return response;
}

template <runbook::RowType type>
Task<Response> show_execution_logs(Context& context) {
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(context.request, "after", 0, {0, largest}, errors);
  const auto limit =
      static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Lines = std::vector<workflow::LogLine>;
  const runbook::Ref ref{type, captured_id(context.request)};
  auto query = [ref, after, limit](Reads& reads) -> Result<std::optional<Lines>> {
    TRY_ASSIGN(const auto row, reads.execution(ref));
    if (!row) return std::nullopt;
    return reads.logs(workflow::JobId{runbook::log_name(ref)}, "", after, limit);
  };
  auto lines = co_await context.read(std::move(query));
  if (!lines) co_return problem(lines.error());
  if (!*lines) co_return no_such_step(context.request, type);
  auto response = json_response(200, "{");
  append_list(response.body, "lines", **lines, append_log_line);
  append_member(response.body, "next_after", (*lines)->empty() ? after : (*lines)->back().log_id);
  response.body += '}';
  co_return response;
}

template <runbook::RowType type, ChangeStep::What what>
Task<Response> change_execution(Context& context) {
  auto change = read_attribution(context.request);
  if (!change) co_return std::move(change.error());
  ChangeStep command{{type, captured_id(context.request)}, what, std::move(change->by),
                     std::move(change->reason)};
  if (command.ref.id == 0) co_return no_such_step(context.request, type);
  auto reply = co_await tell<StepReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_step_reply(response.body, *reply);
  co_return response;
}

using enum runbook::RowType;
using What = ChangeStep::What;
template Task<Response> show_execution<step>(Context&);
template Task<Response> show_execution<init>(Context&);
template Task<Response> show_execution<cleanup>(Context&);
template Task<Response> show_execution_logs<step>(Context&);
template Task<Response> show_execution_logs<init>(Context&);
template Task<Response> show_execution_logs<cleanup>(Context&);
template Task<Response> change_execution<step, What::retry>(Context&);
template Task<Response> change_execution<step, What::skip>(Context&);
template Task<Response> change_execution<step, What::cancel>(Context&);
template Task<Response> change_execution<init, What::retry>(Context&);
template Task<Response> change_execution<init, What::skip>(Context&);
template Task<Response> change_execution<init, What::cancel>(Context&);
template Task<Response> change_execution<cleanup, What::retry>(Context&);
template Task<Response> change_execution<cleanup, What::skip>(Context&);
template Task<Response> change_execution<cleanup, What::cancel>(Context&);

}  // namespace baton::http
