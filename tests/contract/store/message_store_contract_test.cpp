// Queues, topics and their messages on every store: each list of a commit, and each question.
#include <algorithm>

#include "tests/contract/store/message_fixture.hpp"

namespace baton::contract::message_store_contract_test {
namespace {

using namespace message;

class MessageStoreContract : public MessageFixture {};
INSTANTIATE_TEST_SUITE_P(On, MessageStoreContract, every_store(), name_of);

TEST_P(MessageStoreContract, WhatIsWrittenIsLoadedWithEveryColumn) {
  Writes w;
  w.entities_new = {entity(7), entity(8)};
  w.counters_new = {counters(7), counters(8)};
  w.messages_new = {full_message(7, Lane::dead, 3), message(7, Lane::active, 4)};
  w.history_new = {{7, "once", at(9)}};
  commit(w);
  const message::Loaded loaded = load({.entities = true,
                              .messages = {key(7, Lane::active, 4), key(7, Lane::dead, 3), key(7, Lane::dead, 3), key(7, Lane::dead, 4)},
                              .history = {{7, "once"}, {7, "twice"}, {8, "once"}}});
  EXPECT_EQ(loaded.entities, w.entities_new);
  EXPECT_EQ(loaded.counters, w.counters_new);
  ASSERT_EQ(loaded.messages.size(), 2U);
  for (const Message& row : loaded.messages)
    EXPECT_TRUE(same(row.lane == Lane::dead ? w.messages_new[0] : w.messages_new[1], row));
  EXPECT_EQ(loaded.history, w.history_new);
}

TEST_P(MessageStoreContract, BytesAreKeptWhateverTheyAre) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  Writes w;
  w.messages_new = {message(1, Lane::active, 1), message(1, Lane::active, 2), message(1, Lane::active, 3)};
  w.messages_new[0].content = {all + std::string(3, '\0')};
  w.messages_new[0].annotations = {std::string("\0\xff\xfe", 3)};
  w.messages_new[1].content = {};
  w.messages_new[1].annotations = {};
  w.messages_new[2].content = {"\\x00 is a text"};
  commit(w);
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    EXPECT_EQ(page(1, Lane::active), w.messages_new);
  }
}

TEST_P(MessageStoreContract, AChangeWritesWhatMayChangeAndNothingElse) {
  Writes w;
  w.entities_new = {entity(1)};
  w.counters_new = {counters(1)};
  w.messages_new = {full_message(1, Lane::active, 1)};
  commit(w);
  Writes changed;
  Message part;
  part.entity_id = 1, part.sequence_number = 1, part.delivery_count = 9, part.changes = Json{R"({"set":{"a":1}})"};
  changed.messages_changed = {part};
  changed.entities_changed = {entity(1)};
  changed.entities_changed[0].settings = {R"({"lock_time":5000})"};
  changed.entities_changed[0].updated_at = at(77);
  changed.counters_changed = {counters(1)};
  changed.counters_changed[0].active = 55;
  changed.counters_changed[0].wake_at.reset();
  commit(changed);
  Message expected = w.messages_new[0];
  expected.delivery_count = 9;
  expected.locked_until.reset();
  expected.changes = part.changes;
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    const message::Loaded loaded = load({.entities = true, .messages = {key(1, Lane::active, 1)}});
    ASSERT_EQ(loaded.messages.size(), 1U);
    EXPECT_TRUE(same(expected, loaded.messages[0]));
    EXPECT_EQ(loaded.entities, changed.entities_changed);
    EXPECT_EQ(loaded.counters, changed.counters_changed);
  }
}

TEST_P(MessageStoreContract, WhatGoesGoesBeforeWhatComes) {
  send(1, Lane::active, {1, 2, 3});
  Writes w;
  w.messages_gone = {key(1, Lane::active, 1), key(1, Lane::active, 2), key(1, Lane::active, 99)};
  w.messages_new = {message(1, Lane::active, 2), message(1, Lane::deferred, 1)};
  w.messages_new[0].message_id = "another";
  w.history_gone = {{1, "a"}};
  w.history_new = {{1, "a", at(8)}, {1, "b", at(9)}};
  commit(w);
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    EXPECT_EQ(numbers(page(1, Lane::active)), (Numbers{2, 3}));
    EXPECT_EQ(page(1, Lane::active)[0].message_id, "another");
    EXPECT_EQ(numbers(page(1, Lane::deferred)), Numbers{1});
    EXPECT_EQ(load({.history = {{1, "a"}, {1, "b"}}}).history.size(), 2U);
  }
}

