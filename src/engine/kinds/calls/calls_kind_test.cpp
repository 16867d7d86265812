// Service calls through the real writer, on a store in memory and a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"

namespace baton::engine::calls_kind_test {
namespace {

struct TestClock final : Clock {
  Time time = from_millis(1'800'000'000'000);
  [[nodiscard]] Time now() const override { return time; }
};

struct Answer final : Waiter {
  std::optional<Reply> reply;
  void deliver(Reply r) override { reply = std::move(r); }
};
using Answers = std::vector<std::shared_ptr<Answer>>;

// Counts the requests that are loaded at once.
class CountingStore final : public store::MemoryStore {
 public:
  using MemoryStore::load;
  using MemoryStore::MemoryStore;
  Result<call::Loaded> load(const call::LoadRequest& request) override {
    requests_at_once = std::max(requests_at_once, request.requests.size());
    return MemoryStore::load(request);
  }
  std::size_t requests_at_once = 0;
};

class CallTurn : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(writer_.open()); }
  Answers run(std::vector<Command> commands) {
    std::vector<Item> items;
    Answers answers;
    for (Command& command : commands) {
      answers.push_back(std::make_shared<Answer>());
      items.push_back({std::move(command), answers.back()});
    }
    writer_.run(std::move(items));
    return answers;
  }
  // A call that has ended.
  call::CallKey ended(const std::string& id) {
    const call::CallKey key{{"default"}, {id}};
    NewCall wanted{.key = key, .name = "n", .request_spec = Json{"{}"}, .origin = "http://a:80"};
    wanted.request.method = "GET";
    (void)run({SubmitCalls{{wanted}}});
    (void)run({StartCalls{.started_by = "s", .keys = {key}}});
    (void)run({EndCalls{{CallOutcome{key, true, Json{"{}"}, "s"}}}});
    return key;
  }
  static std::size_t answered(const Answers& answers) {
    return static_cast<std::size_t>(
        std::ranges::count_if(answers, [](const auto& answer) { return answer->reply.has_value(); }));
  }

  store::MemoryDatabase database_;
  TestClock clock_;
  CountingStore store_{database_};
  Writer writer_{store_, clock_, make_kinds()};
};

TEST_F(CallTurn, takes_64_repeats_and_leaves_the_rest_for_the_next_one) {
  std::vector<Command> commands;
  for (int i = 0; i < 70; ++i) {
    const std::string id = "c-" + std::to_string(i);
    commands.emplace_back(RepeatCall{.origin = ended(id), .new_id = {"again-" + std::to_string(i)}});
  }
  store_.requests_at_once = 0;
  const Answers answers = run(std::move(commands));
  EXPECT_EQ(answered(answers), 64U);
  EXPECT_EQ(store_.requests_at_once, 64U) << "nothing is loaded for those that wait";
  ASSERT_TRUE(writer_.next_wake());
  EXPECT_LE(*writer_.next_wake(), clock_.now());
  (void)run({});
  ASSERT_EQ(answered(answers), 70U);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& one = std::get<CallsReply>(*answers[i]->reply).calls.at(0);
    ASSERT_TRUE(one) << i << ": " << one.error().message;
    EXPECT_EQ(one->call.repeat_of, "c-" + std::to_string(i));
  }
  EXPECT_EQ(database_.calls.size(), 140U);
}

// Its answer may have been lost.
TEST_F(CallTurn, WhoAsksAgainToStartACallGetsWhatItIsToSend) {
  const call::CallKey key{{"default"}, {"c"}};
  NewCall wanted{.key = key, .name = "n", .request_spec = Json{"{}"}, .origin = "http://a:80"};
  wanted.request.method = "GET";
  (void)run({SubmitCalls{{wanted}}});
  for (int i = 0; i < 2; ++i) {
    const Answers answers = run({StartCalls{.started_by = "s", .keys = {key}}});
    const auto& reply = std::get<StartedReply>(*answers.at(0)->reply);
    ASSERT_EQ(reply.started.size(), 1U) << i;
    EXPECT_EQ(reply.started[0].request.method, "GET");
  }
}

}  // namespace
}  // namespace baton::engine::calls_kind_test
