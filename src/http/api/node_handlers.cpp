// The nodes of a job one by one: a node, the children of a fan-out, logs, and the lists of those that wait
// for a person or were given up.
#include "http/api/routes.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

using Nodes = std::vector<workflow::NodeState>;

// What is known of a job is only for its tenant.
template <class T, class Question>
Task<Result<std::optional<T>>> ask_of_job(Call& call, Question question) {
  const workflow::JobId id{call.request.captures[0]};
  auto query = [id, tenant = call.request.tenant, question](Reads& reads) -> Result<std::optional<T>> {
    TRY_ASSIGN(const bool known, reads.has_job(tenant, id));
    if (!known) return std::nullopt;
    TRY_ASSIGN(T answer, question(reads, id));
    return answer;
  };
  auto answer = co_await call.read(std::move(query));
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
  append_node(out, node, documents, Ending::open);
  append_member(out, "job_id", node.job_id.value);
  append_member(out, "node_id", node.node_id);
  out += '}';
}

}  // namespace

Task<Response> show_node(Call& call) {
  const auto& [job_id, node_id] = std::pair(call.request.captures[0], call.request.captures[1]);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id](Reads& reads, const workflow::JobId& id) { return reads.node(id, node_id); };
  auto node = co_await ask_of_job<std::optional<workflow::NodeState>>(call, std::move(question));
  if (!node) co_return problem(node.error());
  if (!*node) co_return no_such_job(job_id);
  if (!**node) co_return problem(404, "node_not_found", "the job has no node '" + node_id + "'");
  auto response = json_response(200, {});
  append_named(response.body, ***node, Documents::all);
  co_return response;
}

Task<Response> list_items(Call& call) {
  const auto& [job_id, node_id] = std::pair(call.request.captures[0], call.request.captures[1]);
  std::vector<FieldError> errors;
  const auto after =
      static_cast<std::int32_t>(query_integer(call.request, "after", -1, {-1, 100'000'000}, errors));
  const auto limit = static_cast<std::size_t>(query_integer(call.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id, after, limit](Reads& reads, const workflow::JobId& id) -> Result<Nodes> {
    TRY(known_node(reads, id, node_id));
    return reads.items(id, node_id, after, limit);
  };
  auto items = co_await ask_of_job<Nodes>(call, std::move(question));
  if (!items) co_return problem_of_node(items.error());
  if (!*items) co_return no_such_job(job_id);
  auto response = json_response(200, "{");
  append_list(response.body, "items", **items,
              [](std::string& out, const auto& node) { append_named(out, node, Documents::brief); });
  append_member(response.body, "next_after", (*items)->empty() ? after : (*items)->back().item_index);
  response.body += '}';
  co_return response;
}

Task<Response> show_logs(Call& call) {
  const auto& [job_id, node_id] = std::pair(call.request.captures[0], call.request.captures[1]);
  std::vector<FieldError> errors;
  constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
  const auto after = query_integer(call.request, "after", 0, {0, largest}, errors);
  const auto limit = static_cast<std::size_t>(query_integer(call.request, "limit", 200, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  if (!is_printable(job_id, 200) || !is_printable(node_id, 400)) co_return no_such_job(job_id);
  auto question = [node_id, after, limit](
                      Reads& reads, const workflow::JobId& id) -> Result<std::vector<workflow::LogLine>> {
    TRY(known_node(reads, id, node_id));
    return reads.logs(id, node_id, after, limit);
  };
  auto lines = co_await ask_of_job<std::vector<workflow::LogLine>>(call, std::move(question));
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

Task<Response> list_approvals(Call& call) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(call.request, "limit", 50, {1, 200}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [tenant = call.request.tenant, limit](Reads& reads) { return reads.approvals(tenant, limit); };
  auto nodes = co_await call.read(std::move(query));
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

// "instant job item node", in base64: what the next page of dead letters begins after.
std::string cursor_of(const workflow::NodeState& node) {
  return base64url(std::to_string(to_millis(*node.dead_at)) + " " + node.job_id.value + " " +
                   std::to_string(node.item_index) + " " + node.node_id);
}

std::optional<NodeCursor> read_cursor(std::string_view text) {
  const auto decoded = from_base64url(text);
  if (!decoded) return std::nullopt;
  std::array<std::string, 4> parts;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto end = i == 3 ? decoded->size() : std::min(decoded->find(' ', at), decoded->size());
    parts[i] = decoded->substr(at, end - at);
    at = std::min(end + 1, decoded->size());
  }
  const auto millis = to_integer(parts[0]);
  const auto item = to_integer(parts[2]);
  if (!millis || !item || *item < -1 || *item > 100'000'000 || *millis < 0 || !is_printable(parts[3], 400))
    return std::nullopt;
  return NodeCursor{from_millis(*millis), {parts[1]}, static_cast<std::int32_t>(*item), parts[3]};
}

}  // namespace

Task<Response> list_dead_letters(Call& call) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(call.request, "limit", 50, {1, 200}, errors));
  std::optional<NodeCursor> after;
  if (const auto* text = call.request.argument("cursor")) {
    after = read_cursor(*text);
    if (!after) errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
  }
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [tenant = call.request.tenant, after, limit](Reads& reads) {
    return reads.dead_letters(tenant, after, limit + 1);
  };
  auto nodes = co_await call.read(std::move(query));
  if (!nodes) co_return problem(nodes.error());
  const bool more = nodes->size() > limit;
  if (more) nodes->pop_back();
  auto response = json_response(200, "{");
  append_list(response.body, "dead_letters", *nodes, [](std::string& out, const workflow::NodeState& node) {
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
  });
  append_member(response.body, "next_cursor", more ? std::optional(cursor_of(nodes->back())) : std::nullopt);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
