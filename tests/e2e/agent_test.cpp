// The agent against the real server, with real scripts.
#include "tests/e2e/agent.hpp"

namespace baton::e2e {
namespace {

class Agents : public testing::Test {
 protected:
  // A workflow that is one task, named after its handler.
  void add_workflow(const std::string& id, const std::string& handler, int timeout_seconds = 60) {
    publish(client_, "workflow_id: " + id +
                         "\nnodes:\n  start: {type: start, next: work}\n  work: {type: task, handler: " +
                         json::serialize(json::string(handler)) + ", queue: pool, timeout_seconds: " +
                         std::to_string(timeout_seconds) + ", next: end}\n  end: {type: end}\n");
  }
  std::string submit(const std::string& workflow, const std::string& input = "{}") {
    return ask(client_, "POST", "/jobs",
               R"({"workflow_id":")" + workflow + R"(","input_data":)" + input + "}")
        .text("job_id");
  }
  Answer ended(const std::string& job_id) {
    return ask(client_, "GET", "/jobs/" + job_id + "?wait_ms=30000");
  }
  // A script, its workflow and one job of it.
  std::string run(const std::string& name, const std::string& script, const std::string& input = "{}",
                  int timeout_seconds = 60) {
    functions_.add(name, script);
    add_workflow(name, name, timeout_seconds);
    return submit(name, input);
  }
  static json::value output(const Answer& job) {
    const auto* result = job.body.as_object().if_contains("result_data");
    return result && result->is_object() ? result->at("work") : json::value("no result");
  }
  [[nodiscard]] std::string port() const { return server_.url().substr(server_.url().rfind(':') + 1); }
  void kill_server() {
    server_.process().signal(SIGKILL);
    ASSERT_EQ(server_.process().wait(10s), 128 + SIGKILL);
  }
  // A server at the same address again.
  void serve_again() {
    again_ = std::make_unique<support::Process>(std::vector<std::string>{
        BATON_BINARY, "serve", "--listen", "127.0.0.1:" + port(), "--data", data_.path().string()});
    ASSERT_TRUE(again_->first_line(30s)) << again_->err();
    client_ = server_.client();
  }
  // The process whose id a script writes to a file of the functions' directory.
  pid_t id_in(const std::string& name) {
    const auto file = functions_.path() / name;
    EXPECT_TRUE(eventually([&] { return read_text(file).ends_with('\n'); }));
    const std::string text = read_text(file);
    return text.empty() ? -1 : std::stoi(text);
  }

  support::TemporaryDirectory data_;
  FunctionDirectory functions_;
  Server server_{{"--data", data_.path()}};
  http::Client client_ = server_.client();
  std::unique_ptr<support::Process> again_;
};

TEST_F(Agents, GiveAProgramItsTaskAndReportWhatItWrites) {
  Agent agent(server_.url(), functions_);
  const std::string job_id = run("greet.sh", R"(read -r params
echo "{\"params\": $params, \"task\": \"$BATON_TASK_ID\", \"handler\": \"$BATON_HANDLER\", \"queue\": \"$BATON_QUEUE\",
 \"retry\": $BATON_RETRY_COUNT, \"delivery\": $BATON_DELIVERY_COUNT, \"timeout\": $BATON_TIMEOUT_SECONDS, \"n\": 1.50}")",
                                 R"({"name":"Ada"})");
  const Answer job = ended(job_id);
  EXPECT_EQ(job.text("status"), "COMPLETED") << agent.said();
  EXPECT_EQ(
      json::serialize(output(job)),
      json::serialize(json::parse(R"({"params":{"name":"Ada"},"task":")" + job_id +
                                  R"(_work_0","handler":"greet.sh","queue":"pool","retry":0,"delivery":1,)"
                                  R"("timeout":60,"n":1.50})")));
  EXPECT_EQ(job.body.at("nodes").at("work").at("worker_id").as_string(), "agent");
}

