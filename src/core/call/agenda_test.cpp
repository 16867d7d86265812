#include "core/call/agenda.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace baton::call::agenda_test {
namespace {

const Time noon = *from_iso("2026-03-01T12:00:00Z");
const auto always = [](const Destination&) { return Agenda::Place::taken; };
const Time end = noon + std::chrono::hours{24};

Due due(int at, int id) { return {noon + Duration{at}, CallId{"id-" + std::to_string(1000 + id)}}; }
Destination to(const std::string& tenant, const std::string& origin = "http://a:80") {
  return {Tenant{tenant}, origin};
}

std::vector<std::string> ids(const std::vector<std::pair<Destination, Due>>& taken) {
  std::vector<std::string> out;
  for (const auto& [of, each] : taken) out.push_back(of.tenant.value + " " + each.id.value);
  return out;
}

TEST(Agenda, GivesTheEarliestFirstAndNothingEarly) {
  Agenda agenda;
  agenda.know(end, {});
  agenda.add(to("a"), due(20, 1));
  agenda.add(to("a"), due(10, 2));
  EXPECT_EQ(agenda.next_due(), noon + Duration{10});
  EXPECT_TRUE(agenda.take(noon + Duration{9}, 10, always).empty());
  EXPECT_EQ(ids(agenda.take(noon + Duration{30}, 10, always)),
            (std::vector<std::string>{"a id-1002", "a id-1001"}));
  EXPECT_EQ(agenda.size(), 0U);
  EXPECT_EQ(agenda.destinations(), 0U);
}

TEST(Agenda, TenantsTakeTurns) {
  Agenda agenda;
  agenda.know(end, {});
  for (int i = 0; i < 4; ++i) agenda.add(to("big"), due(i, i));
  agenda.add(to("small"), due(9, 50));
  EXPECT_EQ(ids(agenda.take(noon + Duration{9}, 3, always)),
            (std::vector<std::string>{"big id-1000", "small id-1050", "big id-1001"}));
}

TEST(Agenda, AnOriginWithoutAPlaceKeepsNobodyWaiting) {
  Agenda agenda;
  agenda.know(end, {});
  for (int i = 0; i < 4; ++i) agenda.add(to("a", "http://slow:80"), due(i, i));
  agenda.add(to("a", "http://fast:80"), due(9, 50));
  bool is_free = false;
  int asked = 0;
  const auto place = [&](const Destination& of) {
    ++asked;
    return is_free || of.origin == "http://fast:80" ? Agenda::Place::taken : Agenda::Place::none_for_origin;
  };
  const auto take = [&] { return ids(agenda.take(noon + Duration{9}, 10, place)); };
  EXPECT_EQ(take(), std::vector<std::string>{"a id-1050"});
  EXPECT_EQ(agenda.size(), 4U);
  EXPECT_EQ(agenda.next_due(), std::nullopt) << "a place is what is waited for";
  is_free = true;
  EXPECT_EQ(take(), std::vector<std::string>{}) << "it is not asked about before somebody says so";
  EXPECT_EQ(asked, 2);
  agenda.place_is_free("http://slow:80");
  EXPECT_EQ(take().size(), 4U);
}

TEST(Agenda, ATenantWithoutAPlaceKeepsNobodyWaiting) {
  Agenda agenda;
  agenda.know(end, {});
  for (int i = 0; i < 4; ++i) agenda.add(to("big"), due(i, i));
  agenda.add(to("small"), due(9, 50));
  int free = 1;
  const auto place = [&](const Destination& of) {
    return of.tenant.value == "small" || free-- > 0 ? Agenda::Place::taken : Agenda::Place::none_for_tenant;
  };
  const auto take = [&] { return ids(agenda.take(noon + Duration{9}, 10, place)); };
  EXPECT_EQ(take(), (std::vector<std::string>{"big id-1000", "small id-1050"}));
  EXPECT_EQ(agenda.next_due(), std::nullopt);
  free = 2;
  EXPECT_EQ(take(), (std::vector<std::string>{"big id-1001", "big id-1002"}));
}

TEST(Agenda, OnlyTheNearFutureIsHere) {
  Agenda agenda;
  agenda.know(noon, {{to("a"), noon}});
  agenda.add(to("b"), due(1, 1));
  EXPECT_EQ(agenda.size(), 0U);
  EXPECT_EQ(agenda.destinations(), 1U);
  const auto wanted = agenda.refill(noon).value();
  EXPECT_EQ(wanted.until, noon);
  agenda.refilled(wanted, {due(0, 7)});
  EXPECT_EQ(ids(agenda.take(noon, 10, always)), std::vector<std::string>{"a id-1007"});
  EXPECT_EQ(agenda.destinations(), 0U);
  agenda.know(end, {{to("b"), noon + Duration{1}}});
  EXPECT_TRUE(agenda.refill(end));
}

TEST(Agenda, AnotherTimeTakesThePlaceOfTheFormerOne) {
  Agenda agenda;
  agenda.know(end, {});
  agenda.add(to("a"), due(5, 1));
  agenda.add(to("a"), due(8, 1), noon + Duration{5});
  EXPECT_EQ(agenda.size(), 1U);
  EXPECT_TRUE(agenda.take(noon + Duration{7}, 10, always).empty());
  agenda.add(to("a"), {end + Duration{1}, CallId{"id-1001"}}, noon + Duration{8});
  EXPECT_EQ(agenda.size(), 0U);
  EXPECT_EQ(agenda.destinations(), 0U);
}

// Whatever is scheduled, put off, taken, looked up and told of in whatever order, and whoever has no place
// for a while: each is given once, when its time has come.
RC_GTEST_PROP(Agenda, LosesNothingAndGivesNothingTwice, ()) {
  const auto window = *rc::gen::inRange<std::size_t>(1, 6);
  Agenda agenda(window);
  std::map<Destination, std::set<Due>> store;
  std::map<std::string, std::pair<Destination, Due>> waiting;
  std::set<std::string> given;
  int next_id = 0;
  Time now = noon;
  const auto destinations = std::vector{to("a"), to("a", "http://b:80"), to("c")};
  const auto put = [&](const Destination& in, const Due& one) {
    store[in].insert(one);
    waiting[one.id.value] = {in, one};
  };
  for (int i = *rc::gen::inRange(0, 30); i > 0; --i)  // what was there before
    put(destinations[*rc::gen::inRange<std::size_t>(0, 3)], due(*rc::gen::inRange(-20, 40), ++next_id));
  const auto soon = [&] { return Due{now + Duration{*rc::gen::inRange(-5, 30)}, CallId{}}; };
  const auto look_ahead = [&] {
    const Time until = now + Duration{10};
    std::vector<std::pair<Destination, Time>> found;
    for (const auto& [of, dues] : store) {
      const auto first =
          std::ranges::find_if(dues, [&](const Due& each) { return each.at > agenda.known_until(); });
      if (first != dues.end() && first->at <= until) found.emplace_back(of, first->at);
    }
    if (until > agenda.known_until()) agenda.know(until, found);
    while (const auto asked = agenda.refill(now + Duration{3})) {
      std::vector<Due> page;
      const auto& stored = store[asked->destination];
      for (auto it = stored.upper_bound(asked->after); it != stored.end(); ++it)
        if (page.size() < asked->limit && it->at <= asked->until) page.push_back(*it);
      agenda.refilled(*asked, page);
    }
  };
  bool everybody_has_a_place = false;
  const auto place = [&](const Destination& of) {
    const int no = everybody_has_a_place ? 0 : *rc::gen::inRange(0, 6);
    if (no == 1) return Agenda::Place::none_for_tenant;
    return no == 2 && of.origin == "http://b:80" ? Agenda::Place::none_for_origin : Agenda::Place::taken;
  };
  const auto step = [&](int what) {
    if (what == 0) {
      const Destination& in = destinations[*rc::gen::inRange<std::size_t>(0, 3)];
      Due one = soon();
      one.id = due(0, ++next_id).id;
      put(in, one);
      agenda.add(in, one);
    } else if (what == 1) {
      now += Duration{*rc::gen::inRange(0, 10)};
    } else if (what == 2) {
      look_ahead();
    } else if (what == 3) {
      for (const auto& [of, each] : agenda.take(now, 3, place)) {
        RC_ASSERT(each.at <= now);
        RC_ASSERT(given.insert(each.id.value).second);
        store[of].erase(each);
        waiting.erase(each.id.value);
      }
    } else if (what == 4) {
      agenda.place_is_free("http://b:80");
    } else if (!waiting.empty()) {
      const auto [in, was] =
          std::next(waiting.begin(), *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(waiting)))->second;
      Due one = soon();
      one.id = was.id;
      store[in].erase(was);
      put(in, one);
      agenda.add(in, one, was.at);
    }
  };
  const auto moves = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6));
  for (const int move : moves) step(move);
  now += std::chrono::hours{1};
  everybody_has_a_place = true;
  for (int i = 0; i < 400; ++i) step(4), step(2), step(3);
  RC_ASSERT(waiting.empty());
  RC_ASSERT(agenda.size() == 0U);
  RC_ASSERT(agenda.destinations() == 0U);
}

}  // namespace
}  // namespace baton::call::agenda_test
