// The machine on rows in memory, for tests: what a decision lacks is loaded and it is decided again, as the engine does,
// but without an engine. Time moves when the test moves it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "core/runbook/machine/machine.hpp"
#include "store/memory/database.hpp"

namespace baton::runbook {

class MachineOnRows {
 public:
  store::memory::Database database;
  store::memory::RunbookTables& rows = database.runbooks;
  Policy policy;
  Time now = from_millis(1'800'000'000'000);

  // decide: Context -> anything that does not point into the ledger.
  template <class Decide>
  auto decide(Decide&& decide) {
    Needs wanted;
    for (int round = 0; round < 200; ++round) {
      Ledger ledger([this](const Runbook& row) { return definition(row); }, ids_);
      ledger.add(rows.load({wanted.begin(), wanted.end()}), wanted);
      Decided decided;
      try {
        auto answer = decide(Context{ledger, policy, now, decided});
        write(ledger, decided);
        return answer;
      } catch (NotLoaded& missing) {
        wanted.merge(missing.needs);
        ledger.return_ids();
      } catch (const NoIds& none) {
        ledger.return_ids();
        auto fresh = rows.reserve_ids(none.table, 100);
        auto& pool = ids_[none.table];
        pool.insert(pool.begin(), fresh.rbegin(), fresh.rend());
      }
    }
    throw std::runtime_error("it is never decided");
  }

  // All that is due now, and what becomes due by it.
  void settle() {
    auto& timers = database.timers;
    for (int n = 0; n < 10'000 && !timers.empty() && timers.begin()->due <= now; ++n) {
      const baton::Timer timer = *timers.begin();
      decide([&](Context context) { return timer_fired(ref_of(timer.subject), context), 0; });
      if (!timers.empty() && *timers.begin() == timer && due_of(ref_of(timer.subject)) != timer.due) timers.erase(timer);
    }
  }
  void wait(Duration time) {
    const Time until = now + time;
    while (!database.timers.empty() && database.timers.begin()->due <= until) {
      now = std::max(now, database.timers.begin()->due);
      settle();
    }
    now = until;
  }

  // --- what people and schedulers do

  // Refused: version 0.
  struct Said {
    Outcome outcome;
    std::int32_t version = 0;
  };
  Said publish_as(const std::string& yaml, const Publication& how) {
    const auto parsed = parse(yaml);
    if (!parsed.definition) throw std::runtime_error("the test's runbook is none");
    return decide([&](Context context) {
      const auto published = runbook::publish(*parsed.definition, yaml, how, context);
      return Said{published.outcome, published.runbook ? published.runbook->row.version : 0};
    });
  }
  std::int32_t publish(const std::string& yaml, const std::string& open_batches = "rerun", bool rerun_init = false) {
    return publish_as(yaml, {.rerun_init = rerun_init, .open_batches = runbook::open_batches(open_batches)}).version;
  }
  std::int64_t open(const std::string& name, std::optional<Time> time, const std::vector<std::string>& keys) {
    const auto id = decide([&](Context c) { return open_batch(name, 0, time, "", c).batch->row.id; });
    std::vector<DataRow> members;
    for (const std::string& key : keys) members.push_back({key, time, Json{"{\"Key\":\"" + key + "\"}"}});
    decide([&](Context c) { return add_members(id, members, c).member_ids; });
    decide([&](Context c) { return start_batch(id, c); });
    settle();
    return id;
  }

  // --- workers

  std::vector<Ref> queued() const {
    std::vector<Ref> found;
    const auto add = [&](const auto& table, RowType type) {
      for (const auto& [id, row] : table)
        if (row.job_state == JobState::queued) found.push_back({type, id});
    };
    add(rows.steps, RowType::step), add(rows.inits, RowType::init), add(rows.cleanups, RowType::cleanup);
    return found;
  }
  bool take(Ref ref, bool heartbeats = true) {
    return decide([&](Context c) {
      return hand_out(ref, "w", heartbeats ? delivery::LeaseTime{c.policy.short_lease} : std::nullopt, c);
    });
  }
  const Execution& row(Ref ref) const {
    if (ref.type == RowType::step) return rows.steps.at(ref.id);
    if (ref.type == RowType::init) return rows.inits.at(ref.id);
    return rows.cleanups.at(ref.id);
  }
  Judged tell(const JobReport& said) {
    return decide([&](Context c) { return report(said, c); });
  }
  Judged succeed(Ref ref, const std::string& result = "{}") {
    return tell({.job_id = row(ref).job_id.value_or(""), .success = true, .result = Json{result}});
  }
  Judged fail(Ref ref) { return tell({.job_id = row(ref).job_id.value_or(""), .success = false, .error = "boom"}); }
  // Whatever waits is done, until nothing does.
  void work() {
    for (int n = 0; n < 10'000 && !queued().empty(); ++n) {
      const Ref ref = queued().front();
      if (take(ref)) {
        EXPECT_EQ(succeed(ref).verdict, Verdict::accepted);
      }
      settle();
    }
  }

  std::string phases_of(std::int64_t batch_id) const {
    std::string all;
    for (const auto& [id, phase] : rows.phases)
      if (phase.batch_id == batch_id)
        all += (all.empty() ? "" : " ") + phase.phase_name + ".v" + std::to_string(phase.runbook_version) + "=" +
               std::string(name(phase.status));
    return all;
  }
  std::string events_of(std::int64_t batch_id) const {
    std::string all;
    for (const auto& [key, event] : rows.events)
      if (event.batch_id == batch_id) all += (all.empty() ? "" : " ") + event.event_type;
    return all;
  }

 private:
  std::shared_ptr<const Definition> definition(const Runbook& row) {
    auto& known = definitions_[row.yaml_content];
    if (!known) known = parse(row.yaml_content, Strictness::stored).definition;
    return known;
  }
  void write(Ledger& ledger, Decided& decided) {
    WriteSet writes;
    TimerWrites timers;
    writes.runbooks = ledger.take_writes(timers);
    const auto shared = [](const RowTimer& timer) {
      return baton::Timer{timer.due, subject_of(Ref{timer.type, timer.id}), ""};
    };
    std::ranges::transform(timers.timers_gone, std::back_inserter(writes.timers_gone), shared);
    std::ranges::transform(timers.timers_new, std::back_inserter(writes.timers_new), shared);
    writes.runbooks.events_new = std::move(decided.events);
    for (BatchEvent& event : writes.runbooks.events_new) event.event_id = ++last_event_;
    const auto written = store::memory::write(database, writes);
    ASSERT_TRUE(written) << written.error().message;
  }
  std::optional<Time> due_of(Ref ref) const {
    if (ref.type == RowType::phase) return rows.phases.at(ref.id).timer_due;
    if (ref.type == RowType::batch) return rows.batches.at(ref.id).timer_due;
    if (ref.type == RowType::runbook) return rows.runbooks.at(ref.id).timer_due;
    return row(ref).timer_due;
  }

  IdPool ids_;
  std::map<std::string, std::shared_ptr<const Definition>> definitions_;
  std::int64_t last_event_ = 0;
};

}  // namespace baton::runbook
