// A commit that goes on while the next batch is decided upon it: who is told what, and when.
#include <gtest/gtest.h>

#include "engine/writer_fixture.hpp"
#include "store/journal/journal_store.hpp"

namespace baton::engine::writer_test {
namespace {

// Its work ends when the test says so, or somebody waits for it.
class PatientTables final : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  void begin_work(Work work) override { work_ = std::move(work); }
  bool is_working() const override { return work_ != nullptr; }
  Result<> end_work() override {
    if (work_) finish();
    return std::exchange(outcome_, std::nullopt).value();
  }
  Result<> append(const store::JournalRow& row, const WriteSet& beside) override {
    ++appends;
    if (std::exchange(is_next_in_the_way, false)) return fail(Code::conflict, "another program was faster");
    if (std::exchange(is_next_lost, false)) return fail(Code::unavailable, "the connection is gone");
    if (std::exchange(is_next_unknown, false)) {
      TRY(MemoryStore::append(row, beside));
      return fail(Code::unknown, "the connection broke inside the commit");
    }
    return MemoryStore::append(row, beside);
  }
  void finish() {
    Work work = std::exchange(work_, nullptr);
    outcome_ = work();
  }
  bool is_next_lost = false, is_next_unknown = false, is_next_in_the_way = false;
  int appends = 0;

 private:
  Work work_;
  std::optional<Result<>> outcome_;
};

class CommitBeside : public testing::Test {
 protected:
  CommitBeside() {
    auto tables = std::make_unique<PatientTables>(database_);
    tables_ = tables.get();
    store_ = std::make_unique<store::JournalStore>(std::move(tables));
    writer_ = std::make_unique<Writer>(*store_, clock_, make_kinds(), WriterOptions{.beside_rows = 0});
    EXPECT_TRUE(writer_->open());
    EXPECT_TRUE(run(PublishWorkflow{{"default"}, workflow::parse(one_task_yaml).definition, std::string(one_task_yaml)})->reply);
  }
  std::shared_ptr<KeptReply> run(Command command) {
    auto answer = std::make_shared<KeptReply>();
    std::vector<Item> items;
    items.push_back({std::move(command), answer});
    writer_->run(std::move(items));
    return answer;
  }
  static SubmitJob job(int n) {
    return {.job_id = job_id(n), .tenant = {"default"}, .workflow_id = "w", .input_data = {"{}"}};
  }
  Poll poll() const {
    return {.tenant = {"default"}, .queue = "q", .worker = "w", .wait_until = clock_.time + 1h};
  }
  void commit_ends() {
    tables_->finish();
    writer_->run({});
  }

