// The command line, as its users type it.
#include <fstream>
#include <thread>

#include "tests/e2e/server.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::e2e {
namespace {

std::string example(const std::string& name) {
  return support::source_dir() / "examples/workflows" / name;
}

class CommandLine : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto path = directory_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  support::TemporaryDirectory directory_;
};

TEST_F(CommandLine, RunsAWorkflowWithoutAServer) {
  const Ran ran = baton({"run", example("echo_test.yaml"), "--input", R"({"message":"hello"})"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find(R"("message":"hello")"), std::string::npos) << ran.out;
}

TEST_F(CommandLine, TellsByTheExitCodeThatAJobFailed) {
  const auto file = write("f.yaml",
                          "workflow_id: f\nnodes:\n  start: {type: start, next: a}\n  a: {type: task, "
                          "handler: fail, next: end}\n  end: {type: end}\n");
  EXPECT_EQ(baton({"run", file}).code, 1);
}

TEST_F(CommandLine, DoesNotHangWhereNoWorkerServesTheQueue) {
  const auto file = write("q.yaml", queued_yaml);
  const Ran ran = baton({"run", file});
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.err.find("images"), std::string::npos) << ran.err;
}

TEST_F(CommandLine, ValidatesWithLineAndColumnAndAllErrorsAtOnce) {
  const auto file = write("bad.yaml",
                          "workflow_id: bad\nnodes:\n  start: {type: start, next: [a]}\n  a: {type: task, "
                          "handlr: echo, next: [ned]}\n  end: {type: end}\n");
  const Ran ran = baton({"validate", file});
  EXPECT_EQ(ran.code, 2);
  const std::string text = ran.out + ran.err;
  EXPECT_NE(text.find(":4:"), std::string::npos) << text;
  EXPECT_NE(text.find("handler"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'end'"), std::string::npos) << text;
  EXPECT_EQ(baton({"validate", example("echo_test.yaml"), example("flaky.yaml")}).code, 0);
}

TEST_F(CommandLine, ValidatesARunbookWhereThereAreNoNodes) {
  const std::string source =
      "name: waves\ndata_source: {type: csv, connection: WAVES, primary_key: K, batch_time: immediate}\n";
  const auto good =
      write("good.yaml", source +
                             "phases:\n  - {name: p, offset: T-0, steps: [{name: s, worker_id: w, "
                             "function: f}]}\n");
  const Ran valid = baton({"validate", good, example("echo_test.yaml")});
  EXPECT_EQ(valid.code, 0) << valid.err;
  EXPECT_NE(valid.out.find("waves is valid (1 phase, 1 step)"), std::string::npos) << valid.out;
  const auto bad = write("bad.yaml", source + "phases:\n  - {name: p, offset: 5d, steps: []}\n");
  const Ran ran = baton({"validate", "--json", bad, good});
  EXPECT_EQ(ran.code, 2);
  const json::value answer = json::parse(ran.out);
  EXPECT_EQ(answer.at("valid"), json::value(false));
  EXPECT_EQ(answer.at("files").at(0).at("runbook"), json::value(nullptr));
  EXPECT_EQ(answer.at("files").at(0).at("diagnostics").as_array().size(), 2u);
  EXPECT_EQ(answer.at("files").at(1).at("runbook"), json::value("waves"));
}

TEST_F(CommandLine, TalksToAServer) {
  Server server({"--data", directory_.path() / "data"});
  const std::vector<std::string> at{"BATON_SERVER=" + server.url()};
  EXPECT_EQ(baton({"workflow", "publish", example("echo_test.yaml")}, at).code, 0);
  const Ran submitted =
      baton({"job", "submit", "echo_test", "--input", R"({"message":"hi"})", "--wait", "--json"}, at);
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const json::value job = json::parse(submitted.out);
  EXPECT_EQ(job.at("status").as_string(), "COMPLETED");
  const std::string id(job.at("job_id").as_string());
  EXPECT_EQ(baton({"job", "show", id}, at).code, 0);
  EXPECT_EQ(baton({"job", "watch", id}, at).code, 0);
  EXPECT_NE(baton({"job", "list"}, at).out.find(id), std::string::npos);
  EXPECT_NE(baton({"workflow", "list"}, at).out.find("echo_test"), std::string::npos);
  // What is typed wins over the environment.
  EXPECT_EQ(baton({"workflow", "list", "--server", "http://127.0.0.1:1"}, at).code, 6);
  EXPECT_EQ(baton({"job", "list", "--server", server.url()}, {"BATON_SERVER=http://127.0.0.1:1"}).code, 0);
  EXPECT_EQ(baton({"job", "cancel", id}, at).code, 1);
  const Ran typo = baton({"job", "submit", "ecko_test"}, at);
  EXPECT_EQ(typo.code, 1);
  EXPECT_NE(typo.err.find("echo_test"), std::string::npos) << typo.err;
}

TEST_F(CommandLine, TokensOpenTheDoorAndRevokedOnesDoNot) {
  const std::string data = directory_.path() / "data";
  const Ran created =
      baton({"token", "create", "--role", "viewer", "--tenant", "acme", "--data", data, "--json"});
  ASSERT_EQ(created.code, 0) << created.err;
  const json::value token = json::parse(created.out);
  const std::string secret(token.at("token").as_string());
  Server server({"--data", data});
  http::Client nobody(server.url());
  EXPECT_EQ(ask(nobody, "GET", "/jobs").status, 401);
  http::Client viewer(server.url(), secret);
  EXPECT_EQ(ask(viewer, "GET", "/jobs").status, 200);
  EXPECT_EQ(ask(viewer, "POST", "/jobs", R"({"workflow_id":"x"})").status, 403);
  EXPECT_EQ(ask(viewer, "GET", "/jobs", "", "application/json", {{"Baton-Tenant", "other"}}).status, 403);
  EXPECT_EQ(baton({"token", "revoke", std::string(token.at("token_id").as_string()), "--data", data}).code,
            0);
  int status = 200;
  for (int i = 0; i < 100 && status == 200; ++i) {
    status = ask(viewer, "GET", "/jobs").status;
    if (status == 200) std::this_thread::sleep_for(100ms);
  }
  EXPECT_EQ(status, 401);
}

TEST_F(CommandLine, RefusesToListenToTheWorldWithoutTokens) {
  const Ran ran = baton({"serve", "--data", directory_.path() / "data", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("token"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace baton::e2e
