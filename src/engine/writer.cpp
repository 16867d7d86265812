#include "engine/writer.hpp"

#include <algorithm>
#include <utility>

#include "base/mutant.hpp"
#include "engine/batch.hpp"

namespace baton::engine {

using namespace workflow;

Writer::Writer(Store& store, const Clock& clock, WriterOptions options, WriterMetrics metrics)
    : store_(store),
      clock_(clock),
      options_(std::move(options)),
      metrics_(metrics),
      queues_(options_.queue_window),
      progressions_(options_.expansions_max) {}

Writer::~Writer() = default;

Result<> Writer::open() {
  auto state = store_.open();
  if (!state) {
    if (state.error().code == Code::fenced) fatal_ = state.error();
    return std::unexpected(state.error());
  }
  TRY_ASSIGN(next_timer_, store_.next_timer());
  last_commit_ = state->last_commit;
  away_ = false;
  retry_at_.reset();
  options_.policy.opened_at = clock_.now();
  look_at_all_queues();
  options_.runbooks.opened_at = clock_.now();
  if (!std::exchange(opened_before_, true)) {
    TRY(take_back_builtin());
    return adopt_phases();
  }
  if (!held_) return {};

  const auto held = std::move(held_);
  const bool happened = last_commit_ == held->commit_number;
  if ((happened && !MUTANT(redo_unknown_blindly)) || MUTANT(release_unknown_as_done)) {
    held->batch->release();
    look_at_all_queues();
  } else {
    run(held->batch->take_items());
  }
  return {};
}

// What the built-in worker of an earlier process was running: that worker is gone for sure, so nobody waits
// for its leases to run out.
Result<> Writer::take_back_builtin() {
  constexpr std::size_t chunk = 1'000;
  std::vector<NodeKey> before;
  while (true) {
    LoadRequest request;
    TRY_ASSIGN(request.nodes, store_.running_builtin(chunk));
    if (request.nodes.empty()) break;
    if (request.nodes == before) return fail(trouble_.code, trouble_.message);
    TRY_ASSIGN(const Loaded loaded, store_.load(request));
    ReturnTasks back{.tasks = {}, .reason = "the server was restarted"};
    for (const NodeState& node : loaded.nodes) back.tasks.push_back({*node.task_id, lease_token(node)});
    own_items_.push_back({std::move(back), std::make_shared<Nobody>()});
    run({});
    if (away_) return fail(Code::unavailable, "the store was lost while the server started");
    before = std::move(request.nodes);
  }
  return {};
}

void Writer::run(std::vector<Item> items) {
  ENSURE(!away_);
  const Time now = clock_.now();
  retry_at_.reset();
  if (look_again_at_ && *look_again_at_ <= now) {
    look_again_at_.reset();
    queues_.forget_ready();
    look_at_all_queues();
  }
  definitions_.trim();
  std::vector<Item> rest = std::exchange(own_items_, {});
  rest.reserve(rest.size() + items.size());
  for (Item& item : items) {
    auto* poll = std::get_if<Poll>(&item.command);
    if (!poll) {
      rest.push_back(std::move(item));
      continue;
    }
    QueueKey key{poll->tenant, poll->queue};
    const std::uint64_t id = next_id_++;
    deadlines_.insert({poll->wait_until, id, key});
    workers_.polled(*poll, now);
    queues_.add_poll(key, {id, std::move(*poll), std::move(item.waiter)});
    hungry_.insert(std::move(key));
  }
  attempt(std::make_unique<Batch>(*this, now, std::move(rest)));
  // A held batch may have served polls whose time is up: they are answered when its outcome is known.
  if (!held_) polls_time_out(now);
}

// What a batch touches is foreseen as far as it pays. A job that turned out to need more is loaded whole, and
// the batch is decided again from the start.
Result<> Writer::prepare(std::unique_ptr<Batch>& batch) {
  constexpr int rounds_max = 1'000;  // each learns something, so this ends long before
  for (int round = 0; round < rounds_max; ++round) {
    TRY(batch->prepare());
    if (!batch->needs_more()) return {};
    const auto wanted = batch->ids_wanted();
    batch = batch->again();
    TRY(reserve(wanted));
    if (metrics_.redecided) metrics_.redecided->add();
  }
  return fail(Code::invalid, "what is stored does not fit together: it cannot be decided");
}

// Ids are reserved in blocks; those that are not used are gaps. As many as were not enough at least, so that
// a batch that makes many rows is not decided again for each block of them.
Result<> Writer::reserve(const std::map<runbook::Table, std::size_t>& wanted) {
  for (const auto& [table, taken] : wanted) {
    const bool many = table == runbook::Table::step_executions || table == runbook::Table::batch_members;
    const std::size_t block = many ? options_.ids_block : options_.ids_block / 50 + 1;
    TRY_ASSIGN(auto fresh, store_.reserve_ids(table, std::max(block, taken)));
    std::ranges::sort(fresh, std::greater{});
    auto& pool = ids_[table];
    pool.insert(pool.begin(), fresh.begin(), fresh.end());
  }
  return {};
}

std::shared_ptr<const runbook::Definition> Writer::runbook_definition(const runbook::Runbook& row) {
  constexpr std::size_t known_max = 500;
  const std::size_t hash = std::hash<std::string>{}(row.yaml_content);
  if (runbook_definitions_.size() > known_max) runbook_definitions_.clear();
  KnownRunbook& known = runbook_definitions_[row.id];
  if (known.text_hash != hash || !known.definition)
    known = {hash, runbook::parse(row.yaml_content, runbook::Strictness::stored).definition};
  return known.definition;
}

// A scheduler of ours fires what another has planned.
Result<> Writer::adopt_phases() {
  constexpr std::size_t at_once = 500;
  std::vector<std::int64_t> before;
  while (options_.runbooks.scheduler) {
    TRY_ASSIGN(auto ids, store_.phases_without_timer(at_once));
    if (ids.empty() || ids == before) return {};
    own_items_.push_back({AdoptPhases{ids}, std::make_shared<Nobody>()});
    run({});
    if (away_) return fail(Code::unavailable, "the store was lost while the server started");
    before = std::move(ids);
  }
  return {};
}

void Writer::tell_unreadable(runbook::Ref ref, const std::string& why) {
  constexpr std::size_t told_max = 10'000;
  if (told_unreadable_.size() >= told_max) told_unreadable_.clear();
  if (!told_unreadable_.insert(ref).second || !options_.unreadable) return;
  options_.unreadable(std::string(name(ref.kind)) + " " + std::to_string(ref.id) + " cannot go on: " + why);
}

void Writer::commit(std::unique_ptr<Batch> batch) {
  const std::int64_t number = last_commit_ + 1;
  const WriteSet writes = batch->writes(number);
  if (writes.empty()) return batch->release();

  const Time before = clock_.now();
  const auto started = std::chrono::steady_clock::now();
  const Result<> done = store_.commit(writes, number);
  if (metrics_.commit_seconds) metrics_.commit_seconds->observe(std::chrono::steady_clock::now() - started);
  if (done) {
    last_commit_ = number;
    pause_ = Duration::zero();
    if (metrics_.jobs_created) metrics_.jobs_created->add(writes.jobs_new.size());
    return batch->release();
  }
  if (metrics_.commit_failures) metrics_.commit_failures->add();
  if (done.error().code == Code::unknown) {
    trouble_ = done.error();
    away_ = true;
    held_ = std::make_unique<Held>(std::move(batch), number);
    queues_.forget_ready();
    progressions_.forget();
    return;
  }
  // Other programs write the tables of runbooks too; what they changed meanwhile is looked at anew.
  if (done.error().code == Code::conflict) lost_to_others_ += clock_.now() - before;
  if (done.error().code == Code::conflict && batch->may_try_again()) {
    queues_.forget_ready();
    progressions_.forget();
    look_at_all_queues();
    return attempt(batch->again());
  }
  failed(*batch, done.error());
}

// Nothing of the batch has happened. Its callers are told, and what it changed in memory is asked of the
// store again.
void Writer::failed(Batch& batch, const Error& error) {
  trouble_ = error;
  queues_.forget_ready();
  progressions_.forget();
  look_at_all_queues();
  const bool wrong = error.code == Code::invalid || error.code == Code::not_found;
  const bool collided = error.code == Code::conflict;  // with another program: nobody here is to blame
  if ((wrong || collided) && batch.can_be_divided()) return divide(batch, error.code);
  if (error.code == Code::fenced) fatal_ = error;
  const bool full = error.code == Code::full;
  away_ = !full && !wrong && !collided;
  batch.refuse(full    ? Refusal::store_full
               : wrong ? Refusal::invalid_input
                       : Refusal::store_unavailable,
               error.message);
  // Timers and waiting polls are tried again a little later: nobody is served by a busy loop.
  pause_ = std::clamp(pause_ * 2, Duration{50}, Duration{2'000});
  retry_at_ = clock_.now() + pause_;
}

void Writer::attempt(std::unique_ptr<Batch> batch) {
  if (const auto prepared = prepare(batch); !prepared)
    failed(*batch, prepared.error());
  else
    commit(std::move(batch));
}

// The store refuses what one message brings, a NUL in a text for example, or another program holds a row that
// it needs. The others must not suffer for it: each is tried alone. A timer that cannot be obeyed even then is
// put off, so that it does not spoil every batch. Many that all wait for the same row must not stop everybody:
// after a while the rest is told to come again.
void Writer::divide(Batch& batch, Code why) {
  constexpr Duration patience{6'000};
  constexpr Duration held_by_others{10'000};  // a timer's row or what it needs may soon be free
  const Duration lost_before = lost_to_others_;
  const auto is_over = [&] { return away_ || lost_to_others_ - lost_before >= patience; };
  const bool is_alone = batch.is_one_timer();
  auto items = batch.take_items();
  const auto timers = batch.take_timers();
  if (is_alone) {
    if (metrics_.postponed) metrics_.postponed->add();
    Lessons lessons;
    if (why == Code::conflict) lessons.put_off = held_by_others;
    return attempt(std::make_unique<Batch>(*this, clock_.now(), std::vector<Item>{}, Batch::Timers::put_off,
                                           timers.front(), std::move(lessons)));
  }
  for (const Batch::Timer& timer : timers) {
    if (is_over()) break;
    attempt(std::make_unique<Batch>(*this, clock_.now(), std::vector<Item>{}, Batch::Timers::one, timer));
  }
  for (Item& item : items) {
    if (is_over() && std::holds_alternative<ReturnTasks>(item.command)) {
      own_items_.push_back(std::move(item));  // nobody else remembers it
      continue;
    }
    if (is_over()) {
      item.waiter->deliver(Refused{Refusal::store_unavailable,
                                   away_ ? "the store is not reachable at the moment"
                                         : "other programs hold rows of the store; try again",
                                   {}});
      continue;
    }
    std::vector<Item> one;
    one.push_back(std::move(item));
    attempt(std::make_unique<Batch>(*this, clock_.now(), std::move(one), Batch::Timers::none));
  }
}

void Writer::look_at_all_queues() {
  for (QueueKey& key : queues_.keys()) hungry_.insert(std::move(key));
}

void Writer::timers_were_taken(std::optional<Time> more_at) {
  if (more_at) {
    next_timer_ = more_at;
    return;
  }
  if (const auto next = store_.next_timer())
    next_timer_ = *next;
  else
    next_timer_ = clock_.now() + Duration{50};
}

void Writer::give_back(const PollReply& reply) {
  ReturnTasks back;
  for (const Handout& task : reply.jobs) back.tasks.push_back({task.task_id, task.lease});
  if (!back.tasks.empty()) own_items_.push_back({std::move(back), std::make_shared<Nobody>()});
}

void Writer::add_wait(Wait wait) {
  const std::uint64_t id = next_id_++;
  deadlines_.insert({wait.until, id, std::nullopt});
  waits_by_job_[wait.job_id].push_back(id);
  waits_.emplace(id, std::move(wait));
}

void Writer::remove_wait(std::uint64_t id) {
  const auto it = waits_.find(id);
  if (it == waits_.end()) return;
  deadlines_.erase({it->second.until, id, std::nullopt});
  const auto by_job = waits_by_job_.find(it->second.job_id);
  std::erase(by_job->second, id);
  if (by_job->second.empty()) waits_by_job_.erase(by_job);
  waits_.erase(it);
}

void Writer::polls_time_out(Time now) {
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->at <= now;) {
    if (!it->poll) {
      ++it;
      continue;
    }
    if (const auto poll = queues_.remove_poll(*it->poll, it->id)) poll->waiter->deliver(PollReply{});
    queues_.drop_if_idle(*it->poll);
    it = deadlines_.erase(it);
  }
}

void Writer::expire_while_away() {
  const Time now = clock_.now();
  polls_time_out(now);
  while (!deadlines_.empty() && deadlines_.begin()->at <= now) {
    const std::uint64_t id = deadlines_.begin()->id;
    const auto waiter = waits_.at(id).waiter;
    remove_wait(id);
    waiter->deliver(Refused{Refusal::store_unavailable, "the store is not reachable at the moment", {}});
  }
}

std::optional<Time> Writer::next_wake() const {
  if (retry_at_) return retry_at_;
  if (!hungry_.empty() || !own_items_.empty()) return Time{};
  std::optional<Time> wake = next_timer_;
  if (!deadlines_.empty()) wake = wake ? std::min(*wake, deadlines_.begin()->at) : deadlines_.begin()->at;
  if (look_again_at_) wake = wake ? std::min(*wake, *look_again_at_) : *look_again_at_;
  return wake;
}

void Writer::abandon_held() {
  if (!held_) return;
  // The batch itself stays: if it has happened after all, somebody was handed tasks by it.
  held_->batch->refuse(Refusal::store_unavailable,
                       "the store was lost while this was being stored; it may or may not have happened");
}

void Writer::finish() {
  for (const WaitingPoll& poll : queues_.take_all_polls()) poll.waiter->deliver(PollReply{});
  abandon_held();
  held_.reset();
  LoadRequest request;
  for (const auto& [job_id, ids] : waits_by_job_) request.jobs.push_back(job_id);
  const auto loaded = away_ || request.jobs.empty() ? Result<Loaded>{} : store_.load(request);
  for (const auto& [id, wait] : waits_) {
    const Job* job = nullptr;
    if (loaded)
      if (const auto it = std::ranges::find(loaded->jobs, wait.job_id, &Job::job_id);
          it != loaded->jobs.end())
        job = &*it;
    if (job)
      wait.waiter->deliver(JobReply{*job, wait.created});
    else
      wait.waiter->deliver(Refused{Refusal::stopping, "the server is stopping", {}});
  }
  waits_.clear();
  waits_by_job_.clear();
  deadlines_.clear();
}

void Writer::count(std::size_t commands, std::size_t jobs_ended, std::size_t timers) {
  if (!metrics_.batches) return;
  metrics_.batches->add();
  metrics_.commands->add(commands);
  metrics_.jobs_ended->add(jobs_ended);
  metrics_.timers->add(timers);
}

void Writer::count_handouts(std::size_t n) {
  if (metrics_.handouts) metrics_.handouts->add(n);
}

}  // namespace baton::engine
