// The writer without a thread, on a store with a row that another program holds: workflows and service calls.
#include <gtest/gtest.h>

#include "engine/writer_fixture.hpp"

namespace baton::engine::writer_test {
namespace {

// Keeps no job in memory, and so sees what became of its rows.
class ColdWriterTest : public WriterTest {
 protected:
  ColdWriterTest() : WriterTest({.workflows = {.hot_bytes_max = 0}}) {}
};

TEST_F(WriterTest, AJobThatWasDecidedAboutIsNotLoadedAgain) {
  run({job(1)});
  store_.job_loads = 0;
  const auto polled = std::make_shared<KeptReply>();
  std::vector<Item> items;
  items.push_back({poll(), polled});
  writer_.run(std::move(items));
  const auto& task = std::get<PollReply>(*polled->reply).jobs.at(0);
  const auto answers = run({ReportResult{.tenant = {}, .task_id = task.task_id, .completed = true, .lease = task.lease}});
  EXPECT_FALSE(std::get<ResultReply>(*answers[0]->reply).duplicate);
  EXPECT_EQ(store_.job_loads, 0);
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::completed);
}

// What a commit that failed would have made of a job is not remembered.
TEST_F(WriterTest, AJobIsLoadedAgainAfterACommitThatFailed) {
  run({job(1)});
  store_.held = {job_id(1)};
  const auto polled = std::make_shared<KeptReply>();
  std::vector<Item> items;
  items.push_back({poll(), polled});
  writer_.run(std::move(items));
  EXPECT_FALSE(polled->reply);
  store_.held.clear();
  store_.job_loads = 0;
  clock_.time += 1min;
  writer_.run({});
  ASSERT_TRUE(polled->reply);
  EXPECT_EQ(std::get<PollReply>(*polled->reply).jobs.at(0).delivery_count, 1);
  EXPECT_GT(store_.job_loads, 0);
}

TEST_F(WriterTest, WhoNeedsARowThatAnotherProgramHoldsIsToldToComeAgainAndTheOthersGoOn) {
  store_.held = {job_id(3)};
  std::vector<Command> commands;
  for (int n = 0; n < 10; ++n) commands.emplace_back(job(n));
  const auto answers = run(std::move(commands));
  for (std::size_t n = 0; n < answers.size(); ++n) {
    ASSERT_TRUE(answers[n]->reply) << n;
    EXPECT_EQ(answers[n]->refusal(), n == 3 ? std::optional{Refusal::store_unavailable} : std::nullopt) << n;
  }
  EXPECT_FALSE(writer_.away());
  EXPECT_EQ(store_.collisions, 2) << "all together, then alone: nobody waits for the lock again and again";
  store_.held.clear();
  EXPECT_FALSE(run({job(3)}).front()->refusal());
}

TEST_F(WriterTest, WhoHasWaitedLongEnoughIsNotRefusedBecauseOfAnothersCommit) {
  SubmitJob waits = job(1);
  waits.wait_until = clock_.time + 1s;
  const auto waiter = run({waits}).front();
  EXPECT_FALSE(waiter->reply) << "the job has not ended";
  store_.held = {job_id(3)};
  clock_.time += 2s;
  const auto collides = run({job(3)}).front();
  EXPECT_EQ(collides->refusal(), Refusal::store_unavailable);
  ASSERT_TRUE(waiter->reply);
  const auto* answer = std::get_if<JobReply>(&*waiter->reply);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->job.job_id, job_id(1));
  EXPECT_TRUE(answer->created);
}

TEST_F(ColdWriterTest, WhoNeedsARowThatCannotBeReadIsNotToBlameAndTheOthersGoOn) {
  EXPECT_FALSE(run({job(1)}).front()->refusal());
  store_.unreadable = {job_id(1)};
  const ChangeJob cancel{.tenant = {"default"}, .job_id = job_id(1), .what = ChangeJob::What::cancel};
  const auto answers = run({cancel, job(2)});
  EXPECT_EQ(answers[0]->refusal(), Refusal::row_unreadable);
  ASSERT_TRUE(answers[1]->reply);
  EXPECT_FALSE(answers[1]->refusal());
}

