// Messages that the tables do not show yet: what came, changed and went before they follow, while they do, and after a restart.
#include <map>

#include "store/journal/journal_store.hpp"
#include "tests/contract/store/message_fixture.hpp"

namespace baton::contract::message_journal_test {
namespace {

using namespace message;

class MessageJournal : public MessageFixture {
 protected:
  // What comes after this is in the other backlog, whether the tables have followed by then or not.
  void begin_following() { store->begin_following(); }
  void restart() {
    store.reset();
    store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(state->last_commit, number);
  }
  // The same before the tables follow, after that and after a restart, which replays nothing then.
  void expect(const std::function<void()>& check) {
    check();
    follow();
    check();
    restart();
    check();
  }
  std::vector<Message> load_keys(const std::vector<MessageKey>& keys) { return load({.messages = keys}).messages; }
};
INSTANTIATE_TEST_SUITE_P(All, MessageJournal,
                         ::testing::Values(StoreType::memory_journal, StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

// What the tables are asked to do is seen in a row that stands in their way.
TEST_P(MessageJournal, WhatCameAndWentCostsTheTablesNothing) {
  if (database.type() == StoreType::memory) GTEST_SKIP() << "its tables cannot be told to refuse";
  database.execute(database.type() == StoreType::sqlite
                       ? "CREATE TRIGGER no_insert BEFORE INSERT ON bus_messages BEGIN SELECT raise(ABORT, 'inserted'); END;"
                         "CREATE TRIGGER no_delete BEFORE DELETE ON bus_messages BEGIN SELECT raise(ABORT, 'deleted'); END"
                       : "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$ LANGUAGE plpgsql;"
                         "CREATE TRIGGER no_change BEFORE INSERT OR DELETE OR UPDATE ON bus_messages EXECUTE FUNCTION refuse()");
  send(1, Lane::active, {1, 2, 3});
  lock(1, Lane::active, {1, 2});
  remove(1, Lane::active, {2});
  remove(1, Lane::active, {1, 3});
  EXPECT_TRUE(page(1, Lane::active).empty());
  follow();
  EXPECT_EQ(store->behind().commits, 0);
}

TEST_P(MessageJournal, OneThatCameAndChangedIsWrittenInItsLastState) {
  send(1, Lane::active, {1, 2});
  lock(1, Lane::active, {1});
  change(1, Lane::active, {1}, 5, std::nullopt);
  expect([&] {
    Message expected = message(1, Lane::active, 1);
    expected.delivery_count = 5;
    const auto rows = load_keys({expected.key()});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_TRUE(same(expected, rows[0]));
    EXPECT_EQ(waiting(1, Lane::active), (Numbers{1, 2}));
  });
}

TEST_P(MessageJournal, OneThatChangedAndWentIsGone) {
  send(1, Lane::active, {1, 2});
  follow();
  lock(1, Lane::active, {1});
  remove(1, Lane::active, {1});
  expect([&] {
    EXPECT_TRUE(load_keys({key(1, Lane::active, 1)}).empty());
    EXPECT_EQ(numbers(page(1, Lane::active)), Numbers{2});
    EXPECT_TRUE(load({.locked = true}).locked.empty());
  });
}

TEST_P(MessageJournal, OneThatWentMayComeAgain) {
  send(1, Lane::active, {1});
  follow();
  remove(1, Lane::active, {1});
  Writes again;
  again.messages_new = {full_message(1, Lane::active, 1)};
  again.messages_new[0].locked_until.reset();
  commit(again);
  lock(1, Lane::active, {1});
  expect([&] {
    Message expected = again.messages_new[0];
    expected.delivery_count = 1, expected.locked_until = locked_until, expected.changes.reset();
    ASSERT_EQ(page(1, Lane::active).size(), 1U);
    EXPECT_TRUE(same(expected, page(1, Lane::active)[0]));
    EXPECT_EQ(numbers(load({.locked = true}).locked), Numbers{1});
    ASSERT_EQ(agenda(1, Lane::active, 5).size(), 1U);
    expected.annotations = expected.content = {};
    EXPECT_TRUE(same(expected, agenda(1, Lane::active, 5)[0]));
  });
  remove(1, Lane::active, {1});
  expect([&] { EXPECT_TRUE(page(1, Lane::active).empty()); });
}

// The same key in both backlogs: the newer one has the last word.
TEST_P(MessageJournal, TheNewerBacklogHasTheLastWord) {
  send(1, Lane::active, {1, 2, 3, 4});
  lock(1, Lane::active, {2});
  begin_following();
  remove(1, Lane::active, {1});
  unlock(1, Lane::active, {2});
  lock(1, Lane::active, {3});
  const auto check = [&] {
    EXPECT_EQ(numbers(page(1, Lane::active)), (Numbers{2, 3, 4}));
    EXPECT_EQ(waiting(1, Lane::active), (Numbers{2, 4}));
    EXPECT_EQ(numbers(load({.locked = true}).locked), Numbers{3});
    const auto rows = load_keys({key(1, Lane::active, 1), key(1, Lane::active, 3)});
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0].content, message(1, Lane::active, 3).content);
    EXPECT_EQ(rows[0].locked_until, locked_until);
  };
  expect(check);
  begin_following();
  commit({.messages_new = {message(1, Lane::dead, 2)}, .messages_gone = {key(1, Lane::active, 2)}});
  EXPECT_TRUE(load_keys({key(1, Lane::active, 2)}).empty());
  EXPECT_EQ(waiting(1, Lane::dead), Numbers{2});
}

TEST_P(MessageJournal, AKeyThatWentInTheNewerBacklogMayComeAgainThoughTheOlderOneMadeIt) {
  send(1, Lane::active, {1});
  begin_following();
  remove(1, Lane::active, {1});
  send(1, Lane::active, {1});
  EXPECT_EQ(numbers(page(1, Lane::active)), Numbers{1});
  EXPECT_EQ(try_commit({.messages_new = {message(1, Lane::active, 1)}}).error().code, Code::conflict);
  expect([&] { EXPECT_EQ(numbers(page(1, Lane::active)), Numbers{1}); });
}

TEST_P(MessageJournal, WhatTheTablesWouldRefuseIsRefusedBeforeItIsInTheJournal) {
  send(1, Lane::active, {1});
  commit(entity(1), counters(1));
  const auto conflicts = [&](const Writes& w) {
    const auto done = try_commit(w);
    return !done && done.error().code == Code::conflict;
  };
  for (int tries = 0; tries < 2; ++tries) {
    EXPECT_TRUE(conflicts({.messages_new = {message(1, Lane::active, 1)}}));
    EXPECT_TRUE(conflicts({.messages_new = {message(1, Lane::active, 9), message(1, Lane::active, 2), message(1, Lane::active, 9)}}));
    EXPECT_TRUE(conflicts({.entities_new = {entity(1)}}));
    EXPECT_TRUE(conflicts({.counters_new = {counters(1)}}));
    begin_following();  // then it is in the other backlog
  }
  follow();
  commit({.entities_gone = {1}, .messages_gone = {key(1, Lane::active, 1)}});
  EXPECT_TRUE(conflicts({.entities_changed = {entity(1)}}));
  EXPECT_TRUE(conflicts({.counters_changed = {counters(1)}}));
  EXPECT_TRUE(conflicts({.messages_changed = {message(1, Lane::active, 1)}}));
  follow();
  EXPECT_EQ(store->behind().commits, 0);
}

TEST_P(MessageJournal, APageGoesAcrossTablesAndBacklogsWhateverIsHiddenAtItsEnd) {
  Numbers sent;
  for (std::int64_t n = 1; n <= 20; ++n) sent.push_back(n * 10);
  send(1, Lane::active, sent);
  follow();
  remove(1, Lane::active, {10, 30, 50, 60});
  send(1, Lane::active, {45, 205});
  begin_following();
  lock(1, Lane::active, {20, 40});
  remove(1, Lane::active, {70, 45});
  send(1, Lane::active, {85, 210});
  const Numbers all{20, 40, 80, 85, 90, 100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 200, 205, 210};
  expect([&] {
    for (std::size_t limit = 0; limit <= all.size() + 1; ++limit) {
      const Numbers expected(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(limit, all.size())));
      const auto rows = page(1, Lane::active, 0, limit);
      ASSERT_EQ(numbers(rows), expected) << limit;
      for (const Message& row : rows) EXPECT_EQ(row.content, message(1, Lane::active, row.sequence_number).content);
      EXPECT_EQ(numbers(load({.pages = {{1, Lane::active, 0, limit, false}}}).pages[0]), expected) << limit;
    }
    EXPECT_EQ(numbers(page(1, Lane::active, 45, 3)), (Numbers{80, 85, 90}));
    Numbers unlocked(all.begin() + 2, all.end());
    for (std::size_t limit = 0; limit <= unlocked.size(); ++limit)
      EXPECT_EQ(waiting(1, Lane::active, limit), Numbers(unlocked.begin(), unlocked.begin() + static_cast<std::ptrdiff_t>(limit)));
  });
}

TEST_P(MessageJournal, AnAgendaGoesAcrossTablesAndBacklogs) {
  const auto scheduled = [](std::int64_t n, std::int64_t due) {
    Message row = message(1, Lane::scheduled, n);
    row.due_at = at(due);
    return row;
  };
  commit({.messages_new = {scheduled(1, 50), scheduled(2, 10), scheduled(3, 30), scheduled(4, 70)}});
  follow();
  commit({.messages_new = {scheduled(5, 20), scheduled(6, 60)}, .messages_gone = {key(1, Lane::scheduled, 2)}});
  begin_following();
  commit({.messages_new = {scheduled(7, 30), scheduled(8, 5)}, .messages_gone = {key(1, Lane::scheduled, 5)}});
  change(1, Lane::scheduled, {3}, 2, std::nullopt);
  const Numbers all{8, 3, 7, 1, 6, 4};
  expect([&] {
    for (std::size_t limit = 0; limit <= all.size(); ++limit)
      EXPECT_EQ(numbers(agenda(1, Lane::scheduled, limit)), Numbers(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit)));
    EXPECT_EQ(agenda(1, Lane::scheduled, 2).at(1).delivery_count, 2);
    EXPECT_TRUE(agenda(1, Lane::scheduled, 2).at(1).content.empty());
  });
}