TEST_F(Agents, TakeTextForTextAndNothingForNull) {
  Agent agent(server_.url(), functions_);
  const std::string text = run("text", "printf 'not json \\377'");
  const std::string nothing = run("nothing", "exit 0");
  EXPECT_EQ(json::serialize(output(ended(text))), "{\"stdout\":\"not json \xEF\xBF\xBD\"}");
  EXPECT_EQ(json::serialize(output(ended(nothing))), "null");
}

TEST_F(Agents, ReportAFailureWithItsExitCodeAndTheLog) {
  Agent agent(server_.url(), functions_);
  const std::string job_id = run("boom", "echo trying >&2; echo 'disk on fire' >&2; exit 3");
  const std::string killed = run("killed", "kill -KILL $$");
  const Answer job = ended(job_id);
  EXPECT_EQ(job.text("status"), "FAILED");
  EXPECT_EQ(job.body.at("nodes").at("work").at("error").as_string(), "exit code 3: trying\ndisk on fire");
  EXPECT_EQ(ended(killed).body.at("nodes").at("work").at("error").as_string(), "killed by SIGKILL");
}

TEST_F(Agents, RefuseTooMuchOutput) {
  Agent agent(server_.url(), functions_, {"--output-limit", "1m"});
  const Answer job = ended(run("flood", "exec yes"));
  EXPECT_EQ(job.body.at("nodes").at("work").at("error").as_string(), "more than 1048576 bytes of output");
}

// The server takes 4 MiB in a request: the job hears of it instead of waiting for its timeout.
TEST_F(Agents, ReportAnOutputThatTheServerRefuses) {
  Agent agent(server_.url(), functions_);
  const Answer job = ended(run("large", R"(printf '"%05000000d"' 0)"));
  EXPECT_EQ(job.text("status"), "FAILED");
  EXPECT_TRUE(job.text("error").find("the server refused the result") != std::string::npos)
      << job.text("error");
}

TEST_F(Agents, EndAProgramWithItsChildrenWhenItsTimeIsOver) {
  Agent agent(server_.url(), functions_, {"--grace-seconds", "1"});
  const std::string script = "trap '' TERM; sleep 100 & echo $! > $0.child; echo busy >&2; wait";
  const std::string job_id = run("slow", script, "{}", 2);
  const pid_t child = id_in("slow.child");
  const Answer job = ended(job_id);
  EXPECT_EQ(job.text("status"), "FAILED");
  // By the agent, in time: the server's own words would be others.
  EXPECT_TRUE(job.body.at("nodes").at("work").at("error").as_string().starts_with("timed out after 2 s"))
      << json::serialize(job.body);
  EXPECT_TRUE(eventually([&] { return !is_running(child); }));
}

TEST_F(Agents, EndWhatIsCancelled) {
  Agent agent(server_.url(), functions_);
  const std::string job_id = run("slow", "echo $$ > $0.id; exec sleep 100");
  const pid_t id = id_in("slow.id");
  EXPECT_EQ(ask(client_, "POST", "/jobs/" + job_id + "/cancel").status, 200);
  EXPECT_TRUE(eventually([&] { return !is_running(id); }));
  EXPECT_EQ(ended(job_id).text("status"), "CANCELLED");
}

TEST_F(Agents, FindFunctionsThatWereAddedLaterAndNothingOutside) {
  Agent agent(server_.url(), functions_);
  functions_.add("known", "echo 1");
  const std::string around = "../" + functions_.path().filename().string() + "/known";
  for (const std::string& handler : std::vector<std::string>{"missing", "../known", "/bin/true", "./known",
                                                             ".", "..", ".known", "known/../known", around}) {
    add_workflow("attack", handler);
    const Answer job = ended(submit("attack"));
    EXPECT_EQ(job.text("status"), "FAILED") << handler;
    EXPECT_EQ(job.body.at("nodes").at("work").at("error").as_string(),
              "no such function: '" + handler + "'; there are: known");
  }
  EXPECT_EQ(ended(run("later", "echo 2")).text("status"), "COMPLETED");
}

