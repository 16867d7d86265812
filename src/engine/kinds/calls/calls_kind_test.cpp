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

// Counts what is loaded of calls.
class CountingStore final : public store::MemoryStore {
 public:
  using MemoryStore::load;
  using MemoryStore::MemoryStore;
  Result<call::Loaded> load(const call::LoadRequest& request) override {
    ++loads;
    requests_at_once = std::max(requests_at_once, request.requests.size());
    return MemoryStore::load(request);
  }
  std::size_t loads = 0, requests_at_once = 0;
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
  // A call that is being made.
  call::CallKey started(const std::string& id) {
    const call::CallKey key{{"default"}, {id}};
    NewCall wanted{.key = key, .name = "n", .request_spec = Json{"{}"}, .origin = "http://a:80", .tags = {"t"}};
    wanted.request.method = "GET";
    (void)run({SubmitCalls{{wanted}}});
    (void)run({StartCalls{.started_by = "s", .keys = {key}}});
    return key;
  }
  Answers end(const call::CallKey& key) { return run({EndCalls{{CallOutcome{key, true, Json{"{}"}, "s"}}}}); }
  // A call that has ended.
  call::CallKey ended(const std::string& id) {
    const call::CallKey key = started(id);
    (void)end(key);
    return key;
  }
  // Whether the row is there and is what its events come to.
  [[nodiscard]] bool has_right_row(const call::CallKey& key) const {
    const call::Call* row = database_.calls.get(key);
    return row != nullptr && *row == call::fold(database_.stream(key));
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

TEST_F(CallTurn, AnEndAfterAStartLoadsNothing) {
  const call::CallKey key = started("c");
  store_.loads = 0;
  const Answers answers = end(key);
  EXPECT_EQ(store_.loads, 0U);
  const auto& one = std::get<CallsReply>(*answers.at(0)->reply).calls.at(0);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->call.status, call::Status::succeeded);
  EXPECT_TRUE(has_right_row(key));
}

TEST_F(CallTurn, ARowThatIsErasedWhileTheCallIsMadeIsWrittenWholeWhenSomebodyLooks) {
  const call::CallKey key = started("c");
  database_.calls.erase(key);
  const Answers answers = end(key);
  const auto& one = std::get<CallsReply>(*answers.at(0)->reply).calls.at(0);
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->call.status, call::Status::succeeded);
  EXPECT_FALSE(database_.calls.contains(key));
  (void)run({RebuildCalls{{key}}});
  ASSERT_TRUE(has_right_row(key));
  EXPECT_EQ(database_.calls.get(key)->status, call::Status::succeeded);
}

TEST_F(CallTurn, WhatAnEndDoesNotWriteIsMendedWhenSomebodyLooks) {
  const call::CallKey key = started("c");
  database_.calls.change(key, [](call::Call& row) {
    row.tags = "[";
    row.version = 7;
  });
  (void)end(key);
  const call::Call* row = database_.calls.get(key);
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->status, call::Status::succeeded);
  EXPECT_EQ(row->version, 4);
  EXPECT_FALSE(has_right_row(key));
  (void)run({RebuildCalls{{key}}});
  EXPECT_TRUE(has_right_row(key));
}

}  // namespace
}  // namespace baton::engine::calls_kind_test
