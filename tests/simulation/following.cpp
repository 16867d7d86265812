// How the tables follow the commits, as those see it who read them.
#include <algorithm>

#include "store/tables.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

void World::begin_following() {
  followed_ = std::make_unique<Followed>();
}

void World::tables_show(std::int64_t commit_number, Time as_of) {
  behind_since_.reset();
  if (commit_number == database_.writers[{}].last_commit)
    check_followed();
  else
    behind_since_ = as_of;
}

// The tables show the state after the last commit: all rows, and nothing else.
void World::check_followed() const {
  const auto same = [](const auto& shown, const auto& committed, const char* table) {
    expect(shown.size() == committed.size(), "the tables have the rows that were committed", table);
    for (auto a = shown.begin(), b = committed.begin(); a != shown.end(); ++a, ++b)
      expect(a->first == b->first && store::differing_columns(a->second, b->second) == 0,
             "the tables show what was committed", table);
  };
  same(tables_.jobs, database_.jobs, "dag_jobs");
  same(tables_.nodes, database_.nodes, "dag_node_states");
  same(tables_.task_results, database_.task_results, "dag_task_results");
  same(tables_.events, database_.events, "dag_job_events");
  same(tables_.workflows, database_.workflows, "dag_workflows");
  same(tables_.idempotency_keys, database_.idempotency_keys, "dag_idempotency_keys");
  same(tables_.tags, database_.tags, "dag_job_tags");
  same(tables_.logs, database_.logs, "dag_task_logs");
  same(tables_.call_events, database_.call_events, "service_call_events");  // of rows see CallWorkload: they are damaged on purpose
  same(tables_.call_requests, database_.call_requests, "service_call_requests");
  same(tables_.call_tags, database_.call_tags, "service_call_tags");
  same(tables_.call_keys, database_.call_keys, "service_call_keys");
  same(tables_.bus.entities, database_.bus.entities, "bus_entities");
  same(tables_.bus.counters, database_.bus.counters, "bus_counters");
  same(tables_.bus.messages, database_.bus.messages, "bus_messages");
  same(tables_.bus.history, database_.bus.history, "bus_history");
  std::set<Timer> timers = tables_.timers;
  for (const Timer& gone : timers_erased_) timers.erase(gone);
  expect(timers == database_.timers, "the tables have the timers that were committed", "baton_timers");
}

// Nothing of what was committed is lost: what the tables do not show any more is in the log.
void World::machine_dies() {
  if (trace_) tell("the machine dies");
  disk_.restore(tables_);
  const auto& writer = tables_.writers[{}];
  expect(writer.last_commit == database_.writers[{}].last_commit &&
             writer.followed + static_cast<std::int64_t>(writer.journal.size()) == writer.last_commit,
         "the log has what a crash of the machine takes from the tables", "commit " + std::to_string(writer.followed + 1));
}

// As the API reads for somebody who was answered before: it waits until the tables show what was committed, and then
// they must show that answer. A restart of the engine in between changes nothing of that.
void World::read(std::int64_t acknowledged) {
  if (!engine_) return;  // connection refused
  if (followed_->want()) {
    if (followed_->is_away()) return;  // it is refused
    schedule_engine();
    return at(Duration{random_.between(1, 20)}, [this, acknowledged] { read(acknowledged); });
  }
  expect(tables_.writers[{}].followed >= acknowledged, "whoever was answered can read what was acknowledged",
         "commit " + std::to_string(acknowledged));
}

// Other programs read the tables without waiting: they see what was a moment ago, also when the clock is set back. After
// a failure of the store the engine pauses before it tries again.
void World::check_behind() const {
  constexpr Duration moment{100}, turn{10}, pause_max{2'000};
  if (is_away() || !behind_since_) return;
  const Duration behind = clock_.time - std::max(*behind_since_, store_failed_at_ + pause_max);
  expect(behind <= moment + turn + following_takes, "the tables follow a moment after a commit",
         std::to_string(behind.count()) + " ms behind at " + to_iso(clock_.time));
}

void World::erase_timer(const Timer& timer) {
  if (database_.timers.erase(timer) == 0) return;
  tables_.timers.erase(timer);
  timers_erased_.insert(timer);  // the journal may bring it back
}

}  // namespace baton::simulation