TEST_F(Agents, DeliverOnceWhatWasDoneWhileTheServerWasAway) {
  Agent agent(server_.url(), functions_, {"--concurrency", "8"});
  functions_.add("work",
                 "echo x >> $0.begun; while [ ! -e $0.go ]; do sleep 0.02; done; echo x >> $0.ended; echo "
                 "'{\"ok\":true}'");
  add_workflow("work", "work");
  std::vector<std::string> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(submit("work"));
  const auto lines = [&](const std::string& name) {
    return std::ranges::count(read_text(functions_.path() / name), '\n');
  };
  ASSERT_TRUE(eventually([&] { return lines("work.begun") == 8; })) << agent.said();
  kill_server();
  std::ofstream(functions_.path() / "work.go") << "\n";
  ASSERT_TRUE(eventually([&] { return lines("work.ended") == 8; }));
  serve_again();
  for (const auto& job_id : jobs) {
    EXPECT_EQ(ended(job_id).text("status"), "COMPLETED");
    const auto events = timeline(client_, job_id);
    EXPECT_EQ(std::ranges::count(events, "node_completed work"), 1);
    EXPECT_EQ(std::ranges::count(events, "node_started work"), 1);
  }
  EXPECT_EQ(lines("work.begun"), 8);
}

TEST_F(Agents, MayStartBeforeTheServer) {
  const std::string job_id = run("early", "echo 1");
  kill_server();
  Agent agent(server_.url(), functions_);
  ASSERT_TRUE(eventually([&] { return agent.said().find("connection refused") != std::string::npos; }));
  serve_again();
  EXPECT_EQ(ended(job_id).text("status"), "COMPLETED") << agent.said();
}

TEST_F(Agents, FinishWhatTheyHaveWhenToldToEnd) {
  Agent agent(server_.url(), functions_);
  const std::string job_id =
      run("slow", "echo $$ > $0.id; while [ ! -e $0.go ]; do sleep 0.02; done; echo 1");
  (void)id_in("slow.id");
  agent.process().signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return agent.said().find("asking for no more") != std::string::npos; }));
  const std::string later = submit("slow");
  std::ofstream(functions_.path() / "slow.go") << "\n";
  EXPECT_EQ(agent.process().wait(20s), 0) << agent.said();
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + job_id).text("status"), "COMPLETED");
  const std::string status = ask(client_, "GET", "/jobs/" + later).text("status");
  EXPECT_TRUE(status == "PENDING" || status == "RUNNING") << status;
}

TEST_F(Agents, EndAtOnceWithTheSecondSignalAndLeaveNothingBehind) {
  Agent agent(server_.url(), functions_);
  run("slow", "trap '' TERM; echo $$ > $0.id; while :; do sleep 1; done");
  const pid_t id = id_in("slow.id");
  agent.process().signal(SIGINT);
  ASSERT_TRUE(eventually([&] { return agent.said().find("asking for no more") != std::string::npos; }));
  agent.process().signal(SIGINT);
  EXPECT_EQ(agent.process().wait(10s), 130) << agent.said();
  EXPECT_TRUE(eventually([&] { return !is_running(id); }));
}

TEST_F(Agents, EndWhatOutlivesTheDrain) {
  Agent agent(server_.url(), functions_, {"--drain-seconds", "1", "--grace-seconds", "1"});
  const std::string job_id = run("slow", "echo $$ > $0.id; exec sleep 100");
  const pid_t id = id_in("slow.id");
  agent.process().signal(SIGTERM);
  EXPECT_EQ(agent.process().wait(15s), 1) << agent.said();
  EXPECT_TRUE(eventually([&] { return !is_running(id); }));
  EXPECT_EQ(ask(client_, "GET", "/jobs/" + job_id).text("status"), "RUNNING");  // until its lease runs out
}

