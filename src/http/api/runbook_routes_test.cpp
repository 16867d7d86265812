// The routes of runbooks: publish, show, change; events of schedulers and results of workers.
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

constexpr const char* one_phase_yaml =
    "name: move\ndata_source: {type: csv, connection: WAVES, primary_key: Upn, batch_time_column: Day}\n"
    "phases:\n  - name: go\n    offset: T-0\n    steps:\n"
    "      - {name: start, worker_id: pool-1, function: Start-Move, params: {Upn: \"{{Upn}}\"}}\n";
const std::string due =
    R"({"messageType":"phase-due","runbookName":"move","runbookVersion":3,"batchId":42,"phaseExecutionId":108})";

class RunbookRoutes : public ServerTest {
 protected:
  void SetUp() override {
    agree();
    start();
  }
  ClientResponse yaml(std::string_view target, std::string text) {
    return ask("POST", target, std::move(text), {}, "application/yaml");
  }
};

TEST_F(RunbookRoutes, a_runbook_is_published_with_what_open_batches_shall_do) {
  const auto response = yaml("/api/v1/runbooks?rerun_init=true", one_phase_yaml);
  ASSERT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(*response.header("Location"), "/api/v1/runbooks/move?version=1");
  EXPECT_TRUE(json(response).at("created").as_bool());
  EXPECT_TRUE(json(response).at("warnings").is_array());
  const auto command = inbox_.wait_for<PublishRunbook>();
  EXPECT_EQ(command->text, one_phase_yaml);
  EXPECT_TRUE(command->rerun_init);
  EXPECT_EQ(yaml("/api/v1/runbooks?overdue_behavior=ignore", one_phase_yaml).status, 200);
  EXPECT_EQ(yaml("/api/v1/runbooks?overdue_behavior=maybe&rerun_init=1", one_phase_yaml).status, 422);
}

TEST_F(RunbookRoutes, what_becomes_of_open_batches_is_said_in_one_of_two_words) {
  EXPECT_EQ(yaml("/api/v1/runbooks?open_batches=keep", one_phase_yaml).status, 201);
  EXPECT_EQ(inbox_.wait_for<PublishRunbook>()->open_batches, runbook::OpenBatches::keep);
  EXPECT_EQ(yaml("/api/v1/runbooks?open_batches=maybe", one_phase_yaml).status, 422);
  const auto both = yaml("/api/v1/runbooks?open_batches=ignore&overdue_behavior=ignore", one_phase_yaml);
  EXPECT_EQ(both.status, 422);
  EXPECT_EQ(text(json(both).at("errors").at(0), "field"), "overdue_behavior");
}

TEST_F(RunbookRoutes, overdue_behavior_says_it_too) {
  EXPECT_EQ(yaml("/api/v1/runbooks?overdue_behavior=rerun", one_phase_yaml).status, 201);
  EXPECT_EQ(inbox_.wait_for<PublishRunbook>()->open_batches, runbook::OpenBatches::rerun);
}

TEST_F(RunbookRoutes, a_new_version_over_a_batch_that_has_begun_is_refused_with_what_it_would_do) {
  std::string busy = one_phase_yaml;
  busy.replace(0, busy.find('\n'), "name: busy");
  runbook::Writes w;
  w.runbooks_new = {runbook_row("busy", 1)};
  w.runbooks_new[0].yaml_content = busy;
  auto batch = batch_row(42);
  batch.batch_start_time = from_millis(1000);
  w.batches_new = {batch};
  runbook::PhaseExecution phase;
  phase.id = 108, phase.batch_id = 42, phase.phase_name = "go", phase.runbook_version = 1;
  phase.status = runbook::PhaseStatus::dispatched;
  phase.due_at = phase.dispatched_at = from_millis(1000);
  w.phases_new = {phase};
  runbook::Member ada;
  ada.id = 7, ada.batch_id = 42, ada.member_key = "ada";
  w.members_new = {ada};
  w.counts = {{42, 0, "member", 0, "active", 1}};
  commit(w);
  const std::string fixed = std::string(busy).replace(busy.find("Start-Move"), 10, "Start-Copy");

  const auto refused = yaml("/api/v1/runbooks", fixed);
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(code(refused), "open_batches");
  const auto impact = json(refused).at("impact");
  const auto& open = impact.at("open_batches").at(0);
  EXPECT_EQ(open.at("batch_id").as_int64(), 42);
  EXPECT_TRUE(open.at("has_begun").as_bool());
  EXPECT_EQ(open.at("member_count").as_int64(), 1);
  EXPECT_EQ(open.at("member_keys").at(0).as_string(), "ada");
  const auto fate = [&](std::size_t answer, std::size_t place) {
    return text(open.at("answers").at(answer).at("phases").at(place), "what");
  };
  EXPECT_EQ(fate(0, 0), "goes_on") << "keep";
  EXPECT_EQ(fate(1, 1), "skipped") << "ignore";
  EXPECT_EQ(fate(2, 1), "begins_again") << "rerun";
  const auto& change = impact.at("changes").at(0);
  EXPECT_EQ(text(change, "where") + " " + text(change, "field"), "phase 'go', step 'start' function");

  auto asked = json(yaml("/api/v1/runbooks/impact", fixed));
  EXPECT_TRUE(asked.at("warnings").is_array());
  EXPECT_EQ(asked.at("open_batches"), impact.at("open_batches"));
  const auto same = json(yaml("/api/v1/runbooks/impact", busy));
  EXPECT_TRUE(same.at("unchanged").as_bool());
  EXPECT_EQ(same.at("version").as_int64(), 1);
  EXPECT_EQ(same.at("open_batches").as_array().size(), 0U);
  EXPECT_EQ(yaml("/api/v1/runbooks/impact", "name: busy\nphases: 7\n").status, 422);
}

