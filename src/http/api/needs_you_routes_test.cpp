// What needs a person, why something does not go on, and the report.
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

using runbook::StepStatus;

class NeedsYouRoutes : public ServerTest {
 protected:
  void SetUp() override {
    runbook::Writes w;
    w.runbooks_new = {runbook_row("move", 1)};
    w.runbooks_new[0].last_error = "no such file";
    w.runbooks_new[0].last_error_at = Time{Duration{5000}};
    w.batches_new = {batch_row(7), batch_row(8)};
    w.batches_new[1].status = runbook::BatchStatus::completed;
    runbook::PhaseExecution prepare, go;
    prepare.id = 21, prepare.batch_id = 7, prepare.phase_name = "prepare", prepare.offset_minutes = 60;
    prepare.status = runbook::PhaseStatus::dispatched, prepare.runbook_version = 1;
    go = prepare;
    go.id = 22, go.phase_name = "go", go.offset_minutes = 0, go.status = runbook::PhaseStatus::pending;
    go.due_at = Time{Duration{1000}}, go.waits_for = runbook::PhaseWait::answer;
    w.phases_new = {prepare, go};
    runbook::Hold gate;
    gate.id = 3, gate.kind = runbook::HoldKind::gate, gate.runbook_name = "move", gate.batch_id = 7;
    gate.phase_execution_id = 22, gate.message = "phase 'go' is due and waits for go or no-go";
    gate.details_json = Json{R"({"members":3})"};
    runbook::Hold old = gate;
    old.id = 2, old.status = runbook::HoldStatus::answered;
    w.holds_new = {old, gate};
    for (const auto& [id, key] : {std::pair{31, "ada"}, std::pair{32, "bob"}, std::pair{33, "cy"}}) {
      runbook::Member row;
      row.id = id, row.batch_id = 7, row.member_key = key;
      if (id == 32) row.status = runbook::MemberStatus::failed;
      w.members_new.push_back(row);
    }
    w.steps_new = {step(41, 31, StepStatus::succeeded), step(42, 32, StepStatus::failed),
                   step(43, 33, StepStatus::dispatched), step(44, 31, StepStatus::pending)};
    w.steps_new[1].error_message = "disk full, \"really\"";
    w.steps_new[2].job_state = runbook::JobState::queued;
    w.steps_new[2].worker_id = "lonely";
    w.steps_new[2].queued_at = Time{Duration{2000}};
    w.steps_new[3].step_index = 1;
    w.steps_new[3].retry_count = 1;
    w.steps_new[3].max_retries = 2;
    w.steps_new[3].retry_after = Time{Duration{9000}};
    w.counts = {{7, 0, "member", 0, "active", 2}, {7, 0, "member", 0, "failed", 1}, {7, 21, "step", 0, "succeeded", 1},
                {7, 21, "step", 0, "failed", 1},  {7, 21, "step", 1, "pending", 1}, {7, 21, "step", 0, "dispatched", 1},
                {8, 0, "member", 0, "failed", 29}};
    commit(w);
    agree();
    start();
  }

  static runbook::StepExecution step(std::int64_t id, std::int64_t member_id, StepStatus status) {
    runbook::StepExecution row;
    row.id = id, row.phase_execution_id = 21, row.batch_member_id = member_id;
    row.step_name = "copy", row.status = status, row.worker_id = "pool";
    if (status != StepStatus::pending) row.dispatched_at = Time{Duration{1500}};
    if (is_terminal(status)) row.completed_at = Time{Duration{3000}};
    return row;
  }
};

TEST_F(NeedsYouRoutes, one_list_has_what_waits_and_what_is_stuck) {
  const auto needs = json(ask("GET", "/api/v1/needs-you")).at("needs").as_array();
  ASSERT_EQ(needs.size(), 3U);
  EXPECT_EQ(text(needs[0], "id"), "hold-3");
  EXPECT_EQ(text(needs[0], "kind"), "gate");
  EXPECT_EQ(text(needs[0], "phase"), "go");
  EXPECT_EQ(needs[0].at("details").at("members").as_int64(), 3);
  EXPECT_EQ(text(needs[0].at("answers").at(0), "answer"), "go");
  EXPECT_EQ(text(needs[1], "id"), "no_worker-lonely");
  EXPECT_EQ(needs[1].at("waiting").as_int64(), 1);
  EXPECT_TRUE(needs[1].at("answers").as_array().empty());
  EXPECT_EQ(text(needs[2], "id"), "source_error-move");
  EXPECT_TRUE(json(ask("GET", "/api/v1/needs-you", {}, {{"Baton-Tenant", "other"}})).at("needs").as_array().empty());
}

