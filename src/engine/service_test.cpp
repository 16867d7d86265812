// The running engine with a real thread: what is answered when it is full, when it stops, and when its store
// goes away; and what is told of a turn that takes long.
#include "engine/service.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

#include "engine/kinds/kinds.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"
#include "tests/support/forwarding_store.hpp"
#include "tests/support/one_task.hpp"
#include "tests/support/soon.hpp"

namespace baton::engine::service_test {
namespace {

using namespace std::chrono_literals;
using support::one_task_yaml;
using support::soon;

struct Answer final : Waiter {
  std::promise<Reply> promise;
  std::future<Reply> future = promise.get_future();
  void deliver(Reply reply) override { promise.set_value(std::move(reply)); }
  Reply get() {
    if (future.wait_for(10s) != std::future_status::ready) throw std::runtime_error("no answer");
    return future.get();
  }
};

// A store whose commits wait until they are let go.
class GatedStore final : public support::ForwardingStore<> {
 public:
  GatedStore(store::MemoryDatabase& database, std::shared_future<void> gate)
      : ForwardingStore(std::make_unique<store::MemoryStore>(database)), gate_(std::move(gate)) {}
  std::promise<void> at_gate;
  Result<> commit(const WriteSet& writes, std::int64_t number) override {
    if (!std::exchange(reached_, true)) at_gate.set_value();
    gate_.wait();
    return inner().commit(writes, number);
  }

 private:
  std::shared_future<void> gate_;
  bool reached_ = false;
};

// How a store goes away, and what happens when it is opened again.
struct Outage {
  std::atomic<bool> is_on = false;
  Code commits_answer = Code::unavailable;
  std::function<void()> at_commit;  // that fails
  std::function<Result<>()> at_open;  // but the first
  std::atomic<int> opened = 0;
};

class OutageStore final : public support::ForwardingStore<> {
 public:
  OutageStore(store::MemoryDatabase& database, Outage& outage)
      : ForwardingStore(std::make_unique<store::MemoryStore>(database)), outage_(outage) {}
  Result<WriterState> open(Partition partition) override {
    if (outage_.opened++ > 0) TRY(outage_.at_open());
    return inner().open(partition);
  }
  Result<> commit(const WriteSet& writes, std::int64_t number) override {
    if (!outage_.is_on) return inner().commit(writes, number);
    if (outage_.at_commit) outage_.at_commit();
    return fail(outage_.commits_answer, "the connection is lost");
  }

 private:
  Outage& outage_;
};

// A store that takes its time with what is asked of messages.
class SlowStore final : public support::ForwardingStore<> {
 public:
  SlowStore(store::MemoryDatabase& database, std::atomic<int>& loads)
      : ForwardingStore(std::make_unique<store::MemoryStore>(database)), loads_(loads) {}
  using ForwardingStore::load;
  Result<message::Loaded> load(const message::LoadRequest& request) override {
    ++loads_;
    std::this_thread::sleep_for(1ms);
    return inner().load(request);
  }

 private:
  std::atomic<int>& loads_;
};

class ServiceTest : public testing::Test {
 protected:
  std::shared_ptr<Answer> submit(Service& service, Command command) {
    auto answer = std::make_shared<Answer>();
    service.submit(std::move(command), answer);
    return answer;
  }
  std::shared_ptr<Answer> publish(Service& service) {
    return submit(service, PublishWorkflow{{"default"}, workflow::parse(one_task_yaml).definition, std::string(one_task_yaml)});
  }
  static SubmitJob job(int n, std::string input = "{}") {
    return {.job_id = {uuid7(from_millis(1'800'000'000'000), 1, static_cast<std::uint64_t>(n))},
            .tenant = {"default"},
            .workflow_id = "w",
            .input_data = {std::move(input)}};
  }
  bool is_counted(const std::string& sample) { return metrics_.render().contains(sample + "\n"); }

