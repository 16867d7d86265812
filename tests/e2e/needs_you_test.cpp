// What people see of a night that does not go as planned, and how they answer, with the real binary.
#include <algorithm>
#include <fstream>

#include "base/time.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e::needs_you_test {
namespace {

const std::string by_hand_yaml =
    "name: move\ndata_source: {type: csv, connection: NONE, interval: 7d, primary_key: Key, batch_time_column: T}\n"
    "phases:\n  - name: cut\n    offset: T-0\n    steps:\n"
    "      - {name: switch, worker_id: pool, function: Switch, params: {Key: \"{{Key}}\"}}\n";

std::string keys(int n) {
  std::string csv = "Key\n";
  for (int i = 0; i < n; ++i) csv += "m" + std::to_string(i) + "\n";
  return csv;
}

json::array take(http::Client& client, int max, int wait_ms = 5000) {
  const Answer answer = ask(client, "POST", "/workers/pool/jobs:poll",
                            "{\"worker\":\"w1\",\"max\":" + std::to_string(max) + ",\"wait_ms\":" + std::to_string(wait_ms) + "}");
  return answer.status == 200 ? answer.body.at("jobs").as_array() : json::array{};
}

void report(http::Client& client, const json::value& job, bool success) {
  json::object result{{"jobId", job.at("jobId")}, {"status", success ? "Success" : "Failure"}, {"lease", job.at("lease")}};
  if (success)
    result["result"] = json::object{};
  else
    result["error"] = {{"message", "the disk is full"}};
  EXPECT_EQ(ask(client, "POST", "/callbacks/worker-result", json::serialize(result)).status, 200);
}

TEST(NeedsYou, ABatchInWhichTwentyNineOfThirtyFailedSaysSoAndEndsWithACodeOfItsOwn) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  auto client = server.client();
  const std::string to = "BATON_SERVER=" + server.url();
  ASSERT_EQ(ask(client, "POST", "/runbooks", by_hand_yaml, "application/yaml").status, 201);
  ASSERT_EQ(ask(client, "POST", "/runbooks/move/batches", keys(30), "text/csv").status, 201);
  ASSERT_EQ(ask(client, "POST", "/batches/1/advance", R"({"by":"ann","reason":"it is time"})").status, 200);
  int done = 0;
  while (done < 30) {
    const json::array jobs = take(client, 30);
    ASSERT_FALSE(jobs.empty());
    for (const auto& job : jobs) report(client, job, done++ == 0);
  }
  const Ran watched = baton({"batch", "watch", "1"}, {to});
  EXPECT_EQ(watched.code, 5) << watched.out << watched.err;
  EXPECT_NE(watched.out.find("batch 1 completed_with_failures"), std::string::npos) << watched.out;
  EXPECT_NE(watched.out.find("29 failed"), std::string::npos) << watched.out;
  const Answer batch = ask(client, "GET", "/batches/1");
  EXPECT_EQ(batch.text("status"), "completed");
  EXPECT_EQ(batch.text("outcome"), "completed_with_failures");
  EXPECT_NE(baton({"batch", "list"}, {to}).out.find("completed_with_failures"), std::string::npos);
  const Ran lines = baton({"batch", "report", "1", "--csv"}, {to});
  EXPECT_EQ(std::ranges::count(lines.out, '\n'), 31) << lines.out;
  EXPECT_NE(lines.out.find(",failed,"), std::string::npos);
  EXPECT_NE(lines.out.find(",cut,switch,the disk is full\n"), std::string::npos) << lines.out;
  EXPECT_NE(baton({"batch", "events", "1"}, {to}).out.find("by ann: it is time"), std::string::npos);
  const Ran why = baton({"member", "why", "1", "m1"}, {to});
  EXPECT_NE(why.out.find("the disk is full"), std::string::npos) << why.out << why.err;
  EXPECT_EQ(baton({"batch", "watch", "--all"}, {to}).code, 0) << "nothing is open";
}

