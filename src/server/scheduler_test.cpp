// The scheduler with the real engine and a database in a file; only the source is not what it seems.
#include "scheduler/scheduler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>

#include "engine/kinds/kinds.hpp"
#include "engine/service.hpp"
#include "ports/ask.hpp"
#include "server/system_clock.hpp"
#include "store/open.hpp"
#include "tests/support/process.hpp"

namespace baton::server {
namespace {

using namespace std::chrono_literals;

std::string yaml(const std::string& more = "") {
  return R"(
name: waves
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - {name: work, offset: T-0, steps: [{name: one, worker_id: pool, function: One, params: {Key: "{{Key}}"}}]}
)" + more;
}

class FakeSources final : public DataSources {
 public:
  Result<SourceTable> fetch(const runbook::DataSource& source) override {
    if (source.connection == "HANGS") return hang();
    ++fetches;
    std::function<void()> meanwhile;
    SourceTable table{{"Key", "T", "Size"}, {}};
    {
      const std::scoped_lock lock(mutex_);
      for (const auto& [key, size] : rows_) table.rows.push_back({{key, "2999-01-01T00:00:00Z", size}});
      meanwhile = std::exchange(meanwhile_, {});
    }
    if (meanwhile) meanwhile();
    return table;
  }
  void set(std::map<std::string, std::string> rows) {
    const std::scoped_lock lock(mutex_);
    rows_ = std::move(rows);
  }
  void interrupt() override {
    const std::scoped_lock lock(mutex_);
    is_interrupted_ = true;
    interrupted_.notify_all();
  }
  std::atomic<int> hanging = 0, fetches = 0;  // hanging: that ever did

  // Happens once, between the question and the answer.
  void do_meanwhile(std::function<void()> what) {
    const std::scoped_lock lock(mutex_);
    meanwhile_ = std::move(what);
  }

 private:
  Result<SourceTable> hang() {
    ++hanging;
    std::unique_lock lock(mutex_);
    interrupted_.wait(lock, [&] { return is_interrupted_; });
    return fail(Code::unavailable, "interrupted");
  }

  std::mutex mutex_;
  std::condition_variable interrupted_;
  bool is_interrupted_ = false;
  std::map<std::string, std::string> rows_;
  std::function<void()> meanwhile_;
};

// Hands everything on, and counts what goes to data tables.
class Counting final : public Inbox {
 public:
  explicit Counting(Inbox& inbox) : inbox_(inbox) {}
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    if (const auto* data = std::get_if<SyncData>(&command)) {
      rows += data->rows.size();
      if (data->finish) ++finished;
    }
    if (std::holds_alternative<NoteSync>(command)) {
      waiter = std::make_shared<Noted>(std::move(waiter), looks);
    }
    inbox_.submit(std::move(command), std::move(waiter));
  }
  std::atomic<std::size_t> rows = 0, finished = 0, looks = 0;