  store::MemoryDatabase database_;
  support::WallClock clock_;
  metrics::Registry metrics_;
};

TEST_F(ServiceTest, RefusesWhatDoesNotFitTheInboxAndAnswersTheRest) {
  std::promise<void> open_gate;
  auto store = std::make_unique<GatedStore>(database_, open_gate.get_future().share());
  auto at_gate = store->at_gate.get_future();
  Service service(std::move(store), clock_, make_kinds(), {.inbox_max = 4, .inbox_bytes_max = 10'000}, metrics_);
  ASSERT_TRUE(service.start());
  auto published = publish(service);  // takes the writer, who waits at the gate
  at_gate.wait();
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(submit(service, job(i)));
  auto large = submit(service, job(100, "{\"x\":\"" + std::string(20'000, 'x') + "\"}"));
  open_gate.set_value();
  EXPECT_TRUE(std::holds_alternative<WorkflowReply>(published->get()));
  int refused = 0;
  for (auto& answer : answers) {
    const Reply reply = answer->get();
    if (const auto* no = std::get_if<Refused>(&reply)) {
      EXPECT_EQ(no->refusal, Refusal::overloaded);
      ++refused;
    } else {
      EXPECT_TRUE(std::holds_alternative<JobReply>(reply));
    }
  }
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(std::get<Refused>(large->get()).refusal, Refusal::overloaded);
}

TEST_F(ServiceTest, WhatABatchPutsOffFillsTheInboxToo) {
  std::atomic<int> loads = 0;
  Service service(std::make_unique<SlowStore>(database_, loads), clock_, make_kinds(), {.inbox_max = 1'000}, metrics_);
  ASSERT_TRUE(service.start());
  const EntityKey queue{{"default"}, "q"};
  submit(service, ChangeEntity{ChangeEntity::What::create, queue, message::EntityType::queue, {}, {}})->get();
  std::vector<std::shared_ptr<Answer>> answers;
  for (int round = 0; round < 6; ++round) {  // of these looks a turn decides eight
    for (int i = 0; i < 500; ++i) answers.push_back(submit(service, PeekMessages{queue, false, 0, 1}));
    const int before = loads;
    ASSERT_TRUE(soon([&] { return loads > before + 2; }));
  }
  std::size_t refused = 0;
  for (auto& answer : answers) refused += std::holds_alternative<Refused>(answer->get()) ? 1 : 0;
  EXPECT_GT(refused, 1'000U);
  EXPECT_LT(refused, answers.size() - 1'000);
}

TEST_F(ServiceTest, TellsASlowTurnWithItsCauseAndCountsIt) {
  std::promise<void> open_gate;
  std::vector<SlowTurn> told;  // by the engine's thread, which stop() ends
  auto store = std::make_unique<GatedStore>(database_, open_gate.get_future().share());
  auto at_gate = store->at_gate.get_future();
  Service service(std::move(store), clock_, make_kinds(), {.slow_after = 20ms}, metrics_, {.slow_turn = [&](const SlowTurn& turn) { told.push_back(turn); }});
  ASSERT_TRUE(service.start());
  auto published = publish(service);
  at_gate.wait();
  std::this_thread::sleep_for(25ms);  // the commit takes so long
  open_gate.set_value();
  published->get();
  service.stop();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_GT(told.front().took, 19ms);
  EXPECT_TRUE(told.front().cause.starts_with("1 messages, 0 timers; load ")) << told.front().cause;
  const std::size_t commit = told.front().cause.find("commit ");
  ASSERT_NE(commit, std::string::npos) << told.front().cause;
  EXPECT_GE(std::stoi(told.front().cause.substr(commit + 7)), 15) << told.front().cause;
  EXPECT_TRUE(is_counted("baton_engine_slow_turns_total 1")) << metrics_.render();
  EXPECT_TRUE(is_counted("baton_engine_turn_seconds_bucket{le=\"0.01\"} 0")) << metrics_.render();
  EXPECT_TRUE(is_counted("baton_engine_turn_seconds_count 1")) << metrics_.render();
}

TEST_F(ServiceTest, DoesNotTellATurnThatIsNotSlow) {
  bool told = false;
  Service service(std::make_unique<store::MemoryStore>(database_), clock_, make_kinds(), {.slow_after = 1min}, metrics_,
                  {.slow_turn = [&](const SlowTurn&) { told = true; }});
  ASSERT_TRUE(service.start());
  publish(service)->get();
  service.stop();
  EXPECT_FALSE(told);
  EXPECT_TRUE(is_counted("baton_engine_slow_turns_total 0")) << metrics_.render();
  EXPECT_TRUE(is_counted("baton_engine_turn_seconds_count 1")) << metrics_.render();
}

TEST_F(ServiceTest, IsNotReadyWhileATurnTakesTooLongAndReadyAfterIt) {
  using enum Readiness::State;
  std::promise<void> open_gate;
  auto store = std::make_unique<GatedStore>(database_, open_gate.get_future().share());
  auto at_gate = store->at_gate.get_future();
  Service service(std::move(store), clock_, make_kinds(), {.stalled_after = 50ms}, metrics_);
  ASSERT_TRUE(service.start());
  EXPECT_EQ(service.readiness().state, ready);
  std::this_thread::sleep_for(60ms);  // idle is not busy, however long it lasts
  EXPECT_EQ(service.readiness().state, ready);
  auto published = publish(service);
  at_gate.wait();
  EXPECT_TRUE(soon([&] { return service.readiness().state == stalled; }));
  EXPECT_GE(service.readiness().turn, 50ms);
  EXPECT_TRUE(service.is_open());
  open_gate.set_value();
  published->get();
  EXPECT_TRUE(soon([&] { return service.readiness().state == ready; }));
}

// That the tables are a moment behind is nothing: whoever reads waits for it.
TEST_F(ServiceTest, IsNotReadyWhileReadsAreRefused) {
  using enum Readiness::State;
  Followed followed;
  Service service(std::make_unique<store::MemoryStore>(database_), clock_, make_kinds(), {.followed = &followed}, metrics_);
  ASSERT_TRUE(service.start());
  followed.committed(7);
  EXPECT_EQ(service.readiness().state, ready);
  followed.set_away(true);
  EXPECT_EQ(service.readiness().state, tables_behind);
  followed.followed(7);
  EXPECT_EQ(service.readiness().state, ready);
}

TEST_F(ServiceTest, AnswersWhoeverWaitsWhenItStops) {
  Service service(std::make_unique<store::MemoryStore>(database_), clock_, make_kinds(), {}, metrics_);
  ASSERT_TRUE(service.start());
  EXPECT_TRUE(std::holds_alternative<WorkflowReply>(publish(service)->get()));
  auto waiting = submit(service, [&] {
    SubmitJob command = job(1);
    command.wait_until = clock_.now() + 1h;
    return command;
  }());
  auto poll = submit(
      service, Poll{.tenant = {"default"}, .queue = "other", .worker = "w", .wait_until = clock_.now() + 1h});
  service.stop();
  EXPECT_EQ(std::get<JobReply>(waiting->get()).job.status, workflow::JobStatus::running);
  EXPECT_TRUE(std::get<PollReply>(poll->get()).jobs.empty());
  EXPECT_EQ(std::get<Refused>(submit(service, job(2))->get()).refusal, Refusal::stopping);
}

TEST_F(ServiceTest, RefusesAtOnceWhileItOpensAStoreThatIsAwayButForgetsNoTaskThatIsGivenBack) {
  std::promise<void> at_open, may_open;
  Outage outage;
  outage.at_open = [&]() -> Result<> {
    at_open.set_value();
    may_open.get_future().wait();
    return {};
  };
  Service service(std::make_unique<OutageStore>(database_, outage), clock_, make_kinds(), {}, metrics_);
  ASSERT_TRUE(service.start());
  publish(service)->get();
  outage.is_on = true;
  EXPECT_EQ(std::get<Refused>(submit(service, job(1))->get()).refusal, Refusal::store_unavailable);
  at_open.get_future().wait();
  EXPECT_EQ(std::get<Refused>(submit(service, job(2))->get()).refusal, Refusal::store_unavailable);
  auto back = submit(service, ReturnTasks{});
  outage.is_on = false;
  may_open.set_value();
  EXPECT_TRUE(std::holds_alternative<ReturnReply>(back->get()));
  EXPECT_TRUE(std::holds_alternative<JobReply>(submit(service, job(3))->get()));
}

TEST_F(ServiceTest, AStartWaitsForAnotherProgramThatHoldsTheStoreButNotForEver) {
  Outage outage;
  outage.opened = 1;  // so that the first one is held up too
  int held = 3;
  outage.at_open = [&]() -> Result<> { return held-- > 0 ? fail(Code::busy, "another program has it") : Result<>{}; };
  int told = 0;
  Hooks hooks{.store_busy = [&](const Error&) { ++told; }};
  {
    Service service(std::make_unique<OutageStore>(database_, outage), clock_, make_kinds(), {}, metrics_, hooks);
    ASSERT_TRUE(service.start());
    EXPECT_TRUE(std::holds_alternative<WorkflowReply>(publish(service)->get()));
    EXPECT_EQ(told, 1);
  }
  held = 1'000;
  Service service(std::make_unique<OutageStore>(database_, outage), clock_, make_kinds(), {.busy_max = 150ms}, metrics_, hooks);
  const auto started = service.start();
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "another program has it");
}

TEST_F(ServiceTest, TellsThoseWhoseCommitIsInDoubtWhenTheServerIsAboutToStop) {
  Outage outage{.commits_answer = Code::unknown,
                .at_open = []() -> Result<> { return fail(Code::unavailable, "nobody is there"); }};
  Service service(std::make_unique<OutageStore>(database_, outage), clock_, make_kinds(), {}, metrics_);
  ASSERT_TRUE(service.start());
  publish(service)->get();
  outage.is_on = true;
  auto held = submit(service, job(1));
  ASSERT_TRUE(soon([&] { return outage.opened > 1; }));
  EXPECT_EQ(held->future.wait_for(0s), std::future_status::timeout);
  const auto began = std::chrono::steady_clock::now();
  service.begin_stop();
  const Reply reply = held->get();
  EXPECT_NE(std::get<Refused>(reply).message.find("may or may not have happened"), std::string::npos);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST_F(ServiceTest, DoesNotOpenAStoreThatIsLostWhileItStops) {
  std::promise<void> at_commit, may_fail;
  Outage outage;
  Service service(std::make_unique<OutageStore>(database_, outage), clock_, make_kinds(), {}, metrics_);
  ASSERT_TRUE(service.start());
  publish(service)->get();
  outage.at_commit = [&] {
    at_commit.set_value();
    may_fail.get_future().wait();
  };
  outage.is_on = true;
  auto lost = submit(service, job(1));
  at_commit.get_future().wait();
  std::thread stopping([&] { service.stop(); });
  EXPECT_TRUE(soon([&] { return submit(service, job(2))->future.wait_for(0s) == std::future_status::ready; }));
  may_fail.set_value();
  stopping.join();
  EXPECT_EQ(std::get<Refused>(lost->get()).refusal, Refusal::store_unavailable);
  EXPECT_EQ(outage.opened, 1);
}

TEST_F(ServiceTest, FiresATimerAtItsTimeThoughNobodyAsks) {
  Service service(std::make_unique<store::MemoryStore>(database_), clock_, make_kinds(), {}, metrics_);
  ASSERT_TRUE(service.start());
  const std::string text =
      "workflow_id: w\nnodes:\n  start: {type: start, next: a}\n  a: {type: task, handler: work, queue: q, "
      "timeout_seconds: 1, next: end}\n  end: {type: end}\n";
  submit(service, PublishWorkflow{{"default"}, workflow::parse(text).definition, text})->get();
  SubmitJob command = job(1);
  command.wait_until = clock_.now() + 8s;
  auto ended = submit(service, command);
  const Reply handed =
      submit(service,
             Poll{.tenant = {"default"}, .queue = "q", .worker = "w", .wait_until = clock_.now() + 1s})
          ->get();
  ASSERT_EQ(std::get<PollReply>(handed).jobs.size(), 1u);
  const auto until = std::get<PollReply>(handed).jobs.front().lease_until;
  const Reply reply = ended->get();
  EXPECT_EQ(std::get<JobReply>(reply).job.status, workflow::JobStatus::failed);
  EXPECT_GE(*std::get<JobReply>(reply).job.completed_at, until);
}

}  // namespace
}  // namespace baton::engine::service_test