TEST_P(MessageStoreContract, AnEntityGoesWithItsCounters) {
  Writes w;
  w.entities_new = {entity(1), entity(2)};
  w.counters_new = {counters(1), counters(2)};
  commit(w);
  commit({.entities_gone = {1}});
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    const message::Loaded loaded = load({.entities = true});
    EXPECT_EQ(loaded.entities, std::vector{entity(2)});
    EXPECT_EQ(loaded.counters, std::vector{counters(2)});
  }
  commit(w.entities_new[0], w.counters_new[0]);
  EXPECT_EQ(load({.entities = true}).entities.size(), 2U);
}

TEST_P(MessageStoreContract, WhatIsThereAlreadyIsAConflictAndNothingIsWritten) {
  send(1, Lane::active, {1});
  commit(entity(1), counters(1));
  const auto conflicts = [&](const Writes& w) {
    const auto done = try_commit(w);
    return !done && done.error().code == Code::conflict;
  };
  EXPECT_TRUE(conflicts({.messages_new = {message(1, Lane::active, 2), message(1, Lane::active, 1)}}));
  EXPECT_TRUE(conflicts({.messages_new = {message(1, Lane::active, 3), message(1, Lane::active, 3)}}));
  EXPECT_TRUE(conflicts({.entities_new = {entity(1)}}));
  EXPECT_EQ(numbers(page(1, Lane::active)), Numbers{1});
  EXPECT_TRUE(store->follow());
}

TEST_P(MessageStoreContract, APageBeginsWhereItIsAskedForAndEndsWithItsLane) {
  send(1, Lane::active, {5, 7, 9, 11});
  send(1, Lane::dead, {6});
  send(2, Lane::active, {8});
  EXPECT_EQ(numbers(page(1, Lane::active, 7)), (Numbers{7, 9, 11}));
  EXPECT_EQ(numbers(page(1, Lane::active, 6, 2)), (Numbers{7, 9}));
  EXPECT_TRUE(page(1, Lane::active, 12).empty());
  EXPECT_TRUE(page(1, Lane::shelved).empty());
  EXPECT_TRUE(page(1, Lane::active, 0, 0).empty());
  const message::Loaded both = load({.pages = {{1, Lane::dead, 0, 10, true}, {9, Lane::dead, 0, 10, true}, {2, Lane::active, 0, 10, true}}});
  ASSERT_EQ(both.pages.size(), 3U);
  EXPECT_EQ(numbers(both.pages[0]), Numbers{6});
  EXPECT_TRUE(both.pages[1].empty());
  EXPECT_EQ(numbers(both.pages[2]), Numbers{8});
}

TEST_P(MessageStoreContract, APageMayBeWithoutContent) {
  commit({.messages_new = {full_message(1, Lane::active, 1)}});
  Message expected = full_message(1, Lane::active, 1);
  expected.annotations = expected.content = {};
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    const message::Loaded loaded = load({.pages = {{1, Lane::active, 0, 10, false}}});
    ASSERT_EQ(loaded.pages.at(0).size(), 1U);
    EXPECT_TRUE(same(expected, loaded.pages[0][0]));
  }
}

TEST_P(MessageStoreContract, AnAgendaIsInTheOrderOfTimeAndThenOfNumbers) {
  Writes w;
  const std::pair<std::int64_t, std::optional<std::int64_t>> due[] = {{1, 50}, {2, 20}, {3, {}}, {4, 20}, {5, 10}};
  for (const auto& [n, millis] : due) {
    w.messages_new.push_back(message(1, Lane::scheduled, n));
    if (millis) w.messages_new.back().due_at = at(*millis);
  }
  w.messages_new.push_back(message(1, Lane::active, 6));
  w.messages_new.back().due_at = at(1);
  commit(w);
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    EXPECT_EQ(numbers(agenda(1, Lane::scheduled, 10)), (Numbers{5, 2, 4, 1}));
    EXPECT_EQ(numbers(agenda(1, Lane::scheduled, 2)), (Numbers{5, 2}));
    Message light = w.messages_new[4];
    light.annotations = light.content = {};
    EXPECT_TRUE(same(light, agenda(1, Lane::scheduled, 1).at(0)));
    EXPECT_TRUE(agenda(2, Lane::scheduled, 10).empty());
  }
}

TEST_P(MessageStoreContract, WhatIsLockedIsFoundWithoutContentAndDoesNotWait) {
  send(1, Lane::active, {1, 2, 3, 4});
  send(2, Lane::dead, {5});
  lock(1, Lane::active, {1, 3});
  lock(2, Lane::dead, {5});
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    const auto locked = load({.locked = true}).locked;
    ASSERT_EQ(numbers(locked), (Numbers{1, 3, 5}));
    Message expected = message(1, Lane::active, 1);
    expected.annotations = expected.content = {};
    expected.delivery_count = 1;
    expected.locked_until = locked_until;
    EXPECT_TRUE(same(expected, locked[0]));
    EXPECT_EQ(waiting(1, Lane::active), (Numbers{2, 4}));
    EXPECT_EQ(waiting(1, Lane::active, 1), Numbers{2});
    EXPECT_TRUE(waiting(2, Lane::dead).empty());
  }
  unlock(1, Lane::active, {1});
  EXPECT_EQ(waiting(1, Lane::active), (Numbers{1, 2, 4}));
  EXPECT_EQ(numbers(load({.locked = true}).locked), (Numbers{3, 5}));
}

