// The routes of batches: list and show them, their members, their steps and the matrix of both; change them.
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

using runbook::RowType;
using runbook::StepStatus;

constexpr const char* two_phases_yaml =
    "name: move\ndata_source: {type: csv, connection: WAVES, primary_key: Upn, batch_time_column: Day}\n"
    "phases:\n"
    "  - name: prepare\n    offset: T-1d\n    steps:\n"
    "      - {name: make, worker_id: pool-1, function: New-User, params: {Upn: \"{{Upn}}\"}, output_params: "
    "{Id: id}}\n"
    "      - {name: license, worker_id: pool-1, function: Set-License, params: {Id: \"{{Id}}\"}}\n"
    "  - name: go\n    offset: T-0\n    steps:\n"
    "      - {name: start, worker_id: pool-1, function: Start-Move, params: {Upn: \"{{Upn}}\"}}\n";

class BatchRoutes : public ServerTest {
 protected:
  void SetUp() override {
    runbook::Writes w;
    w.runbooks_new = {runbook_row("move", 1), runbook_row("other", 2, 4)};
    w.runbooks_new[0].yaml_content = two_phases_yaml;
    w.runbooks_new[0].held_removals = Json{R"([{"batch_id":7,"leaving":30,"active":100}])"};
    w.batches_new = {batch_row(6), batch_row(7)};
    w.batches_new[0].runbook_id = 4;
    w.phases_new = {phase(21, "prepare", runbook::PhaseStatus::dispatched),
                    phase(22, "go", runbook::PhaseStatus::pending)};
    w.members_new = {member(31, "ada"), member(32, "bob", runbook::MemberStatus::failed), member(33, "cy")};
    w.counts = {{7, 0, "member", 0, "active", 2},       {7, 0, "member", 0, "failed", 1},
                {7, 21, "step", 0, "succeeded", 2},     {7, 21, "step", 0, "failed", 1},
                {7, 21, "step", 1, "pending", 2},       {7, 0, "rollback", 0, "dispatched", 1},
                {7, 21, "rollback", 0, "dispatched", 1}};
    w.steps_new = {step(41, 31, 0, StepStatus::succeeded), step(42, 31, 1, StepStatus::pending),
                   step(43, 32, 0, StepStatus::failed)};
    w.inits_new = {init(51)};
    w.cleanups_new = {cleanup(61, 32)};
    w.events_new = {{7, 1, {}, "batch_started", {}, {}, "it began"}, {7, 2, {}, "paused", {}, {}, "by ada"}};
    commit(w);
    agree();
    start();
  }

  static runbook::PhaseExecution phase(std::int64_t id, const std::string& name,
                                       runbook::PhaseStatus status) {
    runbook::PhaseExecution row;
    row.id = id;
    row.batch_id = 7;
    row.phase_name = name;
    row.runbook_version = 1;
    row.status = status;
    return row;
  }
  static runbook::Member member(std::int64_t id, const std::string& key,
                                runbook::MemberStatus status = runbook::MemberStatus::active) {
    runbook::Member row;
    row.id = id;
    row.batch_id = 7;
    row.member_key = key;
    row.status = status;
    row.data_json = Json{R"({"Upn":")" + key + R"("})"};
    row.worker_data_json = Json{"not json"};
    return row;
  }
  template <class Row>
  static Row execution(std::int64_t id) {
    Row row;
    row.id = id;
    row.step_name = "make";
    row.result_json = Json{R"({"id": 1.0})"};
    return row;
  }
  static runbook::StepExecution step(std::int64_t id, std::int64_t member_id, std::int32_t index,
                                     StepStatus status) {
    auto row = execution<runbook::StepExecution>(id);
    row.phase_execution_id = 21;
    row.batch_member_id = member_id;
    row.step_index = index;
    row.status = status;
    if (is_failure(status)) row.error_message = "no such user";
    return row;
  }
  static runbook::InitExecution init(std::int64_t id) {
    auto row = execution<runbook::InitExecution>(id);
    row.batch_id = 7;
    return row;
  }
  static runbook::CleanupExecution cleanup(std::int64_t id, std::int64_t member_id) {
    auto row = execution<runbook::CleanupExecution>(id);
    row.kind = runbook::CleanupKind::rollback;
    row.batch_id = 7;
    row.batch_member_id = member_id;
    row.caused_by_step_id = member_id == 32 ? 43 : 44;
    row.status = StepStatus::dispatched;
    return row;
  }
  // As another program may.
  void change_runbook(auto change) {
    const std::lock_guard lock(database_.mutex);
    database_.runbooks.runbooks.change(3, change);
  }
  ClientResponse csv(std::string_view target, std::string text) {
    return ask("POST", target, std::move(text), {}, "text/csv");
  }
};

