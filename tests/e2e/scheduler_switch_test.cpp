// A site that has let another scheduler go: what it had planned and asked for is taken over by ours.
#include <csignal>

#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

TEST(SchedulerSwitch, PollsThatAnotherSchedulerMadeGoOnWithOurs) {
  support::TemporaryDirectory dir;
  const auto jobs = [](http::Client& client) {
    const Answer answer = ask(client, "POST", "/workers/movers/jobs:poll", R"({"worker":"w","wait_ms":5000})");
    return answer.status == 200 ? answer.body.at("jobs").as_array() : json::array{};
  };
  {
    Server server({"--data", dir.path(), "--scheduler", "off"});
    auto client = server.client();
    const std::string yaml =
        "name: move\ndata_source: {type: csv, connection: NONE, interval: 7d, primary_key: Key, batch_time_column: T}\n"
        "phases:\n  - name: cut\n    offset: T-0\n    steps:\n"
        "      - {name: move, worker_id: movers, function: Move, poll: {interval: 1s, timeout: 1h}}\n";
    ASSERT_EQ(ask(client, "POST", "/runbooks", yaml, "application/yaml").status, 201);
    ASSERT_EQ(ask(client, "POST", "/runbooks/move/batches", "Key\nada\n", "text/csv").status, 201);
    ASSERT_EQ(ask(client, "POST", "/batches/1/advance").status, 200);
    const json::array first = jobs(client);
    ASSERT_EQ(first.size(), 1U);
    const json::object result{{"jobId", first[0].at("jobId")}, {"status", "Success"}, {"result", {{"complete", false}}}};
    ASSERT_EQ(ask(client, "POST", "/callbacks/worker-result", json::serialize(result)).status, 200);
    server.process().signal(SIGKILL);
  }
  Server server({"--data", dir.path()});
  auto client = server.client();
  const json::array next = jobs(client);
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].at("jobId").as_string(), "step-1-poll-1");
}

}  // namespace
}  // namespace baton::e2e