TEST_F(RunbookRoutes, a_wrong_runbook_is_told_whole_and_not_stored) {
  const auto response = yaml("/api/v1/runbooks", "name: move\nphases: 7\n");
  ASSERT_EQ(response.status, 422);
  EXPECT_EQ(code(response), "invalid_definition");
  EXPECT_GE(json(response).at("errors").as_array().size(), 1U);
  const auto checked = json(yaml("/api/v1/runbooks/validate", "name: move\nphases: 7\n"));
  EXPECT_FALSE(checked.at("valid").as_bool());
  EXPECT_EQ(checked.at("errors"), json(response).at("errors"));
  EXPECT_TRUE(json(yaml("/api/v1/runbooks/validate", one_phase_yaml)).at("valid").as_bool());
  EXPECT_EQ(ask("POST", "/api/v1/runbooks", "{}").status, 415);
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(RunbookRoutes, runbooks_are_listed_and_shown_as_json_or_yaml) {
  runbook::Writes w;
  w.runbooks_new = {runbook_row("a", 1), runbook_row("b", 2, 4)};
  w.runbooks_new[1].yaml_content = "text b";
  w.runbooks_new[1].last_error = "no such file";
  commit(w);
  const auto page = json(ask("GET", "/api/v1/runbooks?limit=1"));
  EXPECT_EQ(text(page.at("runbooks").at(0), "name"), "a");
  EXPECT_FALSE(page.at("runbooks").at(0).as_object().contains("yaml_content"));
  const auto rest = json(ask("GET", "/api/v1/runbooks?limit=1&cursor=" + text(page, "next_cursor")));
  EXPECT_EQ(text(rest.at("runbooks").at(0), "last_error"), "no such file");
  EXPECT_TRUE(rest.at("next_cursor").is_null());
  EXPECT_EQ(text(json(ask("GET", "/api/v1/runbooks/b?version=2")), "yaml_content"), "text b");
  EXPECT_EQ(ask("GET", "/api/v1/runbooks/b", {}, {{"Accept", "application/yaml"}}).body, "text b");
  EXPECT_EQ(code(ask("GET", "/api/v1/runbooks/b?version=3")), "runbook_not_found");
  EXPECT_EQ(json(ask("GET", "/api/v1/runbooks/b/versions")).at("versions").as_array().size(), 1U);
  EXPECT_EQ(code(ask("GET", "/api/v1/runbooks/c/versions")), "runbook_not_found");
}

TEST_F(RunbookRoutes, a_runbook_is_switched_on_and_off) {
  const auto changed = json(ask("POST", "/api/v1/runbooks/move/activate?version=2"));
  EXPECT_EQ(changed.at("version").as_int64(), 2);
  EXPECT_TRUE(changed.at("changed").as_bool());
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/move/activate?version=x").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/move/deactivate").status, 200);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/move/automation", R"({"enabled":false})").status, 200);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/move/automation", "{}").status, 422);
}

