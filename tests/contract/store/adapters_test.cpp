// What only one of the adapters can show: files, locks, full disks, lost connections, query plans.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "store/journal/journal_store.hpp"
#include "store/memory/store.hpp"
#include "store/open.hpp"
#include "store/postgres/connection.hpp"
#include "store/sql_reads.hpp"
#include "store/sql_store.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/contract/store/fixture.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/support/process.hpp"

namespace baton::contract::adapters_test {
namespace {

using namespace workflow;

// Another program that closes the file while we seem to have no lock on it deletes the WAL, and with it what comes after.
TEST(SqliteStore, KeepsTheLocksOfTheProcessWhenItIsOpenedAgain) {
  Database database(StoreType::sqlite);
  const auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  const auto reads = database.reads().value();
  ASSERT_TRUE(reads->timeline(job_id(1), 0, 1));
  ASSERT_TRUE(store->open(partition));
  const std::string script = "import sqlite3; c = sqlite3.connect('" + database.path() +
                             "'); c.execute('SELECT * FROM writer_state').fetchall(); c.close()";
  support::Process other({"/usr/bin/python3", "-c", script});
  ASSERT_EQ(other.wait(std::chrono::minutes{1}), 0) << other.err();
  EXPECT_TRUE(std::filesystem::exists(database.path() + "-wal"));
}

TEST(Urls, ThatNobodyUnderstandsAreRefusedWithoutTheirSecrets) {
  const auto refused = store::make_store("mysql://root:secret@host/db");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid);
  EXPECT_FALSE(refused.error().message.contains("secret"));
  EXPECT_FALSE(store::make_store("sqlite:"));
  EXPECT_FALSE(store::make_store("sqlite::memory:"));
  const auto away = store::make_store("postgres://u:secret@127.0.0.1:1/db").value()->open(partition);
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, Code::unavailable);
  EXPECT_TRUE(away.error().message.starts_with("cannot open the PostgreSQL database"))
      << away.error().message;
  EXPECT_FALSE(away.error().message.contains("secret"));
}

TEST(Sqlite, MakesItsDirectoryAndKeepsTheFilePrivate) {
  Database database(StoreType::sqlite);
  const std::string path = std::filesystem::path(database.path()).parent_path() / "a" / "b" / "c.db";
  auto store = store::make_store("sqlite:" + path).value();
  ASSERT_TRUE(store->open(partition));
  ASSERT_TRUE(store->commit({}, 1));
  for (const std::string& file : {path, path + "-wal", path + ".lock"}) {
    struct stat status{};
    ASSERT_EQ(::stat(file.c_str(), &status), 0) << file;
    EXPECT_EQ(status.st_mode & 0777, 0600u) << file;
  }
}

TEST(Sqlite, SaysWhichFileItCannotOpen) {
  Database database(StoreType::sqlite);
  std::ofstream(database.path())
      << "This is no database, and is long enough to be seen as none, whatever comes next.";
  const auto opened = database.store()->open(partition);
  ASSERT_FALSE(opened);
  EXPECT_TRUE(opened.error().message.starts_with("cannot open the SQLite database " + database.path()))
      << opened.error().message;
  const auto missing = store::make_reads("sqlite:/nonexistent/x.db");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(missing.error().message.contains("/nonexistent/x.db"));
}

TEST(Sqlite, AFullDiskChangesNothingAndTheWriterGoesOn) {
  Database database(StoreType::sqlite);
  ASSERT_TRUE(database.store()->open(partition));
  store::Connection* inside = nullptr;
  auto store =
      store::make_sql_store(store::Dialect::sqlite, [&]() -> Result<std::unique_ptr<store::Connection>> {
        auto connection = store::sqlite::connect(database.path(), store::sqlite::Access::writer);
        inside = connection->get();
        return connection;
      });
  ASSERT_TRUE(store->open(partition));
  ASSERT_TRUE(inside->script("PRAGMA max_page_count=100"));
  WriteSet w;
  w.jobs_new = {job(1), job(2)};
  w.jobs_new[1].input_data.text = "\"" + std::string(1 << 20, 'x') + "\"";
  const auto done = store->commit(w, 1);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::full) << done.error().message;
  EXPECT_TRUE(store->load(for_jobs({job_id(1)}))->jobs.empty());
  w.jobs_new.pop_back();
  EXPECT_TRUE(store->commit(w, 1));
}

