// What people do to jobs, over HTTP: pause, resume, retry, rerun, approve, ask why; and what workers tell on
// the way.
#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

class Steering : public testing::Test {
 protected:
  std::string submit(const std::string& body) { return ask(client_, "POST", "/jobs", body).text("job_id"); }
  Answer job(const std::string& id, int wait_ms = 0) {
    return ask(client_, "GET", "/jobs/" + id + "?wait_ms=" + std::to_string(wait_ms));
  }
  json::array poll(const std::string& queue, int wait_ms = 3'000) {
    return ask(client_, "POST", "/workers/" + queue + "/jobs:poll",
               R"({"worker":"w1","max":10,"heartbeat":true,"wait_ms":)" + std::to_string(wait_ms) + "}")
        .body.at("jobs")
        .as_array();
  }
  int say(const std::string& path, const json::value& task, json::object more) {
    more["task_id"] = task.at("task_id");
    more["lease"] = task.at("lease");
    return ask(client_, "POST", path, json::serialize(more)).status;
  }
  int complete(const json::value& task) {
    return say("/callbacks/task-result", task, {{"status", "completed"}, {"output", {{"ok", true}}}});
  }
  std::string why(const std::string& id) {
    return ask(client_, "GET", "/jobs/" + id + "/why").text("reason");
  }

  support::TemporaryDirectory data_;
  Server server_{{"--data", data_.path()}};
  http::Client client_ = server_.client();
};

