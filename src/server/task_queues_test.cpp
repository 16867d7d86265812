#include "server/task_queues.hpp"

#include <gtest/gtest.h>

#include "tests/support/clocks.hpp"

namespace baton {
namespace {

using Names = TaskQueues::Names;

// Its looks are answered when the test says so.
class TaskQueuesTest : public testing::Test {
 protected:
  struct Asked {
    Names names;
    std::function<void(Result<Names>)> found;
  };
  void ask(const std::string& queue, const std::string& tenant = "default") {
    queues_.ask({tenant}, queue, [this, queue](const Result<bool>& is_one) { answers_.push_back(queue + (is_one ? *is_one ? " yes" : " no" : " failed")); });
  }
  std::vector<std::string> answers() { return std::exchange(answers_, {}); }

  support::ManualClock clock_;
  std::vector<Asked> asked_;
  std::vector<std::string> answers_;
  TaskQueues queues_{[this](const Tenant&, Names names, std::function<void(Result<Names>)> found) { asked_.push_back({std::move(names), std::move(found)}); }, clock_};
};

using Answers = std::vector<std::string>;

TEST_F(TaskQueuesTest, an_answer_is_remembered_for_a_moment) {
  ask("q");
  asked_.at(0).found(Names{});
  ask("q");
  EXPECT_EQ(answers(), (Answers{"q no", "q no"}));
  EXPECT_EQ(asked_.size(), 1U);
  clock_.time += TaskQueues::remembered;
  ask("q");
  ASSERT_EQ(asked_.size(), 2U);
  asked_[1].found(Names{"q"});
  EXPECT_EQ(answers(), Answers{"q yes"});
  clock_.time -= std::chrono::hours{1};
  ask("q");
  EXPECT_EQ(asked_.size(), 3U) << "a clock that was set back";
}

TEST_F(TaskQueuesTest, who_waits_shares_a_look) {
  for (const char* queue : {"a", "a", "b", "c"}) ask(queue);
  ask("a", "other");
  ASSERT_EQ(asked_.size(), 2U) << "one of each tenant";
  EXPECT_EQ(asked_[0].names, Names{"a"});
  asked_[0].found(Names{"a"});
  EXPECT_EQ(answers(), (Answers{"a yes", "a yes"}));
  ASSERT_EQ(asked_.size(), 3U);
  EXPECT_EQ(asked_[2].names, (Names{"b", "c"}));
  asked_[2].found(Names{"c"});
  EXPECT_EQ(answers(), (Answers{"b no", "c yes"}));
  EXPECT_EQ(asked_.size(), 3U);
}

TEST_F(TaskQueuesTest, a_look_that_failed_is_not_remembered) {
  ask("q");
  asked_.at(0).found(fail(Code::unavailable, "away"));
  EXPECT_EQ(answers(), Answers{"q failed"});
  ask("q");
  EXPECT_EQ(asked_.size(), 2U);
}

}  // namespace
}  // namespace baton