TEST_F(BatchRoutes, batches_are_listed_newest_first_in_pages) {
  const auto page = json(ask("GET", "/api/v1/batches?limit=1"));
  EXPECT_EQ(page.at("batches").at(0).at("id").as_int64(), 7);
  EXPECT_EQ(text(page.at("batches").at(0), "runbook_name"), "move");
  const auto rest = json(ask("GET", "/api/v1/batches?limit=1&cursor=" + text(page, "next_cursor")));
  EXPECT_EQ(rest.at("batches").at(0).at("id").as_int64(), 6);
  EXPECT_TRUE(rest.at("next_cursor").is_null());
  EXPECT_EQ(json(ask("GET", "/api/v1/batches?runbook=other&status=active")).at("batches").as_array().size(),
            1U);
  const auto wrong = ask("GET", "/api/v1/batches?status=DONE&limit=0&cursor=x");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_EQ(json(wrong).at("errors").as_array().size(), 3U);
}

TEST_F(BatchRoutes, a_batch_is_shown_with_all_that_matters_of_it) {
  const auto batch = json(ask("GET", "/api/v1/batches/7"));
  EXPECT_EQ(text(batch, "status"), "active");
  EXPECT_EQ(batch.at("members").at("failed").as_int64(), 1);
  const auto prepare = batch.at("phases").at(0);
  EXPECT_EQ(prepare.at("counts").at("succeeded").as_int64(), 2);
  EXPECT_EQ(prepare.at("counts").at("pending").as_int64(), 2);
  EXPECT_EQ(prepare.at("steps").at(1).at("counts").at("pending").as_int64(), 2);
  EXPECT_EQ(prepare.at("rollbacks").at("dispatched").as_int64(), 1);
  EXPECT_EQ(batch.at("init_steps").at(0).at("id").as_int64(), 51);
  EXPECT_EQ(text(batch.at("open_cleanups").at(0), "kind"), "rollback");
  EXPECT_EQ(batch.at("held_removals").at("leaving").as_int64(), 30);
  EXPECT_EQ(json(ask("GET", "/api/v1/batches/7/phases")).at("phases"), batch.at("phases"));
  for (const std::string path :
       {"8", "x", "0", "8/phases", "8/events", "8/members", "8/matrix", "8/failures"})
    EXPECT_EQ(code(ask("GET", "/api/v1/batches/" + path)), "batch_not_found") << path;
}

TEST_F(BatchRoutes, the_events_of_a_batch_go_on_after_the_last) {
  const auto events = json(ask("GET", "/api/v1/batches/7/events?limit=1"));
  EXPECT_EQ(text(events.at("events").at(0), "message"), "it began");
  EXPECT_EQ(events.at("next_after").as_int64(), 1);
  EXPECT_EQ(json(ask("GET", "/api/v1/batches/7/events?after=2")).at("events").as_array().size(), 0U);
}

