#include "scheduler/scheduler.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "core/runbook/members.hpp"
#include "ports/ask.hpp"

namespace baton::scheduler {
namespace {

using runbook::Diff;
using runbook::KnownMember;
using runbook::SourceMember;

constexpr std::size_t chunk = 1'000;
constexpr std::size_t page = 5'000;
// Other programs may write the table of runbooks too, and do not wake us.
constexpr std::chrono::seconds look_at_least_every{30};
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

struct Scheduler::State {
  State(Inbox& i, OpenReads o, DataSources& d, const Clock& c, metrics::Registry& m, Log l)
      : inbox(i),
        open_reads(std::move(o)),
        sources(d),
        clock(c),
        log(std::move(l)),
        syncs(m.counter("baton_scheduler_syncs_total", "Looks at data sources that went well.")),
        failures(m.counter("baton_scheduler_sync_failures_total", "Looks at data sources that failed.")) {}

  void loop();
  [[nodiscard]] std::chrono::milliseconds look();
  // What is known of the data table of a runbook: a cache, for the rows that need not be sent.
  struct Sent {
    std::int64_t runbook_id = 0;
    std::chrono::steady_clock::time_point all_at;
    std::unordered_map<std::string, std::uint64_t> rows;  // hashes, by key
  };
  struct Seen {
    std::int64_t id = 0;
    bool automation = true;
    std::chrono::steady_clock::time_point next;
    Sent sent;
  };

  void sync(const runbook::Runbook& row, const runbook::Definition& definition, Sent& sent);
  [[nodiscard]] Result<NoteSync> apply(const runbook::Runbook& row, const runbook::Definition& definition,
                                       const std::vector<SourceMember>& members, Sent& sent);
  [[nodiscard]] Result<> join(const runbook::Runbook& row, const Diff::Joins& joins,
                              const std::vector<SourceMember>& members);
  [[nodiscard]] Result<> leave(const runbook::Runbook& row, const std::vector<runbook::MemberRef>& leavers);
  [[nodiscard]] Result<> write_data(const runbook::Runbook& row, const std::vector<SourceMember>& members,
                                    Sent& sent);
  [[nodiscard]] Result<> finish_imports(const runbook::Runbook& row);
  [[nodiscard]] Result<std::vector<KnownMember>> known_members(const std::string& name);
  [[nodiscard]] bool is_stopping() {
    const std::scoped_lock lock(mutex);
    return stopping;
  }

  // The engine's answer, or why there is none.
  template <class Answer>
  Result<Answer> ask_for(Command command) {
    if (is_stopping()) return fail(Code::unavailable, "the server is stopping");
    Reply reply = ask(inbox, std::move(command)).get();
    if (auto* answer = std::get_if<Answer>(&reply)) return std::move(*answer);
    const auto* refused = std::get_if<Refused>(&reply);
    const bool replaced = refused && refused->refusal == Refusal::runbook_replaced;
    return fail(replaced ? Code::conflict : Code::unavailable, refused ? refused->message : "an unexpected answer");
  }

  template <class Answer>
  Result<> tell(Command command) {
    const auto answer = ask_for<Answer>(std::move(command));
    return answer ? Result<>{} : std::unexpected(answer.error());
  }