// We never delete a job; somebody else may.
TEST_F(ColdWriterTest, AnIdempotencyKeyWhoseJobIsGoneIsRefused) {
  SubmitJob keyed = job(1);
  keyed.idempotency_key = "k";
  EXPECT_FALSE(run({keyed}).front()->refusal());
  database_.jobs.erase(job_id(1));
  keyed.job_id = job_id(2);
  EXPECT_EQ(run({keyed}).front()->refusal(), Refusal::job_not_found);
  EXPECT_FALSE(run({job(3)}).front()->refusal());
}

TEST_F(WriterTest, TheFeedIsToldBeforeAnybodyIsAnswered) {
  Feed feed;
  WriterOptions options;
  options.feed = &feed;
  Writer writer(store_, clock_, make_kinds(), options);
  ASSERT_TRUE(writer.open());
  struct Looks final : Waiter {
    explicit Looks(Feed& f) : feed(f) {}
    void deliver(Reply) override { told = feed.last(); }
    Feed& feed;
    std::int64_t told = 0;
  };
  const auto waiter = std::make_shared<Looks>(feed);
  std::vector<Item> items;
  items.push_back({job(1), waiter});
  writer.run(std::move(items));
  EXPECT_GT(waiter->told, 0);
  EXPECT_EQ(waiter->told, feed.last());
}

TEST_F(WriterTest, WhoWaitsWhenTheServerStopsHearsHowThingsAre) {
  SubmitJob waits = job(1);
  waits.wait_until = clock_.time + 1h;
  const auto waiter = run({waits}).front();
  writer_.finish();
  ASSERT_TRUE(waiter->reply);
  EXPECT_TRUE(std::holds_alternative<JobReply>(*waiter->reply));
}

TEST_F(WriterTest, ACollisionThatPassesAtOnceIsTriedAgainUnseen) {
  store_.held = {job_id(1)};
  store_.lock_time = Duration{0};
  EXPECT_EQ(run({job(1)}).front()->refusal(), Refusal::store_unavailable);
  EXPECT_EQ(store_.collisions, 4);
}

TEST_F(WriterTest, ManyWhoNeedHeldRowsDoNotStopTheWriterForLong) {
  std::vector<Command> commands;
  for (int n = 0; n < 100; ++n) {
    store_.held.insert(job_id(n));
    commands.emplace_back(job(n));
  }
  const Time before = clock_.time;
  for (const auto& answer : run(std::move(commands))) EXPECT_EQ(answer->refusal(), Refusal::store_unavailable);
  EXPECT_LE(clock_.time - before, 14s);
  EXPECT_FALSE(run({job(200)}).front()->refusal());
}

TEST_F(WriterTest, ATaskThatCannotBeHandedOutDoesNotSpoilTheMessagesBesideIt) {
  run({job(1)});
  store_.held = {job_id(1)};
  const auto first = run({poll(), job(2)});
  EXPECT_FALSE(first[0]->reply);  // it waits on
  EXPECT_TRUE(first[1]->reply && !first[1]->refusal());
  store_.held.clear();
  run({});
  EXPECT_EQ(std::get<PollReply>(first[0]->reply.value()).jobs.size(), 1u);
}

TEST_F(WriterTest, ATimerWhoseRowIsHeldIsObeyedSoonAfterItIsFree) {
  run({job(1)});
  ASSERT_TRUE(run({poll()}).front()->reply);
  clock_.time += 2h;  // the timeout of the task
  store_.held = {job_id(1)};
  run({});
  EXPECT_FALSE(writer_.away());
  store_.held.clear();
  ASSERT_TRUE(writer_.next_wake());
  EXPECT_LE(*writer_.next_wake() - clock_.time, 10s);
  clock_.time += 10s;
  run({});
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::failed);
}

