// The members of a batch: list, show, remove, retry; and what failed.
#include <fmt/format.h>

#include "http/api/batch_reads.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

constexpr std::size_t chosen_max = 1000;

struct MemberView {
  runbook::Member member;
  std::vector<ExecutionView> steps;
  std::vector<ExecutionView> cleanups;
};

Result<std::optional<MemberView>> read_member(Reads& reads, std::int64_t batch_id, std::int64_t id) {
  TRY_ASSIGN(auto member, reads.member(id));
  if (!member || member->batch_id != batch_id) return std::nullopt;
  MemberView view{.member = *std::move(member)};
  TRY_ASSIGN(view.steps, reads.steps_of_member(id));
  std::vector<std::int64_t> step_ids;
  for (const ExecutionView& step : view.steps) step_ids.push_back(step.ref.id);
  TRY_ASSIGN(view.cleanups, reads.cleanups_of_member(id, step_ids));
  return view;
}

// The one of that key, if it has the status and is on the page.
Result<std::vector<runbook::Member>> members_of_key(Reads& reads, std::int64_t batch_id, const std::string& key,
                                                    std::optional<runbook::MemberStatus> status, Page page) {
  std::vector<runbook::Member> found;
  TRY_ASSIGN(auto member, reads.member_by_key(batch_id, key));
  if (member && member->id > page.from && (!status || member->status == *status))
    found.push_back(*std::move(member));
  return found;
}

// What failed, in the order of the list: the last to fail first.
using FailureKey = std::tuple<Time, int, std::int64_t>;
FailureKey key_of(const ExecutionView& row) {
  return {row.execution.completed_at.value_or(Time{}), static_cast<int>(row.ref.type), row.ref.id};
}

// A cursor is the key of the last one shown: MILLISECONDS-TYPE-ID.
std::optional<FailureKey> failure_cursor(const Request& request, std::vector<FieldError>& errors) {
  const auto* text = request.argument("cursor");
  if (text == nullptr) return std::nullopt;
  const std::string_view whole = *text;
  const auto first = whole.find('-'), last = whole.rfind('-');
  if (first != whole.npos && last > first) {
    const auto at = to_integer(whole.substr(0, first));
    const auto type = to_integer(whole.substr(first + 1, last - first - 1));
    const auto id = to_integer(whole.substr(last + 1));
    if (at && type && id && *at >= 0 && *type >= 0 && *type < 100 && *id > 0)
      return FailureKey{from_millis(*at), static_cast<int>(*type), *id};
  }
  errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
  return std::nullopt;
}
std::string cursor_of(const FailureKey& key) {
  return fmt::format("{}-{}-{}", to_millis(std::get<Time>(key)), std::get<int>(key), std::get<std::int64_t>(key));
}

// Where the page begins among those of one type. Of what failed in the same moment, the higher type was shown
// before.
FailedBefore before_of(const std::optional<FailureKey>& cursor, runbook::RowType type) {
  if (!cursor) return {};
  const auto& [at, shown, id] = *cursor;
  const int ours = static_cast<int>(type);
  if (ours == shown) return {at, id};
  return {at, ours < shown ? FailedBefore{}.id : 0};
}

Result<std::vector<Failure>> read_failures(Reads& reads, std::int64_t batch_id,
                                           const std::optional<FailureKey>& cursor, std::size_t limit) {
  TRY(known_batch(reads, batch_id));
  TRY_ASSIGN(const auto phases, reads.phases(batch_id));
  TRY_ASSIGN(auto inits, reads.inits(batch_id));
  TRY_ASSIGN(auto all, reads.cleanup_failures(batch_id, before_of(cursor, runbook::RowType::cleanup), limit));
  for (auto& init : inits)
    if (is_failure(init.execution.status) && (!cursor || key_of(init) < *cursor))
      all.push_back({std::move(init), "", ""});
  for (const auto& phase : phases) {
    if (phase.status == runbook::PhaseStatus::pending) continue;
    TRY_ASSIGN(auto some, reads.failures(phase.id, before_of(cursor, runbook::RowType::step), limit));
    std::ranges::move(some, std::back_inserter(all));
  }
  std::ranges::sort(all, std::greater{}, [](const Failure& failure) { return key_of(failure.step); });
  if (all.size() > limit) all.resize(limit);
  return all;
}

// Whom a command is about: {"member_ids": […]} or {"member_keys": […]}.
template <class Command>
std::expected<Command, Response> read_chosen(const Request& request) {
  auto document = parse_object(request, true);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  Command command{.batch_id = captured_id(request)};
  auto change = read_attribution(fields);
  command.by = std::move(change.by);
  command.reason = std::move(change.reason);
  command.member_ids = fields.ids("member_ids", chosen_max);
  command.member_keys = fields.texts("member_keys", chosen_max, 1000);
  if (!command.member_ids.empty() && !command.member_keys.empty())
    fields.wrong("member_keys", "cannot be given together with member_ids");
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  if (command.batch_id == 0) return std::unexpected(no_such_batch(request));
  return command;
}