  Inbox& inbox;
  OpenReads open_reads;
  DataSources& sources;
  const Clock& clock;
  Log log;
  metrics::Counter& syncs;
  metrics::Counter& failures;
  std::unique_ptr<Reads> reads;
  std::map<std::string, Seen> seen;  // by runbook name
  std::map<std::string, std::vector<runbook::ApprovedRemovals>> approved;

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  bool woken = false;
  std::thread thread;
};

void Scheduler::State::loop() {
  while (true) {
    std::chrono::milliseconds pause{1'000};
    if (!reads)
      if (auto opened = open_reads()) reads = *std::move(opened);
    if (reads) pause = look();
    std::unique_lock lock(mutex);
    changed.wait_for(lock, pause, [&] { return stopping || woken; });
    if (stopping) return;
    woken = false;
  }
}

// One look at all runbooks: those whose time has come are synced. Answers how long nothing is to be done.
std::chrono::milliseconds Scheduler::State::look() {
  const auto active = reads->active_runbooks();
  if (!active) {
    reads.reset();
    return std::chrono::seconds{1};
  }
  auto wake_at = std::chrono::steady_clock::now() + look_at_least_every;
  std::erase_if(seen, [&](const auto& entry) {
    return std::ranges::none_of(*active, [&](const auto& row) { return row.name == entry.first; });
  });
  for (const runbook::Runbook& row : *active) {
    if (is_stopping()) return std::chrono::milliseconds{0};
    Seen& last = seen[row.name];
    const bool is_new = last.id != row.id || (row.automation_enabled && !last.automation);
    last.id = row.id;
    last.automation = row.automation_enabled;
    if (!row.automation_enabled) continue;
    const auto parsed = runbook::parse(row.yaml_content, runbook::Strictness::stored);
    if (!parsed.definition || parsed.definition->data_source.type == runbook::SourceType::unsupported) continue;
    const auto approvals = reads->approved_removals(row.name);
    const bool newly_approved = approvals && !approvals->empty() && approved[row.name] != *approvals;
    if (approvals) approved[row.name] = *approvals;
    const auto now = std::chrono::steady_clock::now();
    if (is_new || newly_approved || now >= last.next) {
      last.next = now + parsed.definition->data_source.interval;
      sync(row, *parsed.definition, last.sent);
    }
    wake_at = std::min(wake_at, last.next);
  }
  const auto left = wake_at - std::chrono::steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), std::chrono::milliseconds{1});
}

void Scheduler::State::sync(const runbook::Runbook& row, const runbook::Definition& definition, Sent& sent) {
  auto outcome = [&]() -> Result<NoteSync> {
    TRY_ASSIGN(const SourceTable table, sources.fetch(definition.data_source));
    const auto members = runbook::read_members(definition.data_source, table.columns, table.rows,
                                               !definition.data_source.immediate);
    if (!members) return fail(Code::invalid, first_of(members.error()));
    return apply(row, definition, *members, sent);
  }();
  if (!outcome && is_stopping()) return;  // that is why it failed
  // Another version came while the source was asked: its own look is next.
  if (!outcome && outcome.error().code == Code::conflict) return log(row.name, outcome.error().message, false);
  (outcome ? syncs : failures).add();
  if (!outcome) log(row.name, outcome.error().message, true);
  NoteSync note = outcome ? *std::move(outcome) : NoteSync{.error = outcome.error().message};
  note.runbook_id = row.id;
  (void)tell<RunbookReply>(std::move(note));
}

Result<std::vector<KnownMember>> Scheduler::State::known_members(const std::string& name) {
  std::vector<KnownMember> all;
  while (true) {
    TRY_ASSIGN(auto next, reads->known_members(name, all.empty() ? 0 : all.back().id, page));
    const bool last = next.size() < page;
    std::ranges::move(next, std::back_inserter(all));
    if (last) return all;
  }
}

// Makes the batches hold what the source says. Answers what was held back.
Result<NoteSync> Scheduler::State::apply(const runbook::Runbook& row, const runbook::Definition& definition,
                                         const std::vector<SourceMember>& members, Sent& sent) {
  NoteSync note;
  TRY(write_data(row, members, sent));
  TRY_ASSIGN(const auto known, known_members(row.name));
  TRY_ASSIGN(note.approvals_seen, reads->approved_removals(row.name));
  const Diff diff =
      runbook::diff_members(definition.data_source, members, known, note.approvals_seen, clock.now());
  TRY(leave(row, diff.leaves));
  TRY(in_chunks(diff.refreshes, [&](std::size_t from, std::size_t to) -> Result<> {
    RefreshMembers refresh{.members = {}, .of_runbook = row.id};
    for (std::size_t i = from; i < to; ++i)
      refresh.members.push_back({diff.refreshes[i].member.id, data_row(members[diff.refreshes[i].source])});
    return tell<MembersReply>(std::move(refresh));
  }));
  for (const Diff::Joins& joins : diff.joins) TRY(join(row, joins, members));
  TRY(finish_imports(row));
  if (!diff.joins.empty() || !diff.leaves.empty())
    log(row.name,
        std::to_string(diff.joins.size()) + " batches with new members, " + std::to_string(diff.leaves.size()) +
            " members left",
        false);
  if (diff.held.empty()) return note;
  std::string held;
  for (const Diff::Held& each : diff.held) {
    held += (held.empty() ? "[" : ",") + std::string("{\"batch_id\":") + std::to_string(each.batch_id) +
            ",\"leaving\":" + std::to_string(each.members.size()) + ",\"active\":" + std::to_string(each.active) +
            ",\"mark\":" + quoted(each.mark) + "}";
    log(row.name,
        std::to_string(each.members.size()) + " of " + std::to_string(each.active) + " members would leave batch " +
            std::to_string(each.batch_id) + ": held until somebody approves it",
        true);
  }
  note.held_removals = Json{held + "]"};
  return note;
}

// All rows when somebody is gone, since who is not seen by such a look is not current any more.
Result<> Scheduler::State::write_data(const runbook::Runbook& row, const std::vector<SourceMember>& members,
                                      Sent& sent) {
  const Time began = clock.now();
  const auto now = std::chrono::steady_clock::now();
  const Sent before = std::exchange(sent, {});  // if it fails in the middle, nothing is known
  std::unordered_map<std::string, std::uint64_t> rows;
  std::vector<const SourceMember*> to_send;
  std::size_t still_there = 0;
  for (const SourceMember& member : members) {
    const std::uint64_t hash = rows[member.member_key] = hash_of(member);
    const auto known = before.rows.find(member.member_key);
    if (known != before.rows.end()) ++still_there;
    if (known == before.rows.end() || known->second != hash) to_send.push_back(&member);
  }
  const bool all = before.runbook_id != row.id || still_there < before.rows.size() ||
                   now - before.all_at >= all_data_at_least_every;
  if (all) {
    to_send.clear();
    for (const SourceMember& member : members) to_send.push_back(&member);
  }
  TRY(in_chunks(to_send, [&](std::size_t from, std::size_t to) -> Result<> {
    SyncData data{.runbook_id = row.id, .rows = {}, .seen_at = began, .finish = false};
    for (std::size_t i = from; i < to; ++i) data.rows.push_back(data_row(*to_send[i]));
    return tell<RunbookReply>(std::move(data));
  }));
  if (all) TRY(tell<RunbookReply>(SyncData{.runbook_id = row.id, .rows = {}, .seen_at = began, .finish = true}));
  sent = {row.id, all ? now : before.all_at, std::move(rows)};
  return {};
}

Result<> Scheduler::State::join(const runbook::Runbook& row, const Diff::Joins& joins,
                                const std::vector<SourceMember>& members) {
  std::int64_t batch_id = joins.batch_id.value_or(0);
  if (!joins.batch_id) {
    TRY_ASSIGN(const auto opened, ask_for<BatchReply>(OpenBatch{.runbook_name = row.name,
                                                                .version = row.version,
                                                                .batch_start_time = joins.batch_time,
                                                                .by = "scheduler",
                                                                .of_runbook = row.id}));
    batch_id = opened.batch.id;
  }
  return in_chunks(joins.members, [&](std::size_t from, std::size_t to) -> Result<> {
    AddMembers add{.batch_id = batch_id, .members = {}, .of_runbook = row.id};
    for (std::size_t i = from; i < to; ++i) add.members.push_back(data_row(members[joins.members[i]]));
    return tell<MembersReply>(std::move(add));
  });
}

Result<> Scheduler::State::leave(const runbook::Runbook& row, const std::vector<runbook::MemberRef>& leavers) {
  std::map<std::int64_t, std::vector<std::int64_t>> by_batch;
  for (const runbook::MemberRef& leaver : leavers) by_batch[leaver.batch_id].push_back(leaver.id);
  for (const auto& [batch_id, ids] : by_batch)
    TRY(in_chunks(ids, [&, id = batch_id](std::size_t from, std::size_t to) -> Result<> {
      RemoveMembers removal{
          .batch_id = id, .member_ids = {}, .member_keys = {}, .by = "scheduler", .of_runbook = row.id};
      for (std::size_t i = from; i < to; ++i) removal.member_ids.push_back(ids[i]);
      return tell<MembersReply>(std::move(removal));
    }));
  return {};
}

// The batches of a runbook whose members are all there begin, also those that an earlier process left
// half-imported.
Result<> Scheduler::State::finish_imports(const runbook::Runbook& row) {
  TRY_ASSIGN(const auto half, reads->importing());
  for (const BatchSummary& each : half)
    if (!each.batch.is_manual && each.runbook_name == row.name)
      TRY(tell<BatchReply>(StartBatch{.batch_id = each.batch.id, .of_runbook = row.id}));
  return {};
}

Scheduler::Scheduler(Inbox& inbox, OpenReads open_reads, DataSources& sources, const Clock& clock,
                     metrics::Registry& metrics, Log log)
    : state_(std::make_unique<State>(inbox, std::move(open_reads), sources, clock, metrics, std::move(log))) {}

Scheduler::~Scheduler() { stop(); }

void Scheduler::start() {
  state_->thread = std::thread([this] { state_->loop(); });
}

void Scheduler::stop() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->sources.interrupt();
  if (state_->thread.joinable()) state_->thread.join();
}

void Scheduler::wake() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->woken = true;
  }
  state_->changed.notify_all();
}

}  // namespace baton::scheduler
