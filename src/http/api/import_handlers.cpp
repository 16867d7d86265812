// Batches and members from a CSV text. All of it is read before anything is stored; what is stored goes in
// chunks, so that others get their turn in between.
#include <fmt/format.h>

#include "http/api/batch_reads.hpp"
#include "http/api/routes.hpp"
#include "http/api/source_members.hpp"
#include "http/api/stored_runbook.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

constexpr std::size_t chunk = 1000;

std::optional<Response> check_csv(const Request& request) {
  const std::string_view type = request.content_type;
  if (type.starts_with("application/json") || type.starts_with("multipart/") ||
      type.starts_with("application/yaml"))
    return problem(415, "unsupported_media_type", "the body must be the members as text/csv");
  if (request.body.empty()) return problem("the body is empty", {{"", "must be the members as CSV"}});
  return std::nullopt;
}

std::string query_by(const Request& request, std::vector<FieldError>& errors) {
  const auto* by = request.argument("by");
  if (by == nullptr) return {};
  if (!is_printable(*by, 200)) errors.push_back({"by", "must have 1 to 200 bytes and no control characters"});
  return *by;
}

std::string query_reason(const Request& request, std::vector<FieldError>& errors) {
  const auto* reason = request.argument("reason");
  if (reason == nullptr) return {};
  if (!is_printable(*reason, 2000)) errors.push_back({"reason", "must have 1 to 2000 bytes and no control characters"});
  return *reason;
}

// Adds all of them; `added` tells how many it were when something fails in the middle.
Task<std::expected<MembersReply, Refused>> add_members(Context& context, std::int64_t batch_id,
                                                       SourceMembers& members, std::optional<Time> time,
                                                       const Attribution& who) {
  std::expected<MembersReply, Refused> total;
  for (std::size_t from = 0; from < members.size(); from += chunk) {
    AddMembers command{.batch_id = batch_id, .by = who.by, .reason = who.reason};
    for (std::size_t i = from; i < std::min(from + chunk, members.size()); ++i)
      command.members.push_back({std::move(members[i].member_key), time, std::move(members[i].data)});
    auto reply = co_await tell<MembersReply>(context, std::move(command));
    if (!reply) {
      total = std::unexpected(std::move(reply.error()));
      break;
    }
    total->member_ids.insert(total->member_ids.end(), reply->member_ids.begin(), reply->member_ids.end());
    append(total->left_out, reply->left_out);
  }
  co_return total;
}

// Nobody shall find half a batch and take it for a whole one.
Task<Response> give_up(Context& context, std::int64_t batch_id, Refused why) {
  ChangeBatch cancel{.batch_id = batch_id, .what = ChangeBatch::What::cancel};
  cancel.reason = "the import failed: " + why.message;
  auto cancelled = co_await tell<BatchReply>(context, std::move(cancel));
  why.message +=
      cancelled ? fmt::format("; batch {} was cancelled", batch_id)
                : fmt::format("; batch {} is there without all its members, and could not be cancelled: {}",
                              batch_id, cancelled.error().message);
  co_return problem(why);
}

}  // namespace

Task<Response> create_batch(Context& context) {
  if (auto wrong = check_csv(context.request)) co_return std::move(*wrong);
  std::vector<FieldError> errors;
  const auto version = query_version(context.request, errors);
  OpenBatch open{.runbook_name = context.request.captures[0], .by = query_by(context.request, errors)};
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto source = co_await read_runbook(context, open.runbook_name, version);
  if (!source) co_return std::move(source.error());
  if (version == 0 && !source->is_active)
    co_return problem(409, "not_possible", "runbook '" + open.runbook_name + "' has no active version");
  auto members = co_await read_csv_members(context, source->definition, context.request.body);
  if (!members) co_return std::move(members.error());

  open.version = source->version;
  auto opened = co_await tell<BatchReply>(context, std::move(open));
  if (!opened) co_return problem(opened.error());
  const auto id = opened->batch.id;
  const Attribution nobody;  // the batch says who made it
  auto added = co_await add_members(context, id, *members, std::nullopt, nobody);
  if (!added) co_return co_await give_up(context, id, std::move(added.error()));
  StartBatch start{id};
  auto started = co_await tell<BatchReply>(context, std::move(start));
  if (!started) co_return co_await give_up(context, id, std::move(started.error()));
  auto response = json_response(201, {});
  append_batch(response.body, started->batch, ObjectEnd::open);
  append_member(response.body, "member_count", added->member_ids.size());
  append_member(response.body, "left_out", count_of(added->left_out));
  response.body += '}';
  response.headers.emplace_back("Location", "/api/v1/batches/" + std::to_string(id));
  co_return response;
}

Task<Response> add_batch_members(Context& context) {
  if (auto wrong = check_csv(context.request)) co_return std::move(*wrong);
  std::vector<FieldError> errors;
  const Attribution who{query_by(context.request, errors), query_reason(context.request, errors)};
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [id = captured_id(context.request)](Reads& reads) { return known_batch(reads, id); };
  auto batch = co_await context.read(std::move(query));
  if (!batch) co_return batch_problem(context.request, batch.error());
  auto source = co_await read_runbook(context, batch->runbook_name, batch->runbook_version);
  if (!source) co_return std::move(source.error());
  auto members = co_await read_csv_members(context, source->definition, context.request.body);
  if (!members) co_return std::move(members.error());
  auto added = co_await add_members(context, batch->batch.id, *members, batch->batch.batch_start_time, who);
  if (!added) co_return problem(added.error());
  auto response = json_response(200, {});
  append_members_reply(response.body, *added);
  co_return response;
}

}  // namespace baton::http
