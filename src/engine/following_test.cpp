// The writer on a store whose tables follow the commits, while another program holds a row of them or the whole file.
#include <gtest/gtest.h>

#include "engine/writer_fixture.hpp"
#include "store/journal/journal_store.hpp"

namespace baton::engine::writer_test {
namespace {

class HeldTables final : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  Result<> append(const store::JournalRow& row, const WriteSet& beside) override {
    ++commits;
    if (is_file_held) return busy();
    return MemoryStore::append(row, beside);
  }
  void begin(const store::Following& following) override {
    ++followings;
    is_under_way = is_slow;
    has_failed_ = is_row_held || is_file_held || !fits;
    if (!has_failed_) MemoryStore::begin(following);
  }
  std::optional<Result<>> end() override {
    if (is_under_way) return std::nullopt;
    if (std::exchange(has_failed_, false)) return Result<>(fits ? busy() : fail(Code::conflict, "table dag_jobs has that row"));
    return MemoryStore::end();
  }
  void wait() override { is_under_way = false; }
  void wait_at_most(Duration) override {
    ++waits;
    if (!is_stuck) wait();
  }
  using MemoryStore::load;
  Result<Loaded> load(const LoadRequest& request) override {
    ++job_loads;
    return MemoryStore::load(request);
  }
  bool is_row_held = false, is_file_held = false, fits = true;
  bool is_slow = false, is_under_way = false;  // tables that follow, until they are waited for or the test ends it
  bool is_stuck = false;  // whoever waits for some time only does so in vain
  int commits = 0, followings = 0, waits = 0, job_loads = 0;

 private:
  static std::unexpected<Error> busy() { return fail(Code::busy, "SQLite: database is locked"); }
  bool has_failed_ = false;
};

class FollowingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(writer_.open());
    run({PublishWorkflow{{"default"}, workflow::parse(one_task_yaml).definition, std::string(one_task_yaml)}});
  }
  std::vector<std::shared_ptr<KeptReply>> run(std::vector<Command> commands) {
    std::vector<Item> items;
    std::vector<std::shared_ptr<KeptReply>> answers;
    for (Command& command : commands) {
      answers.push_back(std::make_shared<KeptReply>());
      items.push_back({std::move(command), answers.back()});
    }
    writer_.run(std::move(items));
    return answers;
  }
  // As long as nobody sends anything.
  void pass(Duration time) {
    for (const Time end = clock_.time + time; clock_.time < end; clock_.time += 10ms) {
      const auto wake = writer_.next_wake();
      if (writer_.is_waiting_for_store() || (wake && *wake <= clock_.time)) run({});
    }
  }
  static SubmitJob job(int n) {
    return {.job_id = job_id(n), .tenant = {"default"}, .workflow_id = "w", .input_data = {"{}"}};
  }
  Poll poll() const {
    return {.tenant = {"default"}, .queue = "q", .worker = "w", .wait_until = clock_.time + 1h};
  }
  static bool has_job(const std::shared_ptr<KeptReply>& answer) {
    return answer->reply && std::holds_alternative<JobReply>(*answer->reply);
  }

  ManualClock clock_;
  store::MemoryDatabase database_;
  HeldTables* tables_ = new HeldTables(database_);
  store::JournalStore store_{std::unique_ptr<store::Tables>(tables_)};
  int told_ = 0;
  Followed followed_;
  Writer writer_{store_, clock_, make_kinds(),
                 {.followed = &followed_, .unreadable = [this](const std::string&) { ++told_; }}};
};

TEST_F(FollowingTest, ACommitThatFindsTheFileHeldIsRefusedAndTheStoreIsNotLost) {
  tables_->is_file_held = true;
  tables_->commits = 0;
  for (const auto& answer : run({job(1), job(2)})) {
    EXPECT_EQ(answer->refusal(), Refusal::store_unavailable);
    EXPECT_TRUE(std::get<Refused>(*answer->reply).message.starts_with("another program holds the database"));
  }
  EXPECT_EQ(tables_->commits, 1) << "nobody is to blame, so the batch is not divided";
  EXPECT_FALSE(writer_.away());
  tables_->is_file_held = false;
  EXPECT_TRUE(has_job(run({job(3)}).front()));
}

