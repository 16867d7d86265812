// What the simulator does not come across: an engine that refuses one of many for good, and the end of a
// server. The rest is in tests/simulation/call_workload.cpp.
#include "caller/dispatch.hpp"

#include <gtest/gtest.h>

#include "core/call/call.hpp"
#include "store/memory/reads.hpp"

namespace baton::caller {
namespace {

const Time noon = *from_iso("2026-03-01T12:00:00Z");

// Remembers what is wanted, and has nothing stored.
class World : public DispatchActions {
 public:
  void ask(Ticket ticket, Command command) override { asked.emplace_back(ticket, std::move(command)); }
  void send(Ticket ticket, const call::Destination&, OutgoingRequest request) override {
    sent.emplace_back(ticket, std::move(request));
  }
  Result<CallReads*> reads() override {
    if (is_away) return fail(Code::unavailable, "away");
    return &stored_;
  }
  void drop_reads() override { ++dropped; }
  std::int64_t shown() const override { return tables_show; }

  std::vector<std::pair<Ticket, Command>> asked;
  std::vector<std::pair<Ticket, OutgoingRequest>> sent;
  bool is_away = false;
  int dropped = 0;
  std::int64_t tables_show = 0;
  std::optional<std::string> broken_origin;  // what is read of it fails

 private:
  struct Stored final : store::MemoryReads {
    Stored(store::MemoryDatabase& database, const std::optional<std::string>& broken) : MemoryReads(database), broken_origin(broken) {}
    Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) override {
      if (wanted.destination.origin == broken_origin) return fail(Code::unavailable, "away");
      return MemoryReads::due_calls(wanted);
    }
    const std::optional<std::string>& broken_origin;
  };
  store::MemoryDatabase database_;
  Stored stored_{database_, broken_origin};
};

class DispatchTest : public testing::Test {
 protected:
  static call::CallKey key(int n) { return {Tenant{"t"}, call::CallId{"call-" + std::to_string(n)}}; }
  void due(int n) { dispatch_.scheduled({{Tenant{"t"}, "http://a:80"}, {noon, key(n).id}, {}}, noon); }
  Duration step(int uptime = 0) { return dispatch_.step(noon, Duration{uptime}); }
  // What was asked for since the last look.
  template <class C>
  std::vector<std::pair<Ticket, C>> take() {
    std::vector<std::pair<Ticket, C>> all;
    for (auto& [ticket, command] : std::exchange(world_.asked, {}))
      all.emplace_back(ticket, std::get<C>(command));
    return all;
  }
  static StartedReply started(const StartCalls& command) {
    StartedReply reply;
    for (const call::CallKey& each : command.keys) {
      call::Call row;
      row.tenant_id = each.tenant, row.service_call_id = each.id, row.due_at = noon;
      call::Request request;
      request.method = "GET", request.url = "http://a/" + each.id.value;
      reply.started.push_back({row, request});
    }
    return reply;
  }

  World world_;
  metrics::Registry metrics_;
  std::vector<std::string> log_;
  std::shared_ptr<Places> places_ = std::make_shared<Places>(Places::Limits{}, "server");
  Dispatch dispatch_{world_, metrics_, places_, [this] {
                       DispatchOptions options;
                       options.log = [this](const std::string& line) { log_.push_back(line); };
                       return options;
                     }()};
};

TEST_F(DispatchTest, OneThatTheStoreDoesNotWantDoesNotKeepTheOthersBack) {
  (void)step();
  for (int n = 1; n <= 8; ++n) due(n);
  (void)step();
  std::set<std::string> tokens;
  for (int round = 1; round < 10; ++round) {
    const auto commands = take<StartCalls>();
    if (commands.empty()) break;
    for (const auto& [ticket, command] : commands) {
      tokens.insert(command.started_by);
      if (std::ranges::find(command.keys, key(5)) != command.keys.end())
        dispatch_.answered(ticket, Refused{Refusal::invalid_input, "unreadable", {}}, noon);
      else
        dispatch_.answered(ticket, started(command), noon);
    }
    (void)step(round);
  }
  EXPECT_EQ(world_.sent.size(), 7U);
  EXPECT_EQ(tokens.size(), 1U) << "it may have been stored: what is asked again has the same token";
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("call-5 of t cannot be started: unreadable"), std::string::npos) << log_[0];
}

