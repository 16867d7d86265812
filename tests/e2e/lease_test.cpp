// Leases under violence: workers and servers that are killed, zombies, and tasks that kill whoever takes
// them.
#include <signal.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/e2e/agent.hpp"

namespace baton::e2e {
namespace {

const std::string work_yaml = R"(
workflow_id: work
nodes:
  start: {type: start, next: [work]}
  work: {type: task, handler: work, queue: pool, next: [end]}
  end: {type: end}
)";

class Leases : public testing::Test {
 protected:
  Leases() { publish(client_, work_yaml); }

  [[nodiscard]] std::vector<std::string> options() const {
    return {"--data", data_.path(), "--lease-seconds", "1"};
  }
  std::vector<std::string> submit(int count) {
    std::vector<std::string> ids;
    for (int i = 0; i < count; ++i)
      ids.push_back(ask(client_, "POST", "/jobs", R"({"workflow_id":"work"})").text("job_id"));
    return ids;
  }
  json::array poll(int max, int wait_ms) {
    const Answer answer = ask(client_, "POST", "/workers/pool/jobs:poll",
                              R"({"worker":"w","heartbeat":true,"max":)" + std::to_string(max) +
                                  R"(,"wait_ms":)" + std::to_string(wait_ms) + "}");
    return answer.body.at("jobs").as_array();
  }
  int report(const json::value& task) {
    const json::object body{{"task_id", task.at("task_id")},
                            {"lease", task.at("lease")},
                            {"status", "completed"},
                            {"output", task.at("lease")}};
    return ask(client_, "POST", "/callbacks/task-result", json::serialize(body)).status;
  }
  void restart() {
    server_.process().signal(SIGKILL);
    ASSERT_EQ(server_.process().wait(10s), 128 + SIGKILL);
    server_ = Server(options());
    client_ = server_.client();
  }

