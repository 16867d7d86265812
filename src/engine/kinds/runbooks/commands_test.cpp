// Commands about runbooks through the real writer, on a store in memory and a clock that the test moves.
#include <gtest/gtest.h>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"
#include "tests/support/kept_reply.hpp"

namespace baton::engine::commands_test {
namespace {

using namespace std::chrono_literals;
using runbook::BatchStatus;
using runbook::StepStatus;

std::string yaml(const std::string& name, const std::string& more = "") {
  return "name: " + name + R"(
data_source: {type: csv, connection: X, interval: 1h, primary_key: Key, batch_time_column: T}
retry: {max_retries: 3, interval: 10s, backoff: exponential}
phases:
  - name: work
    offset: T-0
    steps:
      - {name: one, worker_id: pool, function: One, params: {Key: "{{Key}}"}, poll: {interval: 5m, timeout: 8h}}
)" + more;
}

// Another program may spoil every row of the table.
class SpoiltRunbooks final : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore;
  using MemoryStore::load;
  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override {
    auto loaded = MemoryStore::load(needs);
    if (loaded && is_spoilt)
      for (const auto& book : loaded->runbooks) loaded->unreadable.insert({runbook::Table::runbooks, book.id});
    return loaded;
  }
  bool is_spoilt = false;
};

class RunbookCommands : public testing::Test {
 protected:
  RunbookCommands() {
    EXPECT_TRUE(writer_.open());
    publish(yaml("waves"));
  }

  Reply ask(Command command) {
    auto answer = std::make_shared<support::KeptReply>();
    std::vector<Item> items;
    items.push_back({std::move(command), answer});
    writer_.run(std::move(items));
    EXPECT_TRUE(answer->reply.has_value());
    return answer->reply.value_or(Reply{});
  }
  template <class Wanted>
  Wanted get(Command command) {
    Reply reply = ask(std::move(command));
    if (const auto* refused = std::get_if<Refused>(&reply)) ADD_FAILURE() << refused->message;
    return std::holds_alternative<Wanted>(reply) ? std::get<Wanted>(std::move(reply)) : Wanted{};
  }
  // The code of a refusal, or "done".
  std::string said(Command command) {
    const Reply reply = ask(std::move(command));
    const auto* refused = std::get_if<Refused>(&reply);
    return refused ? std::string(name(refused->refusal)) : "done";
  }
  void settle() {
    for (int i = 0; i < 100 && writer_.next_wake() && *writer_.next_wake() <= clock_.now(); ++i) writer_.run({});
  }

  runbook::Runbook publish(const std::string& text) {
    return get<RunbookReply>(PublishRunbook{runbook::parse(text).definition, text}).runbook;
  }
  static runbook::DataRow row(const std::string& key) {
    return {key, std::nullopt, Json{"{\"Key\":\"" + key + "\"}"}};
  }
  std::int64_t batch_of(const std::vector<std::string>& keys, std::optional<Time> time = {},
                        const std::string& name = "waves") {
    const auto id = get<BatchReply>(OpenBatch{.runbook_name = name, .batch_start_time = time}).batch.id;
    AddMembers add{.batch_id = id, .members = {}};
    for (const std::string& key : keys) add.members.push_back(row(key));
    (void)get<MembersReply>(std::move(add));
    (void)get<BatchReply>(StartBatch{.batch_id = id});
    return id;
  }
  // A batch whose only step a worker has.
  Handout handed_out() {
    const auto id = batch_of({"ada"});
    (void)get<BatchReply>(ChangeBatch{.batch_id = id, .what = ChangeBatch::What::advance});
    settle();
    const auto polled = get<PollReply>(Poll{.tenant = {"default"}, .queue = "pool", .worker = "w", .heartbeats = true});
    EXPECT_EQ(polled.jobs.size(), 1U);
    return polled.jobs.empty() ? Handout{} : polled.jobs.front();
  }
  const runbook::StepExecution& step() { return database_.runbooks.steps.begin()->second; }
  // As another program may.
  void change_step(auto change) { database_.runbooks.steps.change(step().id, change); }
  std::string events(std::int64_t batch_id) {
    std::string types;
    for (const auto& [key, event] : database_.runbooks.events)
      if (event.batch_id == batch_id) types += (types.empty() ? "" : " ") + event.event_type;
    return types;
  }
  ReportResult result(const Handout& job, std::optional<std::string> tenant, std::string output = "{}") {
    ReportResult said{.task_id = job.task_id, .completed = true, .output = Json{std::move(output)}, .lease = job.lease};
    if (tenant) said.tenant = workflow::Tenant{*tenant};
    return said;
  }