  ManualClock clock_;
  store::MemoryDatabase database_;
  PatientTables* tables_ = nullptr;
  std::unique_ptr<store::JournalStore> store_;
  std::unique_ptr<Writer> writer_;
};

TEST_F(CommitBeside, NobodyIsToldBeforeItsEnd) {
  const auto answer = run(job(1));
  EXPECT_FALSE(answer->reply);
  EXPECT_EQ(writer_->commands_under_way(), 1U);
  commit_ends();
  ASSERT_TRUE(answer->reply);
  EXPECT_TRUE(std::get<JobReply>(*answer->reply).created);
  EXPECT_EQ(writer_->commands_under_way(), 0U);
}

TEST_F(CommitBeside, TheNextBatchIsDecidedUponItAndStoredAfterIt) {
  const auto first = run(job(1));
  ChangeJob cancel{.tenant = {"default"}, .job_id = job_id(1), .what = ChangeJob::What::cancel};
  const auto second = run(cancel);  // waits for the first to be stored
  EXPECT_TRUE(first->reply);
  EXPECT_FALSE(second->reply);
  commit_ends();
  ASSERT_TRUE(second->reply);
  EXPECT_EQ(std::get<JobReply>(*second->reply).job.status, workflow::JobStatus::cancelled);
}

TEST_F(CommitBeside, WhatWritesNothingIsNotAnsweredBeforeWhatItSawIsDurable) {
  (void)run(job(1));
  tables_->is_next_lost = true;
  const auto seen = run(AwaitJob{.tenant = {"default"}, .job_id = job_id(1), .wait_until = clock_.time});
  EXPECT_FALSE(seen->reply) << "the job may never have been";
  ASSERT_TRUE(writer_->away());
  ASSERT_TRUE(writer_->open());
  writer_->run({});
  EXPECT_EQ(seen->refusal(), Refusal::job_not_found);
}

TEST_F(CommitBeside, WhatWasDecidedUponOneThatFailedIsDecidedAgain) {
  const auto first = run(job(1));
  tables_->is_next_lost = true;
  const auto second = run(job(2));
  EXPECT_EQ(first->refusal(), Refusal::store_unavailable);
  EXPECT_FALSE(second->reply);
  ASSERT_TRUE(writer_->open());
  writer_->run({});
  commit_ends();
  ASSERT_TRUE(second->reply);
  EXPECT_TRUE(std::get<JobReply>(*second->reply).created);
  EXPECT_FALSE(store_->load({.jobs = {job_id(1)}}).value().jobs.size());
}

TEST_F(CommitBeside, OfOneWithAnUnknownOutcomeEverybodyHearsWhenItIsKnown) {
  const auto first = run(job(1));
  tables_->is_next_unknown = true;
  const auto second = run(job(2));
  EXPECT_FALSE(first->reply);
  EXPECT_FALSE(second->reply);
  ASSERT_TRUE(writer_->open());
  ASSERT_TRUE(first->reply) << "it has happened";
  EXPECT_TRUE(std::get<JobReply>(*first->reply).created);
  writer_->run({});
  commit_ends();
  EXPECT_TRUE(second->reply);
}

TEST_F(CommitBeside, APollIsServedOnceAndWaitsOnIfItWasNot) {
  const auto polled = run(poll());
  (void)run(job(1));  // for that poll
  (void)run(job(2));  // not for it: it is served, though nobody was told yet
  commit_ends();
  ASSERT_TRUE(polled->reply);
  EXPECT_EQ(std::get<PollReply>(*polled->reply).jobs.size(), 1U);

  const auto again = run(poll());  // the second job
  tables_->is_next_lost = true;
  tables_->finish();
  writer_->run({});
  EXPECT_FALSE(again->reply);
  ASSERT_TRUE(writer_->open());
  writer_->run({});
  commit_ends();
  ASSERT_TRUE(again->reply);
  EXPECT_EQ(std::get<PollReply>(*again->reply).jobs.at(0).job_id, job_id(2));
}

TEST_F(CommitBeside, WhoeverAwaitsAJobHearsOfAnEndThatWasDecidedMeanwhile) {
  SubmitJob waits = job(1);
  waits.wait_until = clock_.time + 1min;
  const auto waiter = run(waits);
  (void)run(ChangeJob{.tenant = {"default"}, .job_id = job_id(1), .what = ChangeJob::What::cancel});
  EXPECT_FALSE(waiter->reply);
  commit_ends();
  ASSERT_TRUE(waiter->reply);
  EXPECT_EQ(std::get<JobReply>(*waiter->reply).job.status, workflow::JobStatus::cancelled);
}

// What collided is tried again, and is under way again.
TEST_F(CommitBeside, AStopWaitsForItsEndAlsoAfterACollision) {
  const auto answer = run(job(1));
  tables_->is_next_in_the_way = true;
  writer_->finish();
  ASSERT_TRUE(answer->reply);
  EXPECT_TRUE(std::get<JobReply>(*answer->reply).created);
}

TEST_F(CommitBeside, AStopWaitsForItsEnd) {
  const auto answer = run(job(1));
  writer_->finish();
  ASSERT_TRUE(answer->reply);
  EXPECT_TRUE(std::get<JobReply>(*answer->reply).created);
}

}  // namespace
}  // namespace baton::engine::writer_test
