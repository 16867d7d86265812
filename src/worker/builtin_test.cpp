#include "worker/builtin.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "worker/handlers.hpp"

namespace baton::worker {
namespace {

using namespace std::chrono_literals;

class StoppedClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return from_millis(1'000'000); }
};

Handout task(std::string id, std::string handler, std::string params = "{}", std::int32_t retry_count = 0) {
  Handout handout;
  handout.task_id = std::move(id);
  handout.job_id = workflow::JobId{"job"};
  handout.node_id = "node";
  handout.handler = std::move(handler);
  handout.params = Json{std::move(params)};
  handout.queue = "builtin";
  handout.retry_count = retry_count;
  handout.lease = "lease-" + handout.task_id;
  return handout;
}

// Keeps polls until there is something to hand out, and records everything else that comes in.
class FakeInbox final : public Inbox {
 public:
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    std::optional<Reply> reply;
    {
      const std::lock_guard lock(mutex_);
      if (auto* poll = std::get_if<Poll>(&command)) {
        polls.push_back(*poll);
        if (!poll_refusals.empty()) {
          reply = Refused{poll_refusals.front(), "not now", {}};
          poll_refusals.pop_front();
        } else {
          EXPECT_EQ(poll_waiter_, nullptr) << "a second poll while the first is out";
          poll_waiter_ = std::move(waiter);
        }
      } else if (auto* result = std::get_if<ReportResult>(&command)) {
        results.push_back(*result);
        reply = result_refusals.empty() ? Reply{ResultReply{}}
                                        : Reply{Refused{result_refusals.front(), "busy", {}}};
        if (!result_refusals.empty()) result_refusals.pop_front();
      } else if (auto* beat = std::get_if<Heartbeat>(&command)) {
        heartbeats.push_back(*beat);
        reply = HeartbeatReply{{}, cancelled};
      } else if (auto* back = std::get_if<ReturnTasks>(&command)) {
        returned.insert(returned.end(), back->tasks.begin(), back->tasks.end());
        reply = ReturnReply{};
      }
      changed_.notify_all();
    }
    if (reply) waiter->deliver(*std::move(reply));
  }

  void hand_out(std::vector<Handout> tasks) {
    auto waiter = take_poll();
    ASSERT_NE(waiter, nullptr);
    waiter->deliver(PollReply{std::move(tasks)});
  }

  std::shared_ptr<Waiter> take_poll() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 5s, [this] { return poll_waiter_ != nullptr; });
    return std::exchange(poll_waiter_, nullptr);
  }

  bool wait(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, condition);
  }

  std::vector<Poll> polls;
  std::vector<ReportResult> results;
  std::vector<Heartbeat> heartbeats;
  std::vector<TaskLease> returned;
  std::vector<std::string> cancelled;
  std::deque<Refusal> poll_refusals;
  std::deque<Refusal> result_refusals;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Waiter> poll_waiter_;
};

struct BuiltinWorker : testing::Test {
  FakeInbox inbox;
  StoppedClock clock;
  BuiltinOptions options{.heartbeat_every = 20ms, .retry_after = 1ms};
};

TEST(Handlers, EchoGivesBackItsParameters) {
  const HandlerResult verdict = run_builtin(task("t", "echo", R"({"message":"hello","n":0.50})"));
  EXPECT_TRUE(verdict.completed);
  EXPECT_EQ(verdict.output->text, R"({"echoed_params":{"message":"hello","n":0.50}})");
  EXPECT_EQ(verdict.after, 0ms);
}

TEST(Handlers, SleepTakesWholeAndBrokenSecondsUnderEitherName) {
  const HandlerResult half = run_builtin(task("t", "sleep", R"({"seconds":0.5})"));
  EXPECT_EQ(half.after, 500ms);
  EXPECT_EQ(half.output->text, R"({"slept_seconds":0.5})");
  const HandlerResult three = run_builtin(task("t", "sleep", R"({"duration_seconds":3})"));
  EXPECT_EQ(three.after, 3s);
  EXPECT_EQ(three.output->text, R"({"slept_seconds":3})");
  EXPECT_EQ(run_builtin(task("t", "sleep", R"({"seconds":0})")).after, 0ms);
}

TEST(Handlers, SleepRefusesWhatIsNoDuration) {
  for (const char* params : {R"({})", R"({"seconds":-1})", R"({"seconds":86401})", R"({"seconds":"1"})",
                             R"({"seconds":1e400})", R"([1])", R"({"seconds":null})"}) {
    const HandlerResult verdict = run_builtin(task("t", "sleep", params));
    EXPECT_FALSE(verdict.completed) << params;
    EXPECT_EQ(verdict.after, 0ms) << params;
    EXPECT_NE(verdict.error->find("seconds"), std::string::npos) << params;
  }
}

TEST(Handlers, FailFailsWithTheGivenMessage) {
  EXPECT_EQ(run_builtin(task("t", "fail", R"({"message":"no luck"})")).error, "no luck");
  EXPECT_FALSE(run_builtin(task("t", "fail")).error->empty());
}