  store::MemoryDatabase database_;
  support::ManualClock clock_;
  SpoiltRunbooks store_{database_};
  Writer writer_{store_, clock_, make_kinds()};
};

// ---- tenants

TEST_F(RunbookCommands, a_result_of_another_tenant_is_about_no_task) {
  const Handout job = handed_out();
  EXPECT_EQ(said(result(job, "acme", R"({"complete":true})")), "task_not_found");
  EXPECT_EQ(step().status, StepStatus::dispatched);
  EXPECT_EQ(said(result(job, "default", R"({"complete":true})")), "done");
  EXPECT_EQ(step().status, StepStatus::succeeded);
}

TEST_F(RunbookCommands, who_acts_for_all_tenants_may_report_a_result) {
  EXPECT_EQ(said(result(handed_out(), std::nullopt, R"({"complete":true})")), "done");
  EXPECT_EQ(step().status, StepStatus::succeeded);
}

TEST_F(RunbookCommands, a_heartbeat_of_another_tenant_renews_no_lease) {
  const Handout job = handed_out();
  clock_.time += 10s;
  Heartbeat beat{.tenant = workflow::Tenant{"acme"}, .worker = "w", .tasks = {{job.task_id, job.lease}}};
  EXPECT_EQ(get<HeartbeatReply>(beat).cancelled, std::vector{job.task_id});
  EXPECT_EQ(step().lease_until, job.lease_until);
  beat.tenant = workflow::Tenant{"default"};
  EXPECT_TRUE(get<HeartbeatReply>(beat).cancelled.empty());
  EXPECT_GT(step().lease_until, job.lease_until);
}

TEST_F(RunbookCommands, a_note_of_another_tenant_is_about_no_task) {
  const Handout job = handed_out();
  TaskNote note{.tenant = workflow::Tenant{"acme"}, .task_id = job.task_id, .lease = job.lease};
  note.note = TaskLog{{{.stream = "log", .at = clock_.now(), .text = "hello"}}};
  EXPECT_EQ(said(note), "task_not_found");
  EXPECT_TRUE(database_.logs.empty());
  note.tenant = workflow::Tenant{"default"};
  EXPECT_EQ(said(note), "done");
}

// ---- approvals

class HeldRemovals : public RunbookCommands {
 protected:
  HeldRemovals() : id_(batch_of({"ada", "bob"})) {}
  runbook::Runbook book() { return database_.runbooks.runbooks.begin()->second; }
  runbook::Batch batch() { return database_.runbooks.batches.at(id_); }
  void look(const std::string& mark, std::vector<runbook::ApprovedRemovals> seen = {}) {
    NoteSync note{.runbook_id = book().id, .approvals_seen = std::move(seen)};
    if (!mark.empty())
      note.held_removals = Json{R"([{"batch_id":)" + std::to_string(id_) + R"(,"leaving":30,"active":40,"mark":")" +
                                mark + "\"}]"};
    EXPECT_EQ(said(note), "done");
  }
  std::string approve() { return said(ChangeBatch{.batch_id = id_, .what = ChangeBatch::What::approve_removals}); }

  std::int64_t id_;
};

TEST_F(HeldRemovals, cannot_be_approved_when_nothing_is_held) {
  EXPECT_EQ(approve(), "not_possible");
  look("30-1");
  EXPECT_EQ(approve(), "done");
  EXPECT_EQ(batch().removals_approved, "30-1");
  look("", {{id_, "30-1"}});
  EXPECT_EQ(approve(), "not_possible") << "they have left";
}

TEST_F(HeldRemovals, an_approval_is_used_up_by_the_next_look_whatever_it_finds) {
  look("30-1");
  EXPECT_EQ(approve(), "done");
  look("31-2", {{id_, "30-1"}});
  EXPECT_EQ(batch().removals_approved, std::nullopt);
  EXPECT_NE(events(id_).find("removals_approved removals_held"), std::string::npos) << events(id_);
  EXPECT_EQ(approve(), "done");
  look("", {{id_, "31-2"}});
  EXPECT_EQ(batch().removals_approved, std::nullopt);
}

TEST_F(HeldRemovals, an_approval_that_a_look_has_not_seen_stays) {
  look("30-1");
  EXPECT_EQ(approve(), "done");
  look("30-1");
  EXPECT_EQ(batch().removals_approved, "30-1");
  NoteSync failed{.runbook_id = book().id, .error = "no answer"};
  EXPECT_EQ(said(failed), "done");
  EXPECT_EQ(batch().removals_approved, "30-1");
}

TEST_F(HeldRemovals, a_person_named_scheduler_uses_nothing_up) {
  look("30-1");
  EXPECT_EQ(approve(), "done");
  EXPECT_EQ(said(RemoveMembers{.batch_id = id_, .member_keys = {"ada"}, .by = "scheduler"}), "done");
  EXPECT_EQ(batch().removals_approved, "30-1");
}

