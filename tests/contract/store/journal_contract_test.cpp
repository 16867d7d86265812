// What a commit has done, and the tables do not show before they follow.
#include <future>

#include "store/journal/journal_store.hpp"
#include "store/open.hpp"
#include "store/sql_store.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::journal_contract_test {
namespace {

using namespace workflow;

class JournalContract : public StoreContract {
 protected:
  // A job that has begun, in three commits.
  void begin(int n, const std::string& key = "key") {
    WriteSet created;
    created.jobs_new = {job(n)};
    created.nodes_new = {node(n, "a")};
    created.events_new = {event(n, 1)};
    created.timers_new = {node_timer(at(5), n, "a")};
    created.idempotency_keys_new = {{{"t"}, key, job_id(n), "h"}};
    commit(created);
    WriteSet changed;
    changed.jobs_changed = {job(n)};
    changed.jobs_changed[0].status = JobStatus::failed;
    changed.jobs_changed[0].input_data = {};  // was not loaded
    changed.nodes_changed = {node(n, "a")};
    changed.nodes_changed[0].status = NodeStatus::failed;
    changed.timers_gone = created.timers_new;
    changed.timers_new = {node_timer(at(7), n, "a")};
    commit(changed);
    WriteSet results;
    results.task_results_new = {task_result(n)};
    commit(results);
  }
  void expect_begun(int n) {
    const Loaded loaded = load({.jobs_whole = {job_id(n)},
                                .nodes = {key_of(node(n, "a"))},
                                .task_results = {task_result(n).task_id},
                                .idempotency_keys = {{{"t"}, "key", {}, {}}}});
    Job expected = job(n);
    expected.status = JobStatus::failed;
    ASSERT_EQ(loaded.jobs.size(), 1u);
    EXPECT_TRUE(same(expected, loaded.jobs[0]));
    ASSERT_EQ(loaded.nodes.size(), 1u);
    EXPECT_EQ(loaded.nodes[0].status, NodeStatus::failed);
    EXPECT_EQ(loaded.task_results.size(), 1u);
    EXPECT_EQ(loaded.idempotency_keys.size(), 1u);
    EXPECT_EQ(store->next_timer().value(), at(7));
    EXPECT_EQ(store->timers_due(at(100), 10).value(), std::vector{node_timer(at(7), n, "a")});
  }
  std::vector<store::JournalRow> journal() { return dynamic_cast<store::JournalStore&>(*store).journal().value(); }
  bool journal_is_empty() { return journal().empty(); }
  void restart() {
    store.reset();
    store = database.store();
    ASSERT_TRUE(store->open(partition));
  }
  std::optional<Job> shown(int n) { return database.reads().value()->job(job(n).tenant, job_id(n)).value(); }
};
INSTANTIATE_TEST_SUITE_P(All, JournalContract,
                         ::testing::Values(StoreType::memory_journal, StoreType::sqlite_journal, StoreType::postgres_journal), name_of);

TEST_P(JournalContract, QuestionsSeeEveryCommitAndTablesTheOneThatTheyFollowed) {
  begin(1);
  expect_begun(1);
  EXPECT_EQ(store->behind().commits, 3);
  EXPECT_FALSE(shown(1));
  ASSERT_TRUE(store->follow());
  EXPECT_EQ(store->behind().commits, 0);
  EXPECT_EQ(shown(1)->status, JobStatus::failed);
  expect_begun(1);
  WriteSet changed;
  changed.jobs_changed = {job(1)};
  commit(changed);
  EXPECT_EQ(shown(1)->status, JobStatus::failed);
  EXPECT_EQ(load(for_jobs({job_id(1)})).jobs.at(0).status, job(1).status);
}

TEST_P(JournalContract, AStartFindsWhatTheTablesDidNotShow) {
  begin(1);
  store.reset();
  store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->last_commit, 3);
  EXPECT_TRUE(journal_is_empty());
  EXPECT_EQ(shown(1)->status, JobStatus::failed);
  expect_begun(1);
  commit({});
  store.reset();
  store = database.store();
  EXPECT_EQ(store->open(partition)->last_commit, 4);
}

TEST_P(JournalContract, AWriterThatWasReplacedAppendsNothing) {
  database.take_term();
  WriteSet w;
  w.jobs_new = {job(1)};
  EXPECT_EQ(store->commit(w, 1).error().code, Code::fenced);
  EXPECT_EQ(store->open(partition).error().code, Code::fenced);
}

