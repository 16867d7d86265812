#include "tests/simulation/faulty_store.hpp"

#include <algorithm>

#include "tests/simulation/trace.hpp"
#include "tests/simulation/workload.hpp"

namespace baton::simulation {

using namespace workflow;

World::FaultyStore::FaultyStore(World& world)
    : ForwardingStore(std::make_unique<store::MemoryStore>(world.tables_)), world_(world),
      generation_(world.generation_),
      store_(world.database_) {}

Result<WriterState> World::FaultyStore::open(Partition partition) {
  log_cut_.opened();
  TRY(store_.open(partition));
  return inner().open(partition);
}

Result<Loaded> World::FaultyStore::load(const LoadRequest& request) {
  TRY(reach());
  return noted(inner().load(request));
}

Result<runbook::Loaded> World::FaultyStore::load(const std::vector<runbook::Need>& needs) {
  TRY(reach());
  return noted(store_.load(needs));
}

Result<call::Loaded> World::FaultyStore::load(const call::LoadRequest& request) {
  TRY(reach());
  return noted(inner().load(request));
}

Result<message::Loaded> World::FaultyStore::load(const message::LoadRequest& request) {
  TRY(reach());
  return noted(inner().load(request));
}

Result<std::vector<std::int64_t>> World::FaultyStore::reserve_ids(runbook::Table table, std::size_t count) {
  TRY(reach());
  return noted(store_.reserve_ids(table, count));
}

Result<std::vector<WaitingTask>> World::FaultyStore::waiting(const QueueKey& queue, std::size_t limit, Time now) {
  TRY_ASSIGN(auto found, inner().waiting(queue, limit, now));
  if (queue.tenant.value == "default")
    std::ranges::copy(world_.database_.runbooks.waiting(queue.queue, limit), std::back_inserter(found));
  std::ranges::sort(found);
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<> World::FaultyStore::commit(const WriteSet& writes, std::int64_t number) {
  return attempt(&writes, [&]() -> Result<> {
    TRY(commit_all(writes, number));
    WriteSet journaled = writes;
    journaled.runbooks = {};
    tables_take(inner().commit(journaled, number));
    world_.disk_.follow(journaled, number);
    world_.disk_.sync();
    world_.tables_show(number, world_.clock_.time);
    return {};
  });
}

Result<> World::FaultyStore::append(const store::JournalRow& row, const WriteSet& writes) {
  return attempt(&writes, [&]() -> Result<> {
    TRY(commit_all(writes, row.commit_number));
    tables_take(inner().append(row, {}));
    world_.disk_.append(row, log_cut_.removable());
    if (!writes.is_journaled()) world_.disk_.sync();  // it is a commit of the database too
    if (!world_.behind_since_) world_.behind_since_ = world_.clock_.time;
    return {};
  });
}

void World::FaultyStore::begin(const store::Following& following) {
  following_ = following;
  began_ = world_.clock_.time;
  const Duration takes{world_.random_.between(0, world_.following_takes.count())};
  world_.at(takes, [this, &world = world_, generation = world_.generation_] {
    if (generation != world.generation_ || !following_) return;
    try {
      wait();
      on_end_();
    } catch (const EngineDies&) {
      world.kill_engine();
    }
  });
}

void World::FaultyStore::begin_work(Work work) {
  work_ = std::move(work);
  world_.at(Duration{world_.random_.between(0, world_.following_takes.count())}, [this, &world = world_, generation = generation_] {
    if (generation != world.generation_ || !work_) return;
    try {
      do_work();
      on_end_();
    } catch (const EngineDies&) {
      world.kill_engine();
    }
  });
}

void World::FaultyStore::do_work() {
  Work work = std::exchange(work_, nullptr);
  is_beside_ = true;
  work_ended_ = work();
  is_beside_ = false;
}

// With the engine goes what it had not stored.
Result<> World::FaultyStore::end_work() {
  if (generation_ != world_.generation_) return fail(Code::unavailable, "the engine died");
  if (work_) do_work();
  return told(std::exchange(work_ended_, std::nullopt).value());
}

std::optional<Result<>> World::FaultyStore::end() {
  auto ended = std::exchange(ended_, std::nullopt);
  if (ended) (void)told(*ended);
  return ended;
}

Result<> World::FaultyStore::told(Result<> outcome) {
  if (!outcome && outcome.error().code == Code::fenced) told_replaced_ = true;
  return outcome;
}

void World::FaultyStore::wait() {
  if (!following_) return;
  const store::Following following = *std::exchange(following_, std::nullopt);
  const bool was_beside = std::exchange(is_beside_, true);
  ended_ = attempt(nullptr, [&]() -> Result<> {
    inner().begin(following);
    tables_take(*inner().end());
    followed(following);
    world_.tables_show(following.to, began_);
    return {};
  });
  is_beside_ = was_beside;
}

// Synced from time to time, as SQLite's tables are.
void World::FaultyStore::followed(const store::Following& following) {
  const bool is_synced = world_.clock_.time - synced_at_ >= Duration{1'000};
  world_.disk_.follow(*following.writes, following.to);
  if (is_synced) {
    world_.disk_.sync();
    synced_at_ = world_.clock_.time;
  }
  log_cut_.followed(following.to, is_synced);
}

Result<> World::FaultyStore::attempt(const WriteSet* writes, const Act& act) {
  const Result<> outcome = noted(with_faults(writes, act));
  return is_beside_ ? outcome : told(outcome);
}

Result<> World::FaultyStore::with_faults(const WriteSet* writes, const Act& act) {
  const bool faults = !world_.calm_;
  Random& random = world_.random_;
  world_.maybe_die();
  world_.expect(!told_replaced_, "a writer that was told that it is replaced writes nothing", "");
  if (world_.taken_over_) return fail(Code::fenced, "another writer has taken over");
  if (faults && random.chance(world_.faults_.taken_over)) {
    world_.taken_over_ = true;
    return fail(Code::fenced, "another writer has taken over");
  }
  if (faults && random.chance(world_.faults_.commit_fails)) return fail(Code::unavailable, "the store is away");
  if (faults && writes && random.chance(world_.faults_.row_held))
    return fail(random.chance(0.5) ? Code::busy : Code::conflict, "another program holds the file, or a row");
  if (faults && !writes && is_row_held()) return fail(Code::busy, "another program holds a row");
  if (faults && writes && refuses(*writes)) return fail(Code::invalid, "a row that the store refuses");
  if (faults && random.chance(world_.faults_.store_full)) return fail(Code::full, "the disk is full");
  const bool unknown = faults && random.chance(world_.faults_.commit_unknown);
  if (unknown && random.chance(0.5)) return fail(Code::unknown, "lost on the way to the store");
  const Result<> done = act();
  world_.maybe_die();
  if (unknown) return fail(Code::unknown, "lost on the way back from the store");
  return done;
}

Result<> World::FaultyStore::reach() {
  if (world_.calm_ || !world_.random_.chance(world_.faults_.load_fails)) return {};
  return noted<void>(fail(Code::unavailable, "the store is away"));
}

bool World::FaultyStore::is_row_held() {
  if (world_.clock_.time >= world_.row_held_until_ && world_.random_.chance(world_.faults_.row_held))
    world_.row_held_until_ = world_.clock_.time + Duration{world_.random_.between(1, 300)};
  return world_.clock_.time < world_.row_held_until_;
}

bool World::FaultyStore::refuses(const WriteSet& writes) const {
  if (!world_.faults_.refuses_rows) return false;
  return std::ranges::any_of(writes.nodes_changed, [](const NodeState& node) {
    return node.job_id.value.ends_with('7') && node.status != NodeStatus::running && !node.timer_due;
  });
}

Result<> World::FaultyStore::commit_all(const WriteSet& writes, std::int64_t number) {
  for (const auto& load : world_.loads_) load->before_commit(writes);
  if (world_.has_.workflows) world_.check_overtaken(writes);
  if (world_.trace_)
    world_.tell("commit " + std::to_string(number) + "\n" + describe(writes.runbooks, world_.database_.runbooks) + describe(writes.messages));
  const auto done = store_.commit(writes, number);
  const bool may_collide =
      std::ranges::any_of(world_.loads_, [](const auto& load) { return load->may_collide(); });
  world_.expect(done || done.error().code != Code::conflict || may_collide,
                "a commit never collides with what is stored", done ? "" : done.error().message);
  if (!done) return done;
  world_.feed_->durable(writes, number);
  for (const auto& load : world_.loads_) load->committed(writes);
  return {};
}

void World::FaultyStore::tables_take(const Result<>& done) {
  world_.expect(done.has_value(), "the tables take what the journal says", done ? "" : done.error().message);
}

}  // namespace baton::simulation
