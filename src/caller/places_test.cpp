#include "caller/places.hpp"

#include <gtest/gtest.h>

namespace baton::caller {
namespace {

using Place = call::Agenda::Place;

class PlacesTest : public testing::Test {
 protected:
  static call::Destination to(const std::string& tenant, const std::string& origin = "http://a:80") {
    return {Tenant{tenant}, origin};
  }
  std::shared_ptr<Places> places_ =
      std::make_shared<Places>(Places::Limits{.places_max = 4, .per_origin_max = 4}, "s");
};

TEST_F(PlacesTest, NothingIsReservedBeforeItIsGranted) {
  EXPECT_EQ(places_->reserve(to("t")), nullptr);
  places_->grant(true);
  EXPECT_NE(places_->reserve(to("t")), nullptr);
  places_->grant(false);
  EXPECT_EQ(places_->reserve(to("t")), nullptr);
}

TEST_F(PlacesTest, AReservationIsAPlaceLikeAnyOther) {
  places_->grant(true);
  const auto one = places_->reserve(to("t")), two = places_->reserve(to("t"));
  ASSERT_TRUE(one && two);
  EXPECT_NE(one->token(), two->token());
  EXPECT_EQ(places_->reserve(to("t")), nullptr) << "a tenant has no more than are free";
  EXPECT_EQ(places_->take(to("t")), Place::none_for_tenant);
  EXPECT_EQ(places_->take(to("u")), Place::taken);
  EXPECT_EQ(places_->take(to("v")), Place::taken);
  EXPECT_EQ(places_->take(to("w")), Place::none_for_tenant) << "there are four";
}

TEST_F(PlacesTest, AReservationThatIsDroppedIsGivenBackAndTold) {
  int told = 0;
  places_->when_given_back([&] { ++told; });
  places_->grant(true);
  for (int i = 0; i < 10; ++i) {
    auto one = places_->reserve(to("t"));
    ASSERT_TRUE(one);
    const auto copy = one;
    one.reset();
    EXPECT_EQ(places_->reserved(), 1U) << "somebody has it";
  }
  EXPECT_EQ(told, 10);
  EXPECT_EQ(places_->reserved(), 0U);
  EXPECT_EQ(places_->take_given_back(), std::vector<std::string>(10, "http://a:80"));
  EXPECT_EQ(places_->take_given_back(), std::vector<std::string>{});
}

TEST_F(PlacesTest, AReservationThatIsKeptIsLeftByWhoeverHasIt) {
  places_->grant(true);
  {
    const auto one = places_->reserve(to("t")), two = places_->reserve(to("t"));
    one->keep();
    two->keep();
  }
  EXPECT_EQ(places_->reserved(), 0U);
  EXPECT_EQ(places_->reserve(to("t")), nullptr) << "both are still taken";
  places_->leave_origin(to("t"));
  places_->leave_place(Tenant{"t"});
  EXPECT_NE(places_->reserve(to("t")), nullptr);
}

class Seen final : public Inbox {
 public:
  void submit(Command command, std::shared_ptr<Waiter>) override { commands.push_back(std::move(command)); }
  std::vector<Command> commands;
};
class Noon final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return *from_iso("2026-03-01T12:00:00Z"); }
};

TEST_F(PlacesTest, AreReservedForCallsThatAreDueAndNoOthers) {
  Seen seen;
  const Noon clock;
  ReservingInbox inbox(seen, clock, places_);
  places_->grant(true);
  NewCall call;
  call.key.tenant = Tenant{"t"};
  SubmitCalls command;
  for (const std::optional<Time> due :
       {std::optional<Time>{}, std::optional{clock.now()}, std::optional{clock.now() + Duration{1}}}) {
    call.due_at = due;
    command.calls.push_back(call);
  }
  inbox.submit(std::move(command), std::make_shared<Nobody>());
  const auto& passed = std::get<SubmitCalls>(seen.commands.at(0)).calls;
  EXPECT_TRUE(passed[0].place);
  EXPECT_TRUE(passed[1].place);
  EXPECT_FALSE(passed[2].place);
  EXPECT_EQ(places_->reserved(), 2U);
  seen.commands.clear();
  EXPECT_EQ(places_->reserved(), 0U);
}

}  // namespace
}  // namespace baton::caller