TEST_P(MessageJournal, TheHistoryGoesAcrossTablesAndBacklogs) {
  commit({.history_new = {{1, "a", at(10)}, {1, "b", at(20)}, {1, "c", at(30)}, {2, "x", at(1)}}});
  follow();
  commit({.history_new = {{1, "a", at(40)}, {1, "d", at(5)}}, .history_gone = {{1, "b"}}});
  begin_following();
  commit({.history_new = {{1, "b", at(35)}, {1, "e", at(50)}}, .history_gone = {{1, "d"}}});
  const std::vector<HistoryEntry> all{{1, "c", at(30)}, {1, "b", at(35)}, {1, "a", at(40)}, {1, "e", at(50)}};
  expect([&] {
    for (std::size_t limit = 0; limit <= all.size(); ++limit)
      EXPECT_EQ(load({.history_oldest = {{1, limit}}}).history_oldest.at(0),
                std::vector(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(limit)));
    EXPECT_EQ(load({.history = {{1, "b"}, {1, "d"}, {1, "a"}, {2, "x"}}}).history.size(), 3U);
  });
}

TEST_P(MessageJournal, EntitiesGoAcrossTablesAndBacklogs) {
  commit({.entities_new = {entity(1), entity(2)}, .counters_new = {counters(1), counters(2)}});
  follow();
  Entity changed = entity(1);
  changed.rules = {"[]"};
  Counters counted = counters(1);
  counted.active = 99;
  commit({.entities_new = {entity(3), entity(4)}, .entities_changed = {changed}, .entities_gone = {2}, .counters_new = {counters(3), counters(4)}});
  begin_following();
  commit({.entities_gone = {3}, .counters_changed = {counted}});
  expect([&] {
    const message::Loaded loaded = load({.entities = true});
    EXPECT_EQ(loaded.entities, (std::vector{changed, entity(4)}));
    EXPECT_EQ(loaded.counters, (std::vector{counted, counters(4)}));
  });
}