TEST_F(BatchRoutes, a_batch_is_advanced_paused_resumed_and_cancelled) {
  const auto advanced = json(ask("POST", "/api/v1/batches/7/advance?phase=go", R"({"by":"ada"})"));
  EXPECT_TRUE(advanced.at("changed").as_bool());
  EXPECT_EQ(text(advanced, "note"), "go");
  const auto command = inbox_.wait_for<ChangeBatch>();
  EXPECT_EQ(command->phase, "go");
  EXPECT_EQ(command->by, "ada");
  EXPECT_EQ(text(json(ask("POST", "/api/v1/batches/7/advance", R"({"phase":"prepare"})")), "note"),
            "prepare");
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/advance?phase=go", R"({"phase":"go"})").status, 200);
  const std::size_t before = inbox_.all<ChangeBatch>().size();
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/advance?phase=go", R"({"phase":"prepare"})").status, 422)
      << "which one is meant?";
  EXPECT_EQ(inbox_.all<ChangeBatch>().size(), before);
  for (const std::string what : {"pause", "resume", "cancel", "approve-removals"})
    EXPECT_EQ(ask("POST", "/api/v1/batches/7/" + what, R"({"reason":"because"})").status, 200) << what;
  EXPECT_EQ(inbox_.all<ChangeBatch>().back().what, ChangeBatch::What::approve_removals);
  EXPECT_EQ(ask("POST", "/api/v1/batches/404/pause").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/batches/x/pause").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/advance?phase=done").status, 409);
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/pause", R"({"by":7})").status, 422);
}

TEST_F(BatchRoutes, members_are_listed_and_shown_with_steps_and_cleanups) {
  const auto page = json(ask("GET", "/api/v1/batches/7/members?limit=2"));
  EXPECT_EQ(page.at("members").as_array().size(), 2U);
  EXPECT_FALSE(page.at("members").at(0).as_object().contains("data_json"));
  EXPECT_EQ(text(page, "next_cursor"), "32");
  const auto failed = json(ask("GET", "/api/v1/batches/7/members?status=failed&full=true"));
  ASSERT_EQ(failed.at("members").as_array().size(), 1U);
  EXPECT_EQ(text(failed.at("members").at(0).at("data_json"), "Upn"), "bob");
  EXPECT_EQ(text(failed.at("members").at(0), "worker_data_json"), "not json");
  const auto bob = json(ask("GET", "/api/v1/batches/7/members/32"));
  EXPECT_EQ(text(bob.at("steps").at(0), "error_message"), "no such user");
  EXPECT_EQ(bob.at("cleanups").at(0).at("id").as_int64(), 61);
  const auto ada = json(ask("GET", "/api/v1/batches/7/members/31"));
  EXPECT_EQ(ada.at("steps").as_array().size(), 2U);
  EXPECT_TRUE(ada.at("cleanups").as_array().empty());
  for (const std::string path : {"7/members/99", "6/members/31", "7/members/x"})
    EXPECT_EQ(code(ask("GET", "/api/v1/batches/" + path)), "member_not_found") << path;
}

TEST_F(BatchRoutes, members_are_removed_by_id_or_key) {
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/members:remove", R"({"member_ids":[31,32],"by":"ada"})").body,
            R"({"count":2,"left_out":0,"left_out_because":[],"note":"","member_ids":[31,32],"phases":[]})");
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/members:remove", R"({"member_keys":["ada"]})").status, 200);
  EXPECT_EQ(inbox_.all<RemoveMembers>().back().member_keys, std::vector<std::string>{"ada"});
  for (const std::string body :
       {"", "{}", R"({"member_ids":[0]})", R"({"member_ids":[1],"member_keys":["a"]})"})
    EXPECT_EQ(ask("POST", "/api/v1/batches/7/members:remove", body).status, 422) << body;
}