TEST_F(Steering, APausedJobHandsOutNothingUntilItIsResumed) {
  publish(client_, queued_yaml);
  const std::string id = submit(R"({"workflow_id":"queued"})");
  EXPECT_EQ(why(id), "no_worker");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/pause", R"({"by":"ada"})").text("paused_by"), "ada");
  EXPECT_EQ(poll("images", 200).size(), 0u);
  EXPECT_EQ(why(id), "paused");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/resume").status, 200);
  const json::array tasks = poll("images");
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(why(id), "running");
  EXPECT_EQ(complete(tasks[0]), 200);
  EXPECT_EQ(job(id, 5'000).text("status"), "COMPLETED");
  EXPECT_EQ(why(id), "ended");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/pause").status, 409);
}

TEST_F(Steering, AFailedJobIsRetriedFromWhereItFailedAndRerunFromTheStart) {
  publish(client_, R"(
workflow_id: two
nodes:
  start: {type: start, next: [a]}
  a: {type: task, handler: x, queue: q, next: [b]}
  b: {type: task, handler: x, queue: q, params: {from: "{{ nodes.a.output.ok }}"}, next: [end]}
  end: {type: end}
)");
  const std::string id = submit(R"({"workflow_id":"two","tags":["nightly"],"priority":3})");
  EXPECT_EQ(complete(poll("q")[0]), 200);
  const json::value b = poll("q")[0];
  EXPECT_EQ(json::serialize(b.at("params")), R"({"from":true})");
  EXPECT_EQ(say("/callbacks/task-result", b, {{"status", "failed"}, {"error", "no"}}), 200);
  EXPECT_EQ(job(id).text("status"), "FAILED");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/retry").text("status"), "RUNNING");
  const json::value again = poll("q")[0];
  EXPECT_EQ(again.at("node_id").as_string(), "b");
  EXPECT_EQ(again.at("retry_count").as_int64(), 1);
  EXPECT_EQ(complete(b), 409) << "the attempt before the retry";
  EXPECT_EQ(complete(again), 200);
  EXPECT_EQ(job(id, 5'000).text("status"), "COMPLETED");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/retry").status, 409);

  const Answer rerun = ask(client_, "POST", "/jobs/" + id + "/rerun", R"({"idempotency_key":"once"})");
  EXPECT_EQ(rerun.status, 201);
  EXPECT_EQ(rerun.text("rerun_of"), id);
  EXPECT_EQ(rerun.body.at("priority").as_int64(), 3);
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + id + "/rerun", R"({"idempotency_key":"once"})").text("job_id"),
            rerun.text("job_id"));
  EXPECT_EQ(ask(client_, "GET", "/jobs?tag=nightly").body.at("jobs").as_array().size(), 2u);
  EXPECT_EQ(ask(client_, "GET", "/jobs?tag=other").body.at("jobs").as_array().size(), 0u);
}

TEST_F(Steering, AnApprovalWaitsForAPersonAndTakesOneDecision) {
  publish(client_, R"(
workflow_id: ask
nodes:
  start: {type: start, next: [sure]}
  sure: {type: approval, message: "Delete {{ inputs.what }}?", next: [end]}
  end: {type: end}
)");
  const std::string id = submit(R"({"workflow_id":"ask","input_data":{"what":"it"}})");
  EXPECT_EQ(why(id), "waits_for_approval");
  const Answer list = ask(client_, "GET", "/approvals");
  ASSERT_EQ(list.body.at("approvals").as_array().size(), 1u);
  EXPECT_EQ(list.body.at("approvals").at(0).at("message").as_string(), "Delete it?");
  EXPECT_EQ(ask(client_, "POST", "/workers/approval/jobs:poll", "{}").status, 422) << "no worker may decide";
  const std::string node = "/jobs/" + id + "/nodes/sure";
  EXPECT_EQ(ask(client_, "POST", node + "/approve").status, 422) << "it is known who decides";
  EXPECT_EQ(ask(client_, "POST", node + "/approve", R"({"by":"ada","comment":"yes"})").text("status"),
            "COMPLETED");
  EXPECT_EQ(ask(client_, "POST", node + "/reject", R"({"by":"bob"})").status, 409);
  EXPECT_EQ(job(id).body.at("result_data").at("sure").at("by").as_string(), "ada");
}

TEST_F(Steering, UrgentJobsGoFirstAndLateOnesLater) {
  publish(client_, queued_yaml);
  const std::string low = submit(R"({"workflow_id":"queued","priority":-5})");
  const std::string normal = submit(R"({"workflow_id":"queued"})");
  const std::string high = submit(R"({"workflow_id":"queued","priority":50})");
  const std::string late = submit(R"({"workflow_id":"queued","priority":100,"delay_seconds":1.5})");
  EXPECT_EQ(why(late), "not_due");
  std::vector<std::string> order;
  while (order.size() < 4)
    for (const json::value& task : poll("images")) order.emplace_back(task.at("job_id").as_string());
  EXPECT_EQ(order, (std::vector{high, normal, low, late}));
  EXPECT_EQ(
      ask(client_, "POST", "/jobs", R"({"workflow_id":"queued","priority":101,"tags":[1],"due_at":"soon"})")
          .body.at("errors")
          .as_array()
          .size(),
      3u);
}

TEST_F(Steering, AWorkerTellsItsProgressAndLeavesACheckpointToTheNextAttempt) {
  publish(client_, R"(
workflow_id: long
nodes:
  start: {type: start, next: [work]}
  work: {type: task, handler: x, queue: q, retry: {max_attempts: 2, initial_delay_seconds: 0}, next: [end]}
  end: {type: end}
)");
  const std::string id = submit(R"({"workflow_id":"long"})");
  const json::value task = poll("q")[0];
  EXPECT_FALSE(task.as_object().contains("checkpoint"));
  EXPECT_EQ(say("/callbacks/task-progress", task, {{"progress", 40}, {"message", "half"}}), 200);
  EXPECT_EQ(say("/callbacks/task-progress", task, {{"progress", 140}}), 422);
  EXPECT_EQ(say("/callbacks/task-checkpoint", task, {{"checkpoint", {{"row", 7}}}}), 200);
  EXPECT_EQ(say("/callbacks/task-log", task, {{"lines", {{{"stream", "stderr"}, {"text", "hello"}}}}}), 200);
  const Answer node = ask(client_, "GET", "/jobs/" + id + "/nodes/work");
  EXPECT_EQ(node.body.at("progress").at("progress").as_int64(), 40);
  EXPECT_EQ(
      ask(client_, "GET", "/jobs/" + id + "/nodes/work/logs").body.at("lines").at(0).at("text").as_string(),
      "hello");
  EXPECT_EQ(say("/callbacks/task-result", task, {{"status", "failed"}, {"error", "no"}}), 200);
  const json::value again = poll("q")[0];
  EXPECT_EQ(again.at("checkpoint").at("row").as_int64(), 7);
  EXPECT_EQ(say("/callbacks/task-checkpoint", task, {{"checkpoint", 1}}), 409) << "of the attempt before";
  const Answer workers = ask(client_, "GET", "/workers");
  EXPECT_EQ(workers.body.at("workers").at(0).at("worker").as_string(), "w1");
  EXPECT_EQ(workers.body.at("workers").at(0).at("running_count").as_int64(), 1);
}

TEST_F(Steering, AFanOutRunsItsItemsAndAConditionalTakesOneBranch) {
  publish(client_, R"(
workflow_id: thumbnails
inputs:
  urls: {type: array, required: true}
  size: {type: integer, default: 256}
nodes:
  start: {type: start, next: split}
  split:
    type: fan_out
    source: "{{ inputs.urls }}"
    max_parallel: 2
    task: {handler: resize, queue: images, params: {url: "{{ item }}", size: "{{ inputs.size }}", n: "{{ index }}"}}
    next: merge
  merge: {type: fan_in, aggregation: collect, next: check}
  check:
    type: conditional
    condition: "{{ nodes.merge.output.results | length > 2 }}"
    branches: {true: publish, false: END}
  publish: {type: task, handler: publish, queue: images, params: {all: "{{ nodes.merge.output }}"}, next: END}
  END: {type: end}
)");
  const std::string id = submit(R"({"workflow_id":"thumbnails","input_data":{"urls":["a","b","c"]}})");
  std::size_t done = 0;
  while (done < 3) {
    const json::array tasks = poll("images");
    ASSERT_FALSE(tasks.empty());
    ASSERT_LE(tasks.size(), 2u) << "max_parallel";
    if (done == 0) {
      EXPECT_EQ(json::serialize(tasks[0].at("params")), R"({"url":"a","size":256,"n":0})");
    }
    for (const json::value& task : tasks) EXPECT_EQ(complete(task), 200);
    done += tasks.size();
  }
  const json::value last = poll("images")[0];
  EXPECT_EQ(last.at("node_id").as_string(), "publish");
  EXPECT_EQ(last.at("params").at("all").at("results").as_array().size(), 3u);
  EXPECT_EQ(complete(last), 200);
  EXPECT_EQ(job(id, 5'000).text("status"), "COMPLETED");
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + id + "/nodes/split/items").body.at("items").as_array().size(), 3u);

  const std::string empty = submit(R"({"workflow_id":"thumbnails","input_data":{"urls":[]}})");
  EXPECT_EQ(job(empty, 5'000).text("status"), "COMPLETED");
  EXPECT_EQ(json::serialize(job(empty).body.at("nodes").at("publish").at("status")), R"("SKIPPED")");
}

}  // namespace
}  // namespace baton::e2e