TEST_P(JournalContract, ALargeDocumentIsWrittenOnceAndWithItAllThatWasBefore) {
  begin(1);
  WriteSet large;
  large.jobs_new = {job(2)};
  large.jobs_new[0].input_data = {'"' + std::string(600'000, 'x') + '"'};
  commit(large);
  EXPECT_TRUE(journal_is_empty());
  EXPECT_EQ(store->behind().commits, 0);
  EXPECT_TRUE(shown(1) && shown(2));
  expect_begun(1);
}

// Wherever a start finds the document: in the journal, or in the tables.
TEST_P(JournalContract, ADocumentThatDoesNotChangeIsInTheJournalOnce) {
  const OptionalJson params = Json{'"' + std::string(100'000, 'p') + '"'}, checkpoint = Json{'"' + std::string(100'000, 'c') + '"'};
  WriteSet created;
  created.jobs_new = {job(1)};
  created.nodes_new = {node(1, "a")};
  created.nodes_new[0].params = params;
  commit(created);
  for (const bool is_followed : {false, true}) {
    WriteSet changed;
    changed.nodes_changed = {created.nodes_new[0]};
    changed.nodes_changed[0].status = NodeStatus::running;
    if (is_followed) {
      changed.nodes_changed[0].checkpoint = checkpoint;
      ASSERT_TRUE(store->follow());
    }
    commit(changed);
    EXPECT_LT(journal().back().data.size(), is_followed ? 101'000U : 1'000U);
    EXPECT_GT(store->behind().bytes, 100'000U) << "it is in memory";
    restart();
    const Loaded loaded = load({.nodes = {key_of(created.nodes_new[0])}});
    ASSERT_EQ(loaded.nodes.size(), 1U);
    EXPECT_EQ(loaded.nodes[0].status, NodeStatus::running);
    EXPECT_EQ(loaded.nodes[0].params, params);
    EXPECT_EQ(loaded.nodes[0].checkpoint, is_followed ? checkpoint : created.nodes_new[0].checkpoint);
    commit(changed);  // after a start it is told again, once
  }
}

TEST_P(JournalContract, ADocumentThatChangesIsInTheJournalAgain) {
  WriteSet created;
  created.jobs_new = {job(1)};
  created.nodes_new = {node(1, "a")};
  created.nodes_new[0].checkpoint = Json{'"' + std::string(100'000, 'a') + '"'};
  commit(created);
  WriteSet changed;
  changed.nodes_changed = created.nodes_new;
  changed.nodes_changed[0].checkpoint = Json{'"' + std::string(100'000, 'b') + '"'};
  commit(changed);
  restart();
  EXPECT_EQ(load({.nodes = {key_of(created.nodes_new[0])}}).nodes.at(0).checkpoint, changed.nodes_changed[0].checkpoint);
}

TEST_P(JournalContract, RowsThatDoNotFitAreCorruptionAndTheJournalIsKept) {
  begin(1);
  ASSERT_TRUE(store->follow());
  WriteSet twice;
  twice.jobs_new = {job(1)};
  commit(twice);
  for (int tries = 0; tries < 2; ++tries) {
    const Error error = store->follow().error();
    EXPECT_EQ(error.code, Code::corrupt);
    EXPECT_TRUE(error.message.contains("dag_jobs")) << error.message;
    EXPECT_TRUE(error.message.contains("is kept")) << error.message;
  }
  EXPECT_FALSE(journal_is_empty());
  store.reset();
  store = database.store();
  EXPECT_EQ(store->open(partition).error().code, Code::corrupt);
  EXPECT_FALSE(journal_is_empty());
}

TEST_P(JournalContract, WhatIsThereAlreadyIsRefusedBeforeItIsInTheJournal) {
  begin(1);
  const IdempotencyKey key{{"t"}, "key", job_id(2), "h"};
  const auto conflicts = [&](WriteSet w) {
    w.events_new = {event(1, 7)};
    const auto done = store->commit(w, number + 1);
    return !done && done.error().code == Code::conflict;
  };
  for (int tries = 0; tries < 2; ++tries) {
    EXPECT_TRUE(conflicts({.jobs_new = {job(1)}}));
    EXPECT_TRUE(conflicts({.task_results_new = {task_result(1)}}));
    EXPECT_TRUE(conflicts({.idempotency_keys_new = {key}}));
    EXPECT_TRUE(conflicts({.jobs_new = {job(2), job(2)}}));
    EXPECT_TRUE(conflicts({.task_results_new = {task_result(2), task_result(2)}}));
    EXPECT_TRUE(conflicts({.idempotency_keys_new = {{{"t"}, "2", job_id(2), "h"}, {{"t"}, "2", job_id(2), "h"}}}));
    store->begin_following();  // then it is in the other backlog
  }
  WriteSet fits{.jobs_new = {job(2)}, .task_results_new = {task_result(2)}};
  fits.idempotency_keys_new = {{{"another"}, "key", job_id(2), "h"}};
  commit(fits);
  EXPECT_TRUE(store->follow());
  EXPECT_EQ(store->behind().commits, 0);
}

TEST_P(JournalContract, WhoeverWaitsForTheTablesIsToldWithoutTheWriter) {
  const auto told = std::make_shared<std::promise<std::int64_t>>();  // the other thread may be at it when the test is over
  store->on_followed([told](std::int64_t commit_number) { told->set_value(commit_number); });
  begin(1);
  store->begin_following();
  auto shown_commit = told->get_future();
  ASSERT_EQ(shown_commit.wait_for(std::chrono::seconds{20}), std::future_status::ready);
  EXPECT_EQ(shown_commit.get(), number);
  EXPECT_TRUE(shown(1));
}

TEST_P(JournalContract, ATextThatNoTableTakesIsRefusedAtOnce) {
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_new[0].error = std::string("a\0b", 3);
  EXPECT_EQ(store->commit(w, 1).error().code, Code::invalid);
  EXPECT_TRUE(load(for_jobs({job_id(1)})).jobs.empty());
}

// As a put-off leaves them: a row may name a timer that is not there, and one that is there is set again.
TEST_P(JournalContract, OfTimersTheLastWordCounts) {
  const Timer timer = node_timer(at(5), 1, "a");
  const WriteSet set{.timers_new = {timer}}, unset{.timers_gone = {timer}};
  begin(2);  // so that there is a backlog
  commit(unset);
  commit(set);
  EXPECT_EQ(store->timers_due(at(6), 10).value(), std::vector{timer});
  ASSERT_TRUE(store->follow());
  EXPECT_EQ(store->timers_due(at(6), 10).value(), std::vector{timer});
  begin(3, "another key");
  commit(set);
  EXPECT_EQ(store->timers_due(at(6), 10).value(), std::vector{timer}) << "once, though it was set twice";
  commit(unset);
  EXPECT_TRUE(store->timers_due(at(6), 10)->empty());
  ASSERT_TRUE(store->follow());
  EXPECT_TRUE(store->timers_due(at(6), 10)->empty());
}

TEST_P(JournalContract, AWriterThatWasReplacedLeavesTheJournalToTheNextOne) {
  begin(1);
  database.take_term();
  EXPECT_EQ(store->follow().error().code, Code::fenced);
  EXPECT_FALSE(shown(1));
  store.reset();
  store = database.store();
  ASSERT_TRUE(store->open(partition));
  expect_begun(1);
}

TEST_P(JournalContract, AJournalThatLacksACommitIsNotFollowed) {
  begin(1);
  store.reset();
  if (database.type() == StoreType::memory)
    database.memory().writers.at(partition).journal.erase(2);
  else
    database.execute_in_log("DELETE FROM baton_journal WHERE id=2");
  store = database.store();
  EXPECT_EQ(store->open(partition).error().code, Code::corrupt);
  EXPECT_FALSE(shown(1));
}

// What the tables show is not durable at once: a crash of the machine may take it back, and the log still has it.
TEST(SqliteJournal, TheLogKeepsWhatTheTablesMayLose) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  const auto commit = [&](int n) {
    WriteSet w;
    w.jobs_new = {job(n)};
    ASSERT_TRUE(store->commit(w, n));
    ASSERT_TRUE(store->follow());
  };
  commit(1);  // the first is durable when it has followed
  const std::string saved = database.path() + "-saved";
  database.execute("VACUUM INTO '" + saved + "'");
  commit(2);
  commit(3);
  store.reset();
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(database.path() + part);
  std::filesystem::rename(saved, database.path());
  store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->last_commit, 3);
  EXPECT_EQ(store->load(for_jobs({job_id(1), job_id(2), job_id(3)}))->jobs.size(), 3u);
}

TEST(SqliteJournal, ADatabaseThatIsOlderThanItsLogIsNotGoneOnWith) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  const std::string saved = database.path() + "-saved";
  database.execute("VACUUM INTO '" + saved + "'");
  for (int n = 1; n <= 3; ++n) {
    WriteSet w;
    w.jobs_new = {job(n)};
    ASSERT_TRUE(store->commit(w, n));
    if (n > 1) continue;
    ASSERT_TRUE(store->follow());  // so that the next one takes it out of the log
  }
  store.reset();
  for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(database.path() + part);
  std::filesystem::rename(saved, database.path());
  store = database.store();
  const auto state = store->open(partition);
  ASSERT_FALSE(state);
  EXPECT_TRUE(state.error().message.contains("lacks commit 1")) << state.error().message;
}

// A copy of the database alone is a backup, also if commits of runbooks came between those of the log.
TEST(SqliteJournal, ADatabaseIsWholeWithoutItsLog) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  for (int n = 1; n <= 5; ++n) {
    WriteSet w;
    w.jobs_new = {job(n)};
    w.timers_new = {node_timer(at(n), n, "a")};
    if (n == 3) w.runbooks.events_new = {{.batch_id = 1, .event_id = 1, .created_at = at(1), .event_type = "began"}};
    ASSERT_TRUE(store->commit(w, n));
  }
  const std::string saved = database.path() + "-saved";
  database.execute("VACUUM INTO '" + saved + "'");
  store.reset();
  store = database.store();  // with its log nothing is missing, and nothing is there twice
  EXPECT_EQ(store->open(partition)->last_commit, 5);
  EXPECT_EQ(store->timers_due(at(100), 100)->size(), 5u);
  store.reset();
  for (const char* part : {"", "-wal", "-shm", "-log", "-log-wal", "-log-shm"}) std::filesystem::remove(database.path() + part);
  std::filesystem::rename(saved, database.path());
  store = store::make_store(database.url(), store::MissingLog::accept).value();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->last_commit, 3);
  EXPECT_EQ(store->timers_due(at(100), 100)->size(), 3u);
}

TEST(SqliteJournal, ALinkToADatabaseLeadsToItsLog) {
  Database database(StoreType::sqlite_journal);
  const std::string link = database.path() + "-link";
  ASSERT_TRUE(database.store()->open(partition));
  std::filesystem::create_symlink(database.path(), link);
  {
    store::JournalStore store(store::make_tables("sqlite:" + link).value());
    const auto opened = store.open(partition);
    ASSERT_TRUE(opened) << opened.error().message;
    WriteSet w;
    w.jobs_new = {job(1)};
    ASSERT_TRUE(store.commit(w, 1));
  }
  EXPECT_FALSE(std::filesystem::exists(store::sqlite::log_path(link)));
  EXPECT_EQ(database.store()->open(partition)->last_commit, 1);
}

// As one that was made before there was a log.
TEST(SqliteJournal, CommitsInTheDatabaseAreFollowedWithoutALog) {
  Database database(StoreType::sqlite_journal);
  {
    store::JournalStore store(store::make_sql_store(
        store::Dialect::sqlite, [&] { return store::sqlite::connect(database.path(), store::sqlite::Access::writer); }));
    ASSERT_TRUE(store.open(partition));
    WriteSet w;
    w.jobs_new = {job(1)};
    ASSERT_TRUE(store.commit(w, 1));
  }
  auto store = database.store();
  EXPECT_EQ(store->open(partition)->last_commit, 1);
  EXPECT_EQ(store->load(for_jobs({job_id(1)}))->jobs.size(), 1u);
}

// It is copied into the database, and begins anew.
TEST(SqliteJournal, TheWalDoesNotGrowForever) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  const std::string large = '"' + std::string(4 << 20, 'x') + '"';
  std::uintmax_t largest = 0;
  for (int n = 1; n <= 40; ++n) {  // of 1,000 pages and more
    WriteSet w;
    w.jobs_new = {job(n)};
    w.jobs_new[0].input_data = {large};
    ASSERT_TRUE(store->commit(w, n));
    largest = std::max(largest, std::filesystem::file_size(database.path() + "-wal"));
  }
  EXPECT_LT(largest, 60u << 20);
}

// Neither reads nor commits wait for who writes the database, be it the thread that follows or another program.
TEST(SqliteJournal, CommitsOfWorkflowsDoNotWaitForTheDatabase) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  auto other = store::sqlite::connect(database.path(), store::sqlite::Access::admin).value();
  ASSERT_TRUE(other->script("BEGIN IMMEDIATE"));
  WriteSet w;
  w.jobs_new = {job(1)};
  ASSERT_TRUE(store->commit(w, 1));
  store->begin_following();  // waits for the other one
  WriteSet more;
  more.jobs_new = {job(2)};
  ASSERT_TRUE(store->commit(more, 2));
  EXPECT_EQ(store->load(for_jobs({job_id(1), job_id(2), job_id(3)}))->jobs.size(), 2u);
  EXPECT_TRUE(store->behind().is_following);
  ASSERT_TRUE(other->script("ROLLBACK"));
  EXPECT_TRUE(store->follow());
}

// Some databases are set to tell bytes in the way of old.
TEST(PostgresJournal, IsReadHoweverTheDatabaseTellsBytes) {
  Database database(StoreType::postgres_journal);
  ASSERT_TRUE(database.store()->open(partition));
  database.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET bytea_output = escape', current_database()); END $$");
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.jobs_new = {job(1)};
  w.jobs_new[0].input_data = {"\"\\\\x é\""};
  ASSERT_TRUE(store->commit(w, 1));
  store.reset();
  store = database.store();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(store->load(for_jobs({job_id(1)}))->jobs.at(0).input_data.text, w.jobs_new[0].input_data.text);
}

}  // namespace
}  // namespace baton::contract::journal_contract_test
