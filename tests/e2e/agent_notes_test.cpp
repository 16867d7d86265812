// The agent against a server that answers what the test wants: what it sends, in which order, and what it
// makes of refusals.
#include <atomic>
#include <set>

#include "tests/e2e/agent.hpp"
#include "tests/e2e/fake_server.hpp"

namespace baton::e2e {
namespace {

using Reply = FakeServer::Reply;

const std::string accepted = R"({"results":[{"task_id":"j_n_0","accepted":true,"duplicate":false}]})";

class AgentTalk : public testing::Test {
 protected:
  // One task, then empty polls. What is not a poll is answered by `answer_`.
  Reply answer(const FakeServer::Request& request) {
    if (!request.target.ends_with("jobs:poll")) return answer_(request);
    if (std::exchange(is_given_, true)) {
      std::this_thread::sleep_for(20ms);  // a long poll that ends empty, so that the agent does not spin
      return {200, R"({"jobs":[]})"};
    }
    return {200, R"({"jobs":[)" + jobs_ + "]}"};
  }
  void answer_with(std::function<Reply(const FakeServer::Request&)> answer) {
    server_.between_requests([&] { answer_ = std::move(answer); });
  }
  void give(const std::string& jobs) {
    server_.between_requests([&] { jobs_ = jobs; });
  }
  [[nodiscard]] bool has_result() {
    return eventually([&] { return !server_.asked("task-results").empty(); });
  }
  static json::value only(const std::vector<std::string>& results) {
    return results.empty() ? json::value() : json::parse(results.front()).at("results").at(0);
  }

