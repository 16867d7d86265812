// The nodes of a job one by one: a node, the children of a fan-out, logs, and the lists of those that wait
// for a person or were given up.
#include <algorithm>
#include <variant>

#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

using Nodes = std::vector<workflow::NodeState>;

// What is known of a job is only for its tenant.
template <class T, class Question>
Task<Result<std::optional<T>>> ask_of_job(Context& context, Question question) {
  const workflow::JobId id{context.request.captures[0]};
  auto query = [id, tenant = context.request.tenant, question](Reads& reads) -> Result<std::optional<T>> {
    TRY_ASSIGN(const bool known, reads.has_job(tenant, id));
    if (!known) return std::nullopt;
    TRY_ASSIGN(T answer, question(reads, id));
    return answer;
  };
  auto answer = co_await context.read(std::move(query));
  co_return answer;
}

Result<> known_node(Reads& reads, const workflow::JobId& id, const std::string& node_id) {
  TRY_ASSIGN(const auto node, reads.node(id, node_id));
  if (!node) return fail(Code::not_found, "the job has no node '" + node_id + "'");
  return {};
}

Response problem_of_node(const Error& error) {
  if (error.code == Code::not_found) return problem(404, "node_not_found", error.message);
  return problem(error);
}

void append_named(std::string& out, const workflow::NodeState& node, Documents documents) {
  append_node(out, node, documents, ObjectEnd::open);
  append_member(out, "job_id", node.job_id.value);
  append_member(out, "node_id", node.node_id);
  out += '}';
}

}  // namespace

Task<Response> show_node(Context& context) {
  const auto& [job_id, node_id] = std::pair(context.request.captures[0], context.request.captures[1]);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id](Reads& reads, const workflow::JobId& id) { return reads.node(id, node_id); };
  auto node = co_await ask_of_job<std::optional<workflow::NodeState>>(context, std::move(question));
  if (!node) co_return problem(node.error());
  if (!*node) co_return no_such_job(job_id);
  if (!**node) co_return problem(404, "node_not_found", "the job has no node '" + node_id + "'");
  auto response = json_response(200, {});
  append_named(response.body, ***node, Documents::all);
  co_return response;
}

Task<Response> list_items(Context& context) {
  const auto& [job_id, node_id] = std::pair(context.request.captures[0], context.request.captures[1]);
  std::vector<FieldError> errors;
  const auto after =
      static_cast<std::int32_t>(query_integer(context.request, "after", -1, {-1, 100'000'000}, errors));
  const auto limit =
      static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id, after, limit](Reads& reads, const workflow::JobId& id) -> Result<Nodes> {
    TRY(known_node(reads, id, node_id));
    return reads.items(id, node_id, after, limit);
  };
  auto items = co_await ask_of_job<Nodes>(context, std::move(question));
  if (!items) co_return problem_of_node(items.error());
  if (!*items) co_return no_such_job(job_id);
  auto response = json_response(200, "{");
  append_list(response.body, "items", **items,
              [](std::string& out, const auto& node) { append_named(out, node, Documents::brief); });
  append_member(response.body, "next_after", (*items)->empty() ? after : (*items)->back().item_index);
  response.body += '}';
  co_return response;
}

Task<Response> show_logs(Context& context) {
  const auto& [job_id, node_id] = std::pair(context.request.captures[0], context.request.captures[1]);
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(context.request, "after", 0, {0, largest}, errors);
  const auto limit =
      static_cast<std::size_t>(query_integer(context.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id, after, limit](
                      Reads& reads, const workflow::JobId& id) -> Result<std::vector<workflow::LogLine>> {
    TRY(known_node(reads, id, node_id));
    return reads.logs(id, node_id, after, limit);
  };
  auto lines = co_await ask_of_job<std::vector<workflow::LogLine>>(context, std::move(question));
  if (!lines) co_return problem_of_node(lines.error());
  if (!*lines) co_return no_such_job(job_id);
  auto response = json_response(200, "{");
  append_list(response.body, "lines", **lines, append_log_line);
  append_member(response.body, "next_after", (*lines)->empty() ? after : (*lines)->back().log_id);
  response.body += '}';
  co_return response;
}

namespace {

// What a person is asked; it is the one member of an approval's params.
std::optional<std::string> message_of(const workflow::NodeState& node) {
  const auto document = JsonDocument::parse(node.params ? node.params->text : "{}");
  const JsonView message = document ? document->root().find("message") : JsonView{};
  if (!message) return std::nullopt;
  return message.kind() == JsonKind::string ? std::string(message.string()) : message.json().text;
}

}  // namespace

Task<Response> list_approvals(Context& context) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 50, {1, 200}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [tenant = context.request.tenant, limit](Reads& reads) {
    return reads.approvals(tenant, limit);
  };
  auto nodes = co_await context.read(std::move(query));
  if (!nodes) co_return problem(nodes.error());
  auto response = json_response(200, "{");
  append_list(response.body, "approvals", *nodes, [](std::string& out, const workflow::NodeState& node) {
    out += '{';
    append_member(out, "job_id", node.job_id.value);
    append_member(out, "node_id", node.node_id);
    append_member(out, "message", message_of(node));
    append_member(out, "since", node.dispatched_at);
    append_member(out, "timeout_at", node.timer_due);
    out += '}';
  });
  response.body += '}';
  co_return response;
}