TEST_F(RunbookRoutes, only_the_tenant_default_has_runbooks) {
  for (const std::string path : {"/api/v1/runbooks", "/api/v1/runbooks/move"}) {
    const auto response = ask("GET", path, {}, {{"Baton-Tenant", "other"}});
    EXPECT_EQ(response.status, 404);
    EXPECT_EQ(code(response), "runbook_not_found");
  }
  EXPECT_EQ(ask("POST", "/api/v1/events", due, {{"Baton-Tenant", "other"}}).status, 404);
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(RunbookRoutes, one_event_of_a_scheduler_is_taken) {
  EXPECT_EQ(ask("POST", "/api/v1/events", due).body, R"({"accepted":true,"changed":true,"note":""})");
  const auto event = inbox_.wait_for<RunbookEvent>();
  EXPECT_EQ(std::get<runbook::PhaseDue>(event->message.what).phase_execution_id, 108);
  const auto wrong = ask("POST", "/api/v1/events", R"({"messageType":"phase-due","batchId":"x"})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_NE(wrong.body.find("phaseExecutionId is required"), std::string::npos) << wrong.body;
  EXPECT_EQ(ask("POST", "/api/v1/events", "{").status, 400);
  EXPECT_EQ(ask("POST", "/api/v1/events", "7").status, 422);
}

TEST_F(RunbookRoutes, many_events_are_all_read_before_the_first_is_handed_in) {
  const std::string lost =
      R"({"messageType":"batch-init","runbookName":"move","runbookVersion":3,"batchId":404})";
  const std::string late =
      R"({"messageType":"batch-init","runbookName":"move","runbookVersion":3,"batchId":5})";
  const auto wrong = ask("POST", "/api/v1/events", "[" + due + R"(,{"messageType":"tea-time"}])");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(text(json(wrong).at("errors").at(0), "field"), "[1]");
  EXPECT_EQ(inbox_.count(), 0U);
  const auto response = ask("POST", "/api/v1/events", "[" + due + "," + lost + "," + late + "]");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto results = json(response).at("results").as_array();
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].at("changed").as_bool());
  EXPECT_FALSE(results[1].at("accepted").as_bool());
  EXPECT_EQ(text(results[1], "code"), "batch_not_found");
  EXPECT_EQ(text(results[2], "note"), "it is over");
  EXPECT_EQ(ask("POST", "/api/v1/events", "[]").body, R"({"results":[]})");
  std::string many = "[" + due;
  for (int i = 0; i < 1000; ++i) many += "," + due;
  EXPECT_EQ(ask("POST", "/api/v1/events", many + "]").status, 422);
}

TEST_F(RunbookRoutes, a_job_of_a_runbook_has_the_json_of_the_contract) {
  const auto polled = ask("POST", "/api/v1/workers/pool-1/jobs:poll", "{}");
  EXPECT_EQ(
      polled.body,
      R"({"jobs":[{"jobId":"init-7-retry-2","batchId":42,"workerId":"pool-1","functionName":"echo",)"
      R"("parameters":{"x":1.0},"correlationData":{"initExecutionId":7,"isInitStep":true,)"
      R"("runbookName":"move","runbookVersion":3},"lease":"L1","lease_until":"1970-01-01T00:00:00.000Z",)"
      R"("timeout_seconds":0,"delivery_count":0,"retry_count":0}]})");
}

TEST_F(RunbookRoutes, a_worker_that_knows_only_the_contract_reports) {
  const auto response =
      ask("POST", "/api/v1/callbacks/worker-result",
          R"({"jobId":"step-7","status":"Success","result":{"complete":false},"durationMs":5})");
  EXPECT_EQ(response.body, R"({"accepted":true,"duplicate":false})");
  const auto command = inbox_.wait_for<ReportResult>();
  EXPECT_EQ(command->task_id, "step-7");
  EXPECT_TRUE(command->completed);
  EXPECT_EQ(command->output->text, R"({"complete":false})");
  EXPECT_EQ(command->execution_duration_ms, 5);
  EXPECT_EQ(
      ask("POST", "/api/v1/callbacks/worker-result", R"({"jobId":"step-9","status":"failed","error":"x"})")
          .body,
      R"({"accepted":false,"duplicate":false,"ignored":"the step is over","code":"ignored"})");
  EXPECT_EQ(code(ask("POST", "/api/v1/callbacks/worker-result", R"({"jobId":"old","status":"failed"})")),
            "stale_result");
  EXPECT_EQ(ask("POST", "/api/v1/callbacks/worker-result", R"({"jobId":"step-9"})").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/callbacks/task-result", R"({"task_id":"step-9","status":"completed"})").body,
            R"({"accepted":false,"duplicate":false,"ignored":"the step is over","code":"ignored"})");
}

TEST_F(RunbookRoutes, many_results_of_workers_are_answered_each_on_its_own) {
  const auto response = ask(
      "POST", "/api/v1/callbacks/worker-result",
      R"([{"jobId":"step-7","status":"Success"},{"jobId":"old","status":"Error"},{"jobId":"step-9","status":"Success"}])");
  EXPECT_EQ(
      response.body,
      R"({"results":[{"jobId":"step-7","accepted":true,"duplicate":false},)"
      R"({"jobId":"old","accepted":false,"duplicate":false,"code":"stale_result","message":"an earlier lease"},)"
      R"({"jobId":"step-9","accepted":false,"duplicate":false,"ignored":"the step is over","code":"ignored"}]})");
}

}  // namespace
}  // namespace baton::http