TEST_F(FollowingTest, TablesThatCannotFollowForAWhileAreNoOutage) {
  run({job(1)});
  const auto polled = run({poll()}).front();
  const auto& task = std::get<PollReply>(polled->reply.value()).jobs.at(0);
  tables_->is_row_held = true;
  tables_->followings = 0;
  pass(3s);
  EXPECT_GT(tables_->followings, 1);
  EXPECT_LT(tables_->followings, 5) << "they are not tried without a pause";
  EXPECT_EQ(told_, 1);
  EXPECT_FALSE(writer_.away());
  EXPECT_TRUE(followed_.want());
  EXPECT_TRUE(followed_.is_away()) << "a reader is told that it cannot see what was committed";
  tables_->job_loads = 0;
  run({ReportResult{.tenant = {}, .task_id = task.task_id, .completed = true, .lease = task.lease}});
  EXPECT_EQ(tables_->job_loads, 0) << "what is in memory is true and stays";
  EXPECT_TRUE(has_job(run({job(2)}).front()));
  tables_->is_row_held = false;
  pass(3s);
  EXPECT_EQ(store_.behind().commits, 0);
  EXPECT_FALSE(followed_.want());
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::completed);
}

// What waits in a queue that nobody has asked for is known though the tables do not have it.
TEST_F(FollowingTest, WhileTheTablesCannotFollowEverythingElseGoesOn) {
  run({job(1)});
  tables_->is_row_held = true;
  const auto answers = run({poll(), job(2)});
  ASSERT_TRUE(answers[0]->reply);
  EXPECT_EQ(std::get<PollReply>(*answers[0]->reply).jobs.at(0).job_id, job_id(1));
  EXPECT_TRUE(has_job(answers[1]));
  tables_->followings = 0;
  for (int n = 3; n < 10; ++n) EXPECT_TRUE(has_job(run({job(n)}).front()));
  EXPECT_EQ(tables_->followings, 0) << "each of them would wait as long as the other program has its row";
  EXPECT_FALSE(writer_.away());
  tables_->is_row_held = false;
  pass(3s);
  EXPECT_EQ(store_.behind().commits, 0);
}

TEST_F(FollowingTest, RowsThatDoNotFitEndTheWriter) {
  run({job(1)});
  tables_->fits = false;
  pass(1s);
  ASSERT_TRUE(writer_.fatal());
  EXPECT_EQ(writer_.fatal()->code, Code::corrupt);
  EXPECT_TRUE(writer_.away());
  EXPECT_TRUE(followed_.is_away());
}

// A large document is written to the tables themselves, after they have followed.
TEST_F(FollowingTest, TablesThatCouldNotFollowWhileACommitWaitedAreBehind) {
  tables_->is_slow = tables_->is_row_held = true;
  run({job(1)});
  pass(20ms);
  ASSERT_TRUE(tables_->is_under_way);
  SubmitJob large = job(2);
  large.input_data = {R"({"x":")" + std::string(600'000, 'x') + R"("})"};
  EXPECT_EQ(run({large}).front()->refusal(), Refusal::store_unavailable);
  EXPECT_TRUE(followed_.is_away()) << "a reader is told that it cannot see what was committed";
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(tables_->followings, 1) << "they are not tried without a pause";
  tables_->is_slow = tables_->is_row_held = false;
  pass(3s);
  EXPECT_FALSE(followed_.is_away());
  EXPECT_EQ(store_.behind().commits, 0);
}

class FollowingUnderLoadTest : public FollowingTest {
 protected:
  // A commit every two milliseconds; the time that passed until the tables begin to follow.
  Duration until_they_begin(Duration at_most = 1s) {
    const Time began = clock_.time;
    for (const int before = tables_->followings; tables_->followings == before && clock_.time - began < at_most; clock_.time += 2ms)
      run({job(++jobs_)});
    return clock_.time - began;
  }
  void end_after(Duration time, bool with_commits) {
    for (const Time end = clock_.time + time; clock_.time < end; clock_.time += 2ms)
      if (with_commits) run({job(++jobs_)});
    tables_->is_under_way = false;
    run({});
  }
  int jobs_ = 0;
};

TEST_F(FollowingUnderLoadTest, TheTablesDoNotWaitForAClockThatWasSetBack) {
  run({job(++jobs_)});
  clock_.time -= 1h;
  EXPECT_LE(until_they_begin(), 110ms);
  clock_.time -= 1h;
  EXPECT_LE(until_they_begin(), 110ms);
}

TEST_F(FollowingUnderLoadTest, TheTablesBeginSoEarlyThatTheyAreAtTheEndInTime) {
  tables_->is_slow = true;
  const Duration first = until_they_begin();
  EXPECT_GE(first, 100ms);
  EXPECT_LE(first, 104ms);
  end_after(30ms, true);
  const Duration second = 30ms + until_they_begin();  // since there was something that they do not show
  EXPECT_GE(second, 66ms);
  EXPECT_LE(second, 74ms);
}

