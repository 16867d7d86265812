// `baton check` of messages: journal and tables agree, entities count what they have, and whatever is damaged is named.
#include "store/check/check.hpp"
#include "store/migrations.hpp"
#include "store/open.hpp"
#include "tests/contract/store/message_fixture.hpp"

namespace baton::contract::message_check_test {
namespace {

using message::Lane;

class MessageCheck : public MessageFixture {
 protected:
  // An entity with two active messages, a dead and a shelved one; one more has come, another has gone, and the tables do not
  // show that yet.
  void SetUp() override {
    MessageFixture::SetUp();
    message::Writes w;
    w.entities_new = {entity(1)};
    w.counters_new = {counted(2, 2), {.entity_id = 0, .last_sequence_number = 1, .accessed_at = at(1)}};
    w.messages_new = {message(1, Lane::active, 1), message(1, Lane::active, 2), message(1, Lane::dead, 3), message(1, Lane::shelved, 4)};
    commit(w);
    follow();
    message::Writes more;
    more.messages_new = {message(1, Lane::active, 5), message(1, Lane::active, 6)};
    more.messages_gone = {key(1, Lane::active, 1), key(1, Lane::dead, 3)};
    more.counters_changed = {counted(3, 1)};
    commit(more);
    message::Writes last;
    last.messages_changed = {message(1, Lane::active, 2), message(1, Lane::active, 6)};
    last.messages_gone = {key(1, Lane::active, 5)};
    last.counters_changed = {counted(2, 1)};
    commit(last);
    store.reset();
  }
  static message::Counters counted(std::int64_t active, std::int64_t dead) { return {.entity_id = 1, .active = active, .dead = dead, .accessed_at = at(1)}; }

  std::vector<std::string> findings() {
    std::vector<std::string> found;
    const auto checked = store::check_database(
        database.url(), partition, [&](const std::string& subject, const std::string& problem) { found.push_back(subject + ": " + problem); });
    EXPECT_TRUE(checked) << checked.error().message;
    if (checked && found.empty()) {
      EXPECT_EQ(checked->last_commit, 3);
      EXPECT_EQ(checked->entities, 1U);
      EXPECT_EQ(checked->messages, 3U);
    }
    return found;
  }
  void expect_found(const std::string& damage, const std::vector<std::string>& expected) {
    database.execute(damage);
    EXPECT_EQ(findings(), expected) << damage;
  }
};
INSTANTIATE_TEST_SUITE_P(On, MessageCheck, ::testing::Values(StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

TEST_P(MessageCheck, FindsNothingInWhatAServerHasLeft) { EXPECT_EQ(findings(), std::vector<std::string>{}); }

TEST_P(MessageCheck, NamesAMessageThatTheJournalChangesAndThatIsNotThere) {
  expect_found("DELETE FROM bus_messages WHERE sequence_number=2",
               {"commit 3 of the journal: it changes message 2 of lane active of entity 1, which is not there", "entity 1: active is 2, and there are 1"});
}

TEST_P(MessageCheck, NamesAMessageThatTheJournalMakesAndThatIsThere) {
  database.execute("UPDATE bus_messages SET sequence_number=6 WHERE sequence_number=2");
  const auto found = findings();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "commit 2 of the journal: it makes message 6 of lane active of entity 1, which is there already");
}

TEST_P(MessageCheck, NamesAMessageThatTheJournalDeletesAndThatIsNotThere) {
  database.execute("DELETE FROM bus_messages WHERE sequence_number=1");
  const auto found = findings();
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "commit 2 of the journal: it deletes message 1 of lane active of entity 1, which is not there");
}

TEST_P(MessageCheck, NamesAnEntityThatDoesNotCountWhatItHas) {
  expect_found("INSERT INTO bus_counters SELECT 2,0,0,0,0,7,0,accessed_at,NULL FROM bus_counters WHERE entity_id=1",
               {"entity 2: it has counters, but no row", "entity 2: deferred is 7, and there are 0"});
}

TEST_P(MessageCheck, NamesMessagesWithoutAnEntity) {
  expect_found("UPDATE bus_messages SET entity_id=9 WHERE sequence_number=4",
               {"entity 1: dead is 1, and there are 0", "entity 9: it has 1 messages, but no counters"});
}

// From the version before, and with a journal that it has left.
class MessageMigration : public ::testing::TestWithParam<StoreType> {};
INSTANTIATE_TEST_SUITE_P(On, MessageMigration, ::testing::Values(StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

TEST_P(MessageMigration, ADatabaseOfVersion14TakesMessages) {
  Database database(GetParam());
  const auto dialect = database.type() == StoreType::sqlite ? store::Dialect::sqlite : store::Dialect::postgres;
  std::string sql = "CREATE TABLE schema_migrations (version {int} PRIMARY KEY, applied_at {time} NOT NULL);";
  for (std::size_t v = 1; v <= 14; ++v)
    sql += std::string(store::migrations()[v - 1]) + ";INSERT INTO schema_migrations VALUES (" + std::to_string(v) + ", {now});";
  database.execute(store::in_dialect(sql, dialect));
  auto store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  WriteSet w;
  w.messages.messages_new = {{.entity_id = 1, .sequence_number = 1, .content = {"c"}}};
  ASSERT_TRUE(store->commit(w, 1));
  ASSERT_TRUE(store->follow());
  EXPECT_EQ(store->load(message::LoadRequest{.messages = {{1, Lane::active, 1}}})->messages, w.messages.messages_new);
}

}  // namespace
}  // namespace baton::contract::message_check_test
