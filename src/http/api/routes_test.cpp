// Every route, what it does when all is well and when it is not.
#include "http/api/routes.hpp"

#include <future>

#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

using namespace std::chrono_literals;

constexpr const char* echo_yaml =
    "workflow_id: echo_test\nversion: 1\nnodes:\n  START: {type: start, next: echo}\n"
    "  echo: {type: task, handler: echo, next: END}\n  END: {type: end}\n";
const std::string id_1 = "01a1e215-d52d-7d6d-9d87-ee715350a4e1";
const std::string id_2 = "01a1e215-d52d-7d6d-9d87-ee715350a4e2";

class RoutesTest : public ServerTest {
 protected:
  void SetUp() override {
    agree();
    start();
  }
};

TEST_F(RoutesTest, a_job_is_submitted_with_location_traceparent_and_numbers_as_sent) {
  const auto response =
      ask("POST", "/api/v1/jobs",
          R"({"workflow_id":"echo_test","input_data":{ "x": 1.0, "big": 123456789012345678901 }})",
          {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
  ASSERT_EQ(response.status, 201) << response.body;
  const auto body = json(response);
  EXPECT_EQ(*response.header("Location"), "/api/v1/jobs/" + text(body, "job_id"));
  EXPECT_EQ(text(body, "status"), "PENDING");
  EXPECT_NE(response.body.find(R"("input_data":{"x":1.0,"big":123456789012345678901})"), std::string::npos);
  EXPECT_EQ(inbox_.wait_for<SubmitJob>()->traceparent,
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
}

TEST_F(RoutesTest, a_repeated_submission_is_200_and_the_key_may_be_a_header) {
  const auto response =
      ask("POST", "/api/v1/jobs?wait_ms=5", R"({"workflow_id":"w"})", {{"Idempotency-Key", "again"}});
  EXPECT_EQ(response.status, 200);
  const auto command = inbox_.wait_for<SubmitJob>();
  EXPECT_EQ(command->request_hash.size(), 64U);
  EXPECT_GT(command->wait_until, clock_.now() - std::chrono::seconds{5});
}

TEST_F(RoutesTest, all_wrong_fields_are_told_at_once) {
  const auto response =
      ask("POST", "/api/v1/jobs?wait_ms=x", R"({"version":"1","input_data":[],"idempotency_key":7})");
  ASSERT_EQ(response.status, 422);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const auto body = json(response);
  EXPECT_EQ(text(body, "code"), "invalid_request");
  EXPECT_EQ(text(body, "instance"), *response.header("X-Request-Id"));
  EXPECT_EQ(body.at("errors").as_array().size(), 5U) << response.body;
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(RoutesTest, malformed_json_is_400_with_the_byte_offset) {
  for (const std::string body :
       {R"({"workflow_id":})", "", "{", "[1", "\"\xff\"", "{} x", R"({"a":1e999})"}) {
    const auto response = ask("POST", "/api/v1/jobs", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_EQ(code(response), "malformed_json") << body;
  }
  EXPECT_NE(ask("POST", "/api/v1/jobs", R"({"workflow_id":})").body.find("at byte 15"), std::string::npos);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "[]").status, 422);
  const std::string deep =
      R"({"workflow_id":"w","input_data":)" + std::string(70, '[') + std::string(70, ']') + "}";
  EXPECT_EQ(ask("POST", "/api/v1/jobs", deep).status, 400);
}

TEST_F(RoutesTest, the_last_of_duplicate_keys_wins) {
  EXPECT_EQ(ask("POST", "/api/v1/jobs", R"({"workflow_id":1,"workflow_id":"w"})").status, 201);
  EXPECT_EQ(inbox_.wait_for<SubmitJob>()->workflow_id, "w");
}

TEST_F(RoutesTest, a_job_with_a_misspelt_field_is_refused) {
  const auto response = ask("POST", "/api/v1/jobs", R"({"workflow_id":"w","idempotency-key":"once"})");
  EXPECT_EQ(response.status, 422);
  EXPECT_EQ(code(response), "invalid_request");
  EXPECT_NE(response.body.find(R"({"field":"idempotency-key","message":"is not a field of this"})"), std::string::npos) << response.body;
}

TEST_F(RoutesTest, each_refusal_has_its_status) {
  const std::pair<Refusal, int> table[] = {
      {Refusal::workflow_not_found, 404},
      {Refusal::invalid_input, 422},
      {Refusal::idempotency_key_reused, 409},
      {Refusal::version_exists, 409},
      {Refusal::overloaded, 503},
      {Refusal::stopping, 503},
      {Refusal::store_unavailable, 503},
      {Refusal::store_full, 507},
      {Refusal::job_ended, 409},
      {Refusal::stale_result, 409},
      {Refusal::task_not_found, 404},
      {Refusal::job_not_found, 404},
  };
  for (const auto& [refusal, status] : table) {
    inbox_.answer([refusal](const Command&) { return Refused{refusal, "no", {"first", "second"}}; });
    const auto response = ask("POST", "/api/v1/jobs", R"({"workflow_id":"w"})");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(code(response), name(refusal));
    EXPECT_EQ(json(response).at("errors").as_array().size(), 2U);
    EXPECT_EQ(response.header("Retry-After") != nullptr, status == 503);
  }
}

TEST_F(RoutesTest, jobs_are_listed_in_pages) {
  auto failed = job("01a1e215-d52d-7d6d-9d87-ee715350a4e3", workflow::JobStatus::failed);
  failed.created_at = *from_iso("2026-02-01T00:00:00Z");
  add_jobs({job(id_1), job(id_2), failed});
  auto page = json(ask("GET", "/api/v1/jobs?limit=2"));
  EXPECT_EQ(page.at("jobs").as_array().size(), 2U);
  page = json(ask("GET", "/api/v1/jobs?limit=2&cursor=" + text(page, "next_cursor")));
  ASSERT_EQ(page.at("jobs").as_array().size(), 1U);
  EXPECT_EQ(text(page.at("jobs").at(0), "job_id"), id_1);
  EXPECT_TRUE(page.at("next_cursor").is_null());
  page = json(ask("GET", "/api/v1/jobs?status=FAILED&created_from=2026-01-01T00:00:00Z"));
  EXPECT_EQ(page.at("jobs").as_array().size(), 1U);
  page = json(ask("GET", "/api/v1/jobs?status=FAILED&created_from=2026-02-01T00:00:00.001Z"));
  EXPECT_TRUE(page.at("jobs").as_array().empty());
}

TEST_F(RoutesTest, a_wrong_query_tells_all_that_is_wrong) {
  const auto response =
      ask("GET", "/api/v1/jobs?status=DONE&limit=0&cursor=%21&created_from=now&created_until=x");
  ASSERT_EQ(response.status, 422);
  EXPECT_EQ(json(response).at("errors").as_array().size(), 5U);
  EXPECT_EQ(ask("GET", "/api/v1/jobs?limit=%zz").status, 400);
}

TEST_F(RoutesTest, a_job_is_shown_with_its_nodes) {
  WriteSet writes;
  writes.jobs_new = {job(id_1)};
  workflow::NodeState node;
  node.job_id.value = id_1;
  node.node_id = "echo";
  node.status = workflow::NodeStatus::running;
  writes.nodes_new = {node};
  commit(writes);
  for (const std::string query : {"", "?wait_ms=10"}) {
    const auto response = ask("GET", "/api/v1/jobs/" + id_1 + query);
    ASSERT_EQ(response.status, 200);
    EXPECT_EQ(text(json(response).at("nodes").at("echo"), "status"), "RUNNING");
  }
  EXPECT_EQ(code(ask("GET", "/api/v1/jobs/nope")), "job_not_found");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/%00").status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/x?wait_ms=60001").status, 422);
}

TEST_F(RoutesTest, a_lost_reading_connection_is_opened_anew) {
  add_jobs({job(id_1)});
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1).status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1).status, 200);
  breaks_ = 1;
  const auto response = ask("GET", "/api/v1/jobs/" + id_1);
  EXPECT_TRUE(response.status == 200 || response.status == 503);
  breaks_ = 5;
  EXPECT_EQ(code(ask("GET", "/api/v1/jobs/" + id_1)), "store_unavailable");
  breaks_ = 0;
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1).status, 200);
}