TEST_F(FollowingUnderLoadTest, TablesThatTakeLongDoNotFollowEachCommitForItself) {
  tables_->is_slow = true;
  (void)until_they_begin();
  end_after(500ms, false);
  const Duration next = until_they_begin();
  EXPECT_GE(next, 20ms);
  EXPECT_LE(next, 24ms);
}

TEST_F(FollowingUnderLoadTest, TheTablesAreNeverFarBehindWhilePeopleRead) {
  run({job(++jobs_)});
  ASSERT_TRUE(followed_.want());
  EXPECT_LE(until_they_begin(), 2ms) << "somebody waits";
  for (int n = 0; n < 10; ++n) {
    const Duration next = until_they_begin();
    EXPECT_GE(next, 20ms) << "not each commit for itself";
    EXPECT_LE(next, 24ms) << "the next reader has little to wait for";
  }
  clock_.time += 1s;
  (void)until_they_begin();
  EXPECT_GE(until_they_begin(), 90ms) << "nobody reads any more";
}

class ReadersTest : public FollowingTest {
 protected:
  void SetUp() override {
    FollowingTest::SetUp();
    ASSERT_TRUE(small_.open());
    tables_->is_slow = true;
    submit();
  }
  void submit() {
    std::vector<Item> items;
    items.push_back({job(++jobs_), std::make_shared<KeptReply>()});
    small_.run(std::move(items));
    small_.run({});  // its commit went on beside
  }
  void begin_to_follow() {
    clock_.time += 200ms;
    small_.run({});
    ASSERT_TRUE(tables_->is_under_way);
    tables_->waits = 0;
  }
  int jobs_ = 0;
  Writer small_{store_, clock_, make_kinds(), {.beside_rows = 1, .followed = &followed_, .follow_rows = 80}};
};

TEST_F(ReadersTest, CommitsDoNotMakeTheNextFollowingLong) {
  ASSERT_TRUE(followed_.want());
  begin_to_follow();
  for (int n = 0; n < 6; ++n) submit();
  EXPECT_GT(tables_->waits, 1) << "for each following";
}

TEST_F(ReadersTest, CommitsWaitOnceForAFollowingThatDoesNotEnd) {
  tables_->is_stuck = true;
  ASSERT_TRUE(followed_.want());
  begin_to_follow();
  for (int n = 0; n < 6; ++n) submit();
  EXPECT_EQ(tables_->waits, 1);
}

TEST_F(ReadersTest, CommitsDoNotWaitForTablesThatNobodyReads) {
  begin_to_follow();
  for (int n = 0; n < 6; ++n) submit();
  EXPECT_EQ(tables_->waits, 0);
}

// As after a crash of the database, which a reader was the first to notice.
TEST_F(FollowingTest, TablesThatLostWhatTheyShowedMakeTheWriterOpenTheStore) {
  run({job(1)});
  pass(1s);
  ASSERT_EQ(store_.behind().commits, 0);
  const std::int64_t all = followed_.shown();
  followed_.doubt(all - 1);
  EXPECT_EQ(writer_.next_wake(), Time{}) << "it is not waited for a command";
  run({});
  ASSERT_TRUE(writer_.away());
  ASSERT_TRUE(writer_.open());
  EXPECT_FALSE(followed_.is_doubted());
  EXPECT_TRUE(followed_.shows(all));
  EXPECT_TRUE(has_job(run({job(2)}).front()));
}

class SmallBacklogTest : public FollowingTest {
 protected:
  Writer small_{store_, clock_, make_kinds(), {.follow_rows = 10}};
};

// What is acknowledged must fit into memory until it can be shown.
TEST_F(SmallBacklogTest, TablesThatCannotFollowForLongStopCommitsWithoutAWaitForEach) {
  ASSERT_TRUE(small_.open());
  tables_->is_row_held = true;
  int refused = 0;
  for (int n = 0; n < 50; ++n) {
    std::vector<Item> items;
    const auto answer = std::make_shared<KeptReply>();
    items.push_back({job(n), answer});
    small_.run(std::move(items));
    refused += answer->refusal() == Refusal::store_unavailable;
  }
  EXPECT_GT(refused, 20);
  EXPECT_LT(refused, 50);
  EXPECT_LT(tables_->followings, 10);
  EXPECT_FALSE(small_.away());
}

}  // namespace
}  // namespace baton::engine::writer_test
