// A worker that speaks plain HTTP: leases, fencing, duplicates, and a server that dies in between.
#include <signal.h>

#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

class Workers : public testing::Test {
 protected:
  Workers() : server_({"--data", data_.path()}), client_(server_.client()) { publish(client_, queued_yaml); }

  std::string submit() {
    return ask(client_, "POST", "/jobs", R"({"workflow_id":"queued","input_data":{"n":1}})").text("job_id");
  }
  json::value poll(int wait_ms = 5'000) {
    const Answer answer =
        ask(client_, "POST", "/workers/images/jobs:poll",
            R"({"max":5,"worker":"w1","heartbeat":true,"wait_ms":)" + std::to_string(wait_ms) + "}");
    return answer.body.at("jobs");
  }
  static std::string result(const json::value& task, const std::string& output,
                            const std::string& lease = {}) {
    json::object body{{"task_id", task.at("task_id")}, {"job_id", task.at("job_id")},
                      {"node_id", task.at("node_id")}, {"status", "completed"},
                      {"output", json::parse(output)}, {"worker_id", "w1"}};
    if (!lease.empty()) body["lease"] = lease;
    return json::serialize(body);
  }
  void restart() {
    server_.process().signal(SIGKILL);
    ASSERT_EQ(server_.process().wait(10s), 128 + SIGKILL);
    server_ = Server({"--data", data_.path()});
    client_ = server_.client();
  }

  support::TemporaryDirectory data_;
  Server server_;
  http::Client client_;
};

TEST_F(Workers, GetTheSeedsFieldsAndFinishTheJob) {
  const std::string job_id = submit();
  const json::value tasks = poll();
  ASSERT_EQ(tasks.as_array().size(), 1u);
  const json::value& task = tasks.at(0);
  EXPECT_EQ(task.at("task_id").as_string(), job_id + "_work_0");
  EXPECT_EQ(task.at("handler").as_string(), "resize");
  EXPECT_EQ(json::serialize(task.at("params")), R"({"n":1})");
  EXPECT_EQ(task.at("queue").as_string(), "images");
  EXPECT_EQ(task.at("timeout_seconds").as_int64(), 300);
  EXPECT_EQ(task.at("retry_count").as_int64(), 0);
  const std::string lease(task.at("lease").as_string());
  EXPECT_EQ(ask(client_, "POST", "/callbacks/task-result", result(task, R"({"ok":true})", lease)).status,
            200);
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + job_id).text("status"), "COMPLETED");
}

TEST_F(Workers, AreRefusedWithAnOldLeaseAndHeardOnceWithTheRightOne) {
  submit();
  const json::value task = poll().at(0);
  const std::string lease(task.at("lease").as_string());
  const Answer stale = ask(client_, "POST", "/callbacks/task-result", result(task, "1", "0.99"));
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.text("code"), "stale_result");
  const Answer first = ask(client_, "POST", "/callbacks/task-result", result(task, "1", lease));
  const Answer again = ask(client_, "POST", "/callbacks/task-result", result(task, "1", lease));
  const Answer other = ask(client_, "POST", "/callbacks/task-result", result(task, "2", lease));
  EXPECT_FALSE(first.body.at("duplicate").as_bool());
  EXPECT_TRUE(again.body.at("duplicate").as_bool());
  EXPECT_EQ(other.status, 409);
}

TEST_F(Workers, KeepTheirLeaseWhenTheServerIsKilled) {
  const std::string job_id = submit();
  const json::value task = poll().at(0);
  restart();
  EXPECT_EQ(poll(0).as_array().size(), 0u);  // it is out, and the new server knows
  const std::string lease(task.at("lease").as_string());
  EXPECT_EQ(ask(client_, "POST", "/callbacks/task-result", result(task, "1", lease)).status, 200);
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + job_id + "?wait_ms=5000").text("status"), "COMPLETED");
}

TEST_F(Workers, FindWhatWaitedWhenTheServerWasKilled) {
  const std::string job_id = submit();
  restart();
  EXPECT_EQ(poll().at(0).at("job_id").as_string(), job_id);
}

TEST_F(Workers, AreToldByTheHeartbeatWhatWasCancelled) {
  const std::string job_id = submit();
  const json::value task = poll().at(0);
  const std::string beat = json::serialize(
      json::object{{"worker", "w1"},
                   {"tasks", {json::object{{"task_id", task.at("task_id")}, {"lease", task.at("lease")}}}}});
  EXPECT_EQ(ask(client_, "POST", "/workers/heartbeat", beat).body.at("cancelled").as_array().size(), 0u);
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + job_id + "/cancel").status, 200);
  EXPECT_EQ(ask(client_, "POST", "/workers/heartbeat", beat).body.at("cancelled").as_array().size(), 1u);
  EXPECT_EQ(ask(client_, "POST", "/callbacks/task-result", result(task, "1")).status, 409);
}

}  // namespace
}  // namespace baton::e2e
