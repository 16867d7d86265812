// SQLite's log: one that is missing, or is of another database, is noticed.
#include <algorithm>
#include <fstream>

#include "store/open.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/contract/store/fixture.hpp"

namespace baton::contract::commit_log_test {
namespace {

namespace fs = std::filesystem;

class CommitLog : public ::testing::Test {
 protected:
  // Commits of one job each, the last of which only the log has: the process is killed.
  static void write_and_die(Database& database, int from, int to) {
    auto store = database.store();
    const auto state = store->open(partition);
    ASSERT_TRUE(state) << state.error().message;
    write(*store, from, to);
  }
  static void write(Store& store, int from, int to) {
    for (int n = from; n <= to; ++n) {
      if (n > from) {
        ASSERT_TRUE(store.follow());
      }
      WriteSet w;
      w.jobs_new = {job(n)};
      const auto done = store.commit(w, n);
      ASSERT_TRUE(done) << done.error().message;
    }
  }
  static std::string log_of(const Database& database) { return store::sqlite::log_path(database.path()); }
  static void remove_log(const Database& database) {
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(log_of(database) + part);
  }
  static void move_log(const std::string& from, const std::string& to) {
    for (const char* part : {"", "-wal", "-shm"}) {
      fs::remove(to + part);
      if (fs::exists(from + part)) fs::rename(from + part, to + part);
    }
  }
  // Into the place of another database, which has no log then.
  static void copy(const Database& from, const Database& to) {
    remove_log(to);
    for (const char* part : {"", "-wal", "-shm"}) fs::remove(to.path() + part);
    from.execute("VACUUM INTO '" + to.path() + "'");
  }
  static std::unique_ptr<Store> store_without_log(const Database& database) {
    return store::make_store(database.url(), store::MissingLog::accept).value();
  }
  static void expect_refused(Store& store, const std::string& why) {
    const auto state = store.open(partition);
    ASSERT_FALSE(state);
    EXPECT_EQ(state.error().code, Code::corrupt);
    EXPECT_TRUE(state.error().message.contains(why)) << state.error().message;
  }
  static void expect_opens(Store& store, int jobs) {
    const auto state = store.open(partition);
    ASSERT_TRUE(state) << state.error().message;
    EXPECT_EQ(state->last_commit, jobs);
    std::vector<workflow::JobId> ids;
    for (int n = 1; n <= jobs; ++n) ids.push_back(job_id(n));
    EXPECT_EQ(store.load(for_jobs(ids))->jobs.size(), static_cast<std::size_t>(jobs));
  }

