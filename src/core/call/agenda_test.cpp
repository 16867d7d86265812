#include "core/call/agenda.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace baton::call {
namespace {

const Time noon = *from_iso("2026-03-01T12:00:00Z");
const auto always = [](const std::string&) { return true; };

Due due(int at, int id) { return {noon + Duration{at}, CallId{"id-" + std::to_string(1000 + id)}}; }
Lane lane(const std::string& tenant, const std::string& origin = "http://a:80") { return {Tenant{tenant}, origin}; }

std::vector<std::string> ids(const std::vector<std::pair<Lane, Due>>& taken) {
  std::vector<std::string> out;
  for (const auto& [of, each] : taken) out.push_back(of.tenant.value + " " + each.id.value);
  return out;
}

TEST(Agenda, GivesTheEarliestFirstAndNothingEarly) {
  Agenda agenda;
  agenda.add(lane("a"), due(20, 1));
  agenda.add(lane("a"), due(10, 2));
  EXPECT_EQ(agenda.next_due(), noon + Duration{10});
  EXPECT_TRUE(agenda.take(noon + Duration{9}, 10, always).empty());
  EXPECT_EQ(ids(agenda.take(noon + Duration{30}, 10, always)), (std::vector<std::string>{"a id-1002", "a id-1001"}));
  EXPECT_EQ(agenda.size(), 0U);
  EXPECT_EQ(agenda.lanes(), 0U);
}

TEST(Agenda, TenantsTakeTurns) {
  Agenda agenda;
  for (int i = 0; i < 4; ++i) agenda.add(lane("big"), due(i, i));
  agenda.add(lane("small"), due(9, 50));
  EXPECT_EQ(ids(agenda.take(noon + Duration{9}, 3, always)),
            (std::vector<std::string>{"big id-1000", "small id-1050", "big id-1001"}));
}

TEST(Agenda, AnOriginWithoutAPlaceKeepsNobodyWaiting) {
  Agenda agenda;
  for (int i = 0; i < 4; ++i) agenda.add(lane("a", "http://slow:80"), due(i, i));
  agenda.add(lane("a", "http://fast:80"), due(9, 50));
  const auto taken = agenda.take(noon + Duration{9}, 10, [](const std::string& origin) { return origin == "http://fast:80"; });
  EXPECT_EQ(ids(taken), std::vector<std::string>{"a id-1050"});
  EXPECT_EQ(agenda.size(), 4U);
}

// Whatever is scheduled, taken, reloaded and told of in whatever order: each is given once, when its time has come.
RC_GTEST_PROP(Agenda, LosesNothingAndGivesNothingTwice, ()) {
  const auto window = *rc::gen::inRange<std::size_t>(1, 6);
  Agenda agenda(window);
  std::map<Lane, std::set<Due>> store, all;
  std::set<std::string> given;
  int next_id = 0;
  Time now = noon;
  const auto lanes = std::vector{lane("a"), lane("a", "http://b:80"), lane("c")};
  // What was there before.
  for (int i = *rc::gen::inRange(0, 30); i > 0; --i) {
    const Lane& in = lanes[*rc::gen::inRange<std::size_t>(0, 3)];
    store[in].insert(due(*rc::gen::inRange(-20, 40), ++next_id));
  }
  for (const auto& [of, dues] : store) agenda.add_lane(of, dues.begin()->at);
  all = store;
  const auto step = [&](int what) {
    if (what == 0) {
      const Lane& in = lanes[*rc::gen::inRange<std::size_t>(0, 3)];
      const Due one = due(static_cast<int>((now - noon).count()) + *rc::gen::inRange(-5, 30), ++next_id);
      store[in].insert(one);
      all[in].insert(one);
      agenda.add(in, one);
    } else if (what == 1) {
      now += Duration{*rc::gen::inRange(0, 10)};
    } else if (what == 2) {
      while (const auto asked = agenda.refill(now)) {
        std::vector<Due> found;
        for (auto it = store[asked->lane].upper_bound(asked->after); it != store[asked->lane].end(); ++it)
          if (found.size() < asked->limit) found.push_back(*it);
        agenda.refilled(*asked, found);
      }
    } else {
      for (const auto& [of, each] : agenda.take(now, 3, always)) {
        RC_ASSERT(each.at <= now);
        RC_ASSERT(given.insert(each.id.value).second);
        store[of].erase(each);
      }
    }
  };
  const auto moves = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4));
  for (const int move : moves) step(move);
  now += std::chrono::hours{1};
  for (int i = 0; i < 400; ++i) step(2), step(3);
  for (const auto& [of, dues] : all)
    for (const Due& each : dues) RC_ASSERT(given.contains(each.id.value));
  RC_ASSERT(agenda.size() == 0U);
}

}  // namespace
}  // namespace baton::call
