// Every command names its subject, and what waits for a worker says what it is.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton {
namespace {

const workflow::JobId job_id{"019c1b7c-4000-7000-8000-000000000001"};
const std::string task = job_id.value + "_a_0";
const runbook::Ref step_7{runbook::RowType::step, 7}, cleanup_9{runbook::RowType::cleanup, 9};
const call::CallKey key{{"acme"}, {"c-1"}};

template <class Made>
Made about_job() {
  Made command;
  command.job_id = job_id;
  return command;
}
template <class Made>
Made about_batch() {
  Made command;
  command.batch_id = 5;
  return command;
}
template <class Made>
Made about_task(std::string task_id) {
  Made command;
  command.task_id = std::move(task_id);
  return command;
}
ReportResult correlated_result() {
  auto command = about_task<ReportResult>(task);
  command.correlated = cleanup_9;
  return command;
}
PublishWorkflow new_workflow() {
  auto definition = std::make_shared<workflow::Definition>();
  definition->workflow_id = "order-flow";
  return {{"acme"}, definition, ""};
}
PublishRunbook new_runbook() {
  auto definition = std::make_shared<runbook::Definition>();
  definition->name = "waves";
  return {.definition = definition, .text = ""};
}
NewCall new_call() {
  NewCall one;
  one.key = key;
  return one;
}

struct Sample {
  Command command;
  Subject subject;
};

std::vector<Sample> samples() {
  using enum Subject::Type;
  const Subject a_job{job, job_id.value}, a_step{step, "7"}, a_call{call, "c-1"}, a_batch{batch, "5"};
  std::vector<Sample> all{
      {about_job<SubmitJob>(), a_job},
      {about_job<AwaitJob>(), a_job},
      {about_job<ChangeJob>(), a_job},
      {about_job<DecideApproval>(), a_job},
      {about_job<ExplainJob>(), a_job},
      {about_task<ReplayTask>(task), a_job},
      {about_task<ReplayTask>("step-7"), a_step},
      {about_task<ReportResult>(task), a_job},
      {about_task<ReportResult>("step-7-retry-1-poll-2"), a_step},
      {correlated_result(), {cleanup, "9"}},
      {about_task<ReportResult>("nobody's"), {job, ""}},
      {about_task<TaskNote>(task), a_job},
      {about_task<TaskNote>("removal-9"), {cleanup, "9"}},
      {about_task<SettleTask>(task), a_job},
      {about_task<SettleTask>("removal-9"), {cleanup, "9"}},
      {ListWorkers{}, {worker, ""}},
      {LookAtQueues{}, {worker, ""}},
      {new_workflow(), {workflow, "order-flow"}},
      {Poll{.tenant = {"acme"}, .queue = "gpu", .worker = "w"}, {queue, "gpu"}},
      {Heartbeat{.tenant = {}, .worker = "w", .tasks = {}}, {worker, "w"}},
      {ReturnTasks{.tasks = {{task, "0.1"}, {"step-7", "0.1"}}}, a_job},
      {ReturnTasks{.tasks = {{"step-7", "0.1"}}}, a_step},
      {new_runbook(), {runbook, "waves"}},
      {ChangeRunbook{.name = "waves"}, {runbook, "waves"}},
      {NoteSync{.runbook_id = 3}, {version, "3"}},
      {OpenBatch{.runbook_name = "waves"}, {runbook, "waves"}},
      {about_batch<AddMembers>(), a_batch},
      {about_batch<StartBatch>(), a_batch},
      {RefreshMembers{.members = {{8, {}}, {9, {}}}}, {member, "8"}},
      {about_batch<RemoveMembers>(), a_batch},
      {SyncData{.runbook_id = 3}, {version, "3"}},
      {about_batch<RetryMembers>(), a_batch},
      {about_batch<ChangeBatch>(), a_batch},
      {about_batch<AnswerHold>(), a_batch},
      {ChangeStep{.ref = step_7}, a_step},
      {RunbookEvent{{.batch_id = 5}}, a_batch},
      {AdoptPhases{{4, 5}}, {phase, "4"}},
      {AdoptJobs{{step_7, cleanup_9}}, a_step},
      {SubmitCalls{{new_call()}}, a_call},
      {RepeatCall{.origin = {{"acme"}, {"c-0"}}, .new_id = key.id}, a_call},
      {ChangeCall{.key = key}, a_call},
      {StartCalls{"us", {key}}, a_call},
      {EndCalls{{{.key = key}}}, a_call},
      {RebuildCalls{{key}}, a_call},
      {about_task<ReportResult>("message-1-active-1"), {job, "message-1-active-1"}},  // messages are settled in other words
      {about_task<TaskNote>("message-1-active-1"), {job, "message-1-active-1"}},
      {ReturnTasks{.tasks = {{"message-1-active-1", "1"}}}, {message, "message-1-active-1"}},
      {SendMessages{{{"acme"}, "orders"}, {}}, {entity, "orders"}},
      {SettleMessages{{}, {{.lock = {{1, message::Lane::active, 2}, 3}}}}, {entity, "message-1-active-2"}},
      {RenewLocks{{}, {{{1, message::Lane::active, 2}, 3}}}, {entity, "message-1-active-2"}},
      {PeekMessages{{{"acme"}, "orders"}}, {entity, "orders"}},
      {ReceiveDeferred{{{"acme"}, "orders"}}, {entity, "orders"}},
      {CancelScheduled{{{"acme"}, "orders"}}, {entity, "orders"}},
      {ReplayDeadLetters{{{"acme"}, "orders"}}, {entity, "orders"}},
      {ChangeEntity{.key = {{"acme"}, "orders"}}, {entity, "orders"}},
      {ChangeRule{.subscription = {{"acme"}, "t/Subscriptions/s"}}, {entity, "t/Subscriptions/s"}},
      {FindEntity{{{"acme"}, "orders"}}, {entity, "orders"}},
      {ListEntities{.tenant = {"acme"}, .topic = "t"}, {entity, "t"}},
  };
  return all;
}

TEST(SubjectOf, EveryCommandNamesIts) {
  std::set<std::size_t> seen;
  for (const Sample& sample : samples()) {
    seen.insert(sample.command.index());
    EXPECT_EQ(subject_of(sample.command), sample.subject)
        << sample.command.index() << " " << sample.subject.id;
  }
  EXPECT_EQ(seen.size(), std::variant_size_v<Command>) << "a command without a sample";
}

TEST(SubjectOf, ListsThatAreEmptyNameNothing) {
  using enum Subject::Type;
  EXPECT_EQ(subject_of(Command{StartCalls{}}), (Subject{call, ""}));
  EXPECT_EQ(subject_of(Command{AdoptPhases{}}), (Subject{phase, ""}));
  EXPECT_EQ(subject_of(Command{ReturnTasks{}}), (Subject{job, ""}));
}

// What the inbox holds is bounded by this.
TEST(SizeOf, GrowsWithWhatACommandCarries) {
  for (const Sample& sample : samples()) EXPECT_LT(size_of(sample.command), 2'000u) << sample.command.index();
  const std::vector<std::string> keys(1'000, "somebody@example.com");
  EXPECT_GT(size_of(RemoveMembers{.batch_id = 5, .member_ids = {}, .member_keys = keys, .by = ""}), 100'000u);
  EXPECT_GT(size_of(RetryMembers{.batch_id = 5, .member_ids = {}, .member_keys = keys, .by = ""}), 100'000u);
  EXPECT_GT(size_of(NoteSync{.runbook_id = 3, .error = {}, .held_removals = Json{std::string(5'000, ' ')}, .approvals_seen = {}}), 5'000u);
}

TEST(SubjectOf, ARowOfARunbookIsReadBack) {
  using enum runbook::RowType;
  for (const runbook::RowType type : {step, init, cleanup, phase, batch, runbook})
    EXPECT_EQ(ref_of(subject_of(runbook::Ref{type, 12})), (runbook::Ref{type, 12}));
  EXPECT_EQ(ref_of(subject_of(job_id)), runbook::Ref{});
}

TEST(WaitingTask, IsReadBackAsTheNodeOrTheJobThatItIs) {
  const NodeKey node{job_id, 12, "split_12"};
  const WaitingTask of_job = waiting_task(node, 5, from_millis(1));
  EXPECT_EQ(node_of(of_job), node);
  EXPECT_EQ(ref_of(of_job).type, runbook::RowType::none);
  using enum runbook::RowType;
  for (const runbook::RowType type : {step, init, cleanup})
    EXPECT_EQ(ref_of(waiting_task(runbook::Ref{type, 12}, from_millis(1))), (runbook::Ref{type, 12}));
}

TEST(WaitingTask, IsInOrderByItsNumber) {
  const auto job = [](std::int64_t id) { return waiting_task({runbook::RowType::step, id}, from_millis(1)); };
  EXPECT_LT(job(9), job(10));
  const auto item = [](std::int32_t index, const std::string& id) {
    return waiting_task({job_id, index, id}, 0, from_millis(1));
  };
  EXPECT_LT(item(9, "split_9"), item(10, "split_10"));
}

TEST(SubjectType, HasANameThatIsReadBack) {
  for (int i = 0; i <= static_cast<int>(Subject::Type::worker); ++i) {
    const auto type = static_cast<Subject::Type>(i);
    EXPECT_EQ(subject_type(name(type)), type);
  }
  EXPECT_EQ(subject_type("jobs"), std::nullopt);
}

}  // namespace
}  // namespace baton