  Database database{StoreType::sqlite_journal};
  Database other{StoreType::sqlite_journal};
};

TEST_F(CommitLog, ThatIsMissingAfterAKillIsMissed) {
  write_and_die(database, 1, 2);
  const std::string saved = database.path() + "-saved";
  move_log(log_of(database), saved);
  expect_refused(*database.store(), "baton serve --without-log");
  EXPECT_FALSE(fs::exists(log_of(database))) << "one that is put back must not meet what belongs to another";
  move_log(saved, log_of(database));
  expect_opens(*database.store(), 2);
}

TEST_F(CommitLog, ThatIsEmptyIsMissed) {
  write_and_die(database, 1, 2);
  remove_log(database);
  std::ofstream(log_of(database)).flush();
  expect_refused(*database.store(), "put back " + log_of(database) + "-wal");
  expect_opens(*store_without_log(database), 1);
}

TEST_F(CommitLog, ThatIsDamagedIsRefused) {
  write_and_die(database, 1, 2);
  remove_log(database);
  std::ofstream(log_of(database)) << std::string(10'000, 'x');
  expect_refused(*database.store(), "is damaged");
  expect_refused(*store_without_log(database), "move both away");
  remove_log(database);
  expect_opens(*store_without_log(database), 1);
}

TEST_F(CommitLog, ThatAnotherProgramHasOpenIsSaidToBeSo) {
  write_and_die(database, 1, 2);
  auto other_program = store::sqlite::connect(log_of(database), store::sqlite::Access::admin);
  ASSERT_TRUE(other_program);
  ASSERT_TRUE((*other_program)->script("BEGIN; SELECT count(*) FROM baton_journal"));
  const auto state = database.store()->open(partition);
  ASSERT_FALSE(state);
  EXPECT_EQ(state.error().code, Code::busy);
  EXPECT_TRUE(state.error().message.contains("another program has the log")) << state.error().message;
}

// The database was written when the log had commit 3.
TEST_F(CommitLog, ThatIsAnOlderCopyOfTheSameRunIsRefused) {
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  write(*store, 1, 2);
  const std::string saved = database.path() + "-saved";
  for (const char* part : {"", "-wal"}) fs::copy_file(log_of(database) + part, saved + part);
  write(*store, 3, 4);
  store.reset();
  const std::string right = database.path() + "-right";
  move_log(log_of(database), right);
  move_log(saved, log_of(database));
  std::vector<std::string> findings;
  ASSERT_TRUE(baton::store::check_database(database.url(), partition, [&](const std::string& subject, const std::string& problem) {
    findings.push_back(subject + ": " + problem);
  }));
  EXPECT_EQ(std::ranges::count(findings, "the log: it is an older copy: it had commit 3, and ends with 2"), 1);
  expect_refused(*database.store(), "is an older copy");
  move_log(right, log_of(database));
  expect_opens(*database.store(), 4);
}

TEST_F(CommitLog, OfAnotherDatabaseIsNotFollowedThoughItsNumbersGoOn) {
  write_and_die(database, 1, 2);
  write_and_die(other, 1, 3);
  const std::string saved = database.path() + "-saved";
  move_log(log_of(database), saved);
  move_log(log_of(other), log_of(database));
  expect_refused(*database.store(), "belongs to another");
  expect_refused(*store_without_log(database), "move it away first");
  move_log(log_of(database), log_of(other));
  expect_opens(*other.store(), 3);
  move_log(saved, log_of(database));
  expect_opens(*database.store(), 2);
}

TEST_F(CommitLog, IsMissedByACopyOfARunningDatabaseUnlessThatIsAccepted) {
  auto store = database.store();
  ASSERT_TRUE(store->open(partition));
  write(*store, 1, 2);
  copy(database, other);
  write(*store, 3, 3);
  expect_refused(*other.store(), "is missing");
  {
    auto restored = store_without_log(other);
    expect_opens(*restored, 1);
    write(*restored, 2, 3);
  }
  expect_opens(*other.store(), 3);
  store.reset();
  move_log(log_of(other), log_of(database));
  expect_refused(*database.store(), "belongs to another");
}

TEST_F(CommitLog, ThatIsThereIsUsedThoughItMightBeMissing) {
  write_and_die(database, 1, 2);
  expect_opens(*store_without_log(database), 2);
}

TEST_F(CommitLog, IsNotNeededByADatabaseThatWasClosed) {
  {
    auto store = database.store();
    ASSERT_TRUE(store->open(partition));
    write(*store, 1, 2);
    ASSERT_TRUE(store->close());
    EXPECT_EQ(store->load(for_jobs({job_id(1)})).error().code, Code::unavailable);
    EXPECT_EQ(store->commit({.jobs_new = {job(3)}}, 3).error().code, Code::unavailable);
  }
  EXPECT_EQ(database.ask("SELECT log_id FROM writer_state"), std::vector<std::string>{""});
  remove_log(database);
  auto store = database.store();
  expect_opens(*store, 2);
  write(*store, 3, 3);
  EXPECT_EQ(database.ask("SELECT count(*) FROM writer_state WHERE log_id=''"), std::vector<std::string>{"0"});
  store.reset();
  remove_log(database);
  expect_refused(*database.store(), "is missing");
}

// Nor by a new one.
TEST_F(CommitLog, OfAnotherDatabaseIsNotFollowedByOneThatNeedsNone) {
  write_and_die(other, 1, 3);
  {
    auto store = database.store();
    ASSERT_TRUE(store->open(partition));
    write(*store, 1, 2);
    ASSERT_TRUE(store->close());
  }
  move_log(log_of(other), log_of(database));
  expect_refused(*database.store(), "move it away");
  move_log(log_of(database), log_of(other));
  expect_opens(*database.store(), 2);
  expect_opens(*other.store(), 3);
}

// The database has no id any more, and the log still has its own and the last commits.
TEST_F(CommitLog, MayBeLeftHalfWayByAStop) {
  {
    auto store = database.store();
    ASSERT_TRUE(store->open(partition));
    write(*store, 1, 2);
    ASSERT_TRUE(store->follow());
  }
  database.execute("UPDATE writer_state SET log_id=''");
  expect_opens(*database.store(), 2);
  expect_opens(*database.store(), 2);
}

TEST_F(CommitLog, ThatIsRemovedWhileAServerRunsEndsIt) {
  auto store = store_without_log(database);
  ASSERT_TRUE(store->open(partition));
  write(*store, 1, 2);
  remove_log(database);
  expect_refused(*store, "is missing");
}

// With commits that its tables do not show.
class CommitLogOfVersion11 : public CommitLog {
 protected:
  void SetUp() override {
    write_and_die(database, 1, 3);
    database.execute("ALTER TABLE writer_state DROP COLUMN log_id; ALTER TABLE writer_state DROP COLUMN log_last;"
                     "ALTER TABLE access_tokens DROP COLUMN bus_key; DROP TABLE bus_entities; DROP TABLE bus_counters; DROP TABLE bus_messages;"
                     "DROP TABLE bus_history; DROP TABLE holds; DROP INDEX batch_members_held; DROP INDEX step_executions_limited;"
                     "DROP INDEX step_executions_retrying; ALTER TABLE runbooks DROP COLUMN open_batches;"
                     "ALTER TABLE batches DROP COLUMN paused_reason; ALTER TABLE batches DROP COLUMN phase_overlap;"
                     "ALTER TABLE batches DROP COLUMN source_time; ALTER TABLE batches DROP COLUMN hold_id;"
                     "ALTER TABLE batches DROP COLUMN failures_accepted; ALTER TABLE batch_members DROP COLUMN added_by;"
                     "ALTER TABLE batch_members DROP COLUMN hold_id; ALTER TABLE batch_members DROP COLUMN moved_to;"
                     "ALTER TABLE batch_members DROP COLUMN done_json; ALTER TABLE phase_executions DROP COLUMN waits_for;"
                     "ALTER TABLE phase_executions DROP COLUMN expected_at; ALTER TABLE step_executions DROP COLUMN has_slot;"
                     "DELETE FROM schema_migrations WHERE version>11");
    database.execute_in_log("DROP TABLE baton_log");
  }
};

TEST_F(CommitLogOfVersion11, IsFollowedAndGetsAnId) {
  write_and_die(database, 4, 4);
  expect_opens(*database.store(), 4);
  remove_log(database);
  expect_refused(*database.store(), "is missing");
}

TEST_F(CommitLogOfVersion11, IsFollowedAfterACrashBeforeTheDatabaseHadItsId) {
  database.execute_in_log(
      "CREATE TABLE baton_log (partition INTEGER PRIMARY KEY, id TEXT NOT NULL, is_known INTEGER NOT NULL) STRICT;"
      "INSERT INTO baton_log VALUES (0, 'half', 0)");
  expect_opens(*database.store(), 3);
  remove_log(database);
  expect_refused(*database.store(), "is missing");
}

}  // namespace
}  // namespace baton::contract::commit_log_test
