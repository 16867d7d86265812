// The members of a batch: list, show, remove, retry; and what failed.
#include <fmt/format.h>

#include "http/answer.hpp"
#include "http/batch_reads.hpp"
#include "http/fields.hpp"
#include "http/problem.hpp"
#include "http/render_runbook.hpp"
#include "http/routes.hpp"

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
  // Only who failed or left can have any.
  const auto failed = [](const ExecutionView& step) { return is_failure(step.execution.status); };
  if (view.member.status != runbook::MemberStatus::active || std::ranges::any_of(view.steps, failed)) {
    TRY_ASSIGN(view.cleanups, find_cleanups(reads, batch_id, chosen_max, [id](const ExecutionView& row) {
                 return row.batch_member_id == id;
               }));
  }
  return view;
}

// Whom a command is about: {"member_ids": […]} or {"member_keys": […]}.
template <class Command>
std::expected<Command, Response> read_chosen(const Request& request) {
  auto document = parse_object(request, true);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  Command command{.batch_id = captured_id(request)};
  command.by = fields.text("by", 200).value_or("");
  command.member_ids = fields.ids("member_ids", chosen_max);
  command.member_keys = fields.texts("member_keys", chosen_max, 1000);
  if (!command.member_ids.empty() && !command.member_keys.empty())
    fields.wrong("member_keys", "cannot be given together with member_ids");
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  if (command.batch_id == 0) return std::unexpected(no_such_batch(request));
  return command;
}

}  // namespace

Task<Response> list_members(Call& call) {
  std::vector<FieldError> errors;
  const auto status = query_member_status(call.request, errors);
  const auto page = query_page(call.request, 100, 1000, errors);
  const bool full = query_boolean(call.request, "full", errors).value_or(false);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Members = std::vector<runbook::Member>;
  auto query = [id = captured_id(call.request), status, page](Reads& reads) -> Result<Members> {
    TRY(known_batch(reads, id));
    return reads.members(id, status, page.from, page.limit + 1);
  };
  auto rows = co_await call.read(std::move(query));
  if (!rows) co_return batch_problem(call.request, rows.error());
  const auto cursor = cut_page(*rows, page.limit, [](const auto& row) { return row.id; });
  auto response = json_response(200, "{");
  append_list(response.body, "members", *rows, [full](std::string& out, const auto& row) {
    append_batch_member(out, row, full ? Documents::all : Documents::none);
  });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_member(Call& call) {
  const auto batch_id = captured_id(call.request);
  const auto id = captured_id(call.request, 1);
  auto query = [batch_id, id](Reads& reads) { return read_member(reads, batch_id, id); };
  auto view = co_await call.read(std::move(query));
  if (!view) co_return problem(view.error());
  if (!*view)
    co_return problem(
        404, "member_not_found",
        fmt::format("batch '{}' has no member '{}'", call.request.captures[0], call.request.captures[1]));
  auto response = json_response(200, {});
  const auto append = [](std::string& out, const auto& row) { append_execution(out, row, Documents::all); };
  append_batch_member(response.body, (*view)->member, Documents::all, Ending::open);
  append_list(response.body, "steps", (*view)->steps, append);
  append_list(response.body, "cleanups", (*view)->cleanups, append);
  response.body += '}';
  co_return response;
}

Task<Response> remove_members(Call& call) {
  auto command = read_chosen<RemoveMembers>(call.request);
  if (!command) co_return std::move(command.error());
  if (command->member_ids.empty() && command->member_keys.empty())
    co_return problem("the request has invalid fields", {{"member_ids", "is required, or member_keys"}});
  auto reply = co_await tell<MembersReply>(call, *std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_members_reply(response.body, *reply);
  co_return response;
}

Task<Response> retry_members(Call& call) {
  auto command = read_chosen<RetryMembers>(call.request);
  if (!command) co_return std::move(command.error());
  MembersReply total;
  while (true) {
    RetryMembers again = *command;
    auto reply = co_await tell<MembersReply>(call, std::move(again));
    if (!reply) co_return problem(reply.error());
    total.member_ids.insert(total.member_ids.end(), reply->member_ids.begin(), reply->member_ids.end());
    total.left_out += reply->left_out;
    total.phases = std::move(reply->phases);
    // Without progress the next answer would be the same.
    if (!reply->more || reply->member_ids.empty()) break;
  }
  auto response = json_response(200, {});
  append_members_reply(response.body, total);
  co_return response;
}

Task<Response> list_failures(Call& call) {
  std::vector<FieldError> errors;
  const auto page = query_page(call.request, 50, 200, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  using Failures = std::vector<Failure>;
  auto query = [id = captured_id(call.request), page](Reads& reads) -> Result<Failures> {
    TRY(known_batch(reads, id));
    TRY_ASSIGN(const auto phases, reads.phases(id));
    Failures all;
    for (const auto& phase : phases) {
      if (phase.status == runbook::PhaseStatus::pending) continue;
      TRY_ASSIGN(auto some, reads.failures(phase.id, page.from, page.limit + 1));
      std::ranges::move(some, std::back_inserter(all));
    }
    std::ranges::sort(all, std::greater{}, [](const Failure& failure) { return failure.step.ref.id; });
    if (all.size() > page.limit + 1) all.resize(page.limit + 1);
    return all;
  };
  auto rows = co_await call.read(std::move(query));
  if (!rows) co_return batch_problem(call.request, rows.error());
  const auto cursor = cut_page(*rows, page.limit, [](const Failure& row) { return row.step.ref.id; });
  auto response = json_response(200, "{");
  append_list(response.body, "failures", *rows, append_failure);
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
