// What goes wrong around a server: signals, a second server, a full disk, a database that goes away.
#include <signal.h>

#include <future>
#include <thread>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/server.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e {
namespace {

TEST(Shutdown, AnswersWhoeverWaitsAndEndsWithZero) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  auto client = server.client();
  publish(client, queued_yaml);
  auto poll = std::async(std::launch::async, [&] {
    auto worker = server.client();
    return ask(worker, "POST", "/workers/images/jobs:poll", R"({"max":1,"worker":"w","wait_ms":60000})");
  });
  // The poll is in when the metrics say so. If they never do, the server is stopped all the same: otherwise the
  // test would wait for the poll to end.
  EXPECT_TRUE(eventually([&] {
    const auto metrics = client.request("GET", "/metrics");
    return metrics && metrics->body.find("baton_http_connections 2\n") != std::string::npos;
  })) << "the poll never came";
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(15s), 0);
  const Answer answer = poll.get();
  EXPECT_TRUE(answer.status == 200 || answer.status == 503) << answer.status;
}

TEST(Shutdown, IsImmediateOnTheSecondSignalAndLosesNothing) {
  const support::TemporaryDirectory data;
  std::string job_id;
  {
    Server server({"--data", data.path()});
    auto client = server.client();
    publish(client, echo_yaml);
    job_id = ask(client, "POST", "/jobs", R"({"workflow_id":"echo_test"})").text("job_id");
    server.process().signal(SIGTERM);
    server.process().signal(SIGTERM);
    EXPECT_TRUE(server.process().wait(15s).has_value());
  }
  Server again({"--data", data.path()});
  auto client = again.client();
  EXPECT_EQ(ask(client, "GET", "/jobs/" + job_id + "?wait_ms=40000").text("status"), "COMPLETED");
}

TEST(Log, IsMissedAfterAKillAndNotAfterAStop) {
  const support::TemporaryDirectory data;
  const auto end = [&](Server& server, int signal, int code) {
    server.process().signal(signal);
    EXPECT_EQ(server.process().wait(15s), code);
    for (const char* part : {"", "-wal", "-shm"}) std::filesystem::remove(data.path() / (std::string("baton.db-log") + part));
  };
  std::string job_id;
  {
    Server server({"--data", data.path()});
    auto client = server.client();
    publish(client, echo_yaml);
    job_id = ask(client, "POST", "/jobs?wait_ms=10000", R"({"workflow_id":"echo_test"})").text("job_id");
    end(server, SIGTERM, 0);
  }
  {
    Server again({"--data", data.path()});
    auto client = again.client();
    EXPECT_EQ(ask(client, "GET", "/jobs/" + job_id).text("status"), "COMPLETED");
    end(again, SIGKILL, 128 + SIGKILL);
  }
  support::Process refused({BATON_BINARY, "serve", "--listen", "127.0.0.1:0", "--data", data.path()});
  EXPECT_EQ(refused.wait(10s), 5);
  EXPECT_TRUE(refused.err().contains("--without-log")) << refused.err();
  Server accepted({"--data", data.path(), "--without-log"});
  auto client = accepted.client();
  EXPECT_EQ(ask(client, "GET", "/jobs/" + job_id).text("status"), "COMPLETED");
}

TEST(Tables, ThatDoNotTakeWhatTheJournalSaysEndTheServer) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  auto client = server.client();
  publish(client, queued_yaml);
  const std::string job_id = ask(client, "POST", "/jobs", R"({"workflow_id":"queued"})").text("job_id");
  const auto sql = runbook_contract::open_sql(runbook_contract::StoreType::sqlite, data.path() / "baton.db");
  ASSERT_TRUE(eventually([&] { return sql->text("SELECT count(*) FROM dag_jobs") == "1"; }));
  sql->exec("DELETE FROM dag_jobs");
  EXPECT_EQ(ask(client, "POST", "/jobs/" + job_id + "/cancel").status, 200);
  EXPECT_EQ(server.process().wait(15s), 5);
  EXPECT_TRUE(server.process().err().contains("table dag_jobs")) << server.process().err();
  support::Process again({BATON_BINARY, "serve", "--listen", "127.0.0.1:0", "--data", data.path()});
  EXPECT_EQ(again.wait(10s), 5);
}

TEST(OneWriter, ASecondServerOnTheSameFileIsRefused) {
  const support::TemporaryDirectory data;
  Server server({"--data", data.path()});
  support::Process second({BATON_BINARY, "serve", "--listen", "127.0.0.1:0", "--data", data.path()});
  const auto code = second.wait(10s);
  ASSERT_TRUE(code.has_value());
  EXPECT_NE(*code, 0);
  EXPECT_NE(second.err().find(std::to_string(server.process().pid())), std::string::npos) << second.err();
}

