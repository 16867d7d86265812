// What needs a person, in one list: what waits for an answer, and what is stuck until somebody mends it.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/runbook/machine/holds.hpp"
#include "http/api/no_worker.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

constexpr std::size_t listed_max = 1000;       // of each kind
constexpr std::size_t dead_letters_max = 200;  // that are counted
constexpr std::string_view hold_prefix = "hold-", approval_prefix = "approval-";

struct Needs {
  std::vector<runbook::Hold> holds;
  std::map<std::int64_t, std::string> phase_names;
  std::vector<workflow::NodeState> approvals;
  std::vector<runbook::Runbook> unreadable;  // runbooks whose source could not be read
  std::size_t dead_letters = 0;
  std::optional<Time> dead_since;
  std::vector<QueueBacklog> backlogs;
};

void add_backlogs(std::vector<QueueBacklog>& to, std::vector<QueueBacklog> more) {
  for (QueueBacklog& each : more) {
    const auto same = std::ranges::find(to, each.queue, &QueueBacklog::queue);
    if (same == to.end()) {
      to.push_back(std::move(each));
      continue;
    }
    same->waiting += each.waiting;
    if (each.since) same->since = std::min(same->since.value_or(*each.since), *each.since);
  }
}

Result<> read_runbook_needs(Reads& reads, Needs& needs) {
  TRY_ASSIGN(needs.holds, reads.open_holds(0, listed_max));
  for (const runbook::Hold& hold : needs.holds) {
    if (!hold.phase_execution_id) continue;
    TRY_ASSIGN(const auto phase, reads.phase(*hold.phase_execution_id));
    if (phase) needs.phase_names[phase->id] = phase->phase_name;
  }
  TRY_ASSIGN(auto active, reads.active_runbooks());
  for (runbook::Runbook& row : active)
    if (row.last_error) needs.unreadable.push_back(std::move(row));
  TRY_ASSIGN(const auto dead, reads.dead_jobs({}, dead_letters_max));
  needs.dead_letters += dead.size();
  if (!dead.empty()) {
    const Time first = dead.front().execution.dead_at.value_or(Time{});
    needs.dead_since = std::min(needs.dead_since.value_or(first), first);
  }
  TRY_ASSIGN(auto backlogs, reads.job_backlogs());
  add_backlogs(needs.backlogs, std::move(backlogs));
  return {};
}

// Runbooks belong to the tenant "default".
Result<Needs> read_needs(Reads& reads, const workflow::Tenant& tenant) {
  Needs needs;
  TRY_ASSIGN(needs.approvals, reads.approvals(tenant, listed_max));
  TRY_ASSIGN(const auto dead, reads.dead_letters(tenant, std::nullopt, dead_letters_max));
  needs.dead_letters = dead.size();
  if (!dead.empty()) needs.dead_since = dead.front().dead_at;
  TRY_ASSIGN(needs.backlogs, reads.task_backlogs(tenant));
  if (tenant.value == "default") {
    TRY(read_runbook_needs(reads, needs));
  }
  return needs;
}

std::string id_of(const workflow::NodeState& node) {
  return fmt::format("{}{}:{}", approval_prefix, node.job_id.value, node.node_id);
}

// What a person is asked; it is the one member of an approval's params.
std::string question_of(const workflow::NodeState& node) {
  const auto document = JsonDocument::parse(node.params ? node.params->text : "{}");
  const JsonView message = document ? document->root().find("message") : JsonView{};
  if (!message) return "node '" + node.node_id + "' waits for approval";
  return message.kind() == JsonKind::string ? std::string(message.string()) : message.json().text;
}

const std::vector<runbook::Answer>& approval_answers() {
  static const std::vector<runbook::Answer> answers{{"approve", "the job goes on behind the node"},
                                                    {"reject", "the node fails"}};
  return answers;
}

void append_answers(std::string& out, const std::vector<runbook::Answer>& answers) {
  append_list(out, "answers", answers, [](std::string& to, const runbook::Answer& answer) {
    append_object(to, "answer", answer.word, "does", answer.does);
  });
}

void append_need(std::string& out, const workflow::NodeState& node) {
  out += '{';
  append_members(out, "id", id_of(node), "kind", "approval", "job_id", node.job_id.value, "node_id", node.node_id,
                 "message", question_of(node), "since", node.dispatched_at);
  append_answers(out, approval_answers());
  append_member(out, "answer_by", node.timer_due);
  out += '}';
}

void append_stuck(std::string& out, std::string_view id, std::string_view kind, std::string_view message,
                  std::optional<Time> since) {
  append_members(out, "id", id, "kind", kind, "message", message, "since", since);
  append_answers(out, {});
  append_member(out, "answer_by", std::optional<Time>{});
}

void append_need(std::string& out, const NoWorker& queue) {
  out += '{';
  append_stuck(out, "no_worker-" + queue.backlog.queue, "no_worker", describe(queue), queue.since);
  append_members(out, "queue", queue.backlog.queue, "waiting", queue.backlog.waiting);
  out += '}';
}

void append_need(std::string& out, const runbook::Runbook& row) {
  out += '{';
  append_stuck(out, "source_error-" + row.name, "source_error",
               "the data source of runbook '" + row.name + "' cannot be read: " + row.last_error.value_or(""),
               row.last_error_at);
  append_member(out, "runbook", row.name);
  out += '}';
}