namespace {

// What the next page of dead letters begins after, in base64: "instant job item node", or "instant type id" of a job of
// a runbook. Of those of one instant tasks come first, then jobs.
struct DeadCursor {
  std::optional<NodeCursor> node;
  DeadJobCursor job;
};

std::string cursor_of(const workflow::NodeState& node) {
  return base64url(std::to_string(to_millis(*node.dead_at)) + " " + node.job_id.value + " " +
                   std::to_string(node.item_index) + " " + node.node_id);
}

std::string cursor_of(const ExecutionView& job) {
  return base64url(std::to_string(to_millis(*job.execution.dead_at)) + " " + std::string(name(job.ref.type)) + " " +
                   std::to_string(job.ref.id));
}

std::optional<DeadCursor> read_dead_cursor(std::string_view text) {
  constexpr std::string_view after_all_tasks = "\x7f";  // no job id begins with it
  const auto decoded = from_base64url(text);
  if (!decoded) return std::nullopt;
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= decoded->size() && parts.size() < 4;) {
    const auto end = parts.size() == 3 ? decoded->size() : std::min(decoded->find(' ', at), decoded->size());
    parts.push_back(decoded->substr(at, end - at));
    at = end + 1;
  }
  const auto millis = to_integer(parts[0]);
  if (parts.size() < 3) return std::nullopt;
  const auto number = to_integer(parts[2]);
  if (!millis || *millis < 0 || !number) return std::nullopt;
  const Time at = from_millis(*millis);
  if (const auto type = runbook::row_type(parts[1]); parts.size() == 3 && type)
    return DeadCursor{NodeCursor{at, {std::string(after_all_tasks)}, 0, ""}, {at, {*type, *number}}};
  if (parts.size() != 4 || *number < -1 || *number > 100'000'000 || !is_printable(parts[3], 400)) return std::nullopt;
  return DeadCursor{NodeCursor{at, {parts[1]}, static_cast<std::int32_t>(*number), parts[3]}, {at, {}}};
}

void append_dead(std::string& out, const workflow::NodeState& node) {
  out += '{';
  append_member(out, "task_id", node.task_id);
  append_member(out, "job_id", node.job_id.value);
  append_member(out, "node_id", node.node_id);
  append_member(out, "queue", node.queue);
  append_member(out, "worker_id", node.worker_id);
  append_member(out, "error", node.error);
  append_member(out, "deliveries", node.delivery_count);
  append_member(out, "dead_at", node.dead_at);
  out += '}';
}

void append_dead(std::string& out, const ExecutionView& job) {
  out += '{';
  append_member(out, "task_id", job.execution.job_id);
  append_member(out, "batch_id", job.batch_id);
  append_member(out, "type", name(job.ref.type));
  append_member(out, "id", job.ref.id);
  append_member(out, "step_name", job.execution.step_name);
  if (job.batch_member_id) append_member(out, "batch_member_id", *job.batch_member_id);
  append_member(out, "queue", job.execution.worker_id);
  append_member(out, "worker_id", job.execution.leased_by);
  append_member(out, "error", job.execution.error_message);
  append_member(out, "deliveries", job.execution.delivery_count);
  append_member(out, "dead_at", job.execution.dead_at);
  out += '}';
}

using DeadLetter = std::variant<workflow::NodeState, ExecutionView>;

Time dead_at(const DeadLetter& letter) {
  return std::visit(overloaded{[](const workflow::NodeState& node) { return *node.dead_at; },
                               [](const ExecutionView& job) { return *job.execution.dead_at; }},
                    letter);
}

// Runbooks belong to the tenant "default".
Result<std::vector<DeadLetter>> dead_letters(Reads& reads, const workflow::Tenant& tenant, const DeadCursor& after,
                                             std::size_t limit) {
  TRY_ASSIGN(auto nodes, reads.dead_letters(tenant, after.node, limit));
  std::vector<DeadLetter> letters(std::make_move_iterator(nodes.begin()), std::make_move_iterator(nodes.end()));
  if (tenant.value == "default") {
    TRY_ASSIGN(auto jobs, reads.dead_jobs(after.job, limit));
    std::ranges::move(jobs, std::back_inserter(letters));
  }
  std::ranges::stable_sort(letters, {}, dead_at);
  if (letters.size() > limit) letters.resize(limit);
  return letters;
}

}  // namespace

Task<Response> list_dead_letters(Context& context) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 50, {1, 200}, errors));
  DeadCursor after;
  if (const auto* text = context.request.argument("cursor")) {
    if (const auto read = read_dead_cursor(*text))
      after = *read;
    else
      errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
  }
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [tenant = context.request.tenant, after, limit](Reads& reads) {
    return dead_letters(reads, tenant, after, limit + 1);
  };
  auto letters = co_await context.read(std::move(query));
  if (!letters) co_return problem(letters.error());
  std::optional<std::string> next;
  if (letters->size() > limit) {
    letters->pop_back();
    next = std::visit([](const auto& last) { return cursor_of(last); }, letters->back());
  }
  auto response = json_response(200, "{");
  append_list(response.body, "dead_letters", *letters, [](std::string& out, const DeadLetter& letter) {
    std::visit([&](const auto& one) { append_dead(out, one); }, letter);
  });
  append_member(response.body, "next_cursor", next);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