TEST_P(MessageStoreContract, WhatHasExpiredDoesNotWait) {
  Writes w;
  for (const std::int64_t n : {1, 2, 3, 4}) w.messages_new.push_back(message(1, Lane::active, n));
  w.messages_new[0].due_at = w.messages_new[1].due_at = at(10);
  w.messages_new[2].due_at = at(20);
  commit(w);
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    EXPECT_EQ(waiting(1, Lane::active, 100, at(9)), (Numbers{1, 2, 3, 4}));
    EXPECT_EQ(waiting(1, Lane::active, 100, at(10)), (Numbers{3, 4}));
    EXPECT_EQ(waiting(1, Lane::active, 1, at(10)), Numbers{3}) << "and leaves room for others";
    EXPECT_EQ(waiting(1, Lane::active, 100, at(20)), Numbers{4});
  }
}

TEST_P(MessageStoreContract, AMessageMayBeLoadedByItsKeyWithoutContent) {
  commit({.messages_new = {full_message(1, Lane::active, 1), full_message(1, Lane::active, 2)}});
  Message expected = full_message(1, Lane::active, 2);
  expected.annotations = expected.content = {};
  const auto load_light = [&] { return load({.messages_light = {key(1, Lane::active, 2), key(1, Lane::active, 2), key(1, Lane::dead, 1)}}).messages_light; };
  for (const bool is_followed : {false, true}) {
    if (is_followed) follow();
    ASSERT_EQ(load_light().size(), 1U);
    EXPECT_TRUE(same(expected, load_light()[0]));
  }
  unlock(1, Lane::active, {2});
  EXPECT_FALSE(load_light().at(0).locked_until) << "as it is by now";
  remove(1, Lane::active, {2});
  EXPECT_TRUE(load_light().empty());
}

TEST_P(MessageStoreContract, AQueueOfMessagesHoldsNothingElseAndOthersHoldNoMessages) {
  send(1, Lane::active, {1});
  WriteSet w;
  w.jobs_new = {job(1)};
  w.nodes_new = {node(1, "a")};
  w.nodes_new[0].queue = queue_name(1, Lane::active);
  ASSERT_TRUE(store->commit(w, ++number));
  EXPECT_EQ(waiting(1, Lane::active), Numbers{1});
  EXPECT_TRUE(waiting(1, Lane::dead).empty());
  EXPECT_TRUE(store->waiting({{"default"}, "worker"}, 10, {})->empty());
  const auto task = store->waiting({{"acme"}, queue_name(1, Lane::active)}, 10, {})->at(0);
  EXPECT_EQ(message_of(task), key(1, Lane::active, 1));
}

TEST_P(MessageStoreContract, TheHistoryIsForgottenByTimeAndATimeMayBecomeLater) {
  Writes w;
  w.history_new = {{1, "a", at(10)}, {1, "b", at(20)}, {1, "c", at(30)}, {2, "d", at(1)}};
  commit(w);
  const auto oldest = [&](std::size_t limit) { return load({.history_oldest = {{1, limit}}}).history_oldest.at(0); };
  EXPECT_EQ(oldest(2), (std::vector<HistoryEntry>{{1, "a", at(10)}, {1, "b", at(20)}}));
  commit({.history_new = {{1, "a", at(25)}}});
  EXPECT_EQ(oldest(2), (std::vector<HistoryEntry>{{1, "b", at(20)}, {1, "a", at(25)}}));
  EXPECT_TRUE(store->follow());
  EXPECT_EQ(oldest(2), (std::vector<HistoryEntry>{{1, "b", at(20)}, {1, "a", at(25)}}));
  commit({.history_gone = {{1, "b"}}});
  EXPECT_EQ(oldest(9), (std::vector<HistoryEntry>{{1, "a", at(25)}, {1, "c", at(30)}}));
  EXPECT_TRUE(load({.history = {{1, "b"}}}).history.empty());
}

TEST_P(MessageStoreContract, AnEmptyQuestionHasAnEmptyAnswer) {
  send(1, Lane::active, {1});
  const message::Loaded loaded = load({});
  EXPECT_TRUE(loaded.entities.empty() && loaded.messages.empty() && loaded.pages.empty() && loaded.locked.empty());
}

}  // namespace
}  // namespace baton::contract::message_store_contract_test