void append_dead_letters(std::string& out, const Needs& needs) {
  const bool are_more = needs.dead_letters >= dead_letters_max;
  const std::string count = std::to_string(needs.dead_letters) + (are_more ? " or more" : "");
  out += '{';
  append_stuck(out, "dead_letters", "dead_letters",
               count + (needs.dead_letters == 1 ? " job was" : " jobs were") +
                   " given up after too many deliveries; see 'baton dead-letter list'",
               needs.dead_since);
  append_member(out, "waiting", needs.dead_letters);
  out += '}';
}

struct Said {
  std::string answer, by, reason;
};

std::expected<Said, Response> read_answer(const Request& request) {
  auto document = parse_object(request);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  Said said{.answer = fields.required_text("answer", 100)};
  auto change = read_attribution(fields);
  said.by = std::move(change.by);
  said.reason = std::move(change.reason);
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return said;
}

Response no_such_need(const std::string& id) {
  return problem(404, "hold_not_found", "nothing by the id '" + id + "' needs anybody; GET /api/v1/needs-you lists what does");
}

Task<Response> answer_hold(Context& context, std::int64_t id, Said said) {
  auto query = [id](Reads& reads) { return reads.hold(id); };
  auto hold = co_await context.read(std::move(query));
  if (!hold) co_return problem(hold.error());
  if (!*hold) co_return no_such_need(context.request.captures[0]);
  AnswerHold command{.batch_id = (*hold)->batch_id,
                     .hold_id = id,
                     .answer = std::move(said.answer),
                     .by = std::move(said.by),
                     .reason = std::move(said.reason)};
  auto reply = co_await tell<HoldReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  const runbook::Hold& row = reply->hold;
  append_object(response.body, "id", std::string(hold_prefix) + std::to_string(row.id), "kind", name(row.kind), "batch_id",
                row.batch_id, "answer", row.answer, "by", row.decided_by, "reason", row.reason, "decided_at",
                row.decided_at, "changed", reply->changed);
  co_return response;
}

Task<Response> answer_approval(Context& context, std::string_view place, Said said) {
  const auto colon = place.find(':');
  if (colon == place.npos || colon == 0) co_return no_such_need(context.request.captures[0]);
  if (said.answer != "approve" && said.answer != "reject")
    co_return problem("an approval may be answered by: approve, reject",
                      {{"answer", "must be approve or reject"}});
  DecideApproval command{.tenant = context.request.tenant,
                         .job_id = {std::string(place.substr(0, colon))},
                         .node_id = std::string(place.substr(colon + 1)),
                         .approved = said.answer == "approve",
                         .by = said.by.empty() ? "somebody" : said.by,
                         .comment = said.reason};
  auto reply = co_await tell<JobReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_object(response.body, "id", context.request.captures[0], "kind", "approval", "job_id", reply->job.job_id.value,
                "answer", said.answer, "by", said.by, "reason", said.reason, "changed", true);
  co_return response;
}

}  // namespace

Task<Response> list_needs(Context& context) {
  auto query = [tenant = context.request.tenant](Reads& reads) { return read_needs(reads, tenant); };
  auto needs = co_await context.read(std::move(query));
  if (!needs) co_return problem(needs.error());
  workflow::Tenant tenant = context.request.tenant;
  std::vector<QueueBacklog> backlogs = std::move(needs->backlogs);
  auto queues = co_await find_no_workers(context, std::move(tenant), std::move(backlogs));
  if (!queues) co_return problem(queues.error());
  auto response = json_response(200, "{\"needs\":[");
  auto& out = response.body;
  bool first = true;
  const auto separate = [&] {
    if (!std::exchange(first, false)) out += ',';
  };
  for (const runbook::Hold& hold : needs->holds) {
    separate();
    const auto phase = needs->phase_names.find(hold.phase_execution_id.value_or(0));
    append_hold(out, hold, phase == needs->phase_names.end() ? std::nullopt : std::optional(phase->second));
  }
  for (const auto& node : needs->approvals) separate(), append_need(out, node);
  for (const NoWorker& queue : *queues) separate(), append_need(out, queue);
  for (const runbook::Runbook& row : needs->unreadable) separate(), append_need(out, row);
  if (needs->dead_letters > 0) separate(), append_dead_letters(out, *needs);
  out += "]}";
  co_return response;
}

Task<Response> answer_need(Context& context) {
  auto said = read_answer(context.request);
  if (!said) co_return std::move(said.error());
  const std::string& id = context.request.captures[0];
  if (id.starts_with(approval_prefix) && is_printable(id, 700)) {
    const auto place = std::string_view(id).substr(approval_prefix.size());
    auto response = co_await answer_approval(context, place, *std::move(said));
    co_return response;
  }
  // Runbooks belong to the tenant "default".
  const auto number = id.starts_with(hold_prefix) ? to_integer(std::string_view(id).substr(hold_prefix.size())) : std::nullopt;
  if (number && *number > 0 && context.request.tenant.value == "default") {
    auto response = co_await answer_hold(context, *number, *std::move(said));
    co_return response;
  }
  for (const std::string_view stuck : {"no_worker-", "source_error-", "dead_letters"})
    if (id.starts_with(stuck))
      co_return problem("'" + id + "' has no answer to give: it ends when what is wrong is mended",
                        {{"answer", "cannot be given"}});
  co_return no_such_need(id);
}

}  // namespace baton::http
