#include "scheduler/look.hpp"

#include <algorithm>
#include <map>

#include "base/json_write.hpp"
#include "ports/ask.hpp"

namespace baton::scheduler {
namespace {

using runbook::Diff;
using runbook::KnownMember;
using runbook::SourceMember;

constexpr std::size_t chunk = 1'000;
constexpr std::size_t page = 5'000;
// In between only what has changed goes to the data table. Others may write it, and read when a row was seen.
constexpr std::chrono::hours all_data_at_least_every{1};

runbook::DataRow data_row(const SourceMember& member) {
  return {member.member_key, member.batch_time, member.data};
}

std::uint64_t hash_of(const SourceMember& member) {
  return runbook::hash_data((member.batch_time ? to_iso(*member.batch_time) : "") + member.data.text);
}

std::string first_of(const std::vector<std::string>& problems) {
  constexpr std::size_t shown = 10;
  std::string text;
  for (std::size_t i = 0; i < std::min(problems.size(), shown); ++i) text += (i ? "\n" : "") + problems[i];
  if (problems.size() > shown) text += "\n… and " + std::to_string(problems.size() - shown) + " more";
  return text;
}

// [from, from + chunk) of a list, until it is done.
template <class List, class Each>
Result<> in_chunks(const List& list, Each&& each) {
  for (std::size_t from = 0; from < list.size(); from += chunk)
    TRY(each(from, std::min(from + chunk, list.size())));
  return {};
}

}  // namespace

// The engine's answer, or why there is none.
template <class Answer>
Result<Answer> Look::ask_for(Command command) {
  if (with_.stopping) return fail(Code::unavailable, "the server is stopping");
  Reply reply = ask(with_.inbox, std::move(command)).get();
  if (auto* answer = std::get_if<Answer>(&reply)) return std::move(*answer);
  const auto* refused = std::get_if<Refused>(&reply);
  const bool replaced = refused && refused->refusal == Refusal::runbook_replaced;
  return fail(replaced ? Code::conflict : Code::unavailable,
              refused ? refused->message : "an unexpected answer");
}

template <class Answer>
Result<> Look::tell(Command command) {
  const auto answer = ask_for<Answer>(std::move(command));
  return answer ? Result<>{} : std::unexpected(answer.error());
}

bool Look::run() {
  auto outcome = [&]() -> Result<NoteSync> {
    TRY_ASSIGN(const SourceTable table, with_.sources.fetch(definition_.data_source));
    const auto members = runbook::read_members(definition_.data_source, table, !definition_.data_source.immediate);
    if (!members) return fail(Code::invalid, first_of(members.error()));
    return apply(*members);
  }();
  if (!outcome && with_.stopping) return false;  // that is why it failed
  // Another version came while the source was asked: its own look is next.
  if (!outcome && outcome.error().code == Code::conflict) {
    with_.log(row_.name, outcome.error().message, false);
    return true;
  }
  (outcome ? with_.syncs : with_.failures).add();
  if (!outcome) with_.log(row_.name, outcome.error().message, true);
  const bool went_well = outcome.has_value();
  NoteSync note = outcome ? *std::move(outcome) : NoteSync{.error = outcome.error().message};
  note.runbook_id = row_.id;
  (void)tell<RunbookReply>(std::move(note));
  return went_well;
}

Result<std::vector<KnownMember>> Look::known_members() {
  std::vector<KnownMember> all;
  while (true) {
    TRY_ASSIGN(auto next, reads_.known_members(row_.name, all.empty() ? 0 : all.back().id, page));
    const bool last = next.size() < page;
    std::ranges::move(next, std::back_inserter(all));
    if (last) return all;
  }
}

// Makes the batches hold what the source says. Answers what was held back.
Result<NoteSync> Look::apply(const std::vector<SourceMember>& members) {
  NoteSync note;
  TRY(write_data(members));
  TRY_ASSIGN(const auto known, known_members());
  TRY_ASSIGN(note.approvals_seen, reads_.approved_removals(row_.name));
  const Diff diff =
      runbook::diff_members(definition_.data_source, members, known, note.approvals_seen, with_.clock.now());
  TRY(leave(diff.leaves));
  TRY(in_chunks(diff.refreshes, [&](std::size_t from, std::size_t to) -> Result<> {
    RefreshMembers refresh{.members = {}, .of_runbook = row_.id};
    for (std::size_t i = from; i < to; ++i)
      refresh.members.push_back({diff.refreshes[i].member.id, data_row(members[diff.refreshes[i].source])});
    return tell<MembersReply>(std::move(refresh));
  }));
  for (const Diff::Joins& joins : diff.joins) TRY(join(joins, members));
  TRY(finish_imports());
  if (!diff.joins.empty() || !diff.leaves.empty())
    with_.log(row_.name,
              std::to_string(diff.joins.size()) + " batches with new members, " +
                  std::to_string(diff.leaves.size()) + " members left",
              false);
  if (diff.held.empty()) return note;
  std::string held;
  for (const Diff::Held& each : diff.held) {
    held += held.empty() ? '[' : ',';
    append_object(held, "batch_id", each.batch_id, "leaving", each.members.size(), "active", each.active,
                  "mark", each.mark);
    with_.log(row_.name,
              std::to_string(each.members.size()) + " members would leave batch " + std::to_string(each.batch_id) +
                  ", which has " + std::to_string(each.active) + " active ones: held until somebody approves it",
              true);
  }
  note.held_removals = Json{held + "]"};
  return note;
}

// All rows when somebody is gone, since who is not seen by such a look is not current any more.
Result<> Look::write_data(const std::vector<SourceMember>& members) {
  const Time began = with_.clock.now();
  const auto now = std::chrono::steady_clock::now();
  const Sent before = std::exchange(sent_, {});  // if it fails in the middle, nothing is known
  std::unordered_map<std::string, std::uint64_t> rows;
  std::vector<const SourceMember*> to_send;
  std::size_t still_there = 0;
  for (const SourceMember& member : members) {
    const std::uint64_t hash = rows[member.member_key] = hash_of(member);
    const auto known = before.rows.find(member.member_key);
    if (known != before.rows.end()) ++still_there;
    if (known == before.rows.end() || known->second != hash) to_send.push_back(&member);
  }
  const bool all = before.runbook_id != row_.id || still_there < before.rows.size() ||
                   now - before.all_at >= all_data_at_least_every;
  if (all) {
    to_send.clear();
    for (const SourceMember& member : members) to_send.push_back(&member);
  }
  TRY(in_chunks(to_send, [&](std::size_t from, std::size_t to) -> Result<> {
    SyncData data{.runbook_id = row_.id, .rows = {}, .seen_at = began, .finish = false};
    for (std::size_t i = from; i < to; ++i) data.rows.push_back(data_row(*to_send[i]));
    return tell<RunbookReply>(std::move(data));
  }));
  if (all)
    TRY(tell<RunbookReply>(SyncData{.runbook_id = row_.id, .rows = {}, .seen_at = began, .finish = true}));
  sent_ = {row_.id, all ? now : before.all_at, std::move(rows)};
  return {};
}

Result<> Look::join(const Diff::Joins& joins, const std::vector<SourceMember>& members) {
  std::int64_t batch_id = joins.batch_id.value_or(0);
  if (!joins.batch_id) {
    TRY_ASSIGN(const auto opened, ask_for<BatchReply>(OpenBatch{.runbook_name = row_.name,
                                                                .version = row_.version,
                                                                .batch_start_time = joins.batch_time,
                                                                .by = "scheduler",
                                                                .of_runbook = row_.id}));
    batch_id = opened.batch.id;
  }
  return in_chunks(joins.members, [&](std::size_t from, std::size_t to) -> Result<> {
    AddMembers add{.batch_id = batch_id, .members = {}, .of_runbook = row_.id};
    for (std::size_t i = from; i < to; ++i) add.members.push_back(data_row(members[joins.members[i]]));
    return tell<MembersReply>(std::move(add));
  });
}

Result<> Look::leave(const std::vector<runbook::MemberRef>& leavers) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_batch;
  for (const runbook::MemberRef& leaver : leavers) by_batch[leaver.batch_id].push_back(leaver.id);
  for (const auto& [batch_id, ids] : by_batch)
    TRY(in_chunks(ids, [&, id = batch_id](std::size_t from, std::size_t to) -> Result<> {
      RemoveMembers removal{
          .batch_id = id, .member_ids = {}, .member_keys = {}, .by = "scheduler", .of_runbook = row_.id};
      for (std::size_t i = from; i < to; ++i) removal.member_ids.push_back(ids[i]);
      return tell<MembersReply>(std::move(removal));
    }));
  return {};
}

// The batches of a runbook whose members are all there begin, also those that an earlier process left
// half-imported.
Result<> Look::finish_imports() {
  TRY_ASSIGN(const auto half, reads_.importing());
  for (const BatchSummary& each : half)
    if (!each.batch.is_manual && each.runbook_name == row_.name)
      TRY(tell<BatchReply>(StartBatch{.batch_id = each.batch.id, .of_runbook = row_.id}));
  return {};
}

}  // namespace baton::scheduler