TEST_F(DispatchTest, WhatMayPassIsAskedForAgainWithTheSameToken) {
  (void)step();
  due(1);
  (void)step();
  const auto first = take<StartCalls>();
  ASSERT_EQ(first.size(), 1U);
  dispatch_.answered(first[0].first, Refused{Refusal::store_unavailable, "away", {}}, noon);
  EXPECT_EQ(step(10), Duration{50});
  EXPECT_TRUE(world_.asked.empty());
  (void)step(60);
  const auto again = take<StartCalls>();
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].second.started_by, first[0].second.started_by);
}

TEST_F(DispatchTest, PlacesAreReservedWhileNothingThatIsDueWaits) {
  const call::Destination to{Tenant{"t"}, "http://a:80"};
  EXPECT_EQ(places_->reserve(to), nullptr) << "what an earlier server left is not known yet";
  (void)step();
  EXPECT_NE(places_->reserve(to), nullptr);
  for (int n = 1; n <= 70; ++n) due(n);  // of 128 places of an origin a tenant has half
  (void)step();
  EXPECT_EQ(places_->reserve({Tenant{"u"}, "http://b:80"}), nullptr)
      << "whoever comes now would overtake six";
  world_.asked.clear();
  dispatch_.begin_no_more();
  EXPECT_EQ(places_->reserve(to), nullptr);
}

TEST_F(DispatchTest, WhatWasBegunWithItsSubmissionIsSentAtOnceAndKeepsItsPlace) {
  (void)step();
  const call::Destination to{Tenant{"t"}, "http://a:80"};
  auto place = places_->reserve(to);
  ASSERT_TRUE(place);
  EXPECT_FALSE(dispatch_.idle()) << "it may be begun";
  const auto reply = started({place->token(), {key(1)}});
  auto begun = std::make_shared<DueCall::Begun>(reply.started.at(0), std::move(place));
  dispatch_.scheduled({to, {noon, key(1).id}, {}, std::move(begun)}, noon);
  ASSERT_EQ(world_.sent.size(), 1U);
  EXPECT_TRUE(world_.asked.empty()) << "its start is stored";
  EXPECT_EQ(places_->reserved(), 0U);
  EXPECT_EQ(dispatch_.open(), 1U);
  dispatch_.ended(world_.sent[0].first,
                  {.kind = OutgoingKind::answered, .may_have_left = true, .status = 200});
  (void)step(1);
  const auto ends = take<EndCalls>();
  ASSERT_EQ(ends.size(), 1U);
  dispatch_.answered(ends[0].first, CallsReply{}, noon);
  EXPECT_EQ(dispatch_.open(), 0U);
  EXPECT_TRUE(dispatch_.idle());
}

TEST_F(DispatchTest, AtTheEndWhatHasNotLeftHasFailedAndTheRestIsLeftToTheNext) {
  (void)step();
  due(1), due(2);
  (void)step();
  const auto commands = take<StartCalls>();
  dispatch_.answered(commands[0].first, started(commands[0].second), noon);
  ASSERT_EQ(world_.sent.size(), 2U);
  EXPECT_FALSE(dispatch_.idle());
  dispatch_.begin_no_more();
  due(3);
  dispatch_.ended(world_.sent[0].first, {.kind = OutgoingKind::stopped, .may_have_left = true});
  dispatch_.ended(world_.sent[1].first, {.kind = OutgoingKind::stopped, .message = "stopping"});
  (void)step();
  const auto ends = take<EndCalls>();
  ASSERT_EQ(ends.size(), 1U);
  ASSERT_EQ(ends[0].second.outcomes.size(), 1U);
  EXPECT_EQ(ends[0].second.outcomes[0].key, key(2));
  EXPECT_NE(ends[0].second.outcomes[0].meta.text.find(R"("requestMayHaveLeft":false)"), std::string::npos);
  dispatch_.answered(ends[0].first, CallsReply{}, noon);
  EXPECT_TRUE(dispatch_.idle());
}

