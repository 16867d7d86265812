#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "core/runbook/members/members.hpp"

namespace baton::runbook {
namespace {

const Time now = *from_iso("2026-03-01T12:03:00Z");

Time wave(int number) { return now + std::chrono::hours{24} * number; }

DataSource timed() {
  DataSource source;
  source.primary_key = "Upn";
  source.batch_time_column = "Date";
  return source;
}
DataSource immediate() {
  DataSource source = timed();
  source.immediate = true;
  source.batch_time_column.clear();
  return source;
}

SourceMember in_source(std::string key, std::optional<Time> time = wave(1), int data = 0) {
  return {std::move(key), time, Json{fmt::format(R"({{"v":{}}})", data)}};
}

struct Batch {
  std::int64_t id = 1;
  Time time = wave(1);
  bool open = true;
  bool manual = false;
};

KnownMember in_batch(std::int64_t id, std::string key, const Batch& batch = {}, std::string status = "active",
                     int data = 0) {
  return {.id = id,
          .batch_id = batch.id,
          .member_key = std::move(key),
          .status = std::move(status),
          .batch_open = batch.open,
          .batch_manual = batch.manual,
          .batch_time = batch.manual ? std::nullopt : std::optional(batch.time),
          .data_hash = hash_data(in_source("", {}, data).data.text)};
}

// "join 1: 0 1" for places, "new T+1: 2", "refresh 7", "leave 8", "hold 1: 8 9"
std::string shown(const Diff& diff) {
  std::string text;
  const auto line = [&](std::string what) { text += (text.empty() ? "" : "; ") + std::move(what); };
  for (const auto& joins : diff.joins) {
    std::string places;
    for (const std::size_t place : joins.members) places += fmt::format(" {}", place);
    line((joins.batch_id ? fmt::format("join {}:", *joins.batch_id)
                         : "new " + to_iso(joins.batch_time) + ":") +
         places);
  }
  for (const auto& refresh : diff.refreshes) line(fmt::format("refresh {}", refresh.member.id));
  for (const auto& member : diff.leaves) line(fmt::format("leave {}", member.id));
  for (const auto& held : diff.held) {
    std::string ids;
    for (const auto& member : held.members) ids += fmt::format(" {}", member.id);
    line(fmt::format("hold {} of {}:{}", held.batch_id, held.active, ids));
  }
  return text.empty() ? "nothing" : text;
}

std::string differ(const DataSource& source, const std::vector<SourceMember>& members,
                   const std::vector<KnownMember>& known, const std::vector<ApprovedRemovals>& approved = {}) {
  return shown(diff_members(source, members, known, approved, now));
}

TEST(MembersDiff, new_members_make_a_batch_for_each_time) {
  EXPECT_EQ(differ(timed(), {in_source("a", wave(2)), in_source("b", wave(1)), in_source("c", wave(2))}, {}),
            "new " + to_iso(wave(1)) + ": 1; new " + to_iso(wave(2)) + ": 0 2");
}

TEST(MembersDiff, who_is_there_stays_and_a_late_joiner_joins) {
  EXPECT_EQ(differ(timed(), {in_source("a"), in_source("b")}, {in_batch(10, "a")}), "join 1: 1");
  EXPECT_EQ(differ(timed(), {in_source("a")}, {in_batch(10, "a")}), "nothing");
}

TEST(MembersDiff, changed_data_is_refreshed_of_who_is_active_or_may_be_retried) {
  const std::vector<SourceMember> source{in_source("a", wave(1), 1)};
  EXPECT_EQ(differ(timed(), source, {in_batch(10, "a")}), "refresh 10");
  EXPECT_EQ(differ(timed(), source, {in_batch(10, "a", {}, "failed")}), "refresh 10");
  EXPECT_EQ(differ(timed(), source, {in_batch(10, "a", {.open = false}, "failed")}), "refresh 10");
  EXPECT_EQ(differ(timed(), source, {in_batch(10, "a", {}, "removed")}), "join 1: 0");
  EXPECT_EQ(differ(timed(), source, {in_batch(10, "a", {.open = false})}), "nothing");
  KnownMember without_data = in_batch(10, "a", {}, "active", 1);
  without_data.data_hash = 0;
  EXPECT_EQ(differ(timed(), source, {without_data}), "refresh 10");
}

TEST(MembersDiff, who_was_removed_by_hand_stays_out) {
  KnownMember gone = in_batch(10, "a", {}, "removed");
  gone.removed_by_hand = true;
  EXPECT_EQ(differ(timed(), {in_source("a", wave(1), 1)}, {gone}), "nothing");
}

TEST(MembersDiff, who_is_gone_leaves) {
  EXPECT_EQ(differ(timed(), {},
                   {in_batch(10, "a"), in_batch(11, "b", {}, "failed"), in_batch(12, "c", {}, "removed"),
                    in_batch(13, "d", {.id = 2, .open = false})}),
            "leave 10; leave 11");
  EXPECT_EQ(differ(timed(), {}, {in_batch(10, "a", {.open = false}, "failed")}), "nothing");
  EXPECT_EQ(differ(immediate(), {}, {in_batch(10, "a", {}, "failed")}), "leave 10");
}

// What the guard counts are active members. Those who failed wait with them, and many of them are held too.
TEST(MembersDiff, who_has_failed_and_is_gone_is_held_with_the_others) {
  const auto known = [](int active, int failed) {
    std::vector<KnownMember> all;
    for (int id = 0; id < active + failed; ++id)
      all.push_back(in_batch(10 + id, fmt::format("m{}", id), {}, id < active ? "active" : "failed"));
    return all;
  };
  const auto with = [&](int from, int until) {
    std::vector<SourceMember> members;
    for (int id = from; id < until; ++id) members.push_back(in_source(fmt::format("m{}", id)));
    return members;
  };
  EXPECT_EQ(differ(timed(), with(5, 6), known(6, 1)), "hold 1 of 6: 10 11 12 13 14 16");
  EXPECT_EQ(differ(timed(), with(5, 20), known(20, 0)), "leave 10; leave 11; leave 12; leave 13; leave 14");
  EXPECT_EQ(differ(timed(), with(4, 18), known(18, 40)).substr(0, 13), "hold 1 of 18:") << "40 who failed are many too";
  EXPECT_EQ(differ(timed(), with(0, 18), known(18, 5)), "leave 28; leave 29; leave 30; leave 31; leave 32");
  EXPECT_EQ(differ(timed(), {}, known(0, 5)), "hold 1 of 0: 10 11 12 13 14");
  const auto held = diff_members(timed(), {}, known(6, 1), {}, now).held;
  EXPECT_EQ(differ(timed(), {}, known(6, 1), {{1, held.at(0).mark}}).substr(0, 18), "leave 10; leave 11");
}

TEST(MembersDiff, who_has_failed_and_has_another_time_stays_where_it_failed) {
  EXPECT_EQ(differ(timed(), {in_source("a", wave(2))}, {in_batch(10, "a", {}, "failed")}),
            "new " + to_iso(wave(2)) + ": 0");
}

TEST(MembersDiff, a_new_time_moves_a_member) {
  EXPECT_EQ(differ(timed(), {in_source("a", wave(2))},
                   {in_batch(10, "a"), in_batch(11, "x", {2, wave(2)}, "removed")}),
            "join 2: 0; leave 10");
  EXPECT_EQ(differ(timed(), {in_source("a", wave(2))}, {in_batch(10, "a", {.open = false})}),
            "new " + to_iso(wave(2)) + ": 0")
      << "who was migrated with an earlier wave is moved on purpose";
}

TEST(MembersDiff, who_came_back_joins_and_who_failed_does_not) {
  EXPECT_EQ(differ(timed(), {in_source("a")}, {in_batch(10, "a", {}, "removed")}), "join 1: 0");
  EXPECT_EQ(differ(timed(), {in_source("a")}, {in_batch(10, "a", {}, "failed")}), "nothing");
  EXPECT_EQ(
      differ(timed(), {in_source("a")}, {in_batch(10, "a", {}, "removed"), in_batch(11, "a", {}, "failed")}),
      "nothing");
  EXPECT_EQ(differ(timed(), {in_source("a")}, {in_batch(10, "a", {.open = false}, "removed")}),
            "new " + to_iso(wave(1)) + ": 0");
  EXPECT_EQ(differ(timed(), {in_source("a")}, {in_batch(10, "a", {.open = false})}), "nothing");
}

TEST(MembersDiff, of_two_open_batches_of_a_time_the_newest_is_joined) {
  EXPECT_EQ(differ(timed(), {in_source("a"), in_source("b"), in_source("c")},
                   {in_batch(10, "a", {.id = 2}), in_batch(11, "b", {.id = 1})}),
            "join 2: 2");
}

TEST(MembersDiff, manual_batches_are_not_touched_and_do_not_count) {
  const Batch manual{.id = 7, .manual = true};
  EXPECT_EQ(differ(timed(), {}, {in_batch(10, "a", manual)}), "nothing");
  EXPECT_EQ(differ(timed(), {in_source("a", wave(1), 5)}, {in_batch(10, "a", manual)}),
            "new " + to_iso(wave(1)) + ": 0");
  EXPECT_EQ(differ(immediate(), {in_source("a", {})}, {in_batch(10, "a", manual)}),
            "new " + to_iso(immediate_time(now)) + ": 0");
}

TEST(MembersDiff, immediate_takes_everybody_once) {
  const Batch open{.id = 3, .time = immediate_time(now)};
  const Batch ended{.id = 2, .time = wave(-1), .open = false};
  EXPECT_EQ(differ(immediate(),
                   {in_source("new", {}), in_source("active", {}), in_source("failed", {}),
                    in_source("done", {}), in_source("back", {}), in_source("changed", {}, 1)},
                   {in_batch(10, "active", open), in_batch(11, "failed", ended, "failed"),
                    in_batch(12, "done", ended), in_batch(13, "back", ended, "removed"),
                    in_batch(14, "changed", open)}),
            "join 3: 0 4; refresh 14");
}

std::vector<KnownMember> people(int count, const Batch& batch = {}) {
  std::vector<KnownMember> known;
  for (int i = 0; i < count; ++i)
    known.push_back(in_batch(batch.id * 1000 + i, fmt::format("m{}", i), batch));
  return known;
}
std::vector<SourceMember> listed(int from, int to, Time time = wave(1)) {
  std::vector<SourceMember> members;
  for (int i = from; i < to; ++i) members.push_back(in_source(fmt::format("m{}", i), time));
  return members;
}

// Somebody approves of what is held now.
std::vector<ApprovedRemovals> approval_of(const std::vector<SourceMember>& members,
                                          const std::vector<KnownMember>& known) {
  std::vector<ApprovedRemovals> approved;
  for (const auto& held : diff_members(timed(), members, known, {}, now).held)
    approved.push_back({held.batch_id, held.mark});
  return approved;
}

TEST(MembersDiff, too_many_leavers_are_held_until_approved) {
  EXPECT_EQ(differ(timed(), listed(5, 20), people(20)).substr(0, 5), "leave") << "25 % is allowed";
  EXPECT_EQ(differ(timed(), listed(6, 20), people(20)), "hold 1 of 20: 1000 1001 1002 1003 1004 1005");
  EXPECT_EQ(differ(timed(), listed(6, 20), people(20), approval_of(listed(6, 20), people(20))).substr(0, 5),
            "leave");
  EXPECT_EQ(differ(timed(), {}, people(4)), "leave 1000; leave 1001; leave 1002; leave 1003")
      << "fewer than five";
  EXPECT_EQ(differ(timed(), {}, people(5)), "hold 1 of 5: 1000 1001 1002 1003 1004");
  DataSource any = timed();
  any.max_removal_percent = 100;
  EXPECT_EQ(differ(any, {}, people(5)).substr(0, 5), "leave");
}

TEST(MembersDiff, an_approval_is_for_those_who_would_leave_then_and_for_no_others) {
  const auto approved = approval_of(listed(6, 20), people(20));
  EXPECT_EQ(differ(timed(), listed(7, 20), people(20), approved), "hold 1 of 20: 1000 1001 1002 1003 1004 1005 1006")
      << "one more";
  EXPECT_EQ(differ(timed(), {}, people(20), approved).substr(0, 4), "hold") << "everybody";
  EXPECT_EQ(differ(timed(), listed(0, 14), people(20), approved), "hold 1 of 20: 1014 1015 1016 1017 1018 1019")
      << "as many, but others";
  EXPECT_EQ(differ(timed(), listed(6, 20), people(20, {.id = 2}), approved).substr(0, 6), "hold 2")
      << "of another batch";
}

TEST(MembersDiff, one_held_batch_does_not_hold_another) {
  std::vector<KnownMember> known = people(6, {.id = 1});
  known.push_back(in_batch(9, "x", {2, wave(2)}));
  EXPECT_EQ(differ(timed(), {}, known), "leave 9; hold 1 of 6: 1000 1001 1002 1003 1004 1005");
}

TEST(MembersDiff, who_may_not_leave_may_not_join_elsewhere) {
  EXPECT_EQ(differ(timed(), listed(0, 6, wave(2)), people(6)), "hold 1 of 6: 1000 1001 1002 1003 1004 1005");
  EXPECT_EQ(differ(timed(), listed(0, 6, wave(2)), people(6),
                   approval_of(listed(0, 6, wave(2)), people(6)))
                .substr(0, 4),
            "new ");
}

TEST(MembersDiff, nobody_joins_a_batch_that_is_held) {
  EXPECT_EQ(differ(timed(), listed(6, 30), people(20)), "hold 1 of 20: 1000 1001 1002 1003 1004 1005");
  const auto approved = approval_of(listed(6, 30), people(20));
  EXPECT_NE(differ(timed(), listed(6, 30), people(20), approved).find("join 1: 14"), std::string::npos);
}

TEST(MembersDiff, a_hundred_thousand_members_are_compared_quickly) {
  const auto source = listed(1, 100'001);
  const auto known = people(100'000);
  const auto begin = std::chrono::steady_clock::now();
  const Diff diff = diff_members(timed(), source, known, {}, now);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
  EXPECT_EQ(shown(diff), "join 1: 99999; leave 1000");
}

// ---- Laws ----

struct SourceWorld {
  DataSource source;
  std::vector<SourceMember> members;
  std::vector<KnownMember> known;
  std::vector<ApprovedRemovals> approved;
};

SourceWorld any_world() {
  SourceWorld world;
  world.source = *rc::gen::arbitrary<bool>() ? timed() : immediate();
  world.source.max_removal_percent = *rc::gen::element(0, 25, 50, 100);
  const int keys = *rc::gen::inRange(1, 30);
  const int waves = *rc::gen::inRange(1, 4);
  for (int i = 0; i < keys; ++i) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    const auto time =
        world.source.immediate ? std::nullopt : std::optional(wave(*rc::gen::inRange(0, waves)));
    world.members.push_back(in_source(fmt::format("m{}", i), time, *rc::gen::inRange(0, 3)));
  }
  std::int64_t id = 100;
  const int batches = *rc::gen::inRange(0, 5);
  for (int b = 0; b < batches; ++b) {
    const Batch batch{b + 1,
                      *rc::gen::arbitrary<bool>() ? wave(*rc::gen::inRange(0, waves)) : immediate_time(now),
                      *rc::gen::arbitrary<bool>(), *rc::gen::inRange(0, 4) == 0};
    for (int i = 0; i < keys; ++i) {
      if (!*rc::gen::arbitrary<bool>()) continue;
      const std::string status = *rc::gen::element<std::string>("active", "active", "failed", "removed");
      world.known.push_back(in_batch(id++, fmt::format("m{}", i), batch, status, *rc::gen::inRange(0, 3)));
    }
  }
  for (const auto& held : diff_members(world.source, world.members, world.known, {}, now).held)
    if (*rc::gen::inRange(0, 4) == 0) world.approved.push_back({held.batch_id, held.mark});
  return world;
}

// What the scheduler will do with a diff.
void apply(SourceWorld& world, const Diff& diff) {
  const auto row = [&](const MemberRef& ref) -> KnownMember& {
    const auto found = std::ranges::find(world.known, ref.id, &KnownMember::id);
    RC_ASSERT(found != world.known.end());
    RC_ASSERT(found->batch_id == ref.batch_id);
    RC_ASSERT(found->status == "failed" || (found->status == "active" && found->batch_open));
    return *found;
  };
  for (const auto& refresh : diff.refreshes)
    row(refresh.member).data_hash = hash_data(world.members[refresh.source].data.text);
  for (const auto& leave : diff.leaves) row(leave).status = "removed";
  std::int64_t id = 10'000, batch_id = 100;
  for (const auto& joins : diff.joins) {
    const std::int64_t batch = joins.batch_id.value_or(batch_id++);
    RC_ASSERT(!joins.members.empty());
    for (const std::size_t place : joins.members)
      world.known.push_back({id++, batch, world.members[place].member_key, "active", true, false,
                             joins.batch_time, hash_data(world.members[place].data.text)});
  }
}

RC_GTEST_PROP(MembersDiffLaws, a_diff_that_was_applied_leaves_only_what_is_held, ()) {
  SourceWorld world = any_world();
  const Diff first = diff_members(world.source, world.members, world.known, world.approved, now);
  apply(world, first);
  const Diff second = diff_members(world.source, world.members, world.known, world.approved, now);
  RC_ASSERT(second.joins.empty());
  RC_ASSERT(second.refreshes.empty());
  RC_ASSERT(second.leaves.empty());
  RC_ASSERT(second.held.size() <= first.held.size());
}

RC_GTEST_PROP(MembersDiffLaws, a_batch_that_is_held_loses_nobody, ()) {
  const SourceWorld world = any_world();
  const Diff diff = diff_members(world.source, world.members, world.known, world.approved, now);
  for (const auto& held : diff.held) {
    RC_ASSERT(std::ranges::count(world.approved, held.batch_id, &ApprovedRemovals::batch_id) == 0);
    RC_ASSERT(held.members.size() >= 5U);
    RC_ASSERT(held.members.size() * 100 >
              static_cast<std::size_t>(world.source.max_removal_percent) * held.active);
    for (const auto& leave : diff.leaves) RC_ASSERT(leave.batch_id != held.batch_id);
  }
}

RC_GTEST_PROP(MembersDiffLaws, nobody_gets_into_two_open_batches, ()) {
  SourceWorld world = any_world();
  // The law is about what a diff does: whoever is in two batches before may stay there.
  std::set<std::string> active;
  for (KnownMember& known : world.known) {
    const bool counts = known.status == "active" && known.batch_open && !known.batch_manual;
    if (counts && !active.insert(known.member_key).second) known.status = "removed";
  }
  apply(world, diff_members(world.source, world.members, world.known, world.approved, now));
  std::map<std::string, int> batches;
  for (const KnownMember& known : world.known) {
    if (known.status == "active" && known.batch_open && !known.batch_manual)
      RC_ASSERT(++batches[known.member_key] == 1);
  }
}

RC_GTEST_PROP(MembersDiffLaws, each_member_is_where_it_belongs_unless_something_is_held, ()) {
  SourceWorld world = any_world();
  const Diff diff = diff_members(world.source, world.members, world.known, world.approved, now);
  std::set<std::int64_t> held;
  for (const auto& each : diff.held) held.insert(each.batch_id);
  apply(world, diff);
  for (const SourceMember& member : world.members) {
    const Time belongs = member.batch_time.value_or(immediate_time(now));
    RC_ASSERT(std::ranges::any_of(world.known, [&](const KnownMember& known) {
      const bool same = known.member_key == member.member_key && !known.batch_manual;
      const bool there = world.source.immediate || known.batch_time == belongs;
      return (same && there && known.status != "removed") || (same && held.contains(known.batch_id)) ||
             (known.batch_time == belongs && held.contains(known.batch_id));
    }));
  }
}

RC_GTEST_PROP(MembersDiffLaws, what_was_made_by_hand_or_has_ended_is_not_touched, ()) {
  const SourceWorld world = any_world();
  const Diff diff = diff_members(world.source, world.members, world.known, world.approved, now);
  std::set<std::int64_t> open;
  for (const KnownMember& known : world.known)
    if (known.batch_open && !known.batch_manual) open.insert(known.batch_id);
  for (const auto& joins : diff.joins) RC_ASSERT(!joins.batch_id || open.contains(*joins.batch_id));
  for (const auto& refresh : diff.refreshes) {
    const auto found = std::ranges::find(world.known, refresh.member.id, &KnownMember::id);
    RC_ASSERT(open.contains(refresh.member.batch_id) || found->status == "failed");
  }
  for (const auto& leave : diff.leaves) RC_ASSERT(open.contains(leave.batch_id));
}

}  // namespace
}  // namespace baton::runbook