  FunctionDirectory functions_;
  std::function<Reply(const FakeServer::Request&)> answer_ = [](const auto& request) {
    return request.target.ends_with("task-results") ? Reply{200, accepted} : Reply{};
  };
  std::string jobs_ =
      R"({"task_id":"j_n_0","job_id":"j","node_id":"n","handler":"work","params":{},"queue":"pool",)"
      R"("timeout_seconds":60,"retry_count":0,"delivery_count":1,"lease":"0.1",)"
      R"("traceparent":"00-1-2-01","checkpoint":{"page":7}})";
  bool is_given_ = false;
  FakeServer server_{[this](const auto& request) { return answer(request); }};
};

TEST_F(AgentTalk, SendsTheLogWithItsTimesBeforeTheResult) {
  functions_.add("work", "echo one >&2; echo 'two \"2\"' >&2; echo 1");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(has_result()) << agent.said();
  const auto logs = server_.asked("task-log");
  ASSERT_EQ(logs.size(), 1u);
  const json::value log = json::parse(logs[0]);
  EXPECT_EQ(log.at("task_id").as_string(), "j_n_0");
  EXPECT_EQ(log.at("lease").as_string(), "0.1");
  ASSERT_EQ(log.at("lines").as_array().size(), 2u);
  EXPECT_EQ(log.at("lines").at(1).at("text").as_string(), "two \"2\"");
  EXPECT_EQ(log.at("lines").at(1).at("stream").as_string(), "stderr");
  EXPECT_TRUE(log.at("lines").at(1).at("at").as_string().ends_with("Z"));
  const auto order = server_.order();
  EXPECT_LT(std::ranges::find(order, "task-log"), std::ranges::find(order, "task-results"));
}

TEST_F(AgentTalk, StreamsTheLogWhileTheProgramRuns) {
  functions_.add("work", "echo first >&2; while [ ! -e $0.go ]; do sleep 0.02; done; echo last >&2");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(eventually([&] { return server_.asked("task-log").size() == 1; })) << agent.said();
  EXPECT_TRUE(server_.asked("task-results").empty());
  std::ofstream(functions_.path() / "work.go") << "\n";
  ASSERT_TRUE(has_result());
  EXPECT_EQ(server_.asked("task-log").size(), 2u);
}

TEST_F(AgentTalk, CutsTheLogAndSaysSo) {
  functions_.add("work", "seq 1 100000 >&2");
  Agent agent(server_.url(), functions_, {"--log-limit", "1k"});
  ASSERT_TRUE(has_result()) << agent.said();
  std::size_t lines = 0, bytes = 0;
  std::string last;
  for (const auto& body : server_.asked("task-log")) {
    const json::value log = json::parse(body);
    for (const auto& line : log.at("lines").as_array()) {
      ++lines;
      last = line.at("text").as_string();
      bytes += last.size();
    }
  }
  EXPECT_LT(bytes, 1'200u);
  EXPECT_GT(lines, 200u);
  EXPECT_EQ(last, "... the log is cut here, at 1024 bytes");
}

TEST_F(AgentTalk, SendsEveryCheckpointInOrderAndTheLastProgress) {
  functions_.add("work", R"(cat $BATON_CHECKPOINT; echo $BATON_CHECKPOINT > $0.path
for i in 1 2 3 4 5; do echo "{\"checkpoint\": {\"page\": $i}}" >&3; echo "{\"progress\": $i, \"message\": \"page $i\"}" >&3; done
echo rubbish >&3)");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(has_result()) << agent.said();
  EXPECT_EQ(json::serialize(only(server_.asked("task-results")).at("output")), R"({"page":7})");
  std::vector<std::string> expected;
  for (int i = 1; i <= 5; ++i)
    expected.push_back(R"({"task_id":"j_n_0","lease":"0.1","checkpoint":{"page":)" + std::to_string(i) +
                       "}}");
  EXPECT_EQ(server_.asked("task-checkpoint"), expected);
  ASSERT_FALSE(server_.asked("task-progress").empty());
  EXPECT_EQ(server_.asked("task-progress").back(),
            R"({"task_id":"j_n_0","lease":"0.1","progress":5,"message":"page 5"})");
  std::string path = read_text(functions_.path() / "work.path");
  path.pop_back();
  EXPECT_FALSE(path.empty());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(AgentTalk, IsQuietToAServerThatKnowsNoLogs) {
  answer_with([](const auto& request) {
    return request.target.ends_with("task-results") ? Reply{200, accepted}
                                                    : Reply{404, R"({"code":"not_found"})"};
  });
  functions_.add("work", "for i in 1 2 3 4; do echo $i >&2; sleep 0.3; done");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(has_result()) << agent.said();
  EXPECT_EQ(server_.asked("task-log").size(), 1u);
  EXPECT_EQ(agent.said().find("baton:"), std::string::npos) << agent.said();
}

TEST_F(AgentTalk, EndsTheProgramWhenALogIsRefused) {
  answer_with([](const auto& request) {
    return request.target.ends_with("task-log") ? Reply{409, R"({"code":"stale_result"})"}
                                                : Reply{200, accepted};
  });
  functions_.add("work", "echo $$ > $0.id; echo hello >&2; exec sleep 100");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(eventually([&] { return read_text(functions_.path() / "work.id").ends_with('\n'); }));
  const pid_t id = std::stoi(read_text(functions_.path() / "work.id"));
  EXPECT_TRUE(eventually([&] { return !is_running(id); })) << agent.said();
  EXPECT_TRUE(server_.asked("task-results").empty());
}

// ---- jobs of runbooks ----

// A job as the contract with the workers of runbooks has it.
std::string runbook_job(const std::string& id) {
  return R"({"jobId":")" + id +
         R"(","batchId":42,"workerId":"pool","functionName":"New-User","parameters":{"Upn":"ada@contoso.com","Quota":1.50},)"
         R"("correlationData":{"stepExecutionId":12,"isInitStep":false,"runbookName":"mail","runbookVersion":3},)"
         R"("lease":"2","lease_until":"2026-01-01T00:00:00Z","timeout_seconds":60,"delivery_count":2,)"
         R"("retry_count":1})";
}
const std::string not_possible =
    R"({"code":"not_possible","detail":"jobs of runbooks have neither progress nor checkpoints"})";

TEST_F(AgentTalk, RunsAJobOfARunbookAndReportsItAsATask) {
  give(runbook_job("step-12-retry-1"));
  functions_.add("New-User", R"sh(echo "creating" >&2
printf '{"complete": false, "params": %s, "ids": ["%s", "%s", "%s"], "batch": %s, "retry": %s, "correlation": %s}' \
  "$(cat)" "$BATON_TASK_ID" "$BATON_JOB_ID" "$BATON_RUNBOOK" "$BATON_BATCH_ID" "$BATON_RETRY_COUNT" "$BATON_CORRELATION")sh");
  Agent agent(server_.url(), functions_, {}, {"BATON_BATCH_ID=of-the-agent"});
  ASSERT_TRUE(has_result()) << agent.said();
  const json::value result = only(server_.asked("task-results"));
  EXPECT_EQ(result.at("task_id").as_string(), "step-12-retry-1");
  EXPECT_EQ(result.at("lease").as_string(), "2");
  EXPECT_EQ(result.at("status").as_string(), "completed") << json::serialize(result);
  EXPECT_EQ(
      json::serialize(result.at("output")),
      json::serialize(json::parse(
          R"({"complete":false,"params":{"Upn":"ada@contoso.com","Quota":1.50},)"
          R"("ids":["step-12-retry-1","step-12-retry-1","mail"],"batch":42,"retry":1,)"
          R"("correlation":{"stepExecutionId":12,"isInitStep":false,"runbookName":"mail","runbookVersion":3}})")));
  const auto logs = server_.asked("task-log");
  ASSERT_EQ(logs.size(), 1u);
  EXPECT_EQ(json::parse(logs[0]).at("task_id").as_string(), "step-12-retry-1");
}

TEST_F(AgentTalk, ReportsTheFailureOfAJobOfARunbook) {
  give(runbook_job("init-3"));
  functions_.add("New-User", "echo 'the directory is full' >&2; exit 2");
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(has_result()) << agent.said();
  const json::value result = only(server_.asked("task-results"));
  EXPECT_EQ(result.at("status").as_string(), "failed");
  EXPECT_EQ(result.at("error").as_string(), "exit code 2: the directory is full");
}

TEST_F(AgentTalk, GoesOnWithAJobThatCanHaveNoProgressAndSaysSoOnce) {
  give(runbook_job("step-12") + "," + runbook_job("step-13"));
  answer_with([](const auto& request) -> Reply {
    if (request.target.ends_with("task-progress") || request.target.ends_with("task-checkpoint"))
      return {409, not_possible};
    return request.target.ends_with("task-results") ? Reply{200, accepted} : Reply{};
  });
  functions_.add("New-User", R"(for i in 1 2 3; do
  echo "{\"checkpoint\": $i}" >&3; echo "{\"progress\": $i}" >&3; echo "line $i" >&2; sleep 0.3
done; echo 1)");
  Agent agent(server_.url(), functions_, {"--concurrency", "2"});
  const auto results = [&] {
    std::set<std::string> ids;
    for (const auto& body : server_.asked("task-results")) {
      const json::value sent = json::parse(body);
      for (const auto& result : sent.at("results").as_array())
        if (result.at("status").as_string() == "completed")
          ids.insert(std::string(result.at("task_id").as_string()));
    }
    return ids;
  };
  ASSERT_TRUE(eventually([&] { return results().size() == 2; })) << agent.said();
  EXPECT_EQ(results(), (std::set<std::string>{"step-12", "step-13"}));
  EXPECT_LE(server_.asked("task-checkpoint").size() + server_.asked("task-progress").size(), 4u);
  std::size_t lines = 0;
  for (const auto& body : server_.asked("task-log")) lines += json::parse(body).at("lines").as_array().size();
  EXPECT_EQ(lines, 6u);
  const std::string said = agent.said();
  const std::string words = "neither progress nor checkpoints";
  const auto first = said.find(words);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(words, first + 1), std::string::npos) << said;
}

TEST_F(AgentTalk, HeartbeatsAJobOfARunbookAndEndsItWhenItIsCancelled) {
  give(runbook_job("step-1") + "," + runbook_job("step-12"));  // one's id begins like the other's
  answer_with([](const auto& request) -> Reply {
    if (request.target.ends_with("heartbeat"))
      return {200, R"({"lease_until":"2026-01-01T00:00:00Z","cancelled":["step-1"]})"};
    return request.target.ends_with("task-results") ? Reply{200, accepted} : Reply{};
  });
  functions_.add("New-User",
                 "echo $$ > $0.$BATON_TASK_ID; while [ ! -e $0.go ]; do sleep 0.02; done; echo 1");
  Agent agent(server_.url(), functions_, {"--concurrency", "2", "--heartbeat-seconds", "0.2"});
  const auto id_of = [&](const std::string& job) {
    const auto file = functions_.path() / ("New-User." + job);
    EXPECT_TRUE(eventually([&] { return read_text(file).ends_with('\n'); })) << agent.said();
    return std::stoi(read_text(file));
  };
  const pid_t cancelled = id_of("step-1");
  const pid_t other = id_of("step-12");
  EXPECT_TRUE(eventually([&] { return !is_running(cancelled); })) << agent.said();
  EXPECT_TRUE(is_running(other));
  const json::value beat = json::parse(server_.asked("heartbeat").at(0));
  EXPECT_EQ(beat.at("tasks").at(0).at("lease").as_string(), "2");
  std::ofstream(functions_.path() / "New-User.go") << "\n";
  ASSERT_TRUE(has_result()) << agent.said();
  EXPECT_EQ(only(server_.asked("task-results")).at("task_id").as_string(), "step-12");
}

TEST_F(AgentTalk, RepeatsAResultUntilItIsTakenOrRefused) {
  int times = 0;
  answer_with([&times](const auto& request) -> Reply {
    if (!request.target.ends_with("task-results")) return {};
    switch (++times) {
      case 1: return {503, R"({"code":"overloaded"})"};
      case 2:
        return {200, R"({"results":[{"task_id":"j_n_0","accepted":false,"code":"store_unavailable"}]})"};
      case 3: return {401, "{}"};
      default: return {200, R"({"results":[{"task_id":"j_n_0","accepted":false,"code":"stale_result"}]})"};
    }
  });
  functions_.add("work", "echo 1");
  Agent agent(server_.url(), functions_, {"--idle-exit-seconds", "1"});
  EXPECT_EQ(agent.process().wait(20s), 0);
  const auto results = server_.asked("task-results");
  EXPECT_EQ(std::set<std::string>(results.begin(), results.end()).size(), 1u);
  EXPECT_EQ(results.size(), 4u);
  EXPECT_NE(agent.said().find("j_n_0 is not ours any more, its result is dropped"), std::string::npos)
      << agent.said();
}

}  // namespace
}  // namespace baton::e2e