TEST(Sqlite, AForeignWriteTransactionMakesACommitBusyAndIsNamed) {
  Database database(StoreType::sqlite);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  auto other = store::sqlite::connect(database.path(), store::sqlite::Access::admin).value();
  ASSERT_TRUE(other->script("BEGIN IMMEDIATE"));
  const auto began = std::chrono::steady_clock::now();
  const auto done = store->commit({}, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds{4}) << "everybody waits meanwhile";
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::busy) << done.error().message;
  EXPECT_TRUE(done.error().message.contains("another program has an open write transaction on " + database.path()))
      << done.error().message;
  ASSERT_TRUE(other->script("ROLLBACK"));
  EXPECT_TRUE(store->commit({}, 1));
}

TEST(Sqlite, TheTablesFollowWhenAForeignWriteTransactionIsOver) {
  Database database(StoreType::sqlite_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.jobs_new = {job(1)};
  ASSERT_TRUE(store->commit(w, 1));
  auto other = store::sqlite::connect(database.path(), store::sqlite::Access::admin).value();
  ASSERT_TRUE(other->script("BEGIN IMMEDIATE"));
  EXPECT_EQ(store->follow().error().code, Code::busy);
  EXPECT_EQ(store->behind().commits, 1);
  ASSERT_TRUE(other->script("ROLLBACK"));
  EXPECT_TRUE(store->follow());
  EXPECT_TRUE(*database.reads().value()->job(job(1).tenant, job_id(1)));
}

TEST(Postgres, TheTablesFollowWhenAForeignLockIsGoneAndCommitsDoNotWaitForIt) {
  Database database(StoreType::postgres);
  store::JournalStore store(
      store::make_sql_store(store::Dialect::postgres, [&]() -> Result<std::unique_ptr<store::Connection>> {
        TRY_ASSIGN(auto connection, store::postgres::connect(database.url()));
        TRY(connection->script("SET lock_timeout = '200ms'"));
        return connection;
      }));
  ASSERT_TRUE(store.open(partition));
  WriteSet made, changed, more;
  made.jobs_new = {job(1)};
  changed.jobs_changed = {job(1)};
  changed.jobs_changed[0].status = JobStatus::failed;
  more.jobs_new = {job(2)};
  ASSERT_TRUE(store.commit(made, 1));
  ASSERT_TRUE(store.follow());
  auto other = store::postgres::connect(database.url()).value();
  ASSERT_TRUE(other->script("BEGIN"));
  ASSERT_TRUE(other->script("UPDATE dag_jobs SET priority=priority"));
  ASSERT_TRUE(store.commit(changed, 2));
  const auto held = store.follow();
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, Code::busy) << held.error().message;
  EXPECT_TRUE(store.commit(more, 3));
  ASSERT_TRUE(other->script("ROLLBACK"));
  ASSERT_TRUE(store.follow());
  EXPECT_EQ(store.behind().commits, 0);
  EXPECT_EQ(database.reads().value()->job(job(1).tenant, job_id(1)).value()->status, JobStatus::failed);
}

TEST(Sqlite, ReadersCannotWrite) {
  Database database(StoreType::sqlite);
  ASSERT_TRUE(database.store()->open(partition));
  auto reader = store::sqlite::connect(database.path(), store::sqlite::Access::reader).value();
  EXPECT_FALSE(reader->script("UPDATE writer_state SET term=0"));
}

