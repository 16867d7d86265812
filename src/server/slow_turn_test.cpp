// The whole server while another program holds its database: what the log and the probes say of the turn that waits.
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sqlite3.h>

#include <future>
#include <sstream>

#include "http/wire/client.hpp"
#include "server/server.hpp"
#include "tests/support/one_task.hpp"
#include "tests/support/process.hpp"
#include "tests/support/soon.hpp"

namespace baton::server {
namespace {

using namespace std::chrono_literals;
using support::soon;

// Another program's connection.
class Database {
 public:
  explicit Database(const std::string& path) { EXPECT_EQ(sqlite3_open(path.c_str(), &raw_), SQLITE_OK); }
  ~Database() { sqlite3_close(raw_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  void exec(const char* sql) { EXPECT_EQ(sqlite3_exec(raw_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sql; }

 private:
  sqlite3* raw_ = nullptr;
};

// What is logged goes to a text, until the end of the test.
class SlowTurn : public testing::Test {
 protected:
  SlowTurn() {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)));
    config_.store = "sqlite:" + path_;
    config_.listen.port = 0;
    config_.builtin = config_.scheduler = config_.calls = false;  // only what the test asks for takes a turn
    config_.turn_slow = 20ms;
    config_.turn_stalled = 50ms;
  }
  ~SlowTurn() override { spdlog::set_default_logger(before_); }

  support::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "baton.db").string();
  std::ostringstream log_;  // to be read when the server has stopped
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
  Config config_;
};

TEST_F(SlowTurn, IsLoggedAndCountedAndTheServerIsNotReadyWhileItLasts) {
  Server server(config_, [](const Error&) {});
  ASSERT_TRUE(server.start());
  http::Client probe(server.url());
  const auto readiness = [&] { return probe.request("GET", "/readyz")->status; };
  EXPECT_TRUE(soon([&] { return readiness() == 200; }));
  Database other(path_);
  other.exec("BEGIN IMMEDIATE");
  auto published = std::async(std::launch::async, [url = server.url()] {
    const std::string yaml(support::one_task_yaml);
    return http::Client(url).request("POST", "/api/v1/workflows", yaml, "application/yaml")->status;
  });
  EXPECT_TRUE(soon([&] { return readiness() == 503; }));
  EXPECT_EQ(probe.request("GET", "/healthz")->status, 200);
  other.exec("ROLLBACK");
  EXPECT_EQ(published.get(), 201);
  EXPECT_TRUE(soon([&] { return readiness() == 200; }));
  const std::string metrics = probe.request("GET", "/metrics")->body;
  EXPECT_TRUE(metrics.contains("\nbaton_engine_slow_turns_total ")) << metrics;
  EXPECT_FALSE(metrics.contains("baton_engine_slow_turns_total 0")) << metrics;
  server.stop();
  const std::string log = log_.str();
  const std::size_t told = log.find("a turn of the engine took ");
  ASSERT_NE(told, std::string::npos) << log;
  EXPECT_NE(log.find("1 messages, 0 timers; load ", told), std::string::npos) << log;
}

}  // namespace
}  // namespace baton::server
