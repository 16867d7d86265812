#include "ports/broker_state.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

using namespace std::chrono_literals;

const Time t0 = from_iso("2026-11-18T20:00:00.000Z").value();

std::vector<BrokerState::Link> two_links() {
  return {{.address = "worker-jobs", .is_sender = true, .queue = "pool-1", .is_open = false, .since = t0 + 5s, .trouble = {}},
          {.address = "worker-results/Subscriptions/orchestrator", .is_sender = false, .queue = {}, .is_open = false, .since = t0 + 5s, .trouble = {}}};
}

TEST(BrokerState, SaysSinceWhenTheBrokerIsAwayAndWhy) {
  BrokerState state("sb://host", {"pool-1"}, t0);
  EXPECT_EQ(state.trouble_of("pool-1"), "the broker has been away since 2026-11-18T20:00:00.000Z");
  state.disconnected("connection refused", t0 + 1s);
  state.disconnected("no route", t0 + 2s);
  EXPECT_EQ(state.trouble_of("pool-1"), "the broker has been away since 2026-11-18T20:00:00.000Z: no route");
  EXPECT_EQ(state.trouble_of("pool-2"), std::nullopt) << "nobody publishes that";
  state.connected(two_links(), t0 + 5s);
  EXPECT_EQ(state.trouble_of("pool-1"), "the broker has not taken anything for 'worker-jobs' since 2026-11-18T20:00:05.000Z");
  state.link_opened(0, t0 + 6s);
  EXPECT_EQ(state.trouble_of("pool-1"), std::nullopt);
  state.link_closed(0, "amqp:not-found: there is none", t0 + 7s);
  state.link_closed(0, "amqp:not-found: there is none yet", t0 + 9s);
  EXPECT_EQ(state.trouble_of("pool-1"), "the broker has not taken anything for 'worker-jobs' since 2026-11-18T20:00:07.000Z: amqp:not-found: there is none yet");
  state.link_opened(0, t0 + 10s);
  state.disconnected("it was killed", t0 + 20s);
  EXPECT_EQ(state.trouble_of("pool-1"), "the broker has been away since 2026-11-18T20:00:20.000Z: it was killed");
}

TEST(BrokerState, ShowsTheLinksAndTheLastTroubleOfBefore) {
  BrokerState state("sb://host", {"pool-1"}, t0);
  EXPECT_FALSE(state.view().is_connected);
  EXPECT_EQ(state.view().trouble_at, std::nullopt);
  state.disconnected("connection refused", t0 + 1s);
  state.connected(two_links(), t0 + 5s);
  state.link_opened(1, t0 + 6s);
  state.link_opened(7, t0 + 6s);  // there is none
  const auto view = state.view();
  EXPECT_EQ(view.address, "sb://host");
  EXPECT_TRUE(view.is_connected);
  EXPECT_EQ(view.since, t0 + 5s);
  EXPECT_EQ(view.trouble, "connection refused");
  EXPECT_EQ(view.trouble_at, t0 + 1s);
  ASSERT_EQ(view.links.size(), 2U);
  EXPECT_FALSE(view.links[0].is_open);
  EXPECT_TRUE(view.links[1].is_open);
  EXPECT_EQ(view.links[1].since, t0 + 6s);
}

TEST(BrokerState, KeepsTheLastHundredRejectedMessages) {
  BrokerState state("sb://host", {}, t0);
  for (int i = 0; i < 105; ++i)
    state.rejected({.at = t0 + std::chrono::seconds{i}, .source = "s", .message_id = std::to_string(i), .by_broker = false, .reason = "r", .description = "d"});
  const auto rejected = state.view().rejected;
  ASSERT_EQ(rejected.size(), 100U);
  EXPECT_EQ(rejected.front().message_id, "104");
  EXPECT_EQ(rejected.back().message_id, "5");
}

}  // namespace
}  // namespace baton
