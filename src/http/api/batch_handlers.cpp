// Batches: list, show, and what people do to them as a whole.
#include <algorithm>

#include "http/api/batch_reads.hpp"
#include "http/api/no_worker.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

constexpr std::size_t open_cleanups_max = 50;

struct BatchView {
  BatchSummary summary;
  std::vector<runbook::PhaseExecution> phases;
  std::vector<runbook::Count> counts;
  std::vector<ExecutionView> inits;
  std::vector<ExecutionView> open_cleanups;
  OptionalJson held_removals;  // of this batch
  std::vector<runbook::Hold> holds;
  std::vector<Retrying> retrying;
};

// The entry of the batch in what its runbook holds back: {"batch_id":…,"leaving":…,"active":…}.
OptionalJson held_of(const runbook::Runbook& row, std::int64_t batch_id) {
  if (!row.held_removals) return std::nullopt;
  const auto document = JsonDocument::parse(row.held_removals->text);
  if (!document) return std::nullopt;
  for (const JsonView& item : document->root().items()) {
    const auto id = item.find("batch_id");
    if (id && id.kind() == JsonKind::integer && id.integer() == batch_id) return item.json();
  }
  return std::nullopt;
}

bool is_open_cleanup(const runbook::Count& count) {
  const auto status = runbook::step_status(count.status);
  return count.n > 0 && count.phase_execution_id == 0 &&
         (count.lane == "rollback" || count.lane == "removal") && status && !is_terminal(*status);
}

Result<BatchView> read_batch_view(Reads& reads, std::int64_t id) {
  BatchView view;
  TRY_ASSIGN(view.summary, known_batch(reads, id));
  TRY_ASSIGN(view.phases, reads.phases(id));
  TRY_ASSIGN(view.counts, reads.counts(id));
  TRY_ASSIGN(view.inits, reads.inits(id));
  if (std::ranges::any_of(view.counts, is_open_cleanup)) {
    TRY_ASSIGN(view.open_cleanups, reads.open_cleanups(id, open_cleanups_max));
  }
  TRY_ASSIGN(view.retrying, reads.retrying(id));
  TRY_ASSIGN(view.holds, reads.holds(id));
  std::erase_if(view.holds, [](const auto& hold) { return hold.status != runbook::HoldStatus::open; });
  TRY_ASSIGN(const auto row, reads.runbook(view.summary.runbook_name, 0));
  if (row) view.held_removals = held_of(*row, id);
  return view;
}

std::optional<std::string> phase_of(const BatchView& view, const runbook::Hold& hold) {
  for (const auto& phase : view.phases)
    if (phase.id == hold.phase_execution_id) return phase.phase_name;
  return std::nullopt;
}

void append_retrying(std::string& out, const std::vector<Retrying>& all, std::int64_t phase_id) {
  Retrying found;
  for (const Retrying& each : all)
    if (each.phase_execution_id == phase_id) found = each;
  append_key(out, "retrying");
  append_object(out, "count", found.n, "next_at", found.next);
}

Task<Response> change_batch(Context& context, ChangeBatch::What what) {
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  auto change = read_attribution(fields);
  ChangeBatch command{.batch_id = captured_id(context.request), .what = what};
  command.by = std::move(change.by);
  command.reason = std::move(change.reason);
  if (what == ChangeBatch::What::advance) {
    command.phase = fields.text("phase", 400).value_or("");
    if (const auto* phase = context.request.argument("phase")) {
      if (!command.phase.empty() && command.phase != *phase)
        errors.push_back({"phase", "is another one than that of the query"});
      command.phase = *phase;
    }
  }
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  if (command.batch_id == 0) co_return no_such_batch(context.request);
  auto reply = co_await tell<BatchReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_batch(response.body, reply->batch, ObjectEnd::open);
  append_member(response.body, "changed", reply->changed);
  append_member(response.body, "note", reply->note);
  response.body += '}';
  co_return response;
}

}  // namespace

Task<Response> advance_batch(Context& context) { return change_batch(context, ChangeBatch::What::advance); }
Task<Response> pause_batch(Context& context) { return change_batch(context, ChangeBatch::What::pause); }
Task<Response> resume_batch(Context& context) { return change_batch(context, ChangeBatch::What::resume); }
Task<Response> cancel_batch(Context& context) { return change_batch(context, ChangeBatch::What::cancel); }
Task<Response> approve_removals(Context& context) {
  return change_batch(context, ChangeBatch::What::approve_removals);
}