TEST_F(WriterTest, AJobWhoseDefinitionIsGoneSpoilsNothingButItself) {
  run({job(1), job(2)});
  database_.jobs.change(job_id(1), [](workflow::Job& row) { row.workflow_version = 99; });
  Writer fresh(store_, clock_, make_kinds());  // which remembers nothing of it
  ASSERT_TRUE(fresh.open());
  const auto tell = [&](Command command) {
    auto answer = std::make_shared<KeptReply>();
    fresh.run({{std::move(command), answer}});
    return answer;
  };
  EXPECT_EQ(tell(ChangeJob{{"default"}, job_id(1), ChangeJob::What::cancel, "", ""})->refusal(), Refusal::row_unreadable);
  EXPECT_FALSE(tell(ChangeJob{{"default"}, job_id(2), ChangeJob::What::cancel, "", ""})->refusal());
  EXPECT_FALSE(tell(poll())->reply);  // its task cannot be given to anybody
  EXPECT_FALSE(tell(job(3))->refusal());
}

TEST_F(ColdWriterTest, ATimerOfAJobThatCannotBeReadIsPutOffAndTheOthersShareTheirCommits) {
  run({job(1)});
  ASSERT_TRUE(run({poll()}).front()->reply);
  clock_.time += 2h;  // the timeout of the task
  store_.unreadable = {job_id(1)};
  run({});
  store_.commits = 0;
  const auto answers = run({job(2), job(3), job(4)});
  for (const auto& answer : answers) EXPECT_FALSE(answer->refusal());
  EXPECT_EQ(store_.commits, 1) << "the timer spoils every batch";
  store_.unreadable.clear();
  ASSERT_TRUE(writer_.next_wake());
  clock_.time += 10min;
  EXPECT_LE(*writer_.next_wake(), clock_.time);
  run({});
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::failed) << "it is obeyed in the end";
  EXPECT_TRUE(database_.timers.empty());
}

TEST_F(WriterTest, ATimerThatNoKindKnowsIsPutOffAndToldAndStopsNoOther) {
  run({job(1)});
  ASSERT_TRUE(run({poll()}).front()->reply);
  using enum Subject::Type;
  const Subject strangers[] = {{none, "sprocket 7"}, {queue, "q"}, {call, "7"}, {member, "7"}, {step, "seven"}};
  for (const Subject& subject : strangers) database_.timers.insert({clock_.time, subject, ""});
  database_.timers.insert({clock_.time, {step, "7"}, "x"});
  database_.timers.insert({clock_.time + 1s, {none, "sprocket 7"}, ""});
  const std::size_t count = std::size(strangers) + 2;
  clock_.time += 2h;  // the timeout of the task
  Writer writer(store_, clock_, make_kinds(), heard());
  ASSERT_TRUE(writer.open());
  writer.run({});
  EXPECT_EQ(told_.size(), count - 1) << "two of them are of one subject, which is told once";
  for (const Timer& timer : database_.timers)
    EXPECT_EQ(timer.due >= clock_.time + 10min, timer.subject != subject_of(job_id(1))) << timer.subject.id;
  clock_.time += 1h;  // a server that has just started waits a little for workers
  writer.run({});
  EXPECT_EQ(told_.size(), count - 1) << "they were put off once more";
  EXPECT_EQ(database_.jobs.at(job_id(1)).status, workflow::JobStatus::failed) << "its timer was not obeyed";
  EXPECT_EQ(database_.timers.size(), count);
}

