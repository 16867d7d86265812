// The writer without a thread, on a store with rows that another program holds or that cannot be read: runbooks.
#include <gtest/gtest.h>

#include "core/runbook/machine/messages.hpp"
#include "engine/writer_fixture.hpp"

namespace baton::engine::writer_test {
namespace {

constexpr std::string_view book = R"(
name: move
data_source: {type: csv, connection: WAVES, primary_key: Upn, batch_time: immediate}
phases:
  - name: go
    offset: T-0
    steps: [{name: make, worker_id: q, function: New-User, retry: {max_retries: 1, interval: 1s}}]
)";

class RunbookWriterTest : public WriterTest {
 protected:
  void SetUp() override {
    WriterTest::SetUp();
    run({PublishRunbook{.definition = runbook::parse(book).definition, .text = std::string(book)}});
    begin_batch({"ada"});
  }
  void begin_batch(const std::vector<std::string>& keys) {
    const auto opened = run({OpenBatch{.runbook_name = "move"}});
    const std::int64_t batch_id = std::get<BatchReply>(opened.front()->reply.value()).batch.id;
    AddMembers add{.batch_id = batch_id};
    for (const std::string& key : keys) add.members.push_back({.member_key = key, .data = Json{"{}"}});
    run({std::move(add)});
    run({StartBatch{batch_id}});
    run({ChangeBatch{.batch_id = batch_id, .what = ChangeBatch::What::advance}});
    for (int i = 0; i < 5; ++i) run({});
  }

  Handout take() {
    clock_.time += 2s;
    const auto answer = run({poll()});
    return std::get<PollReply>(answer.front()->reply.value()).jobs.at(0);
  }
  Reply say(const Handout& job, std::size_t bytes) {
    TaskLog log{{{"stderr", clock_.time, std::string(bytes, 'x')}}};
    return run({TaskNote{.tenant = {}, .task_id = job.task_id, .lease = job.lease, .note = std::move(log)}})
        .front()
        ->reply.value();
  }
};

TEST_F(RunbookWriterTest, AResultThatCameBeforeTheTimeoutCountsHoweverLateItIsDecided) {
  const Handout job = take();
  const Time received = clock_.time + 1s;
  clock_.time += 3h;  // the engine was busy
  const auto answer = std::make_shared<KeptReply>();
  std::vector<Item> items;
  items.push_back({ReportResult{.tenant = {}, .task_id = job.task_id, .job_id = {}, .node_id = {}, .completed = true, .lease = job.lease},
                   answer, received});
  writer_.run(std::move(items));
  ASSERT_TRUE(answer->reply);
  const auto* accepted = std::get_if<ResultReply>(&*answer->reply);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->ignored, "");
  for (const auto& [id, step] : database_.runbooks.steps) EXPECT_EQ(step.status, runbook::StepStatus::succeeded);
}