TEST(OneWriter, ASecondServerOnTheSamePostgresIsRefused) {
  support::PostgresServer postgres;
  Server server({"--store", postgres.url()});
  support::Process second({BATON_BINARY, "serve", "--listen", "127.0.0.1:0", "--store", postgres.url()});
  const auto code = second.wait(20s);
  ASSERT_TRUE(code.has_value());
  EXPECT_NE(*code, 0);
  EXPECT_NE(second.err().find("another"), std::string::npos) << second.err();
  auto client = server.client();
  publish(client, echo_yaml);
  EXPECT_EQ(ask(client, "POST", "/jobs?wait_ms=10000", R"({"workflow_id":"echo_test"})").text("status"),
            "COMPLETED");
}

TEST(Postgres, GoneMeansUnavailableAndBackMeansBack) {
  support::PostgresServer postgres;
  Server server({"--store", postgres.url()});
  auto client = server.client();
  publish(client, echo_yaml);
  const std::string before =
      ask(client, "POST", "/jobs?wait_ms=10000", R"({"workflow_id":"echo_test"})").text("job_id");
  postgres.stop();
  const Answer away = ask(client, "POST", "/jobs", R"({"workflow_id":"echo_test"})");
  EXPECT_EQ(away.status, 503);
  EXPECT_EQ(away.text("code"), "store_unavailable");
  EXPECT_EQ(client.request("GET", "/readyz")->status, 503);
  EXPECT_EQ(client.request("GET", "/healthz")->status, 200);
  postgres.start();
  Answer after;
  for (int i = 0; i < 200 && after.status != 201; ++i) {
    after = ask(client, "POST", "/jobs?wait_ms=10000", R"({"workflow_id":"echo_test"})");
    if (after.status != 201) std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(after.text("status"), "COMPLETED");
  EXPECT_EQ(ask(client, "GET", "/jobs/" + before).text("status"), "COMPLETED");
}

TEST(FullDisk, IsToldLosesNothingThatWasAcknowledgedAndGoesOnWhenThereIsRoom) {
  const support::TemporaryDirectory data;
  const std::string directory = data.path();
  const std::string mount = "mount -t tmpfs -o size=3m none '" + directory +
                            "' && head -c 1000000 /dev/zero > '" + directory + "/ballast'";
  support::Process probe({"unshare", "-m", "sh", "-c", mount});
  // Only root, or a user with namespaces of their own, may mount. A disk that is full by other means would
  // not answer ENOSPC.
  if (probe.wait(10s) != 0)
    GTEST_SKIP() << "a small file system of its own needs the right to mount: " << probe.err();
  Server server({"--data", directory}, {"unshare", "-m", "sh", "-c", mount + " && exec \"$0\" \"$@\""});
  auto client = server.client();
  publish(client, queued_yaml);
  const std::string body =
      R"({"workflow_id":"queued","input_data":{"x":")" + std::string(20'000, 'x') + "\"}}";
  std::vector<std::string> acknowledged;
  Answer answer;
  // Large ones until there is no room for one, then small ones until there is none for those either.
  for (const std::string& job : {body, std::string(R"({"workflow_id":"queued"})")}) {
    for (int i = 0; i < 1'000; ++i) {
      answer = ask(client, "POST", "/jobs", job);
      if (answer.status != 201) break;
      acknowledged.push_back(answer.text("job_id"));
    }
  }
  EXPECT_EQ(answer.status, 507) << json::serialize(answer.body);
  EXPECT_EQ(answer.text("code"), "store_full");
  EXPECT_GT(acknowledged.size(), 3u);
  for (const std::string& id : acknowledged) EXPECT_EQ(ask(client, "GET", "/jobs/" + id).status, 200) << id;
  // A worker that comes now is served as soon as there is room, though nothing else happens.
  auto poll = std::async(std::launch::async, [&] {
    auto worker = server.client();
    return ask(worker, "POST", "/workers/images/jobs:poll", R"({"max":100,"worker":"w","wait_ms":20000})");
  });
  EXPECT_EQ(poll.wait_for(300ms), std::future_status::timeout);
  std::filesystem::remove("/proc/" + std::to_string(server.process().pid()) + "/root" + directory +
                          "/ballast");
  EXPECT_FALSE(poll.get().body.at("jobs").as_array().empty());
}

}  // namespace
}  // namespace baton::e2e