TEST_F(Agents, DoManyTasksAndEndWhenThereAreNone) {
  functions_.add("count", "echo \"$BATON_TASK_ID\" >> $0.log; echo 1");
  add_workflow("count", "count");
  std::vector<std::string> jobs;
  for (int i = 0; i < 500; ++i) jobs.push_back(submit("count"));
  Agent agent(server_.url(), functions_, {"--concurrency", "16", "--quiet", "--idle-exit-seconds", "2"});
  for (const auto& job_id : jobs) ASSERT_EQ(ended(job_id).text("status"), "COMPLETED") << agent.said();
  EXPECT_EQ(agent.process().wait(20s), 0) << agent.said();
  EXPECT_EQ(std::ranges::count(read_text(functions_.path() / "count.log"), '\n'), 500);
}

TEST_F(Agents, ServeSeveralQueuesWithAllTheirSlots) {
  Agent agent(server_.url(), functions_, {"--queue", "another", "--concurrency", "4"});
  functions_.add("meet", "echo x >> $0.here; while [ $(wc -l < $0.here) -lt 4 ]; do sleep 0.02; done");
  add_workflow("meet", "meet");  // all four slots are needed at once, though the other queue polls as well
  std::vector<std::string> jobs;
  for (int i = 0; i < 4; ++i) jobs.push_back(submit("meet"));
  for (const auto& job_id : jobs) EXPECT_EQ(ended(job_id).text("status"), "COMPLETED") << agent.said();
}

TEST_F(Agents, SayWhatIsWrongWithTheirOptions) {
  support::Process none({BATON_BINARY, "worker", "--queue", "q", "--functions", "/no/such/directory"});
  EXPECT_EQ(none.wait(10s), 2);
  EXPECT_NE(none.err().find("there is no such directory"), std::string::npos) << none.err();
  Agent refused(server_.url(), functions_, {}, {"BATON_TOKEN=wrong"});
  EXPECT_EQ(refused.process().wait(10s), 1);
  EXPECT_NE(refused.said().find("the token is unknown"), std::string::npos) << refused.said();
}

TEST(AgentTokens, StayWithTheAgent) {
  support::TemporaryDirectory data;
  support::Process create(
      {BATON_BINARY, "token", "create", "--role", "admin", "--data", data.path().string()});
  const std::string token = create.first_line(20s).value_or("");
  ASSERT_FALSE(token.empty()) << create.err();
  ASSERT_EQ(create.wait(10s), 0);
  Server server({"--data", data.path().string()});
  http::Client client(server.url(), token);
  FunctionDirectory functions;
  functions.add("peek", R"sh(seen=$(tr '\0' '\n' < /proc/$PPID/environ | grep -c "$(cat $0.token)")
echo "[\"${BATON_TOKEN-none}\", $seen]")sh");
  std::ofstream(functions.path() / "peek.token") << token;
  publish(client,
          "workflow_id: peek\nnodes:\n  start: {type: start, next: work}\n"
          "  work: {type: task, handler: peek, queue: pool, next: end}\n  end: {type: end}\n");
  for (const bool passed : {false, true}) {
    const auto options = passed ? std::vector<std::string>{"--pass-token"} : std::vector<std::string>{};
    Agent agent(server.url(), functions, options, {"BATON_TOKEN=" + token});
    const std::string job_id =
        ask(client, "POST", "/jobs", R"({"workflow_id":"peek","input_data":{}})").text("job_id");
    const Answer job = ask(client, "GET", "/jobs/" + job_id + "?wait_ms=20000");
    ASSERT_EQ(job.text("status"), "COMPLETED") << agent.said();
    EXPECT_EQ(json::serialize(job.body.at("result_data").at("work")),
              "[\"" + (passed ? token : "none") + "\",0]");
  }
}

}  // namespace
}  // namespace baton::e2e