TEST_F(BatchRoutes, all_failed_members_are_retried_in_as_many_turns_as_it_takes) {
  for (const std::string nobody : {"", "{}", R"({"member_ids":[]})", R"({"memberKeys":["a"]})", R"({"all":false})"})
    EXPECT_EQ(ask("POST", "/api/v1/batches/7/members:retry", nobody).status, 422) << nobody;
  EXPECT_EQ(ask("POST", "/api/v1/batches/7/members:retry", R"({"all":true})").body,
            R"({"count":6,"left_out":1,"left_out_because":[{"reason":"rolling_back","message":"its rollback still runs",)"
            R"("count":1,"member_keys":["eve"]}],"note":"","member_ids":[11,12,11,12,11,12],"phases":[]})")
      << "who is left out in every turn is counted once";
  EXPECT_EQ(inbox_.all<RetryMembers>().size(), 3U);
  EXPECT_EQ(
      json(ask("POST", "/api/v1/batches/7/members:retry", R"({"member_ids":[32]})")).at("count").as_int64(),
      1);
}

TEST_F(BatchRoutes, the_matrix_has_a_cell_for_each_step_of_each_member) {
  const auto matrix = json(ask("GET", "/api/v1/batches/7/matrix?limit=2"));
  const auto phases = matrix.at("phases").as_array();
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(text(phases[0].at("steps").at(1), "step_name"), "license");
  EXPECT_EQ(phases[0].at("steps").at(0).at("counts").at("failed").as_int64(), 1);
  EXPECT_EQ(text(phases[1].at("steps").at(0), "step_name"), "start");
  const auto members = matrix.at("members").as_array();
  ASSERT_EQ(members.size(), 2U);
  const auto cells = members[0].at("cells").as_array();
  ASSERT_EQ(cells.size(), 3U);
  EXPECT_EQ(cells[0].at("step_id").as_int64(), 41);
  EXPECT_EQ(text(cells[1], "status"), "pending");
  EXPECT_TRUE(cells[2].is_null());
  EXPECT_EQ(text(members[1].at("cells").at(0), "status"), "failed");
  const auto rest =
      json(ask("GET", "/api/v1/batches/7/matrix?limit=2&cursor=" + text(matrix, "next_cursor")));
  EXPECT_EQ(text(rest.at("members").at(0), "member_key"), "cy");
  EXPECT_TRUE(rest.at("next_cursor").is_null());
  EXPECT_EQ(json(ask("GET", "/api/v1/batches/7/matrix?status=failed")).at("members").as_array().size(), 1U);
  EXPECT_EQ(ask("GET", "/api/v1/batches/7/matrix?limit=501").status, 422);
}

TEST_F(BatchRoutes, a_matrix_without_a_readable_runbook_names_the_steps_that_are_there) {
  change_runbook([](runbook::Runbook& row) { row.yaml_content = "nonsense: {"; });
  const auto matrix = json(ask("GET", "/api/v1/batches/7/matrix"));
  EXPECT_EQ(matrix.at("phases").as_array().size(), 1U);
  EXPECT_EQ(text(matrix.at("phases").at(0).at("steps").at(0), "step_name"), "make");
}

TEST_F(BatchRoutes, a_member_is_found_by_key) {
  const auto keys = [&](const std::string& query) {
    std::string found;
    const auto page = json(ask("GET", "/api/v1/batches/7/members?" + query));
    for (const auto& each : page.at("members").as_array()) found += text(each, "member_key");
    return found;
  };
  EXPECT_EQ(keys("key=bob"), "bob");
  EXPECT_EQ(keys("key=nobody"), "");
  EXPECT_EQ(keys("key=bob&status=failed"), "bob");
  EXPECT_EQ(keys("key=bob&status=active"), "");
  EXPECT_EQ(ask("GET", "/api/v1/batches/7/members?key=%00").status, 422);
}

