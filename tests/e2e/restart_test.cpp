// Whoever waits survives a restart of the server: kill -9 in the middle of each wait.
#include <csignal>
#include <set>
#include <thread>

#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

const std::string runbook_yaml = R"(
name: move
data_source: {type: csv, connection: MOVE, interval: 1d, primary_key: Key, batch_time_column: T}
phases:
  - {name: go, offset: T-0, steps: [{name: one, worker_id: movers, function: One, params: {Key: "{{Key}}"}}]}
)";

class Restart : public testing::Test {
 protected:
  Restart() { start("127.0.0.1:0"); }

  void start(const std::string& listen) {
    process_ = std::make_unique<support::Process>(std::vector<std::string>{
        BATON_BINARY, "serve", "--listen", listen, "--data", directory_.path().string()});
    const std::string url = process_->first_line(60s).value_or("");
    if (url.empty()) ADD_FAILURE() << "the server did not start: " << process_->err();
    url_ = url;
    client_ = std::make_unique<http::Client>(url_);
  }
  void kill() {
    process_->signal(SIGKILL);
    EXPECT_EQ(process_->wait(10s), 128 + SIGKILL);
  }
  void restart() { start(url_.substr(std::string("http://").size())); }

  std::unique_ptr<support::Process> watch(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BATON_BINARY);
    return std::make_unique<support::Process>(std::move(arguments),
                                              std::vector<std::string>{"BATON_SERVER=" + url_});
  }
  // Ends with what it says on standard error or output.
  static bool says(support::Process& process, const std::string& text) {
    const auto give_up = std::chrono::steady_clock::now() + 30s;
    while (std::chrono::steady_clock::now() < give_up) {
      if ((process.err() + process.out()).find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(20ms);
    }
    return false;
  }
  static int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  void do_task(const std::string& result) {
    const Answer poll = ask(*client_, "POST", "/workers/images/jobs:poll", R"({"worker":"w","wait_ms":20000})");
    ASSERT_EQ(poll.status, 200);
    ASSERT_EQ(poll.body.at("jobs").as_array().size(), 1U) << json::serialize(poll.body);
    const auto& task = poll.body.at("jobs").at(0);
    const json::object body{{"task_id", task.at("task_id")}, {"lease", task.at("lease")}, {"status", result},
                            {"error", result == "failed" ? json::value("broken") : json::value(nullptr)}};
    EXPECT_EQ(ask(*client_, "POST", "/callbacks/task-result", json::serialize(body)).status, 200);
  }
  std::string submit() { return ask(*client_, "POST", "/jobs", R"({"workflow_id":"queued"})").text("job_id"); }

  support::TemporaryDirectory directory_;
  std::unique_ptr<support::Process> process_;
  std::string url_;
  std::unique_ptr<http::Client> client_;
};

TEST_F(Restart, SubmitWithWaitGoesOnAndTellsTheOutcome) {
  publish(*client_, queued_yaml);
  const auto waiting = watch({"job", "submit", "queued", "--wait"});
  ASSERT_TRUE(says(*waiting, "work dispatched")) << waiting->err();
  kill();
  ASSERT_TRUE(says(*waiting, "waiting for the server")) << waiting->err();
  restart();
  ASSERT_TRUE(says(*waiting, "the server is back")) << waiting->err();
  do_task("completed");
  EXPECT_EQ(waiting->wait(30s), 0) << waiting->err();
  EXPECT_EQ(count(waiting->err(), "waiting for the server"), 1) << waiting->err();
  EXPECT_EQ(waiting->err().find("running?"), std::string::npos) << waiting->err();
  EXPECT_EQ(count(waiting->err(), "job completed"), 1) << waiting->err();
}

TEST_F(Restart, WatchOfAJobGoesOnAndTellsItsFailure) {
  publish(*client_, queued_yaml);
  const auto waiting = watch({"job", "watch", submit()});
  ASSERT_TRUE(says(*waiting, "work dispatched")) << waiting->err();
  kill();
  restart();
  do_task("failed");
  EXPECT_EQ(waiting->wait(30s), 1) << waiting->err();
}