// One row that another program has spoilt must not keep the others of all queues from being handed out.
TEST(Sqlite, ATaskThatWaitsSinceATimeThatCannotBeReadHidesNoOther) {
  Database database(StoreType::sqlite);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  for (const char* id : {"a", "b"}) {
    w.nodes_new.push_back(node(1, id));
    w.nodes_new.back().status = NodeStatus::dispatched;
    w.nodes_new.back().tenant = {"default"};
    w.nodes_new.back().queue = "q";
    w.nodes_new.back().dispatched_at = at(1'000);
  }
  ASSERT_TRUE(store->commit(w, 1));
  database.execute("UPDATE dag_node_rows SET dispatched_at='yesterday' WHERE node_id='a'");
  const auto waiting = store->waiting({{"default"}, "q"}, 10, {});
  ASSERT_TRUE(waiting) << waiting.error().message;
  EXPECT_EQ(waiting->size(), 2u);
  EXPECT_FALSE(store->load({.nodes = {node_of(waiting->at(0)), node_of(waiting->at(1))}})) << "who hands it out finds out";
}

// Its connection to a real database would be gone with the term.
TEST(Memory, AWriterThatIsFencedKeepsNobodyOut) {
  store::MemoryDatabase database;
  store::MemoryStore fenced(database), next(database);
  ASSERT_TRUE(fenced.open(partition));
  database.writers[partition].holder = 0;
  { ASSERT_TRUE(store::MemoryStore(database).open(partition)); }
  EXPECT_EQ(fenced.open(partition).error().code, Code::fenced);
  EXPECT_TRUE(next.open(partition));
}

// The plan of a statement, one line per step.
std::string plan(const std::string& path, const store::Statement& statement) {
  auto connection = store::sqlite::connect(path, store::sqlite::Access::reader).value();
  store::Statement explain = statement;
  explain.sql = "EXPLAIN QUERY PLAN " + statement.sql;
  std::string lines;
  const store::Query query{&explain,
                           1,
                           {},
                           [&](const store::RowView& row) -> Result<> {
                             return lines.append(row.text(3)).append("\n"), Result<>{};
                           },
                           {}};
  const auto done = connection->run({&query, 1}, store::Mode::read);
  return done ? lines : done.error().message;
}

TEST(Sqlite, ListsUseAnIndexAndNeverSort) {
  Database database(StoreType::sqlite);
  ASSERT_TRUE(database.store()->open(partition));
  for (int mask = 0; mask < 16; ++mask) {
    JobFilter filter{.tenant = {"default"},
                     .status = JobStatus::failed,
                     .workflow_id = {},
                     .tag = {},
                     .created_from = {},
                     .created_until = {}};
    if (mask & 2) filter.workflow_id = "w";
    if (mask & 4) filter.created_from = at(1);
    if (mask & 8) filter.created_until = at(2);
    const std::string steps = plan(database.path(), store::jobs_statement(filter, (mask & 1) != 0));
    EXPECT_TRUE(
        steps.contains(mask & 2 ? "USING INDEX dag_jobs_by_workflow (tenant=? AND workflow_id=? AND status=?"
                                : "USING INDEX dag_jobs_by_status (tenant=? AND status=?"))
        << steps;
    EXPECT_FALSE(steps.contains("SCAN") || steps.contains("TEMP B-TREE")) << steps;
  }
}

TEST(Sqlite, TheOtherQuestionsUseAnIndexAndNeverSort) {
  Database database(StoreType::sqlite);
  ASSERT_TRUE(database.store()->open(partition));
  for (const char* sql :
       {"SELECT job_id,item_index,node_id FROM dag_node_rows WHERE status='DISPATCHED' AND tenant='t' AND "
        "queue='q'"
        " ORDER BY priority DESC,dispatched_at,job_id,item_index,node_id LIMIT 9",
        "SELECT job_id FROM dag_node_rows WHERE job_id='j' AND item_index=-1 ORDER BY node_id LIMIT 9",
        "SELECT job_id FROM dag_node_rows WHERE job_id='j' AND item_index>5 AND "
        "node_id='f'||'_'||item_index ORDER "
        "BY item_index LIMIT 9",
        "SELECT job_id FROM dag_node_rows WHERE dead_at IS NOT NULL AND tenant='t' AND "
        "(dead_at,job_id,item_index,node_id)>('2026','j',-1,'n') ORDER BY dead_at,job_id,item_index,node_id "
        "LIMIT 9",
        "SELECT job_id FROM dag_task_logs WHERE job_id='j' AND node_id='n' AND log_id>5 ORDER BY log_id "
        "LIMIT 9",
        "SELECT events FROM dag_job_pages WHERE job_id='j' AND last_event_id>1 ORDER BY last_event_id LIMIT 9",
        "SELECT job_id FROM dag_job_event_rows WHERE job_id='j' AND event_id>1 ORDER BY event_id LIMIT 9",
        "SELECT workflow_id,max(version) FROM dag_workflows WHERE tenant='t' AND workflow_id>'' GROUP BY "
        "workflow_id LIMIT 9"}) {
    const std::string steps = plan(database.path(), {sql, {}});
    EXPECT_TRUE(steps.starts_with("SEARCH dag_")) << steps;
    EXPECT_FALSE(steps.contains("SCAN dag_") || steps.contains("TEMP B-TREE")) << steps;
  }
}

TEST(Postgres, ListsUseAnIndexAndNeverSort) {
  Database database(StoreType::postgres);
  ASSERT_TRUE(database.store()->open(partition));
  auto connection = store::postgres::connect(database.url()).value();
  const store::Statement explain{
      "EXPLAIN SELECT job_id FROM dag_jobs WHERE tenant='t' AND status='FAILED' AND job_id<'x' ORDER BY "
      "job_id DESC LIMIT 9",
      {}};
  std::string steps;
  const store::Query query{
      &explain,
      1,
      {},
      [&](const store::RowView& row) -> Result<> { return steps.append(row.text(0)), Result<>{}; },
      {}};
  ASSERT_TRUE(connection->run({&query, 1}, store::Mode::read));
  EXPECT_TRUE(steps.contains("dag_jobs_by_status")) << steps;
  EXPECT_FALSE(steps.contains("Seq Scan") || steps.contains("Sort")) << steps;
}

// A server of its own, which may be stopped.
class PostgresAway : public ::testing::Test {
 protected:
  support::PostgresServer server;
  std::string url = server.create_database("away");
};

TEST_F(PostgresAway, ALostConnectionIsUnknownInACommitAndUnavailableElsewhere) {
  auto store = store::make_store(url).value();
  ASSERT_TRUE(store->open(partition));
  ASSERT_TRUE(store->commit({}, 1));
  auto reads = store::make_reads(url).value();
  server.crash();
  const auto lost = store->commit({}, 2);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::unknown) << lost.error().message;
  EXPECT_EQ(store->commit({}, 2).error().code, Code::unavailable);
  EXPECT_EQ(store->open(partition).error().code, Code::unavailable);
  EXPECT_EQ(reads->tokens().error().code, Code::unavailable);
  server.start();
  const auto state = store->open(partition);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->last_commit, 1);
  EXPECT_TRUE(store->commit({}, 2));
  EXPECT_TRUE(reads->tokens());
  server.restart();
  EXPECT_TRUE(reads->tokens());  // a reader finds its way back by itself
  EXPECT_EQ(store->load(for_jobs({job_id(1)})).error().code, Code::unavailable);
  EXPECT_EQ(store->open(partition)->last_commit, 2);
  EXPECT_TRUE(store::make_reads(server.socket_url("away")));
}