TEST(NeedsYou, AGateIsListedAndAnsweredOnce) {
  const support::TemporaryDirectory data;
  const std::string csv = (data.path() / "waves.csv").string();
  std::ofstream(csv) << "Key,T\nada," << to_iso(std::chrono::floor<Duration>(std::chrono::system_clock::now()) + 2s) << "\n";
  setenv("NIGHT_CSV", csv.c_str(), 1);
  Server server({"--data", data.path()});
  unsetenv("NIGHT_CSV");
  auto client = server.client();
  const std::string to = "BATON_SERVER=" + server.url();
  const std::string yaml =
      "name: night\ndata_source: {type: csv, connection: NIGHT_CSV, interval: 1d, primary_key: Key, batch_time_column: T}\n"
      "phases:\n  - name: cut\n    offset: T-0\n    gate: approval\n    steps:\n"
      "      - {name: switch, worker_id: pool, function: Switch, params: {Key: \"{{Key}}\"}}\n";
  ASSERT_EQ(ask(client, "POST", "/runbooks", yaml, "application/yaml").status, 201);
  std::string id;
  ASSERT_TRUE(eventually([&] {
    const Answer answer = ask(client, "GET", "/needs-you");
    for (const auto& need : answer.body.at("needs").as_array())
      if (need.at("kind").as_string() == "gate") id = std::string(need.at("id").as_string());
    return !id.empty();
  }));
  EXPECT_TRUE(take(client, 1, 0).empty());
  const Ran listed = baton({"needs-you"}, {to});
  EXPECT_NE(listed.out.find(id), std::string::npos) << listed.out;
  EXPECT_NE(listed.out.find("go|skip|cancel"), std::string::npos) << listed.out;
  const Ran why = baton({"batch", "why", "1"}, {to});
  EXPECT_NE(why.out.find(id + " waits for an answer"), std::string::npos) << why.out << why.err;
  const Ran shown = baton({"batch", "show", "1"}, {to});
  EXPECT_NE(shown.out.find("baton needs-you answer " + id), std::string::npos) << shown.out;
  EXPECT_EQ(baton({"needs-you", "answer", id, "perhaps", "--by", "ann"}, {to}).code, 1);
  const Ran answered = baton({"needs-you", "answer", id, "go", "--by", "ann", "--reason", "all green"}, {to});
  EXPECT_EQ(answered.code, 0) << answered.err;
  const Ran again = baton({"needs-you", "answer", id, "skip", "--by", "bob"}, {to});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("ann"), std::string::npos) << again.err;
  EXPECT_EQ(take(client, 1).size(), 1U);
  const Ran nothing = baton({"needs-you"}, {to});
  EXPECT_EQ(nothing.out + nothing.err, "Nothing needs you.\n");
  const std::string events = baton({"batch", "events", "1"}, {to}).out;
  EXPECT_NE(events.find("go by ann: all green"), std::string::npos) << events;
}

TEST(NeedsYou, TellsThatNobodyWorksOnAQueueWhenItsOnlyWorkerDied) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  auto client = server.client();
  const std::string to = "BATON_SERVER=" + server.url();
  ASSERT_EQ(ask(client, "POST", "/runbooks", by_hand_yaml, "application/yaml").status, 201);
  ASSERT_EQ(ask(client, "POST", "/runbooks/move/batches", keys(3), "text/csv").status, 201);
  ASSERT_EQ(ask(client, "POST", "/batches/1/advance").status, 200);
  ASSERT_EQ(take(client, 1).size(), 1U);  // and it is never heard of again
  EXPECT_EQ(baton({"batch", "show", "1"}, {to}).out.find("no worker"), std::string::npos) << "it may come back";
  ASSERT_TRUE(eventually([&] { return !ask(client, "GET", "/batches/1").body.at("no_worker").as_array().empty(); }, 90s));
  const Ran shown = baton({"batch", "show", "1"}, {to});
  EXPECT_NE(shown.out.find("no worker is on queue 'pool'"), std::string::npos) << shown.out;
  EXPECT_NE(baton({"needs-you"}, {to}).out.find("no_worker-pool"), std::string::npos);
  EXPECT_NE(baton({"batch", "why", "1"}, {to}).out.find("no worker is on queue 'pool'"), std::string::npos);
}

}  // namespace
}  // namespace baton::e2e::needs_you_test
