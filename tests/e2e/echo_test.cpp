// The seed's trace, from the outside, on both databases.
#include <sqlite3.h>

#include "tests/e2e/server.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e {
namespace {

void expect_the_echo_trace(Server& server) {
  auto client = server.client();
  publish(client, echo_yaml);
  const Answer job =
      ask(client, "POST", "/jobs?wait_ms=20000",
          R"({"workflow_id":"echo_test","input_data":{"message":"hello"}})", "application/json",
          {{"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}});
  ASSERT_EQ(job.status, 201);
  EXPECT_EQ(job.text("status"), "COMPLETED");
  EXPECT_EQ(job.text("traceparent"), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(json::serialize(job.body.at("result_data")),
            R"({"echo_handler":{"echoed_params":{"message":"hello"}}})");
  const std::vector<std::string> expected{"job_created",
                                          "node_ready echo_handler",
                                          "node_dispatched echo_handler",
                                          "job_started",
                                          "node_started echo_handler",
                                          "node_completed echo_handler",
                                          "node_ready end",
                                          "job_completed"};
  EXPECT_EQ(timeline(client, job.text("job_id")), expected);
  const Answer view = ask(client, "GET", "/jobs/" + job.text("job_id"));
  for (const char* node : {"start", "echo_handler", "end"})
    EXPECT_EQ(view.body.at("nodes").at(node).at("status").as_string(), "COMPLETED") << node;
  EXPECT_EQ(view.body.at("nodes").at("echo_handler").at("task_id").as_string(),
            job.text("job_id") + "_echo_handler_0");
}

TEST(Echo, RunsOnSqliteAndLeavesTheEightEventsOfTheTrace) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  expect_the_echo_trace(server);
  EXPECT_TRUE(std::filesystem::exists(data.path() / "baton.db"));
}

TEST(Echo, RunsOnPostgresAndLeavesTheEightEventsOfTheTrace) {
  support::PostgresServer postgres;
  Server server({"--store", postgres.url()});
  expect_the_echo_trace(server);
}

TEST(Echo, IsAcceptedOnceWithAnIdempotencyKey) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  auto client = server.client();
  publish(client, echo_yaml);
  const std::string body = R"({"workflow_id":"echo_test","input_data":{"n":1},"idempotency_key":"order-7"})";
  const Answer first = ask(client, "POST", "/jobs", body);
  const Answer again = ask(client, "POST", "/jobs", body);
  const Answer other = ask(client, "POST", "/jobs",
                           R"({"workflow_id":"echo_test","input_data":{"n":2},"idempotency_key":"order-7"})");
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.text("job_id"), first.text("job_id"));
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.text("code"), "idempotency_key_reused");
}

}  // namespace
}  // namespace baton::e2e
