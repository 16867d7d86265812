#include "server/data_sources.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "tests/e2e/fake_server.hpp"

namespace baton::server {
namespace {

TEST(DataSources, a_configured_connection_wins_over_the_environment) {
  Config config;
  config.connections = {{"A", "configured"}};
  const auto resolve = connections(config, [](const std::string& name) -> std::optional<std::string> {
    if (name == "NONE") return std::nullopt;
    return "environment";
  });
  EXPECT_EQ(resolve("A"), "configured");
  EXPECT_EQ(resolve("B"), "environment");
  EXPECT_EQ(resolve("NONE"), std::nullopt);
  EXPECT_EQ(resolve("BATON_STORE"), std::nullopt) << "the server's own database is no data source";
}

TEST(DataSources, an_http_source_is_asked_over_the_network) {
  std::string head;
  e2e::FakeServer server([&](const e2e::FakeServer::Request& request) -> e2e::FakeServer::Reply {
    head = request.head;
    return {200, R"([{"Upn":"ann"}])", "application/json"};
  });
  Config config;
  config.connections = {{"PEOPLE", "http://joe:pass%20word@" + server.url().substr(7) + "/people?all=1"}};
  runbook::DataSource source;
  source.type = runbook::SourceType::http;
  source.connection = "PEOPLE";
  source.query = "wave=two words";
  source.primary_key = "Upn";
  const auto table = open_data_sources(config)->fetch(source);
  ASSERT_TRUE(table.has_value()) << table.error().message;
  EXPECT_EQ(table->columns, std::vector<std::string>{"Upn"});
  EXPECT_EQ(table->rows.front().front().text(), "ann");
  EXPECT_TRUE(head.starts_with("GET /people?all=1&wave=two%20words HTTP/1.1")) << head;
  EXPECT_NE(head.find("Authorization: Basic am9lOnBhc3Mgd29yZA=="), std::string::npos) << head;
}

TEST(DataSources, an_http_source_that_never_answers_does_not_hold_up_the_end) {
  using Clock = std::chrono::steady_clock;
  std::promise<void> asked, over;
  e2e::FakeServer server([&](const e2e::FakeServer::Request&) -> e2e::FakeServer::Reply {
    asked.set_value();
    over.get_future().wait();
    return {};
  });
  Config config;
  config.connections = {{"PEOPLE", server.url()}};
  runbook::DataSource source;
  source.type = runbook::SourceType::http;
  source.connection = "PEOPLE";
  const auto sources = open_data_sources(config);
  auto under_way = std::async(std::launch::async, [&] { return sources->fetch(source); });
  asked.get_future().wait();
  const auto from = Clock::now();
  sources->interrupt();
  EXPECT_FALSE(under_way.get().has_value());
  EXPECT_FALSE(sources->fetch(source).has_value()) << "and no other is begun";
  EXPECT_LT(Clock::now() - from, std::chrono::seconds{1});
  over.set_value();
}

TEST(DataSources, a_server_that_is_away_is_told_without_its_url) {
  Config config;
  config.connections = {{"PEOPLE", "http://token@127.0.0.1:1/people"}};
  runbook::DataSource source;
  source.type = runbook::SourceType::http;
  source.connection = "PEOPLE";
  const auto table = open_data_sources(config)->fetch(source);
  ASSERT_FALSE(table.has_value());
  EXPECT_EQ(table.error().message, "connection 'PEOPLE': cannot connect to the server: connection refused");
  EXPECT_EQ(table.error().code, Code::unavailable);
}

}  // namespace
}  // namespace baton::server