// The caller is not to blame, and need not look for a mistake.
TEST_F(RoutesTest, a_row_that_cannot_be_read_has_a_code_of_its_own) {
  for (const std::string path : {"/api/v1/jobs/unreadable", "/api/v1/jobs/unreadable/timeline"}) {
    const auto response = ask("GET", path);
    EXPECT_EQ(response.status, 422) << path;
    EXPECT_EQ(code(response), "row_unreadable") << path;
  }
}

TEST_F(RoutesTest, the_timeline_waits_for_new_events) {
  add_jobs({job(id_1)});
  const auto began = std::chrono::steady_clock::now();
  auto answer = std::async(std::launch::async,
                           [&] { return ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=9000"); });
  wait_for_subscription();
  workflow::Event event;
  event.job_id.value = id_1;
  event.event_id = 7;
  event.event_type = workflow::EventType::node_ready;
  event.node_id = "echo";
  WriteSet writes;
  writes.events_new = {event};
  commit(writes);
  publish({{.subject = Subject::Type::job, .tenant = "default", .id = id_1, .what = "node_ready"}});
  const auto body = json(answer.get());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(inbox_.count(), 0U);
  ASSERT_EQ(body.at("events").as_array().size(), 1U);
  EXPECT_EQ(text(body.at("events").at(0), "event_type"), "node_ready");
  EXPECT_EQ(body.at("next_after").as_int64(), 7);
  EXPECT_EQ(json(ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?after=7")).at("events").as_array().size(),
            0U);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/nope/timeline").status, 404);
}

TEST_F(RoutesTest, a_wait_for_the_timeline_ends_in_time_and_with_the_server) {
  add_jobs({job(id_1)});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=150").status, 200);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 150ms);
  auto answer = std::async(std::launch::async,
                           [&] { return ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=60000"); });
  wait_for_subscription();
  stop();
  EXPECT_EQ(answer.get().status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 8s);
}

TEST_F(RoutesTest, a_wait_ends_in_time_though_something_changes_all_the_time) {
  add_jobs({job(id_1)});
  int looks = 0;
  before_read_ = [&] {
    if (++looks > 100) return;
    publish({{.subject = Subject::Type::job, .tenant = "default", .id = id_1, .what = "changed"}});
    std::this_thread::sleep_for(30ms);  // a slow look: the next change is there before it is over
  };
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=200").status, 200);
  EXPECT_LT(looks, 50);
}

// Too many that are woken at once are too many reads at once.
TEST_F(RoutesTest, a_wait_goes_on_when_there_is_no_place_to_look) {
  add_jobs({job(id_1)});
  auto answer = std::async(std::launch::async,
                           [&] { return ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=9000"); });
  wait_for_subscription();
  // Its first look must be over, and nothing tells that: a read that fails before the wait has begun is told at once.
  std::this_thread::sleep_for(300ms);
  breaks_ = 4;
  workflow::Event event;
  event.job_id.value = id_1;
  event.event_id = 7;
  WriteSet writes;
  writes.events_new = {event};
  commit(writes);
  publish({{.subject = Subject::Type::job, .tenant = "default", .id = id_1, .what = "node_ready"}});
  const auto answered = answer.get();
  EXPECT_EQ(answered.status, 200) << answered.body;
  EXPECT_LE(breaks_, 0);
  // Who has not waited yet is told at once.
  breaks_ = 100;
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(ask("GET", "/api/v1/jobs/" + id_1 + "/timeline?wait_ms=9000").status, 503);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
}

TEST_F(RoutesTest, a_job_is_cancelled_with_and_without_a_reason) {
  EXPECT_EQ(text(json(ask("POST", "/api/v1/jobs/j/cancel", R"({"reason":"why not"})")), "status"),
            "CANCELLED");
  EXPECT_EQ(inbox_.wait_for<ChangeJob>()->reason, "why not");
  EXPECT_EQ(ask("POST", "/api/v1/jobs/j/cancel").status, 200);
  EXPECT_EQ(ask("POST", "/api/v1/jobs/j/cancel", R"({"reason":1})").status, 422);
}

TEST_F(RoutesTest, a_workflow_is_published_and_a_wrong_one_told_with_line_and_column) {
  const auto response = ask("POST", "/api/v1/workflows", echo_yaml, {}, "application/yaml");
  ASSERT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(*response.header("Location"), "/api/v1/workflows/echo_test?version=1");
  EXPECT_EQ(inbox_.wait_for<PublishWorkflow>()->text, echo_yaml);
  const auto wrong = ask("POST", "/api/v1/workflows", "workflow_id: x\nnodes: 7\n", {}, "application/yaml");
  ASSERT_EQ(wrong.status, 422);
  EXPECT_EQ(code(wrong), "invalid_definition");
  EXPECT_GE(json(wrong).at("errors").at(0).at("line").as_int64(), 1);
  EXPECT_EQ(ask("POST", "/api/v1/workflows", "{}", {}, "application/json").status, 415);
  EXPECT_EQ(ask("POST", "/api/v1/workflows").status, 422);
}

TEST_F(RoutesTest, a_large_definition_is_parsed_off_the_io_thread) {
  const auto large = echo_yaml + std::string(20'000, '#') + "\n";
  EXPECT_EQ(ask("POST", "/api/v1/workflows", large, {}, "application/yaml").status, 201);
}

TEST_F(RoutesTest, a_definition_can_be_checked_only) {
  EXPECT_TRUE(json(ask("POST", "/api/v1/workflows/validate", echo_yaml, {}, "application/yaml"))
                  .at("valid")
                  .as_bool());
  const auto body = json(ask("POST", "/api/v1/workflows/validate", "nodes: {}", {}, "application/yaml"));
  EXPECT_FALSE(body.at("valid").as_bool());
  EXPECT_FALSE(body.at("errors").as_array().empty());
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(RoutesTest, workflows_are_listed_and_shown_as_json_or_yaml) {
  WriteSet writes;
  writes.workflows_new = {{{"default"}, "a", 1, "text a", {}}, {{"default"}, "b", 2, "text b", {}}};
  commit(writes);
  const auto page = json(ask("GET", "/api/v1/workflows?limit=1"));
  EXPECT_EQ(text(page.at("workflows").at(0), "workflow_id"), "a");
  const auto rest = json(ask("GET", "/api/v1/workflows?limit=1&cursor=" + text(page, "next_cursor")));
  EXPECT_EQ(text(rest.at("workflows").at(0), "workflow_id"), "b");
  EXPECT_TRUE(rest.at("next_cursor").is_null());
  EXPECT_EQ(text(json(ask("GET", "/api/v1/workflows/b?version=2")), "definition"), "text b");
  const auto yaml = ask("GET", "/api/v1/workflows/b", {}, {{"Accept", "application/yaml"}});
  EXPECT_EQ(yaml.content_type, "application/yaml");
  EXPECT_EQ(yaml.body, "text b");
  EXPECT_EQ(code(ask("GET", "/api/v1/workflows/b?version=3")), "workflow_not_found");
}

TEST_F(RoutesTest, a_worker_polls_reports_and_beats) {
  const auto polled =
      ask("POST", "/api/v1/workers/pool%201/jobs:poll", R"({"max":5,"wait_ms":10,"worker":"w"})");
  ASSERT_EQ(polled.status, 200);
  const auto task = json(polled).at("jobs").at(0);
  EXPECT_EQ(text(task, "task_id"), "j_echo_0");
  EXPECT_EQ(text(task, "queue"), "pool 1");
  EXPECT_NE(polled.body.find(R"("params":{"x":1.0})"), std::string::npos);
  EXPECT_EQ(ask("POST", "/api/v1/callbacks/task-result",
                R"({"task_id":"t","job_id":"j","node_id":"n","status":"failed","error_message":"e"})")
                .body,
            R"({"accepted":true,"duplicate":false})");
  EXPECT_EQ(inbox_.wait_for<ReportResult>()->error, "e");
  EXPECT_EQ(code(ask("POST", "/api/v1/callbacks/task-result", R"({"task_id":"old","status":"completed"})")),
            "stale_result");
  EXPECT_EQ(ask("POST", "/api/v1/callbacks/task-result", R"({"task_id":"t","status":"done"})").status, 422);
  const auto beat =
      ask("POST", "/api/v1/workers/heartbeat", R"({"worker":"w","tasks":[{"task_id":"t","lease":"L"}]})");
  EXPECT_EQ(beat.body, R"({"lease_until":"1970-01-01T00:00:01.000Z","cancelled":["t2"]})");
  EXPECT_EQ(ask("POST", "/api/v1/workers/heartbeat", R"({"tasks":[{}]})").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/workers/q/jobs:poll", R"({"max":0})").status, 422);
}

TEST_F(RoutesTest, many_results_are_answered_each_on_its_own) {
  const auto response = ask("POST", "/api/v1/callbacks/task-results",
                            R"({"results":[{"task_id":"a","status":"completed","output":{"k":[1,{"d":2}]}},
                                {"task_id":"old","status":"completed"},{"task_id":"twice","status":"failed"}]})");
  ASSERT_EQ(response.status, 200) << response.body;
  const auto results = json(response).at("results").as_array();
  EXPECT_TRUE(results.at(0).at("accepted").as_bool());
  EXPECT_EQ(text(results.at(1), "code"), "stale_result");
  EXPECT_TRUE(results.at(2).at("duplicate").as_bool());
  EXPECT_EQ(inbox_.wait_for<ReportResult>()->output->text, R"({"k":[1,{"d":2}]})");
  const auto wrong = ask("POST", "/api/v1/callbacks/task-results", R"({"results":[{"status":"x"},5]})");
  EXPECT_EQ(wrong.status, 422);
  EXPECT_NE(wrong.body.find("results[0].status"), std::string::npos);
  EXPECT_NE(wrong.body.find("results[1]"), std::string::npos);
}

TEST_F(RoutesTest, the_system_answers_health_readiness_and_metrics) {
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  using enum Readiness::State;
  EXPECT_EQ(ask("GET", "/readyz").body, R"({"status":"ready"})");
  readiness_ = slow;
  EXPECT_EQ(ask("GET", "/readyz").body, R"({"status":"ready","slow_turn_ms":1234})");
  readiness_ = stalled;
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_NE(ask("GET", "/readyz").body.find("engine_stalled"), std::string::npos);
  readiness_ = tables_behind;
  EXPECT_EQ(ask("GET", "/readyz").status, 503);
  EXPECT_NE(ask("GET", "/readyz").body.find("tables_behind"), std::string::npos);
  readiness_ = store_away;
  EXPECT_NE(ask("GET", "/readyz").body.find("store_unavailable"), std::string::npos);
  const auto metrics = ask("GET", "/metrics");
  EXPECT_NE(metrics.body.find(R"(baton_http_requests_total{method="GET",route="/healthz",status="200"} 1)"),
            std::string::npos)
      << metrics.body;
  EXPECT_NE(metrics.body.find("baton_http_connections"), std::string::npos);
}

TEST_F(RoutesTest, unknown_paths_are_404_and_unknown_methods_405_with_allow) {
  EXPECT_EQ(code(ask("GET", "/api/v1/nothing")), "not_found");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/").status, 404);
  const auto response = ask("DELETE", "/api/v1/jobs");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(*response.header("Allow"), "POST, GET");
  EXPECT_EQ(ask("BREW", "/healthz").status, 405);
}

TEST_F(RoutesTest, request_ids_are_kept_when_sane_and_made_otherwise) {
  EXPECT_EQ(*ask("GET", "/healthz", {}, {{"X-Request-Id", "abc-1"}}).header("X-Request-Id"), "abc-1");
  EXPECT_EQ(ask("GET", "/healthz", {}, {{"X-Request-Id", "a b"}}).header("X-Request-Id")->size(), 16U);
}

TEST_F(RoutesTest, openapi_describes_exactly_the_routes) {
  const auto document = json(ask("GET", "/api/v1/openapi.json"));
  EXPECT_EQ(text(document, "openapi"), "3.1.0");
  std::set<std::string> described;
  for (const auto& path : document.at("paths").as_object()) {
    for (const auto& operation : path.value().as_object()) {
      std::string method(operation.key());
      for (auto& c : method) c = static_cast<char>(std::toupper(c));
      described.insert(method + " " + std::string(path.key()));
    }
  }
  std::set<std::string> served;
  for (const auto& route : routes())
    served.insert(std::string(route.method) + " " + std::string(route.pattern));
  EXPECT_EQ(described, served);
}

TEST_F(RoutesTest, openapi_tells_what_a_stream_takes_and_says) {
  const auto document = boost::json::parse(openapi_document());
  const auto& stream = document.at("paths").at("/api/v1/stream").at("get");
  std::map<std::string, boost::json::value> parameters;
  for (const auto& each : stream.at("parameters").as_array()) parameters[text(each, "name")] = each;
  EXPECT_EQ(text(parameters["Last-Event-ID"], "in"), "header");
  EXPECT_EQ(parameters["topic"].at("schema").at("maxItems").as_int64(), 50);
  const auto& change =
      document.at("components").at("schemas").at("StreamChange").at("properties").as_object();
  for (const char* field : {"workflow_id", "version", "runbook_id", "commit"})
    EXPECT_TRUE(change.contains(field)) << field;
}

TEST_F(RoutesTest, every_schema_that_openapi_refers_to_exists) {
  const auto& text = openapi_document();
  const auto document = boost::json::parse(text);
  constexpr std::string_view mark = "#/components/schemas/";
  int references = 0;
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1), ++references) {
    const auto name = text.substr(at + mark.size(), text.find('"', at) - at - mark.size());
    EXPECT_TRUE(document.at("components").at("schemas").as_object().contains(name)) << name;
  }
  EXPECT_GT(references, 20);
}

}  // namespace
}  // namespace baton::http