TEST_F(WriterTest, OneBadMessageAmongThousandsDoesNotMakeEachOfThemACommit) {
  store_.held = {job_id(1'234)};
  std::vector<Command> commands;
  for (int n = 0; n < 2'000; ++n) commands.emplace_back(job(n));
  store_.commits = 0;
  const auto answers = run(std::move(commands));
  for (std::size_t n = 0; n < answers.size(); ++n)
    EXPECT_EQ(answers[n]->refusal(), n == 1'234 ? std::optional{Refusal::store_unavailable} : std::nullopt) << n;
  EXPECT_LE(store_.commits, 100);
}

// Its row is held for a minute: timers and messages of others do not wait for it, and it comes back in the end.
TEST_F(WriterTest, ATaskThatIsGivenBackWhileItsRowIsHeldHoldsUpNobody) {
  run({job(1), job(2)});
  const auto taken = run({poll()}).front();
  const Handout task = std::get<PollReply>(taken->reply.value()).jobs.at(0);
  Poll of_the_other = poll();
  of_the_other.max = 1;
  const auto other = std::get<PollReply>(run({of_the_other}).front()->reply.value()).jobs;
  store_.held = {task.job_id};
  store_.lock_time = Duration{0};
  const auto back = std::make_shared<KeptReply>();
  writer_.run({{ReturnTasks{.tasks = {{task.task_id, task.lease}}}, back, clock_.time}});
  const int before = store_.collisions;
  clock_.time += 1s;
  run({job(3)});
  EXPECT_EQ(store_.collisions, before) << "it is not tried with every message";
  clock_.time += 2h;  // the timeout of the other task
  run({});
  run({});
  for (const Handout& each : other)
    EXPECT_EQ(database_.jobs.at(each.job_id).status, workflow::JobStatus::failed) << "its timer was not obeyed";
  ASSERT_TRUE(writer_.next_wake());
  store_.held.clear();
  clock_.time += 10s;
  run({});
  EXPECT_TRUE(back->reply);
}

// A task that another program kept from being given back when it was returned.
class StopTest : public WriterTest {
 protected:
  void SetUp() override {
    WriterTest::SetUp();
    run({job(1)});
    const Handout task = std::get<PollReply>(run({poll()}).front()->reply.value()).jobs.at(0);
    store_.held = {job_id(1)};
    writer_.run({{ReturnTasks{.tasks = {{task.task_id, task.lease}}}, back_, clock_.time}});
    ASSERT_FALSE(back_->reply);
    ASSERT_EQ(status(), workflow::NodeStatus::running);
  }
  [[nodiscard]] workflow::NodeStatus status() const {
    return database_.nodes.at({job_id(1), workflow::no_item, "a"}).status;
  }
  const std::shared_ptr<KeptReply> back_ = std::make_shared<KeptReply>();
};

TEST_F(StopTest, ATaskIsGivenBackBeforeTheServerStops) {
  store_.held.clear();
  writer_.finish();
  ASSERT_TRUE(back_->reply);
  EXPECT_TRUE(std::holds_alternative<ReturnReply>(*back_->reply));
  EXPECT_EQ(status(), workflow::NodeStatus::dispatched);
}

TEST_F(StopTest, WhoeverGivesBackATaskInVainIsToldThatTheServerStops) {
  const Time before = clock_.time;
  writer_.finish();
  EXPECT_EQ(back_->refusal(), Refusal::stopping);
  EXPECT_EQ(clock_.time - before, store_.lock_time) << "it is tried once";
}

TEST_F(StopTest, ATaskWhoseReturnIsInDoubtIsAnsweredOnce) {
  store_.is_answer_lost = true;
  writer_.finish();
  EXPECT_EQ(back_->refusal(), Refusal::stopping);
}

TEST_F(StopTest, WhileTheStoreIsAwayNothingIsTried) {
  store_.is_answer_lost = true;
  run({job(2)});
  ASSERT_TRUE(writer_.away());
  store_.commits = 0;
  writer_.finish();
  EXPECT_EQ(store_.commits, 0);
  EXPECT_EQ(back_->refusal(), Refusal::stopping);
}

// More work and more workers than one batch hands out.
TEST_F(WriterTest, AQueueWithABacklogDoesNotStarveTheOthers) {
  WriterOptions options;
  options.handouts_max = 2;
  Writer writer(store_, clock_, make_kinds(), options);
  ASSERT_TRUE(writer.open());
  const auto tell = [&](Command command) {
    auto answer = std::make_shared<KeptReply>();
    writer.run({{std::move(command), answer}});
    return answer;
  };
  std::string other(one_task_yaml);
  other.replace(other.find("workflow_id: w"), 14, "workflow_id: z");
  other.replace(other.find("queue: q"), 8, "queue: z");
  tell(PublishWorkflow{{"default"}, workflow::parse(other).definition, other});
  for (int n = 0; n < 20; ++n) tell(job(n));
  SubmitJob last = job(20);
  last.workflow_id = "z";
  tell(last);
  std::vector<Item> polls;
  for (int n = 0; n < 10; ++n) polls.push_back({poll(), std::make_shared<KeptReply>()});
  Poll of_z = poll();
  of_z.queue = "z";
  const auto served = std::make_shared<KeptReply>();
  polls.push_back({of_z, served});
  writer.run(std::move(polls));
  for (int turn = 0; turn < 2 && !served->reply; ++turn) writer.run({});
  ASSERT_TRUE(served->reply) << "the queue that comes first is served first, again and again";
}

TEST_F(WriterTest, WhoMakesTheCallsIsToldWhenACommitInDoubtTurnsOutToHaveHappened) {
  std::size_t told = 0;
  KindsOptions kinds;
  kinds.calls.scheduled = [&told](const std::vector<DueCall>& calls) { told += calls.size(); };
  Writer writer(store_, clock_, make_kinds(kinds));
  ASSERT_TRUE(writer.open());
  NewCall wanted{.key = {{"default"}, {"c"}}, .name = "n", .request_spec = Json{"{}"}, .origin = "http://a:80"};
  wanted.request.method = "GET";
  const auto answer = std::make_shared<KeptReply>();
  store_.is_answer_lost = true;
  writer.run({{SubmitCalls{{wanted}}, answer}});
  EXPECT_TRUE(writer.away());
  EXPECT_EQ(told, 0u);
  ASSERT_TRUE(writer.open());
  EXPECT_EQ(told, 1u);
  ASSERT_TRUE(answer->reply);
  EXPECT_FALSE(answer->refusal());
}

// Whoever waits for it would wait for ever.
TEST_F(WriterTest, ACallWhoseRequestIsGoneFailsWhenItIsDueAndNotBefore) {
  const call::CallKey key{{"default"}, {"c"}};
  NewCall wanted{.key = key, .name = "n", .due_at = clock_.time + 1h, .request_spec = Json{"{}"}, .origin = "http://a:80"};
  wanted.request.method = "GET";
  run({SubmitCalls{{wanted}}});
  database_.call_requests.erase(key);
  const StartCalls start{.started_by = "s-1", .keys = {key}};
  const auto early = run({start}).front();
  EXPECT_EQ(std::get<StartedReply>(early->reply.value()).not_due.size(), 1u);
  EXPECT_EQ(database_.calls.at(key).status, call::Status::scheduled);
  clock_.time += 1h;
  for (int n = 0; n < 2; ++n) EXPECT_TRUE(std::get<StartedReply>(run({start}).front()->reply.value()).started.empty());
  const call::Call& row = database_.calls.at(key);
  EXPECT_EQ(row.status, call::Status::failed);
  EXPECT_EQ(row.version, 3);
  ASSERT_TRUE(row.error_meta);
  EXPECT_TRUE(row.error_meta->text.contains("RequestLost")) << row.error_meta->text;
}

// The call is there, so it must not be told that there is none.
TEST_F(WriterTest, ACallWhoseRequestIsGoneCannotBeRepeatedAndIsToldWhy) {
  const call::CallKey key{{"default"}, {"c"}};
  NewCall wanted{.key = key, .name = "n", .request_spec = Json{"{}"}, .origin = "http://a:80"};
  wanted.request.method = "GET";
  run({SubmitCalls{{wanted}}});
  database_.call_requests.erase(key);
  const auto repeat = [&](const call::CallKey& origin) {
    const auto answer = run({RepeatCall{.origin = origin, .new_id = {"d"}}}).front();
    return std::get<CallsReply>(answer->reply.value()).calls.at(0);
  };
  const auto early = repeat(key);
  ASSERT_FALSE(early);
  EXPECT_TRUE(early.error().message.contains("when it has ended")) << early.error().message;
  run({StartCalls{.started_by = "s-1", .keys = {key}}});
  ASSERT_EQ(database_.calls.at(key).status, call::Status::failed);
  const auto refused = repeat(key);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().refusal, Refusal::not_possible);
  EXPECT_TRUE(refused.error().message.contains("not stored any more")) << refused.error().message;
  EXPECT_EQ(database_.calls.size(), 1U);
  EXPECT_EQ(repeat({{"default"}, {"x"}}).error().refusal, Refusal::call_not_found);
}

}  // namespace
}  // namespace baton::engine::writer_test