 private:
  struct Noted final : Waiter {
    Noted(std::shared_ptr<Waiter> w, std::atomic<std::size_t>& n) : waiter(std::move(w)), count(n) {}
    void deliver(Reply reply) override {
      waiter->deliver(std::move(reply));
      ++count;
    }
    std::shared_ptr<Waiter> waiter;
    std::atomic<std::size_t>& count;
  };
  Inbox& inbox_;
};

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() {
    EXPECT_TRUE(engine_.start());
    reads_ = store::make_reads(url_).value();
  }
  ~SchedulerTest() override {
    scheduler_.stop();
    engine_.stop();
  }
  template <class Wanted>
  Wanted get(Command command) {
    Reply reply = ask(engine_, std::move(command)).get();
    if (const auto* refused = std::get_if<Refused>(&reply)) ADD_FAILURE() << refused->message;
    return std::holds_alternative<Wanted>(reply) ? std::get<Wanted>(std::move(reply)) : Wanted{};
  }
  void publish(const std::string& text) {
    (void)get<RunbookReply>(PublishRunbook{runbook::parse(text).definition, text});
  }
  // Off and on again is what makes it look at once.
  void look_again() {
    const std::size_t before = inbox_.looks;
    (void)get<RunbookReply>(ChangeRunbook{.name = "waves", .what = ChangeRunbook::What::automation_off});
    std::this_thread::sleep_for(50ms);
    (void)get<RunbookReply>(ChangeRunbook{.name = "waves", .what = ChangeRunbook::What::automation_on});
    wait_for_look(before);
  }
  void wait_for_look(std::size_t before) {
    for (int i = 0; i < 1'000 && inbox_.looks == before; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_GT(inbox_.looks, before);
  }
  static std::map<std::string, std::string> people(int from, int to) {
    std::map<std::string, std::string> rows;
    for (int i = from; i < to; ++i) rows["m" + std::to_string(i)] = "1";
    return rows;
  }
  std::int64_t active() {
    return static_cast<std::int64_t>(reads_->members(1, runbook::MemberStatus::active, 0, 1'000).value().size());
  }
  bool is_held() { return reads_->runbook("waves", 0).value()->held_removals.has_value(); }

  support::TemporaryDirectory directory_;
  const std::string url_ = "sqlite:" + (directory_.path() / "baton.db").string();
  SystemClock clock_;
  metrics::Registry metrics_;
  engine::Service engine_{store::make_store(url_).value(), clock_,
                          engine::make_kinds({.runbooks = {.changed = [this] { scheduler_.wake(); }}}), {}, metrics_};
  Counting inbox_{engine_};
  FakeSources sources_;
  scheduler::Scheduler scheduler_{inbox_,  [this] { return store::make_reads(url_); },
                                  sources_, clock_,
                                  metrics_, [](const std::string&, const std::string&, bool) {}};
  std::unique_ptr<Reads> reads_;
};

TEST_F(SchedulerTest, approves_nobody_but_those_who_were_held_then) {
  sources_.set(people(0, 20));
  publish(yaml());
  scheduler_.start();
  wait_for_look(0);
  ASSERT_EQ(active(), 20);
  sources_.set(people(6, 20));
  look_again();
  EXPECT_EQ(active(), 20);
  ASSERT_TRUE(is_held());
  sources_.set({});  // what is approved now is not what the next look finds
  const std::size_t before = inbox_.looks;
  (void)get<BatchReply>(ChangeBatch{.batch_id = 1, .what = ChangeBatch::What::approve_removals, .by = "ada"});
  wait_for_look(before);
  EXPECT_EQ(active(), 20) << "all of them would leave, and six were approved";
  EXPECT_TRUE(is_held());
  EXPECT_FALSE(reads_->batch(1).value()->batch.removals_approved) << "the approval is used up";
  sources_.set(people(6, 20));
  look_again();
  EXPECT_EQ(active(), 20) << "it does not come back to life either";

  const std::size_t again = inbox_.looks;
  (void)get<BatchReply>(ChangeBatch{.batch_id = 1, .what = ChangeBatch::What::approve_removals, .by = "ada"});
  wait_for_look(again);
  EXPECT_EQ(active(), 14);
  EXPECT_FALSE(is_held());
  EXPECT_FALSE(reads_->batch(1).value()->batch.removals_approved);
}

TEST_F(SchedulerTest, a_version_that_comes_while_the_source_is_asked_wins) {
  sources_.set(people(0, 3));
  publish(yaml());
  sources_.do_meanwhile([&] { publish(yaml("description: another\n")); });
  scheduler_.start();
  wait_for_look(0);
  const auto batches = reads_->batches({}, 0, 10).value();
  ASSERT_EQ(batches.size(), 1U);
  EXPECT_EQ(batches[0].runbook_version, 2);
  const auto phases = reads_->phases(batches[0].batch.id).value();
  for (const auto& phase : phases) EXPECT_EQ(phase.runbook_version, 2);
  EXPECT_EQ(reads_->runbook("waves", 1).value()->last_error, std::nullopt) << "nothing went wrong";
  EXPECT_EQ(active(), 3);
}

TEST_F(SchedulerTest, a_source_that_hangs_holds_up_no_other) {
  const auto named = [](std::string text, const std::string& name, const std::string& connection) {
    text.replace(text.find("waves"), 5, name);
    text.replace(text.find("connection: X, interval: 1h"), 27,
                 "connection: " + connection + ", interval: 1s");
    return text;
  };
  sources_.set(people(0, 3));
  for (int i = 0; i < 3; ++i) publish(named(yaml(), "a-stuck-" + std::to_string(i), "HANGS"));
  publish(named(yaml(), "prompt", "X"));
  const auto began = std::chrono::steady_clock::now();
  scheduler_.start();
  while (sources_.fetches < 4 && std::chrono::steady_clock::now() < began + 20s)
    std::this_thread::sleep_for(5ms);
  EXPECT_GE(sources_.fetches, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_EQ(sources_.hanging, 3) << "each is looked at once at a time, however often its time comes";
  EXPECT_EQ(active(), 3);
  const auto stopped = std::chrono::steady_clock::now();
  scheduler_.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - stopped, 5s) << "none is waited for";
}

TEST_F(SchedulerTest, more_hanging_sources_than_looks_are_stopped_too) {
  for (int i = 0; i < 20; ++i) {
    std::string text = yaml();
    text.replace(text.find("waves"), 5, "stuck-" + std::to_string(i));
    publish(text.replace(text.find("connection: X"), 13, "connection: HANGS"));
  }
  scheduler_.start();
  for (int i = 0; i < 1'000 && sources_.hanging < 8; ++i) std::this_thread::sleep_for(5ms);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(sources_.hanging, 8);
  scheduler_.stop();
  EXPECT_EQ(sources_.hanging, 8) << "those that waited are not begun";
}

TEST_F(SchedulerTest, sends_only_what_has_changed_to_the_data_table) {
  sources_.set(people(0, 10));
  publish(yaml());
  scheduler_.start();
  wait_for_look(0);
  EXPECT_EQ(inbox_.rows, 10U);
  EXPECT_EQ(inbox_.finished, 1U);
  look_again();
  EXPECT_EQ(inbox_.rows, 10U) << "nothing has changed";
  auto rows = people(0, 11);
  rows["m3"] = "2";
  sources_.set(rows);
  look_again();
  EXPECT_EQ(inbox_.rows, 12U) << "one is new, one has changed";
  EXPECT_EQ(inbox_.finished, 1U);
  rows.erase("m4");
  sources_.set(rows);
  look_again();
  EXPECT_EQ(inbox_.rows, 22U) << "one is gone: the others are told apart from it";
  EXPECT_EQ(inbox_.finished, 2U);
}

}  // namespace
}  // namespace baton::server