TEST_F(RunbookWriterTest, LogsOfAJobAreBoundedLikeThoseOfATaskAndKeptUnderItsStep) {
  const Handout first = take();
  EXPECT_EQ(std::get<NoteReply>(say(first, 1'000'000)).stored, 1u);
  EXPECT_EQ(std::get<NoteReply>(say(first, 100'000)).stored, 0u);
  run({ReportResult{.tenant = {}, .task_id = first.task_id, .job_id = {}, .node_id = {}, .lease = first.lease}});
  const Handout second = take();
  EXPECT_NE(second.task_id, first.task_id);
  EXPECT_EQ(std::get<NoteReply>(say(second, 100'000)).stored, 1u);  // each try has room of its own
  ASSERT_EQ(database_.logs.size(), 2u);
  for (const auto& [key, line] : database_.logs)
    EXPECT_EQ(line.job_id.value, runbook::log_name(runbook::parse_job_id(first.task_id)->ref));
}

// Step, then all that it belongs to.
TEST_F(RunbookWriterTest, AResultCostsTwoLoads) {
  (void)take();  // of the batch that has one member
  begin_batch({"bob", "cyd"});
  const Handout job = take();
  store_.loads = 0;
  run({ReportResult{.tenant = {}, .task_id = job.task_id, .job_id = {}, .node_id = {}, .completed = true, .lease = job.lease}});
  EXPECT_EQ(store_.loads, 2);
}

TEST_F(RunbookWriterTest, AJobWhoseRowCannotBeReadIsToldOnceAndSpoilsNothing) {
  const Handout job = take();
  store_.is_unreadable = true;
  const std::uint64_t before = redecided_.value();
  const auto answers =
      run({Heartbeat{.worker = "w", .tasks = {{job.task_id, job.lease}}}, ListWorkers{},
           ReturnTasks{.tasks = {{job.task_id, job.lease}}}});
  for (const auto& answer : answers) EXPECT_TRUE(answer->reply && !answer->refusal());
  EXPECT_LE(redecided_.value() - before, 3u);
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_TRUE(told_.front().starts_with("step ")) << told_.front();
  run({Heartbeat{.worker = "w", .tasks = {{job.task_id, job.lease}}}});
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(RunbookWriterTest, AJobWhoseRowCannotBeReadIsToldOnceThoughNothingIsCommitted) {
  const Handout taken = take();
  const Heartbeat beat{.worker = "w", .tasks = {{taken.task_id, taken.lease}}};
  store_.is_unreadable = true;
  store_.is_full = true;
  EXPECT_EQ(run({beat, job(1)}).back()->refusal(), Refusal::store_full);
  EXPECT_EQ(told_.size(), 1u);
  store_.is_full = false;
  run({beat, job(1)});
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(RunbookWriterTest, AJobWhoseRowCannotBeReadIsToldOnceThoughTheCommitIsInDoubt) {
  const Handout taken = take();
  store_.is_unreadable = true;
  store_.is_answer_lost = true;
  run({Heartbeat{.worker = "w", .tasks = {{taken.task_id, taken.lease}}}, job(1)});
  ASSERT_TRUE(writer_.away());
  EXPECT_EQ(told_.size(), 1u);
  ASSERT_TRUE(writer_.open());
  EXPECT_EQ(told_.size(), 1u);
}

TEST_F(RunbookWriterTest, ManyWhoNeedAHeldDataTableDoNotStopTheWriterForLong) {
  store_.is_data_held = true;
  const std::int64_t id = database_.runbooks.runbooks.begin()->first;
  std::vector<Command> commands;
  for (int n = 0; n < 100; ++n) commands.emplace_back(SyncData{.runbook_id = id, .seen_at = clock_.time});
  const Time before = clock_.time;
  for (const auto& answer : run(std::move(commands))) EXPECT_EQ(answer->refusal(), Refusal::store_unavailable);
  EXPECT_LE(clock_.time - before, 14s);
}

// It comes from another program, or from a table that somebody has repaired by hand.
TEST_F(RunbookWriterTest, TwoTimersOfARowThatCannotBeReadAreBothPutOff) {
  const Subject subject = subject_of(runbook::parse_job_id(take().task_id)->ref);
  database_.timers.insert({clock_.time + 1s, subject, ""});
  database_.timers.insert({clock_.time + 2s, subject, ""});
  store_.is_unreadable = true;
  clock_.time += 3h;
  run({});
  EXPECT_FALSE(run({job(1)}).front()->refusal());
  for (const Timer& timer : database_.timers) EXPECT_GE(timer.due, clock_.time) << "it is not put off";
}

TEST_F(RunbookWriterTest, ALineOfLogDoesNotMakeTheBatchBeDecidedTwice) {
  const Handout job = take();
  const std::uint64_t before = redecided_.value();
  EXPECT_EQ(std::get<NoteReply>(say(job, 100)).stored, 1u);
  EXPECT_EQ(redecided_.value(), before);
}

}  // namespace
}  // namespace baton::engine::writer_test