// ---- versions

TEST_F(RunbookCommands, what_was_computed_from_a_version_that_was_replaced_is_refused) {
  const auto id = batch_of({"ada"}, clock_.now() + 24h);
  const auto first = database_.runbooks.runbooks.begin()->second.id;
  const auto member = database_.runbooks.members.begin()->first;
  const auto second = publish(yaml("waves", "description: another\n")).id;
  settle();
  const auto all = [&](std::int64_t of) {
    std::string answers;
    for (Command command : std::vector<Command>{
             OpenBatch{.runbook_name = "waves", .version = 1, .batch_start_time = clock_.now() + 48h, .of_runbook = of},
             AddMembers{.batch_id = id, .members = {row("bob")}, .of_runbook = of},
             RefreshMembers{.members = {{member, row("ada")}}, .of_runbook = of},
             StartBatch{.batch_id = id, .of_runbook = of},
             RemoveMembers{.batch_id = id, .member_ids = {member}, .of_runbook = of},
             SyncData{.runbook_id = of, .rows = {row("eve")}, .seen_at = clock_.now()},
             NoteSync{.runbook_id = of, .error = "late"}})
      answers += said(std::move(command)) + " ";
    return answers;
  };
  std::string refused, done;
  for (int i = 0; i < 7; ++i) refused += "runbook_replaced ", done += "done ";
  EXPECT_EQ(all(first), refused);
  EXPECT_EQ(database_.runbooks.batches.size(), 1U);
  EXPECT_EQ(database_.runbooks.members.size(), 1U);
  EXPECT_TRUE(database_.runbooks.data.empty()) << "nothing of it is in the data table either";
  EXPECT_EQ(database_.runbooks.runbooks.at(first).last_error, std::nullopt);
  EXPECT_EQ(all(second), done);
}

TEST_F(RunbookCommands, what_a_source_says_of_a_runbook_that_cannot_be_read_is_refused) {
  store_.is_spoilt = true;
  EXPECT_EQ(said(SyncData{.runbook_id = database_.runbooks.runbooks.begin()->first, .rows = {row("ada")}}),
            name(Refusal::row_unreadable));
  EXPECT_TRUE(database_.runbooks.data.empty());
}

TEST_F(RunbookCommands, a_person_may_still_open_a_batch_of_an_older_version) {
  (void)publish(yaml("waves", "description: another\n"));
  EXPECT_EQ(said(OpenBatch{.runbook_name = "waves", .version = 1}), "done");
}

TEST_F(RunbookCommands, a_version_that_is_switched_off_or_on_is_the_one_that_is_told) {
  (void)publish(yaml("waves", "description: another\n"));
  const auto change = [&](ChangeRunbook::What what, std::int32_t version) {
    return get<RunbookReply>(ChangeRunbook{.name = "waves", .version = version, .what = what});
  };
  using enum ChangeRunbook::What;
  EXPECT_EQ(change(activate, 1).runbook.version, 1);
  const RunbookReply off = change(deactivate, 0);
  EXPECT_EQ(off.runbook.version, 1) << "the latest was not active";
  EXPECT_FALSE(off.runbook.is_active);
  EXPECT_TRUE(off.changed);
  EXPECT_EQ(change(activate, 0).runbook.version, 2) << "without a version the latest";
}

// ---- turns

// More walks than a turn takes timers, of which one has its turn: the timer of a job is found all the same.
TEST_F(RunbookCommands, walks_that_wait_for_their_turn_do_not_hide_the_timers_of_jobs) {
  constexpr int walks = 40;
  const std::string text = "workflow_id: w\nnodes:\n  start: {type: start, next: end}\n  end: {type: end}\n";
  (void)get<WorkflowReply>(PublishWorkflow{{"default"}, workflow::parse(text).definition, text});
  const Time begin = clock_.now() + 1h;
  for (int i = 0; i < walks; ++i) (void)batch_of({"m"}, begin - std::chrono::minutes{i + 1});
  const workflow::JobId job{uuid7(begin, 1, 1)};
  (void)get<JobReply>(SubmitJob{.job_id = job,
                                .tenant = {"default"},
                                .workflow_id = "w",
                                .input_data = {"{}"},
                                .idempotency_key = {},
                                .request_hash = {},
                                .traceparent = {},
                                .tags = {},
                                .due_at = begin + 1s,
                                .delay = {},
                                .rerun_of = {}});
  Writer writer(store_, clock_, make_kinds(), {.timers_max = 4});
  ASSERT_TRUE(writer.open());
  clock_.time = begin;
  const auto is_walking = [](const auto& entry) { return entry.second.walk != runbook::Walk::none; };
  for (int i = 0; i < walks / 4; ++i) writer.run({});
  ASSERT_EQ(std::ranges::count_if(database_.runbooks.phases, is_walking), walks);
  clock_.time += 2s;
  int turns = 0;
  for (; !is_terminal(database_.jobs.at(job).status); ++turns) {
    ASSERT_LT(turns, 2 * walks);
    writer.run({});
  }
  EXPECT_LT(turns, walks / 2);
}