TEST_F(BatchRoutes, failures_of_all_kinds_come_the_last_to_fail_first) {
  const auto failed_at = [](auto row, int millis) {
    row.status = StepStatus::failed;
    row.completed_at = from_millis(millis);
    return row;
  };
  runbook::Writes w;
  const auto first = step(43, 32, 0, StepStatus::failed);
  w.steps_changed = {{first, failed_at(first, 5'001)}};
  w.steps_new = {failed_at(step(44, 33, 0, StepStatus::failed), 5'002)};
  w.cleanups_new = {failed_at(cleanup(62, 33), 5'002)};  // in the same moment
  w.inits_new = {failed_at(init(52), 5'003)};
  commit(w);
  std::string cursor, order;
  do {
    const auto page = json(ask("GET", "/api/v1/batches/7/failures?limit=1" + cursor));
    ASSERT_EQ(page.at("failures").as_array().size(), 1U);
    order += std::to_string(page.at("failures").at(0).at("id").as_int64()) + " ";
    cursor = page.at("next_cursor").is_null() ? "" : "&cursor=" + text(page, "next_cursor");
  } while (!cursor.empty());
  EXPECT_EQ(order, "52 62 44 43 ");
  EXPECT_EQ(ask("GET", "/api/v1/batches/7/failures?cursor=43").status, 422);
}

TEST_F(BatchRoutes, the_logs_of_a_step_are_those_of_all_its_jobs) {
  WriteSet writes;
  writes.logs_new = {{.job_id = {"step-43"}, .log_id = 7, .stream = "stderr", .text = "it said so"}};
  commit(writes);
  const auto page = json(ask("GET", "/api/v1/steps/43/logs"));
  ASSERT_EQ(page.at("lines").as_array().size(), 1U);
  EXPECT_EQ(text(page.at("lines").at(0), "text"), "it said so");
  EXPECT_EQ(page.at("next_after").as_int64(), 7);
  EXPECT_TRUE(json(ask("GET", "/api/v1/steps/43/logs?after=7")).at("lines").as_array().empty());
  EXPECT_TRUE(json(ask("GET", "/api/v1/cleanups/61/logs")).at("lines").as_array().empty());
  EXPECT_EQ(code(ask("GET", "/api/v1/steps/99/logs")), "step_not_found");
  EXPECT_EQ(code(ask("GET", "/api/v1/inits/43/logs")), "step_not_found");
}

TEST_F(BatchRoutes, failures_are_listed_with_their_reason) {
  const auto page = json(ask("GET", "/api/v1/batches/7/failures"));
  ASSERT_EQ(page.at("failures").as_array().size(), 1U);
  EXPECT_EQ(text(page.at("failures").at(0), "error_message"), "no such user");
  EXPECT_EQ(text(page.at("failures").at(0), "member_key"), "bob");
}

TEST_F(BatchRoutes, steps_init_steps_and_cleanups_are_shown_and_changed) {
  const auto page = json(ask("GET", "/api/v1/phases/21/steps?limit=2"));
  EXPECT_EQ(page.at("steps").as_array().size(), 2U);
  EXPECT_EQ(text(page, "next_cursor"), "42");
  EXPECT_EQ(ask("GET", "/api/v1/phases/x/steps").status, 404);
  EXPECT_EQ(code(ask("GET", "/api/v1/phases/99/steps")), "phase_not_found");
  EXPECT_TRUE(json(ask("GET", "/api/v1/phases/22/steps")).at("steps").as_array().empty());
  const auto shown = ask("GET", "/api/v1/steps/41");
  EXPECT_NE(shown.body.find(R"("result_json":{"id":1.0})"), std::string::npos) << shown.body;
  EXPECT_EQ(text(json(ask("GET", "/api/v1/inits/51")), "type"), "init");
  EXPECT_EQ(text(json(ask("GET", "/api/v1/cleanups/61")), "kind"), "rollback");
  EXPECT_EQ(json(ask("GET", "/api/v1/batches/7/cleanups")).at("cleanups").as_array().size(), 1U);
  EXPECT_EQ(code(ask("GET", "/api/v1/steps/51")), "step_not_found");
  EXPECT_EQ(ask("POST", "/api/v1/steps/43/retry", R"({"by":"ada"})").body,
            R"({"id":43,"type":"step","status":"pending"})");
  for (const std::string path : {"steps/43/skip", "steps/43/cancel", "inits/51/retry", "cleanups/61/skip"})
    EXPECT_EQ(ask("POST", "/api/v1/" + path).status, 200) << path;
  EXPECT_EQ(inbox_.all<ChangeStep>().back().ref, (runbook::Ref{RowType::cleanup, 61}));
  EXPECT_EQ(code(ask("POST", "/api/v1/inits/404/retry")), "step_not_found");
  EXPECT_EQ(code(ask("POST", "/api/v1/steps/x/retry")), "step_not_found");
}

TEST_F(BatchRoutes, a_batch_is_made_from_csv_in_chunks) {
  std::string text = "Upn;Name\n";
  for (int i = 0; i < 2500; ++i) text += "user" + std::to_string(i) + ";N\n";
  const auto response = csv("/api/v1/runbooks/move/batches?by=ada", text);
  ASSERT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(*response.header("Location"), "/api/v1/batches/7");
  EXPECT_EQ(json(response).at("member_count").as_int64(), 2500);
  EXPECT_EQ(inbox_.wait_for<OpenBatch>()->by, "ada");
  EXPECT_EQ(inbox_.wait_for<OpenBatch>()->version, 1);
  const auto chunks = inbox_.all<AddMembers>();
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(chunks[2].members.size(), 500U);
  EXPECT_EQ(chunks[0].members[0].data.text, R"({"Upn":"user0","Name":"N"})");
  EXPECT_EQ(inbox_.all<StartBatch>().size(), 1U);
}

TEST_F(BatchRoutes, a_csv_that_is_wrong_anywhere_makes_no_batch) {
  const auto twice = csv("/api/v1/runbooks/move/batches", "Upn\nada\nada\n");
  EXPECT_EQ(twice.status, 422);
  EXPECT_EQ(code(twice), "invalid_rows");
  EXPECT_FALSE(json(twice).at("errors").as_array().empty());
  const auto lines = csv("/api/v1/runbooks/move/batches", "Upn,Note\nada,\"two\nlines\"\n\nada,\n");
  EXPECT_NE(lines.body.find("line 5 ('ada'), column 'Upn': the key is that of line 2 already"), std::string::npos)
      << lines.body;
  EXPECT_EQ(code(csv("/api/v1/runbooks/move/batches", "Upn\n\"ada\n")), "invalid_rows");
  EXPECT_EQ(code(csv("/api/v1/runbooks/move/batches", "Upn\n")), "invalid_rows");
  EXPECT_EQ(csv("/api/v1/runbooks/move/batches", "").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/move/batches", "{}").status, 415);
  EXPECT_EQ(code(csv("/api/v1/runbooks/nope/batches", "Upn\nada\n")), "runbook_not_found");
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(BatchRoutes, an_import_that_fails_in_the_middle_is_cancelled_and_told) {
  const auto response = csv("/api/v1/runbooks/move/batches", "Upn\nada\nbroken\n");
  EXPECT_EQ(response.status, 507);
  EXPECT_NE(response.body.find("batch 7 was cancelled"), std::string::npos) << response.body;
  EXPECT_EQ(inbox_.wait_for<ChangeBatch>()->what, ChangeBatch::What::cancel);
  EXPECT_TRUE(inbox_.all<StartBatch>().empty());
}

TEST_F(BatchRoutes, a_runbook_that_is_not_active_makes_batches_only_by_version) {
  change_runbook([](runbook::Runbook& row) { row.is_active = false; });
  EXPECT_EQ(csv("/api/v1/runbooks/move/batches?version=1", "Upn\nada\n").status, 201);
}

TEST_F(BatchRoutes, members_are_added_from_csv) {
  EXPECT_EQ(csv("/api/v1/batches/7/members", "Upn\ndee\n").body,
            R"({"count":1,"left_out":0,"left_out_because":[],"note":"","member_ids":[1],"phases":[]})");
  EXPECT_EQ(code(csv("/api/v1/batches/8/members", "Upn\ndee\n")), "batch_not_found");
  EXPECT_EQ(code(csv("/api/v1/batches/6/members", "Upn\ndee\n")), "row_unreadable");
  runbook::Writes w;
  w.batches_new = {batch_row(5)};
  w.batches_new[0].runbook_id = 99;  // whose row somebody deleted
  commit(w);
  EXPECT_EQ(code(csv("/api/v1/batches/5/members", "Upn\ndee\n")), "runbook_not_found");
  EXPECT_EQ(code(csv("/api/v1/batches/7/members", "Name\ndee\n")), "invalid_rows");
}

TEST_F(BatchRoutes, a_preview_groups_the_rows_of_the_source_into_batches) {
  sources_.table =
      SourceTable{{"Upn", "Day"}, {{"ada", "2026-03-11"}, {"bob", "2026-03-10"}, {"cy", "2026-03-11"}}};
  const auto preview = json(ask("GET", "/api/v1/runbooks/move/preview?limit=2"));
  EXPECT_EQ(preview.at("member_count").as_int64(), 3);
  const auto batches = preview.at("batches").as_array();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(text(batches[0], "batch_start_time"), "2026-03-10T00:00:00.000Z");
  EXPECT_EQ(text(batches[0].at("members").at(0).at("data"), "Upn"), "bob");
  EXPECT_EQ(batches[1].at("member_count").as_int64(), 2);
  EXPECT_EQ(batches[1].at("members").as_array().size(), 1U);
  sources_.table = SourceTable{{"Upn", "Day"}, {{"ada", "some day"}}};
  EXPECT_EQ(code(ask("GET", "/api/v1/runbooks/move/preview")), "invalid_rows");
  sources_.table = fail(Code::unavailable, "no such file");
  const auto failed = ask("GET", "/api/v1/runbooks/move/preview");
  EXPECT_EQ(failed.status, 502);
  EXPECT_EQ(code(failed), "data_source_failed");
  EXPECT_EQ(ask("GET", "/api/v1/runbooks/nope/preview").status, 404);
}

TEST_F(BatchRoutes, a_plan_shows_times_and_steps_and_stores_nothing) {
  sources_.table = SourceTable{{"Upn", "Day"}, {{"ada", "2026-03-11"}}};
  const std::string yaml =
      std::string(two_phases_yaml) +
      "      - {name: tell, worker_id: pool-1, function: Send, params: {To: \"{{Boss}}\"}}\n";
  const auto plan = json(ask("POST", "/api/v1/runbooks/plan", yaml, {}, "application/yaml"));
  const auto batch = plan.at("batches").at(0);
  EXPECT_EQ(text(batch.at("phases").at(0), "due_at"), "2026-03-10T00:00:00.000Z");
  const auto prepare = batch.at("members").at(0).at("phases").at(0).at("steps").as_array();
  EXPECT_EQ(text(prepare[0].at("params"), "Upn"), "ada");
  EXPECT_EQ(prepare[1].at("from_earlier_steps").at(0).as_string(), "Id");
  EXPECT_TRUE(prepare[1].at("unresolved").as_array().empty());
  ASSERT_EQ(plan.at("unresolved").as_array().size(), 1U);
  EXPECT_EQ(text(plan.at("unresolved").at(0), "variable"), "Boss");
  EXPECT_EQ(text(plan.at("unresolved").at(0), "step_name"), "tell");
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(BatchRoutes, a_plan_checks_members_that_it_does_not_show) {
  sources_.table = SourceTable{{"Upn", "Day"}, {}};
  for (int i = 0; i < 30; ++i) sources_.table->rows.push_back({"u" + std::to_string(i), "2026-03-11"});
  const std::string yaml =
      std::string(two_phases_yaml) +
      "      - {name: tell, worker_id: pool-1, function: Send, params: {To: \"{{Boss}}\"}}\n";
  const auto plan = json(ask("POST", "/api/v1/runbooks/plan", yaml, {}, "application/yaml"));
  ASSERT_EQ(plan.at("unresolved").as_array().size(), 1U);
  const auto unknown = plan.at("unresolved").at(0);
  EXPECT_EQ(unknown.at("count").as_int64(), 30);
  ASSERT_EQ(unknown.at("member_keys").as_array().size(), 5U);
  EXPECT_EQ(unknown.at("member_keys").at(0).as_string(), "u0");
}

TEST_F(BatchRoutes, a_plan_may_name_a_runbook_and_bring_its_rows) {
  const auto plan = json(ask(
      "POST", "/api/v1/runbooks/plan",
      R"({"runbook":"move","csv":"Upn\nada\nbob\n","limit":1,"batch_start_time":"2026-03-11T00:00:00Z"})"));
  EXPECT_EQ(plan.at("version").as_int64(), 1);
  EXPECT_EQ(plan.at("member_count").as_int64(), 2);
  EXPECT_EQ(plan.at("batches").at(0).at("members").as_array().size(), 1U);
  EXPECT_EQ(text(plan.at("batches").at(0).at("phases").at(1), "due_at"), "2026-03-11T00:00:00.000Z");
  const auto manual = json(ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"move","csv":"Upn\nada\n"})"));
  EXPECT_TRUE(manual.at("batches").at(0).at("phases").at(0).at("due_at").is_null());
  EXPECT_EQ(text(manual, "note"), "the CSV has no column 'Day', and no T is given: it is planned as a batch by hand");
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/plan", "{}").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"nope"})").status, 404);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/plan", R"({"yaml":"name: x"})").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/plan", "name: x", {}, "application/yaml").status, 422);
}

TEST_F(BatchRoutes, a_plan_reads_the_times_of_its_rows_unless_it_is_given_one) {
  const std::string rows = R"("csv":"Upn,Day\nada,2026-03-12 02:00\nbob,2026-03-11\ncy,2026-03-12T02:00Z\n")";
  const auto plan = json(ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"move",)" + rows + "}"));
  const auto batches = plan.at("batches").as_array();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(text(batches[0], "batch_start_time"), "2026-03-11T00:00:00.000Z");
  EXPECT_EQ(batches[0].at("member_count").as_int64(), 1);
  EXPECT_EQ(text(batches[1], "batch_start_time"), "2026-03-12T02:00:00.000Z");
  EXPECT_EQ(batches[1].at("member_count").as_int64(), 2);
  EXPECT_EQ(text(batches[1].at("phases").at(1), "due_at"), "2026-03-12T02:00:00.000Z");
  EXPECT_EQ(text(plan, "note"), "");

  const auto given = json(
      ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"move","batch_start_time":"2026-11-17 02:00",)" + rows + "}"));
  ASSERT_EQ(given.at("batches").as_array().size(), 1U);
  EXPECT_EQ(text(given.at("batches").at(0), "batch_start_time"), "2026-11-17T02:00:00.000Z");

  const auto wrong = ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"move","csv":"Upn,Day\nada,soon\n"})");
  EXPECT_EQ(code(wrong), "invalid_rows");
  EXPECT_EQ(ask("POST", "/api/v1/runbooks/plan", R"({"runbook":"move","batch_start_time":"17/11/2026",)" + rows + "}").status,
            422);
}

class WithoutSources : public BatchRoutes {
 protected:
  WithoutSources() { options_.data_sources = nullptr; }
};

TEST_F(WithoutSources, a_server_without_data_sources_says_so) {
  const auto response = ask("GET", "/api/v1/runbooks/move/preview");
  EXPECT_EQ(response.status, 503);
  EXPECT_EQ(code(response), "not_configured");
}

}  // namespace
}  // namespace baton::http