TEST(Handlers, FlakyFailsAsOftenAsAskedAndThenCompletes) {
  EXPECT_FALSE(run_builtin(task("t", "flaky", "{}", 0)).completed);
  EXPECT_EQ(run_builtin(task("t", "flaky", "{}", 1)).output->text, R"({"attempts":2})");
  EXPECT_FALSE(run_builtin(task("t", "flaky", R"({"fail_times":3})", 2)).completed);
  EXPECT_EQ(run_builtin(task("t", "flaky", R"({"fail_times":3})", 3)).output->text, R"({"attempts":4})");
  EXPECT_EQ(run_builtin(task("t", "flaky", R"({"fail_times":0})", 0)).output->text, R"({"attempts":1})");
  EXPECT_FALSE(run_builtin(task("t", "flaky", R"({"fail_times":"x"})", 5)).completed);
}

TEST(Handlers, AnUnknownHandlerFailsAndNamesItself) {
  const HandlerResult verdict = run_builtin(task("t", "resize"));
  EXPECT_FALSE(verdict.completed);
  EXPECT_NE(verdict.error->find("'resize'"), std::string::npos);
}

TEST_F(BuiltinWorker, PollsItsQueueForEveryTenantAndReportsWithTheLease) {
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("a", "echo"), task("b", "fail")});
  ASSERT_TRUE(inbox.wait([&] { return inbox.results.size() == 2 && inbox.polls.size() == 2; }));
  EXPECT_EQ(inbox.polls[0].queue, "builtin");
  EXPECT_TRUE(inbox.polls[0].tenant.empty());
  EXPECT_TRUE(inbox.polls[0].heartbeats);
  EXPECT_EQ(inbox.polls[0].max, 256U);
  EXPECT_EQ(inbox.polls[0].wait_until, clock.now() + 30s);
  EXPECT_EQ(inbox.results[0].task_id, "a");
  EXPECT_EQ(inbox.results[0].lease, "lease-a");
  EXPECT_TRUE(inbox.results[0].completed);
  EXPECT_FALSE(inbox.results[1].completed);
}

TEST_F(BuiltinWorker, SleepersWakeInTheOrderOfTheirTimes) {
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("late", "sleep", R"({"seconds":0.06})"), task("early", "sleep", R"({"seconds":0.01})"),
                  task("now", "sleep", R"({"seconds":0})")});
  ASSERT_TRUE(inbox.wait([&] { return inbox.results.size() == 3; }));
  EXPECT_EQ(inbox.results[0].task_id, "now");
  EXPECT_EQ(inbox.results[1].task_id, "early");
  EXPECT_EQ(inbox.results[2].task_id, "late");
}

TEST_F(BuiltinWorker, HeartbeatsForSleepersAndDropsTheCancelledOnes) {
  inbox.cancelled = {"gone"};
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("gone", "sleep", R"({"seconds":0.1})"), task("kept", "sleep", R"({"seconds":0.15})")});
  ASSERT_TRUE(inbox.wait([&] { return !inbox.results.empty(); }));
  EXPECT_EQ(inbox.results[0].task_id, "kept");
  ASSERT_FALSE(inbox.heartbeats.empty());
  EXPECT_EQ(inbox.heartbeats[0].tasks.size(), 2U);
  EXPECT_EQ(inbox.heartbeats[0].tasks[0].lease, "lease-gone");
}

TEST_F(BuiltinWorker, TriesAgainWhenTheEngineIsBusy) {
  inbox.poll_refusals = {Refusal::overloaded, Refusal::store_unavailable};
  inbox.result_refusals = {Refusal::overloaded, Refusal::store_full};
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("a", "echo")});
  ASSERT_TRUE(inbox.wait([&] { return inbox.results.size() == 3; }));
  EXPECT_EQ(inbox.results[2].task_id, "a");
  EXPECT_GE(inbox.polls.size(), 3U);
}

TEST_F(BuiltinWorker, DropsAResultThatCameTooLate) {
  inbox.result_refusals = {Refusal::stale_result};
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("a", "echo")});
  inbox.hand_out({task("b", "echo")});
  ASSERT_TRUE(inbox.wait([&] { return inbox.results.size() == 2; }));
  EXPECT_EQ(inbox.results[1].task_id, "b");
}

TEST_F(BuiltinWorker, StopsAtOnceAndGivesSleepersBack) {
  Builtin worker(inbox, clock, options);
  worker.start();
  inbox.hand_out({task("long", "sleep", R"({"seconds":3600})")});
  ASSERT_TRUE(inbox.wait([&] { return inbox.polls.size() == 2; }));
  auto poll = inbox.take_poll();
  EXPECT_FALSE(poll->gone());
  worker.stop();
  EXPECT_TRUE(poll->gone());
  ASSERT_EQ(inbox.returned.size(), 1U);
  EXPECT_EQ(inbox.returned[0].task_id, "long");
  // A poll that is answered too late goes back whole.
  poll->deliver(PollReply{{task("later", "echo")}});
  ASSERT_EQ(inbox.returned.size(), 2U);
  EXPECT_EQ(inbox.returned[1].lease, "lease-later");
  EXPECT_TRUE(inbox.results.empty());
}

}  // namespace
}  // namespace baton::worker