TEST(Postgres, AConnectionOfTheFollowingTablesThatDiedWhileItWasIdleIsMadeAnewUnseen) {
  Database database(StoreType::postgres);
  int connections = 0;
  const auto connect = [&]() -> Result<std::unique_ptr<store::Connection>> {
    TRY_ASSIGN(auto connection, store::postgres::connect(database.url()));
    TRY(connection->script("SET application_name = 'number " + std::to_string(++connections) + "'"));
    return connection;
  };
  store::JournalStore store(store::make_sql_store(store::Dialect::postgres, connect, {}, std::chrono::milliseconds{0}));
  ASSERT_TRUE(store.open(partition));
  WriteSet w;
  for (int n = 1; n <= 2; ++n) {
    w.jobs_new = {job(n)};
    ASSERT_TRUE(store.commit(w, n));
    const auto done = store.follow();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(connections, n + 1);
    if (n == 1) database.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'number 2'");
  }
  EXPECT_TRUE(*database.reads().value()->job(job(2).tenant, job_id(2)));
}

// Otherwise it keeps the locks of half a transaction for two hours.
TEST_F(PostgresAway, TheServerNoticesSoonThatAClientHasVanished) {
  const auto settings = [](const std::string& where) {
    const auto connection = store::postgres::connect(where).value();
    const store::Statement ask{
        "SELECT string_agg(current_setting('tcp_' || name), ' ') FROM unnest(ARRAY['keepalives_idle', "
        "'keepalives_interval', 'keepalives_count', 'user_timeout']) AS name",
        {}};
    std::string found;
    const store::Query query{
        &ask, 1, {}, [&](const store::RowView& row) -> Result<> { return found = row.text(0), Result<>{}; }, {}};
    EXPECT_TRUE(connection->run({&query, 1}, store::Mode::read));
    return found;
  };
  EXPECT_EQ(settings(url), "10 5 3 20000");
  EXPECT_EQ(settings(server.socket_url("away")), "0 0 0 0") << "there they mean nothing, and do no harm";
}