// A runbook with more open batches than one chunk takes, whose second version was just published.
class Transition : public RunbookCommands {
 protected:
  Transition() {
    for (int i = 0; i < 120; ++i) (void)batch_of({"m"}, clock_.now() + 24h + std::chrono::minutes{i});
    settle();
    (void)publish(yaml("waves", "description: another\n"));  // takes the first chunk along
  }
  std::int64_t at_version(std::int32_t version) {
    return std::ranges::count_if(database_.runbooks.batches, [&](const auto& entry) {
      return database_.runbooks.runbooks.at(entry.second.runbook_id).version == version;
    });
  }
  void activate(std::int32_t version) {
    (void)get<RunbookReply>(
        ChangeRunbook{.name = "waves", .version = version, .what = ChangeRunbook::What::activate});
  }
};

TEST_F(Transition, reaches_all_batches) {
  settle();
  EXPECT_EQ(at_version(2), 120);
}

TEST_F(Transition, ends_when_an_older_version_is_activated) {
  activate(1);
  const auto there = at_version(2);
  ASSERT_LT(there, 120);
  settle();
  EXPECT_EQ(at_version(2), there) << "open batches stay where they are";
  for (const auto& [id, book] : database_.runbooks.runbooks) {
    EXPECT_EQ(book.transition_after, std::nullopt);
    EXPECT_EQ(book.timer_due, std::nullopt);
  }
  EXPECT_TRUE(std::ranges::none_of(
      database_.timers, [](const Timer& timer) { return timer.subject.type == Subject::Type::version; }));
}

TEST_F(Transition, waits_while_its_version_is_inactive) {
  (void)get<RunbookReply>(ChangeRunbook{.name = "waves", .what = ChangeRunbook::What::deactivate});
  const auto there = at_version(2);
  ASSERT_LT(there, 120);
  settle();
  EXPECT_EQ(at_version(2), there);
  activate(2);
  settle();
  EXPECT_EQ(at_version(2), 120);
}

// ---- names and numbers

TEST_F(RunbookCommands, runbooks_whose_names_look_alike_have_tables_of_their_own) {
  EXPECT_EQ(publish(yaml("a-b")).data_table_name, "runbook_a_b_v1");
  const auto second = publish(yaml("a_b")).data_table_name;
  const auto third = publish(yaml("A.b")).data_table_name;
  EXPECT_TRUE(second.starts_with("runbook_a_b_") && second.ends_with("_v1")) << second;
  EXPECT_EQ((std::set<std::string>{"runbook_a_b_v1", second, third}.size()), 3U) << second << " " << third;
  EXPECT_EQ(publish(yaml("a-b", "description: another\n")).data_table_name, "runbook_a_b_v2");
}

TEST_F(RunbookCommands, a_poll_interval_that_another_program_wrote_is_a_second_at_least) {
  const Handout job = handed_out();
  change_step([](runbook::StepExecution& row) { row.poll_interval_sec = -300; });
  EXPECT_EQ(said(result(job, {}, R"({"complete":false})")), "done");
  EXPECT_EQ(step().status, StepStatus::polling);
  EXPECT_EQ(step().timer_due, clock_.now() + 1s);
}

TEST_F(RunbookCommands, a_negative_retry_count_of_another_program_is_none) {
  const Handout job = handed_out();
  change_step([](runbook::StepExecution& row) { row.retry_count = -40; });
  ReportResult failed = result(job, {});
  failed.completed = false;
  failed.error = "no luck";
  EXPECT_EQ(said(failed), "done");
  EXPECT_EQ(step().status, StepStatus::pending);
  EXPECT_EQ(step().retry_count, 1);
  EXPECT_EQ(step().retry_after, clock_.now() + 10s);
}

TEST_F(RunbookCommands, a_negative_retry_interval_of_another_program_is_none) {
  const Handout job = handed_out();
  change_step([](runbook::StepExecution& row) { row.retry_interval_sec = -3600; });
  ReportResult failed = result(job, {});
  failed.completed = false;
  EXPECT_EQ(said(failed), "done");
  EXPECT_EQ(step().retry_after, clock_.now());
}

}  // namespace
}  // namespace baton::engine::commands_test