// A server that is killed has its commits in the journal alone.
TEST_P(MessageJournal, AStartFindsWhatTheTablesDidNotShow) {
  Writes w;
  w.entities_new = {entity(1)};
  w.counters_new = {counters(1)};
  w.messages_new = {full_message(1, Lane::dead, 1), message(1, Lane::active, 2), message(1, Lane::active, 3)};
  w.messages_new[1].content = {std::string("\0\xff", 2)};
  w.history_new = {{1, "m2", at(8)}};
  commit(w);
  lock(1, Lane::active, {2, 3});
  remove(1, Lane::active, {3});
  restart();
  EXPECT_EQ(load({.entities = true}).entities, w.entities_new);
  EXPECT_EQ(load({.entities = true}).counters, w.counters_new);
  EXPECT_EQ(page(1, Lane::dead), std::vector{w.messages_new[0]});
  w.messages_new[1].locked_until = locked_until;
  w.messages_new[1].delivery_count = 1;
  EXPECT_EQ(page(1, Lane::active), std::vector{w.messages_new[1]});
  EXPECT_EQ(load({.history = {{1, "m2"}}}).history, w.history_new);
  remove(1, Lane::active, {2});
  restart();
  EXPECT_TRUE(page(1, Lane::active).empty());
}

TEST_P(MessageJournal, ManyMessagesOfOneCommitAreInTheJournalAndMoreAreNot) {
  const auto many = [](std::int64_t from, std::int64_t count) {
    Writes w;
    for (std::int64_t n = from; n < from + count; ++n) {
      w.messages_new.push_back(message(1, Lane::active, n));
      w.messages_new.back().content = {std::string(1'024, 'x')};
    }
    return w;
  };
  commit(many(1, 3'000));
  EXPECT_EQ(store->behind().commits, 1);
  commit(many(10'000, 4'100));
  EXPECT_EQ(store->behind().commits, 0) << "over 4 MiB";
  EXPECT_EQ(page(1, Lane::active, 0, 100'000).size(), 7'100U);
}

// Whoever asks while a commit goes on beside sees it.
TEST_P(MessageJournal, WhatIsAskedWhileACommitGoesOnBesideIsAnsweredAsAfterIt) {
  send(1, Lane::active, {1, 2});
  const auto beside = [&](Writes w) {
    WriteSet writes;
    writes.messages = std::move(w);
    ASSERT_TRUE(store->may_commit_beside(writes));
    store->begin_commit(std::move(writes), ++number);
  };
  beside({.messages_new = {message(1, Lane::active, 3)}, .messages_gone = {key(1, Lane::active, 1)}});
  EXPECT_EQ(numbers(load_keys({key(1, Lane::active, 1), key(1, Lane::active, 3)})), Numbers{3});
  ASSERT_TRUE(store->end_commit());
  beside({.messages_new = {message(1, Lane::active, 4)}});
  EXPECT_EQ(numbers(page(1, Lane::active)), (Numbers{2, 3, 4}));
  ASSERT_TRUE(store->end_commit());
  beside({.messages_gone = {key(1, Lane::active, 4)}});
  EXPECT_EQ(waiting(1, Lane::active), (Numbers{2, 3}));
  ASSERT_TRUE(store->end_commit());
  beside({.entities_new = {entity(5)}, .counters_new = {counters(5)}});
  EXPECT_EQ(load({.entities = true}).entities.size(), 1U);
  ASSERT_TRUE(store->end_commit());
  beside({.history_new = {{5, "h", at(1)}}});
  EXPECT_EQ(load({.history_oldest = {{5, 3}}}).history_oldest.at(0).size(), 1U);
  ASSERT_TRUE(store->end_commit());
}

// Whatever is done in whatever order, the answers are those of a store without a journal.
TEST_P(MessageJournal, AnswersAreThoseOfAStoreWithoutAJournal) {
  store::MemoryDatabase plain_database;
  store::MemoryStore plain(plain_database);
  ASSERT_TRUE(plain.open(partition));
  std::uint32_t chance = 12'345;
  const auto pick = [&](std::uint32_t n) { return (chance = chance * 1'664'525U + 1'013'904'223U) / 65'536U % n; };
  std::map<MessageKey, Message> known;
  std::int64_t next = 0;
  for (int round = 0; round < 300; ++round) {
    WriteSet w;
    for (auto at_row = known.begin(); at_row != known.end();) {
      const auto what = pick(8);
      auto row = at_row++;
      if (what == 0) {
        w.messages.messages_gone.push_back(row->first);
        known.erase(row);
      } else if (what == 1) {
        row->second.delivery_count += 1;
        row->second.locked_until = pick(2) == 0 ? std::optional{at(round)} : std::nullopt;
        w.messages.messages_changed.push_back(row->second);
      }
    }
    for (std::uint32_t n = pick(4); n > 0; --n) {
      Message row = message(pick(2) + 1, pick(2) == 0 ? Lane::active : Lane::scheduled, pick(5) == 0 ? next / 2 : ++next);
      if (pick(2) == 0) row.due_at = at(pick(50));
      if (pick(3) == 0) row.locked_until = at(round);
      row.message_id += "-" + std::to_string(round);
      if (known.emplace(row.key(), row).second) w.messages.messages_new.push_back(row);
    }
    ASSERT_TRUE(plain.commit(w, number + 1));
    ASSERT_TRUE(store->commit(w, ++number));
    if (pick(10) == 0) begin_following();
    if (pick(25) == 0) follow();
    if (pick(60) == 0) restart();
    message::LoadRequest asked{.locked = true};
    for (const std::int64_t id : {1, 2})
      for (const Lane lane : {Lane::active, Lane::scheduled}) {
        asked.pages.push_back({id, lane, pick(4) == 0 ? next / 2 : 0, pick(20), pick(2) == 0});
        asked.agendas.push_back({id, lane, pick(20)});
        const QueueKey queue{{"t"}, queue_name(id, lane)};
        const std::size_t limit = pick(20);
        ASSERT_EQ(plain.waiting(queue, limit, {}).value(), store->waiting(queue, limit, {}).value()) << round;
      }
    const message::Loaded expected = plain.load(asked).value(), actual = load(asked);
    ASSERT_EQ(expected.pages, actual.pages) << round;
    ASSERT_EQ(expected.agendas, actual.agendas) << round;
    ASSERT_EQ(expected.locked, actual.locked) << round;
  }
}

}  // namespace
}  // namespace baton::contract::message_journal_test