// {"all": true}: nobody is named, on purpose.
bool says_all(const Request& request) {
  const auto document = parse_object(request, true);
  const JsonView all = document ? document->root().find("all") : JsonView{};
  return all && all.kind() == JsonKind::boolean && all.boolean();
}

}  // namespace

Task<Response> list_members(Context& context) {
  std::vector<FieldError> errors;
  const auto status = query_member_status(context.request, errors);
  const auto page = query_page(context.request, 100, 1000, errors);
  const bool full = query_boolean(context.request, "full", errors).value_or(false);
  const auto* key = context.request.argument("key");
  if (key && !is_printable(*key, 1000)) errors.push_back({"key", "is not the key of a member"});
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Members = std::vector<runbook::Member>;
  auto query = [id = captured_id(context.request), key = key ? std::optional(*key) : std::nullopt, status,
                page](Reads& reads) -> Result<Members> {
    TRY(known_batch(reads, id));
    if (key) return members_of_key(reads, id, *key, status, page);
    return reads.members(id, status, page.from, page.limit + 1);
  };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return batch_problem(context.request, rows.error());
  const auto cursor = cut_page(*rows, page.limit, [](const auto& row) { return row.id; });
  auto response = json_response(200, "{");
  append_list(response.body, "members", *rows, [full](std::string& out, const auto& row) {
    append_batch_member(out, row, full ? Documents::all : Documents::none);
  });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_member(Context& context) {
  const auto batch_id = captured_id(context.request);
  const auto id = captured_id(context.request, 1);
  auto query = [batch_id, id](Reads& reads) { return read_member(reads, batch_id, id); };
  auto view = co_await context.read(std::move(query));
  if (!view) co_return problem(view.error());
  if (!*view)
    co_return problem(404, "member_not_found",
                      fmt::format("batch '{}' has no member '{}'", context.request.captures[0],
                                  context.request.captures[1]));
  auto response = json_response(200, {});
  const auto append = [](std::string& out, const auto& row) { append_execution(out, row, Documents::all); };
  append_batch_member(response.body, (*view)->member, Documents::all, ObjectEnd::open);
  append_list(response.body, "steps", (*view)->steps, append);
  append_list(response.body, "cleanups", (*view)->cleanups, append);
  response.body += '}';
  co_return response;
}

Task<Response> remove_members(Context& context) {
  auto command = read_chosen<RemoveMembers>(context.request);
  if (!command) co_return std::move(command.error());
  if (command->member_ids.empty() && command->member_keys.empty())
    co_return problem("the request has invalid fields", {{"member_ids", "is required, or member_keys"}});
  auto reply = co_await tell<MembersReply>(context, *std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_members_reply(response.body, *reply);
  co_return response;
}

Task<Response> retry_members(Context& context) {
  auto command = read_chosen<RetryMembers>(context.request);
  if (!command) co_return std::move(command.error());
  if (command->member_ids.empty() && command->member_keys.empty() && !says_all(context.request))
    co_return problem("the request has invalid fields", {{"all", "must be true, or say whom: member_ids or member_keys"}});
  MembersReply total;
  while (true) {
    RetryMembers again = *command;
    auto reply = co_await tell<MembersReply>(context, std::move(again));
    if (!reply) co_return problem(reply.error());
    total.member_ids.insert(total.member_ids.end(), reply->member_ids.begin(), reply->member_ids.end());
    total.left_out = std::move(reply->left_out);  // who was left out before is so again, or was retried meanwhile
    total.phases = std::move(reply->phases);
    if (total.member_ids.empty()) total.note = std::move(reply->note);
    // Without progress the next answer would be the same.
    if (!reply->more || reply->member_ids.empty()) break;
  }
  auto response = json_response(200, {});
  append_members_reply(response.body, total);
  co_return response;
}

Task<Response> list_failures(Context& context) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 50, {1, 200}, errors));
  const auto cursor = failure_cursor(context.request, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [id = captured_id(context.request), cursor, limit](Reads& reads) {
    return read_failures(reads, id, cursor, limit + 1);
  };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return batch_problem(context.request, rows.error());
  std::optional<std::string> next;
  if (rows->size() > limit) {
    rows->resize(limit);
    next = cursor_of(key_of(rows->back().step));
  }
  auto response = json_response(200, "{");
  append_list(response.body, "failures", *rows, append_failure);
  append_member(response.body, "next_cursor", next);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
