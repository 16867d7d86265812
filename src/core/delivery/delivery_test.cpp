#include "core/delivery/delivery.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace baton::delivery {
namespace {

using namespace std::chrono_literals;

constexpr Time start = Time{} + std::chrono::hours{500'000};

template <class T>
bool is(const Expiry& expiry) {
  return std::holds_alternative<T>(expiry);
}

TEST(Lease, is_short_only_for_those_who_renew_and_never_outlives_the_deadline) {
  const Policy policy;
  EXPECT_EQ(lease_end(start, start + 1h, std::nullopt), start + 1h);
  EXPECT_EQ(lease_end(start, start + 1h, 30s), start + 30s);
  EXPECT_EQ(lease_end(start, start + 10s, 30s), start + 10s);
}

TEST(Lease, that_is_renewed_moves_its_timer_only_when_it_would_be_late) {
  EXPECT_EQ(timer_after_renewal(start + 10s, start + 40s), start + 10s);
  EXPECT_EQ(timer_after_renewal(start + 50s, start + 40s), start + 40s);
  EXPECT_EQ(timer_after_renewal(std::nullopt, start + 40s), start + 40s);
}

TEST(Expiry, asks_first_whether_it_is_held_then_whether_time_is_over_then_how_often_it_was_given) {
  const Policy policy;
  Lease lease{start, start + 30s, start + 1h, 3};
  EXPECT_TRUE(is<StillHeld>(expiry(lease, policy, start + 29s)));
  EXPECT_TRUE(is<Redeliver>(expiry(lease, policy, start + 30s)));
  lease.deliveries = 10;
  EXPECT_TRUE(is<GivenUp>(expiry(lease, policy, start + 30s)));
  lease.until = lease.deadline = start + 1h;
  EXPECT_TRUE(is<TimedOut>(expiry(lease, policy, start + 1h)));
}

TEST(Expiry, gives_whoever_was_working_when_the_server_came_back_time_to_report) {
  Policy policy;
  policy.opened_at = start + 20min;
  const Lease before{start, start + 30s, start + 1min, 10};
  const Expiry at_once = expiry(before, policy, start + 20min);
  ASSERT_TRUE(is<StillHeld>(at_once));
  EXPECT_EQ(std::get<StillHeld>(at_once).until, start + 20min + 30s);
  EXPECT_TRUE(is<TimedOut>(expiry(before, policy, start + 20min + 30s)));
  const Lease after{start + 20min, start + 20min + 1s, start + 1h, 1};
  EXPECT_TRUE(is<Redeliver>(expiry(after, policy, start + 20min + 2s)));
}

TEST(Expiry, ends_whatever_the_lease_is) {
  rc::check("looked at again when it says so, a lease that nobody renews is over after at most two looks", [] {
    const auto millis = [](int most) { return Duration{*rc::gen::inRange(0, most)}; };
    Policy policy;
    policy.opened_at = start + millis(100'000);
    const Time begun = start + millis(100'000);
    const Time deadline = begun + millis(200'000);
    const Lease lease{begun, std::min(begun + millis(60'000), deadline), deadline, *rc::gen::inRange(1, 12)};
    Time now = std::max(begun, policy.opened_at);
    int looks = 0;
    while (true) {
      const Expiry found = expiry(lease, policy, now);
      const auto* held = std::get_if<StillHeld>(&found);
      if (!held) break;
      RC_ASSERT(held->until > now);
      RC_ASSERT(++looks <= 2);
      now = held->until;
    }
  });
}

TEST(RetryDelay, doubles_up_to_its_cap) {
  const RetryDelay fixed{5s, false, 0s};
  EXPECT_EQ(fixed.before(1), 5s);
  EXPECT_EQ(fixed.before(7), 5s);
  const RetryDelay doubling{5s, true, 60s};
  EXPECT_EQ(doubling.before(1), 5s);
  EXPECT_EQ(doubling.before(3), 20s);
  EXPECT_EQ(doubling.before(1'000'000), 60s);
  EXPECT_EQ((RetryDelay{0s, true, 60s}.before(9)), 0s);
}

TEST(Log, takes_whole_lines_as_long_as_there_is_room) {
  Policy policy;
  policy.log_bytes_max = 100;
  std::int32_t bytes = 0;
  const std::vector<LogText> lines(4, LogText{"log", start, "12345678"});
  EXPECT_EQ(take_log(bytes, lines, policy), 2u);
  EXPECT_EQ(bytes, 80);
  EXPECT_EQ(take_log(bytes, lines, policy), 0u);
}

}  // namespace
}  // namespace baton::delivery