// A crash may take with it what followed last: it is not durable before the next commit is.
TEST(Postgres, AReaderThatConnectsNoticesThatTheTablesHaveLostWhatTheyShowed) {
  Database database(StoreType::postgres_journal);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.jobs_new = {job(1)};
  ASSERT_TRUE(store->commit(w, 1));
  ASSERT_TRUE(store->follow());
  Followed followed;
  followed.opened(1);
  auto reads = store::make_reads(database.url(), followed, partition).value();
  EXPECT_TRUE(*reads->job(job(1).tenant, job_id(1)));
  database.execute("UPDATE writer_state SET followed = 0");
  database.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
  const auto lost = reads->job(job(1).tenant, job_id(1));
  ASSERT_FALSE(lost) << "it must not answer from tables that lack something";
  EXPECT_EQ(lost.error().code, Code::unavailable) << lost.error().message;
  EXPECT_TRUE(followed.is_doubted());
  EXPECT_FALSE(store::make_reads(database.url(), followed, partition)) << "nobody reads before the engine has settled it";
  database.execute("UPDATE writer_state SET followed = 1");
  followed.opened(1);
  EXPECT_TRUE(*reads->job(job(1).tenant, job_id(1)));
}

// Those who migrate are a writer, of which there is one, and the token administration, of which there may be
// many.
TEST(Postgres, ManyWhoMigrateAtOnceAllSucceed) {
  Database database(StoreType::postgres);
  std::array<Result<>, 4> outcomes;
  {
    std::vector<std::jthread> threads;
    for (auto& outcome : outcomes) {
      threads.emplace_back([&] {
        if (auto admin = store::make_token_admin(database.url()); !admin)
          outcome = std::unexpected(admin.error());
      });
    }
  }
  for (const auto& outcome : outcomes) EXPECT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(database.store()->open(partition));
}

TEST(Postgres, AStatementThatFailedOnceIsStillUsable) {
  Database database(StoreType::postgres);
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  WriteSet w;
  w.jobs_changed = {job(1)};  // fails, before the statements behind it were prepared
  w.task_results_new = {task_result(1)};
  EXPECT_EQ(store->commit(w, 1).error().code, Code::conflict);
  w.jobs_changed.clear();
  EXPECT_TRUE(store->commit(w, 1));
  EXPECT_EQ(store->load({.task_results = {"task-1"}})->task_results.size(), 1u);
}

}  // namespace
}  // namespace baton::contract::adapters_test