TEST_F(NeedsYouRoutes, an_answer_is_given_once_and_must_be_one_of_those_listed) {
  const auto decided =
      ask("POST", "/api/v1/needs-you/hold-3/answer", R"({"answer":"go","by":"ann","reason":"all green"})");
  EXPECT_EQ(decided.status, 200);
  EXPECT_EQ(text(json(decided), "by"), "ann");
  const auto told = inbox_.wait_for<AnswerHold>();
  EXPECT_EQ(told->batch_id, 7);
  EXPECT_EQ(told->reason, "all green");
  const auto late = ask("POST", "/api/v1/needs-you/hold-3/answer", R"({"answer":"go","by":"late"})");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(code(late), "already_decided");
  const auto wrong = ask("POST", "/api/v1/needs-you/hold-3/answer", R"({"answer":"maybe"})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_TRUE(text(json(wrong), "detail").contains("go, skip, cancel"));
  EXPECT_EQ(ask("POST", "/api/v1/needs-you/hold-99/answer", R"({"answer":"go"})").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/needs-you/nonsense/answer", R"({"answer":"go"})").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/needs-you/no_worker-lonely/answer", R"({"answer":"go"})").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/needs-you/hold-3/answer", "{}").status, 422);
}

TEST_F(NeedsYouRoutes, approvals_of_workflows_are_answered_here_too) {
  const auto decided = ask("POST", "/api/v1/needs-you/approval-j1:check/answer", R"({"answer":"reject","by":"ann"})");
  EXPECT_EQ(decided.status, 200) << decided.body;
  const auto told = inbox_.wait_for<DecideApproval>();
  EXPECT_EQ(told->node_id, "check");
  EXPECT_FALSE(told->approved);
  EXPECT_EQ(ask("POST", "/api/v1/needs-you/approval-j1:check/answer", R"({"answer":"go"})").status, 422);
}

TEST_F(NeedsYouRoutes, a_batch_shows_holds_queues_without_workers_retries_and_what_came_of_it) {
  const auto batch = json(ask("GET", "/api/v1/batches/7"));
  EXPECT_EQ(text(batch, "outcome"), "active");
  EXPECT_EQ(batch.at("holds").as_array().size(), 1U);
  EXPECT_EQ(text(batch.at("no_worker").at(0), "queue"), "lonely");
  const auto prepare = batch.at("phases").at(0);
  EXPECT_EQ(prepare.at("retrying").at("count").as_int64(), 1);
  EXPECT_EQ(prepare.at("members").at("all").as_int64(), 3);
  EXPECT_EQ(prepare.at("members").at("failed").as_int64(), 1);
  EXPECT_EQ(text(json(ask("GET", "/api/v1/batches/8")), "outcome"), "completed_with_failures");
  EXPECT_EQ(text(json(ask("GET", "/api/v1/batches?limit=1")).at("batches").at(0), "outcome"), "completed_with_failures");
}

TEST_F(NeedsYouRoutes, why_says_it_in_a_sentence) {
  const auto batch = json(ask("GET", "/api/v1/batches/7/why"));
  EXPECT_EQ(text(batch, "reason"), "held");
  EXPECT_TRUE(text(batch, "summary").starts_with("hold-3 waits for an answer (go, skip, cancel)")) << text(batch, "summary");
  EXPECT_EQ(text(batch.at("reasons").at(1), "reason"), "no_worker");
  const auto bob = json(ask("GET", "/api/v1/batches/7/members/bob/why"));
  EXPECT_TRUE(text(bob, "summary").contains("step 'copy' failed")) << text(bob, "summary");
  EXPECT_TRUE(text(bob, "summary").ends_with("disk full, \"really\"")) << text(bob, "summary");
  const auto cy = json(ask("GET", "/api/v1/batches/7/members/33/why"));
  EXPECT_EQ(text(cy, "reason"), "no_worker");
  const auto retried = json(ask("GET", "/api/v1/steps/44/why"));
  EXPECT_EQ(text(retried, "reason"), "retry_later");
  EXPECT_TRUE(text(retried, "summary").starts_with("attempt 1 of 3 of step 'copy' failed")) << text(retried, "summary");
  EXPECT_EQ(text(json(ask("GET", "/api/v1/steps/41/why")), "reason"), "ended");
  EXPECT_EQ(code(ask("GET", "/api/v1/batches/9/why")), "batch_not_found");
  EXPECT_EQ(code(ask("GET", "/api/v1/batches/7/members/eve/why")), "member_not_found");
  EXPECT_EQ(code(ask("GET", "/api/v1/steps/99/why")), "step_not_found");
  EXPECT_EQ(code(ask("GET", "/api/v1/inits/99/why")), "step_not_found");
}

TEST_F(NeedsYouRoutes, the_report_has_a_line_for_each_member) {
  const auto page = json(ask("GET", "/api/v1/batches/7/report?limit=2"));
  const auto members = page.at("members").as_array();
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(text(members[0], "outcome"), "running");
  EXPECT_EQ(text(members[1], "outcome"), "failed");
  EXPECT_EQ(text(members[1], "failed_step"), "copy");
  EXPECT_EQ(text(members[1], "failed_phase"), "prepare");
  EXPECT_EQ(text(members[1], "first_at"), "1970-01-01T00:00:01.500Z");
  EXPECT_EQ(text(members[1], "last_at"), "1970-01-01T00:00:03.000Z");
  const auto rest = json(ask("GET", "/api/v1/batches/7/report?after=32"));
  EXPECT_EQ(rest.at("members").as_array().size(), 1U);
  EXPECT_EQ(rest.at("next_after").as_int64(), 33);
  EXPECT_TRUE(json(ask("GET", "/api/v1/batches/7/report?after=33")).at("members").as_array().empty());
}

TEST_F(NeedsYouRoutes, reasons_reach_the_engine) {
  (void)ask("POST", "/api/v1/batches/7/members:retry", R"({"member_keys":["bob"],"by":"ann","reason":"disk is empty"})");
  EXPECT_EQ(inbox_.wait_for<RetryMembers>()->reason, "disk is empty");
  (void)ask("POST", "/api/v1/batches/7/members:remove", R"({"member_keys":["bob"],"by":"ann","reason":"gone"})");
  EXPECT_EQ(inbox_.wait_for<RemoveMembers>()->reason, "gone");
  (void)ask("POST", "/api/v1/steps/42/skip", R"({"by":"ann","reason":"by hand"})");
  EXPECT_EQ(inbox_.wait_for<ChangeStep>()->reason, "by hand");
}

}  // namespace
}  // namespace baton::http