TEST_F(Restart, WatchOfACallGoesOn) {
  const Answer call = ask(*client_, "POST", "/tenants/-/service-calls",
                          R"({"name":"n","delaySeconds":3600,"requestSpec":{"url":"http://example.com/"}})");
  ASSERT_EQ(call.status, 202);
  const std::string id = call.text("serviceCallId");
  const auto waiting = watch({"call", "watch", id});
  ASSERT_TRUE(says(*waiting, id + " Scheduled")) << waiting->err();
  kill();
  ASSERT_TRUE(says(*waiting, "waiting for the server")) << waiting->err();
  restart();
  EXPECT_EQ(ask(*client_, "POST", "/tenants/-/service-calls/" + id + "/cancel").status, 200);
  EXPECT_EQ(waiting->wait(30s), 1) << waiting->err();
  EXPECT_NE(waiting->out().find("Cancelled"), std::string::npos) << waiting->out();
}

TEST_F(Restart, WatchOfABatchGoesOn) {
  ASSERT_EQ(ask(*client_, "POST", "/runbooks", runbook_yaml, "application/yaml").status, 201);
  const Answer batch = ask(*client_, "POST", "/runbooks/move/batches", "Key\nada\n", "text/csv");
  ASSERT_EQ(batch.status, 201) << json::serialize(batch.body);
  const std::string id = std::to_string(batch.body.at("id").as_int64());
  const auto waiting = watch({"batch", "watch", id});
  const auto silent = watch({"batch", "watch", id, "--json"});
  ASSERT_TRUE(says(*waiting, "batch " + id)) << waiting->out() << waiting->err();
  std::this_thread::sleep_for(1s);  // the other says nothing when it has begun
  kill();
  ASSERT_TRUE(says(*waiting, "waiting for the server")) << waiting->err();
  ASSERT_TRUE(says(*silent, "waiting for the server")) << silent->err();
  restart();
  ASSERT_TRUE(says(*waiting, "the server is back")) << waiting->err();
  ASSERT_TRUE(says(*silent, "the server is back")) << silent->err();
  EXPECT_EQ(ask(*client_, "POST", "/batches/" + id + "/cancel", "{}").status, 200);
  for (const auto& each : {&waiting, &silent}) {
    EXPECT_EQ((*each)->wait(30s), 1) << (*each)->err();
    EXPECT_EQ(count((*each)->err(), "waiting for the server"), 1) << (*each)->err();
    EXPECT_EQ(count((*each)->err(), "the server is back"), 1) << (*each)->err();
    EXPECT_EQ((*each)->out().find("the server"), std::string::npos) << (*each)->out();
    EXPECT_NE((*each)->out().find("cancelled"), std::string::npos) << (*each)->out();
  }
  EXPECT_EQ(silent->out().front(), '{') << silent->out();
}

TEST_F(Restart, AServerThatDoesNotComeBackIsNotAFailureOfTheWork) {
  publish(*client_, queued_yaml);
  ASSERT_EQ(ask(*client_, "POST", "/runbooks", runbook_yaml, "application/yaml").status, 201);
  const Answer batch = ask(*client_, "POST", "/runbooks/move/batches", "Key\nada\n", "text/csv");
  ASSERT_EQ(batch.status, 201) << json::serialize(batch.body);
  const std::string batch_id = std::to_string(batch.body.at("id").as_int64());
  const Answer call = ask(*client_, "POST", "/tenants/-/service-calls",
                          R"({"name":"n","delaySeconds":3600,"requestSpec":{"url":"http://example.com/"}})");
  ASSERT_EQ(call.status, 202);
  const std::string call_id = call.text("serviceCallId");
  struct Wait {
    std::vector<std::string> command;
    std::string says;  // when it has begun
    std::unique_ptr<support::Process> process;
  };
  std::vector<Wait> waits;
  waits.push_back({{"job", "watch", submit()}, "work dispatched", nullptr});
  waits.push_back({{"job", "submit", "queued", "--wait"}, "work dispatched", nullptr});
  waits.push_back({{"batch", "watch", batch_id}, "batch " + batch_id, nullptr});
  waits.push_back({{"call", "watch", call_id}, call_id + " Scheduled", nullptr});
  for (Wait& each : waits) {
    each.command.insert(each.command.end(), {"--reconnect", "1"});
    each.process = watch(each.command);
  }
  for (Wait& each : waits)
    ASSERT_TRUE(says(*each.process, each.says)) << each.command[0] << ' ' << each.command[1] << ": " << each.process->err();
  kill();
  for (Wait& each : waits)
    EXPECT_EQ(each.process->wait(30s), 6) << each.command[0] << ' ' << each.command[1] << ": " << each.process->err();
  // One that was never there is told at once.
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(watch({"job", "watch", "x"})->wait(30s), 6);
  EXPECT_EQ(watch({"job", "list"})->wait(30s), 6);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

// --- the stream

TEST_F(Restart, AStreamTellsTheGapThatARestartLeaves) {
  publish(*client_, queued_yaml);
  http::EventStream events{http::Client(url_)};
  ASSERT_EQ(events.open("/api/v1/stream?topic=all")->status, 200);
  const std::string id = submit();
  auto event = events.next(20s);
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->event, "job");
  EXPECT_NE((*event)->data.find(id), std::string::npos) << (*event)->data;
  kill();
  while (event) event = events.next(20s);
  restart();
  ASSERT_EQ(events.open("/api/v1/stream?topic=all")->status, 200);
  event = events.next(20s);
  ASSERT_TRUE(event && *event);
  EXPECT_EQ((*event)->event, "gap");
  EXPECT_EQ((*event)->data, R"({"why":"restarted"})");
  // From there on it tells what happens.
  const std::string next = submit();
  event = events.next(20s);
  ASSERT_TRUE(event && *event);
  EXPECT_NE((*event)->data.find(next), std::string::npos) << (*event)->data;
}

TEST_F(Restart, AStreamResumesAfterAThousandCommits) {
  publish(*client_, queued_yaml);
  http::EventStream events{http::Client(url_)};
  ASSERT_EQ(events.open("/api/v1/stream")->status, 200);
  std::set<std::string> made{submit()};
  const auto first = events.next(20s);
  ASSERT_TRUE(first && *first);
  ASSERT_NE((*first)->data.find("job_created"), std::string::npos) << (*first)->data;
  std::set<std::string> told = made;
  for (int i = 0; i < 1'000; ++i) made.insert(submit());
  ASSERT_EQ(events.open("/api/v1/stream")->status, 200);
  while (told.size() < made.size()) {
    const auto event = events.next(20s);
    ASSERT_TRUE(event && *event) << told.size();
    ASSERT_NE((*event)->event, "gap");
    const json::value data = json::parse((*event)->data);
    if (data.at("what") == "job_created") {
      EXPECT_TRUE(told.insert(std::string(data.at("id").as_string())).second);
    }
  }
  EXPECT_EQ(told, made);
}

}  // namespace
}  // namespace baton::e2e