TEST_F(DispatchTest, AReadThatFailsIsTriedAgainOnAnotherConnection) {
  world_.is_away = true;
  EXPECT_EQ(step(0), Duration{50});
  EXPECT_EQ(world_.dropped, 1);
  EXPECT_EQ(step(20), Duration{30}) << "not yet";
  EXPECT_EQ(world_.dropped, 1);
  EXPECT_EQ(step(50), Duration{100});
  EXPECT_EQ(world_.dropped, 2);
  world_.is_away = false;
  EXPECT_EQ(step(150), Duration{1'000});
}

// The store of this world is empty, like tables that are behind.
TEST_F(DispatchTest, WhatTheTablesDoNotShowYetIsMadeAllTheSame) {
  const Time later = noon + std::chrono::seconds{10};
  (void)step();
  dispatch_.scheduled({{Tenant{"t"}, "http://a:80"}, {later, key(1).id}, {}, nullptr, 5}, noon);
  world_.tables_show = 4;
  for (int second = 1; second <= 10; ++second)
    (void)dispatch_.step(noon + std::chrono::seconds{second}, std::chrono::seconds{second});
  const auto starts = take<StartCalls>();
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].second.keys, std::vector{key(1)});
}

// A window of one is full, so that the next call is left to the store; and the store fails once it has been asked for it.
TEST_F(DispatchTest, WhatTheTablesDoNotShowYetIsMadeThoughAReadFails) {
  Dispatch dispatch(world_, metrics_, std::make_shared<Places>(Places::Limits{100, 100}, "p"), {.window = 1});
  const auto told = [&](const std::string& origin, int n, std::int64_t commit) {
    dispatch.scheduled({{Tenant{"t"}, origin}, {noon + Duration{n}, key(n).id}, {}, nullptr, commit}, noon);
  };
  (void)dispatch.step(noon, {});
  told("http://a:80", 1, 8), told("http://a:80", 2, 9);
  told("http://b:80", 3, 8), told("http://b:80", 4, 8);
  world_.tables_show = 8;
  world_.broken_origin = "http://b:80";
  std::set<call::CallKey> asked_for;
  for (int second = 1; second <= 5; ++second) {
    (void)dispatch.step(noon + std::chrono::seconds{second}, std::chrono::seconds{second});
    for (const auto& [ticket, command] : take<StartCalls>()) asked_for.insert(command.keys.begin(), command.keys.end());
    world_.tables_show = 9;  // from the next look on
  }
  EXPECT_TRUE(asked_for.contains(key(2)));
}

TEST_F(DispatchTest, WhatTheTablesShowIsLeftToThem) {
  (void)step();
  dispatch_.scheduled({{Tenant{"t"}, "http://a:80"}, {noon + std::chrono::seconds{10}, key(1).id}, {}, nullptr, 5}, noon);
  world_.tables_show = 5;  // and do not have it: it is over
  for (int second = 1; second <= 10; ++second)
    (void)dispatch_.step(noon + std::chrono::seconds{second}, std::chrono::seconds{second});
  EXPECT_TRUE(take<StartCalls>().empty());
}

TEST_F(DispatchTest, TheEndOfTimeIsFarAway) {
  (void)step();
  dispatch_.scheduled({{Tenant{"t"}, "http://a:80"}, {*from_iso("9999-12-31T23:59:59.999Z"), key(1).id}, {}},
                      noon);
  EXPECT_EQ(step(1), Duration{1'000});
}

}  // namespace
}  // namespace baton::caller