  support::TemporaryDirectory data_;
  Server server_{options()};
  http::Client client_ = server_.client();
};

TEST_F(Leases, AWorkerKilledInTheMiddleOfAThousandJobsLosesNothingAndDoublesNothing) {
  FunctionDirectory functions;
  functions.add("work", "cat >/dev/null; sleep 0.02; echo 1");
  const std::vector<std::string> ids = submit(1'000);
  {
    Agent doomed(server_.url(), functions, {"--concurrency", "8"});
    ASSERT_TRUE(eventually([&] {
      return ask(client_, "GET", "/jobs?status=COMPLETED&limit=200").body.at("jobs").as_array().size() == 200;
    }));
    doomed.process().signal(SIGKILL);
  }
  Agent heir(server_.url(), functions, {"--concurrency", "8"});
  int taken_over = 0;
  for (const std::string& id : ids) {
    const Answer job = ask(client_, "GET", "/jobs/" + id + "?wait_ms=60000");
    ASSERT_EQ(job.text("status"), "COMPLETED") << id;
    const auto events = timeline(client_, id);
    EXPECT_EQ(std::ranges::count(events, "node_completed work"), 1) << id;
    const auto expired = std::ranges::count(events, "node_lease_expired work");
    // A worker that was late may tell the result of a lease that has run out, as long as nobody else was given the task.
    const auto deliveries = job.body.at("nodes").at("work").at("delivery_count").as_int64();
    const auto begun = std::ranges::find(events.rbegin(), events.rend(), "node_retry work").base();  // the last attempt
    EXPECT_EQ(deliveries, std::count(begun, events.end(), "node_started work")) << id;
    EXPECT_LE(deliveries, expired + 1) << id;
    taken_over += expired > 0;
  }
  EXPECT_GT(taken_over, 0);  // what the first was running when it was killed
}

TEST_F(Leases, AServerKilledWhileLeasesAreOutForgetsNeitherThemNorTheirNumber) {
  submit(40);
  const json::array first = poll(20, 5'000);
  ASSERT_EQ(first.size(), 20u);
  restart();
  // What was out is still out; the others can be had.
  const json::array others = poll(100, 0);
  EXPECT_EQ(others.size(), 20u);
  for (const json::value& task : others) EXPECT_EQ(report(task), 200);
  // Half of the workers live and report, the others have died: their tasks come again, counted.
  for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(report(first[i]), 200);
  std::map<std::string, json::value> again;
  for (int i = 0; i < 20 && again.size() < 10; ++i)
    for (const json::value& task : poll(100, 1'000)) again.emplace(task.at("task_id").as_string(), task);
  ASSERT_EQ(again.size(), 10u);
  for (std::size_t i = 10; i < 20; ++i) {
    const std::string id(first[i].at("task_id").as_string());
    EXPECT_EQ(again.at(id).at("delivery_count").as_int64(), 2);
    EXPECT_EQ(report(first[i]), 409) << "a zombie";
    EXPECT_EQ(report(again.at(id)), 200);
    EXPECT_EQ(report(again.at(id)), 200) << "the same again changes nothing";
    EXPECT_EQ(report(first[i]), 409);
  }
  const Answer done = ask(client_, "GET", "/jobs?status=COMPLETED&limit=200");
  EXPECT_EQ(done.body.at("jobs").as_array().size(), 40u);
}

TEST_F(Leases, APoisonousTaskDiesAfterTenDeliveriesIsListedAndCanBeReplayed) {
  const std::string job_id = submit(1)[0];
  std::set<std::string> leases;
  for (int delivery = 1; delivery <= 10; ++delivery) {
    const json::array tasks = poll(1, 20'000);
    ASSERT_EQ(tasks.size(), 1u) << delivery;
    EXPECT_EQ(tasks[0].at("delivery_count").as_int64(), delivery);
    leases.emplace(tasks[0].at("lease").as_string());
    if (delivery == 5) restart();
  }
  EXPECT_EQ(leases.size(), 10u);
  const Answer job = ask(client_, "GET", "/jobs/" + job_id + "?wait_ms=20000");
  EXPECT_EQ(job.text("status"), "FAILED");
  EXPECT_TRUE(job.text("error").contains("given up after 10 deliveries")) << job.text("error");
  EXPECT_EQ(std::ranges::count(timeline(client_, job_id), "node_lease_expired work"), 10);

  const Answer dead = ask(client_, "GET", "/dead-letters");
  ASSERT_EQ(dead.body.at("dead_letters").as_array().size(), 1u);
  const std::string task_id(dead.body.at("dead_letters").at(0).at("task_id").as_string());
  EXPECT_EQ(ask(client_, "POST", "/dead-letters/" + task_id + "/replay", R"({"by":"ada"})").text("status"),
            "RUNNING");
  EXPECT_EQ(ask(client_, "GET", "/dead-letters").body.at("dead_letters").as_array().size(), 0u);
  EXPECT_EQ(ask(client_, "POST", "/dead-letters/" + task_id + "/replay").status, 409);
  const json::array tasks = poll(1, 5'000);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].at("retry_count").as_int64(), 1);
  EXPECT_EQ(report(tasks[0]), 200);
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + job_id).text("status"), "COMPLETED");
}

TEST_F(Leases, AServerKilledAgainAndAgainDuringAFanOutLosesNoItemAndDoublesNone) {
  constexpr int items = 1'500;
  publish(client_, R"(
workflow_id: fan
nodes:
  start: {type: start, next: split}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    task: {handler: work, queue: pool, params: {item: "{{ item }}"}}
    next: merge
  merge: {type: fan_in, aggregation: sum, field: item, next: end}
  end: {type: end}
)");
  FunctionDirectory functions;
  functions.add("work", "cat");
  std::string list;
  for (int i = 0; i < items; ++i) list += (i == 0 ? "" : ",") + std::to_string(i);
  Agent agent(server_.url(), functions, {"--concurrency", "8"});
  const std::string port = server_.url().substr(server_.url().rfind(':') + 1);
  const std::string id =
      ask(client_, "POST", "/jobs", R"({"workflow_id":"fan","input_data":{"items":[)" + list + "]}}")
          .text("job_id");
  std::unique_ptr<support::Process> again;
  for (int kills = 0; kills < 5; ++kills) {
    const auto done = [&] {
      const Answer view = ask(client_, "GET", "/jobs/" + id);
      const auto* nodes = view.body.is_object() ? view.body.as_object().if_contains("nodes") : nullptr;
      return nodes ? nodes->at("split").at("items").at("done").as_int64() : 0;
    };
    ASSERT_TRUE(eventually([&] { return done() >= (kills + 1) * items / 8; })) << agent.said();
    support::Process& server = again ? *again : server_.process();
    server.signal(SIGKILL);
    ASSERT_EQ(server.wait(10s), 128 + SIGKILL);
    again = std::make_unique<support::Process>(
        std::vector<std::string>{BATON_BINARY, "serve", "--listen", "127.0.0.1:" + port, "--data",
                                 data_.path().string(), "--lease-seconds", "1"});
    ASSERT_TRUE(again->first_line(30s)) << again->err();
    client_ = server_.client();
  }
  const Answer job = ask(client_, "GET", "/jobs/" + id + "?wait_ms=60000");
  ASSERT_EQ(job.text("status"), "COMPLETED") << job.text("error");
  EXPECT_EQ(json::serialize(job.body.at("result_data").at("merge")),
            R"({"result":1124250,"count":1500,"failed":0})");
  std::map<std::string, int> completed;
  std::int64_t after = 0;
  while (true) {
    const Answer page =
        ask(client_, "GET", "/jobs/" + id + "/timeline?limit=1000&after=" + std::to_string(after));
    if (page.body.at("events").as_array().empty()) break;
    for (const json::value& event : page.body.at("events").as_array())
      if (event.at("event_type") == "node_completed")
        ++completed[std::string(event.at("node_id").as_string())];
    after = page.body.at("next_after").as_int64();
  }
  EXPECT_EQ(completed.size(), items + 2u);  // the fan-out and the fan_in too
  for (const auto& [node, times] : completed) EXPECT_EQ(times, 1) << node;
}

}  // namespace
}  // namespace baton::e2e