Task<Response> list_batches(Context& context) {
  std::vector<FieldError> errors;
  BatchFilter filter;
  if (const auto* name = context.request.argument("runbook")) filter.runbook_name = *name;
  if (filter.runbook_name && !is_printable(*filter.runbook_name, 400))
    errors.push_back({"runbook", "is not the name of a runbook"});
  if (const auto* status = context.request.argument("status")) {
    filter.status = runbook::batch_status(*status);
    if (!filter.status)
      errors.push_back(
          {"status", "must be detected, init_dispatched, active, completed, failed or cancelled"});
  }
  const auto page = query_page(context.request, 50, 200, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [filter, page](Reads& reads) { return reads.batches(filter, page.from, page.limit + 1); };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return problem(rows.error());
  const auto cursor = cut_page(*rows, page.limit, [](const auto& row) { return row.batch.id; });
  auto response = json_response(200, "{");
  append_list(response.body, "batches", *rows,
              [](std::string& out, const BatchSummary& row) { append_batch(out, row); });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_batch(Context& context) {
  auto query = [id = captured_id(context.request)](Reads& reads) { return read_batch_view(reads, id); };
  auto view = co_await context.read(std::move(query));
  if (!view) co_return batch_problem(context.request, view.error());
  std::vector<NoWorker> queues;
  if (!is_terminal(view->summary.batch.status)) {
    auto found = co_await no_workers_of_batch(context, view->summary.batch.id);
    if (!found) co_return std::move(found.error());
    queues = *std::move(found);
  }
  auto response = json_response(200, {});
  auto& out = response.body;
  append_batch(out, view->summary, ObjectEnd::open);
  append_list(out, "holds", view->holds,
              [&](std::string& to, const auto& hold) { append_hold(to, hold, phase_of(*view, hold)); });
  append_list(out, "no_worker", queues, append_no_worker);
  append_counts(out, "members", view->counts, {"member"});
  append_list(out, "phases", view->phases, [&](std::string& to, const auto& phase) {
    append_phase(to, phase, ObjectEnd::open);
    append_phase_counts(to, phase, view->counts);
    append_retrying(to, view->retrying, phase.id);
    to += '}';
  });
  append_list(out, "init_steps", view->inits,
              [](std::string& to, const auto& row) { append_execution(to, row, Documents::none); });
  append_counts(out, "rollbacks", view->counts, {"rollback"});
  append_counts(out, "removals", view->counts, {"removal"});
  append_counts(out, "catch_up", view->counts, {"catch_up"});
  append_counts(out, "skipped", view->counts, {"skipped"});
  append_list(out, "open_cleanups", view->open_cleanups,
              [](std::string& to, const auto& row) { append_execution(to, row, Documents::none); });
  append_member(out, "held_removals", view->held_removals);
  out += '}';
  co_return response;
}

Task<Response> list_phases(Context& context) {
  auto query = [id = captured_id(context.request)](Reads& reads) -> Result<BatchView> {
    BatchView view;
    TRY(known_batch(reads, id));
    TRY_ASSIGN(view.phases, reads.phases(id));
    TRY_ASSIGN(view.counts, reads.counts(id));
    TRY_ASSIGN(view.retrying, reads.retrying(id));
    return view;
  };
  auto view = co_await context.read(std::move(query));
  if (!view) co_return batch_problem(context.request, view.error());
  auto response = json_response(200, "{");
  append_list(response.body, "phases", view->phases, [&](std::string& out, const auto& phase) {
    append_phase(out, phase, ObjectEnd::open);
    append_phase_counts(out, phase, view->counts);
    append_retrying(out, view->retrying, phase.id);
    out += '}';
  });
  response.body += '}';
  co_return response;
}

Task<Response> list_batch_events(Context& context) {
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(context.request, "after", 0, {0, largest}, errors);
  const auto limit =
      static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Events = std::vector<runbook::BatchEvent>;
  auto query = [id = captured_id(context.request), after, limit](Reads& reads) -> Result<Events> {
    TRY(known_batch(reads, id));
    return reads.batch_events(id, after, limit);
  };
  auto events = co_await context.read(std::move(query));
  if (!events) co_return batch_problem(context.request, events.error());
  auto response = json_response(200, "{");
  append_list(response.body, "events", *events, append_batch_event);
  append_member(response.body, "next_after", events->empty() ? after : events->back().event_id);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
