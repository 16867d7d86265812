#include "server/config.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace baton::server {
namespace {

struct Configuration : testing::Test {
  Values environment;
  std::string file = testing::TempDir() + "baton-config-test.yaml";

  std::expected<Config, ConfigErrors> load(Values command_line = {}) {
    return load_config(command_line, [this](const std::string& name) -> std::optional<std::string> {
      const auto found = environment.find(name);
      if (found == environment.end()) return std::nullopt;
      return found->second;
    });
  }
  void write(std::string_view text) { std::ofstream(file) << text; }
};

TEST_F(Configuration, DefaultsServeLoopbackFromALocalDirectory) {
  const auto config = load();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->store, "sqlite:baton-data/baton.db");
  EXPECT_EQ(config->listen, (Listen{"127.0.0.1", 8080}));
  EXPECT_TRUE(config->builtin);
  EXPECT_FALSE(config->insecure);
}

TEST_F(Configuration, CommandLineBeatsEnvironmentBeatsFile) {
  write("listen: 127.0.0.1:1\nlog_level: debug\nbody_max: 2m\nbuiltin: off\n");
  environment = {{"BATON_LISTEN", "127.0.0.1:2"}, {"BATON_LOG_LEVEL", "warn"}};
  const auto config = load({{"config", file}, {"listen", "[::1]:3"}});
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->listen, (Listen{"::1", 3}));
  EXPECT_EQ(config->log_level, "warn");
  EXPECT_EQ(config->body_max, std::size_t{2} << 20);
  EXPECT_FALSE(config->builtin);
}

TEST_F(Configuration, WhereCallsMayGoIsTakenFromTheEnvironment) {
  environment = {{"BATON_EGRESS_ALLOW", "127.0.0.1,*.example"}, {"BATON_EGRESS_DENY", "all"}};
  const auto config = load();
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->egress_allow, std::vector<std::string>{"127.0.0.1,*.example"});
  EXPECT_EQ(config->egress_deny, std::vector<std::string>{"all"});
}

TEST_F(Configuration, TheSchedulerIsSwitchedOffByTheEnvironment) {
  EXPECT_TRUE(load()->scheduler);
  environment = {{"BATON_SCHEDULER", "off"}};
  EXPECT_FALSE(load()->scheduler);
  EXPECT_TRUE(load({{"scheduler", "on"}})->scheduler);
}

TEST_F(Configuration, TheFileMayBeNamedByTheEnvironment) {
  write("connections_max: 7\n");
  environment = {{"BATON_CONFIG", file}, {"BATON_INBOX_MAX", ""}};
  const auto config = load();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->connections_max, 7U);
  EXPECT_EQ(config->inbox_max, 16'384U);
}

TEST_F(Configuration, TheStrongerOfDataAndStoreNamesTheDatabase) {
  environment = {{"BATON_STORE", "postgres://h/db"}};
  EXPECT_EQ(load()->store, "postgres://h/db");
  EXPECT_EQ(load({{"data", "/d"}})->store, "sqlite:/d/baton.db");
  EXPECT_EQ(load({{"data", "/d"}, {"store", "sqlite:/x.db"}})->store, "sqlite:/x.db");
}

TEST_F(Configuration, EveryErrorIsToldWithItsPlace) {
  write("lisen: 127.0.0.1:1\nlog_format: jsn\nbody_max: [1]\n");
  environment = {{"BATON_BUILTIN", "perhaps"}};
  const auto config = load({{"config", file}, {"listen", "nowhere"}});
  ASSERT_FALSE(config);
  ASSERT_EQ(config.error().size(), 5U);
  EXPECT_TRUE(config.error()[0].starts_with(file + ":1:1: error: unknown key 'lisen'")) << config.error()[0];
  EXPECT_NE(config.error()[0].find("did you mean 'listen'?"), std::string::npos);
  EXPECT_TRUE(config.error()[1].starts_with(file + ":2:13: error: log_format: 'jsn'")) << config.error()[1];
  EXPECT_TRUE(config.error()[2].starts_with(file + ":3:11: error:")) << config.error()[2];
  EXPECT_TRUE(config.error()[3].starts_with("BATON_BUILTIN: ")) << config.error()[3];
  EXPECT_TRUE(config.error()[4].starts_with("--listen: ")) << config.error()[4];
}

TEST_F(Configuration, ConnectionsAreNamesWithValuesOfTheFile) {
  write("connections:\n  WAVES_CSV: /data/waves.csv\n  PEOPLE: postgres://joe:pw@h/db\n");
  const auto config = load({{"config", file}});
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->connections.at("WAVES_CSV"), "/data/waves.csv");
  EXPECT_EQ(config->connections.at("PEOPLE"), "postgres://joe:pw@h/db");
  write("connections: {A: [secret], B: , C: secret}\nconections: {}\n");
  const auto wrong = load({{"config", file}});
  ASSERT_FALSE(wrong);
  ASSERT_EQ(wrong.error().size(), 3U);
  EXPECT_NE(wrong.error()[0].find("connection 'A' needs a single value"), std::string::npos) << wrong.error()[0];
  EXPECT_NE(wrong.error()[2].find("did you mean 'connections'?"), std::string::npos) << wrong.error()[2];
  for (const std::string& error : wrong.error()) EXPECT_EQ(error.find("secret"), std::string::npos) << error;
}

TEST_F(Configuration, BrokenAndMissingFilesAreErrors) {
  write("listen: [\n");
  EXPECT_FALSE(load({{"config", file}}));
  EXPECT_FALSE(load({{"config", "/does/not/exist.yaml"}}));
  write("- a\n");
  EXPECT_FALSE(load({{"config", file}}));
  write("");
  EXPECT_TRUE(load({{"config", file}}));
}

TEST_F(Configuration, AStoreOfAnotherKindIsRefusedWithoutShowingItsPassword) {
  const auto config = load({{"store", "mysql://u:secret@h/db"}});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error()[0].find("secret"), std::string::npos);
}

TEST_F(Configuration, NamesOfAnotherOrchestratorAreTakenFromTheEnvironment) {
  environment = {{"Orchestrator__SqlConnectionString", "postgres://h/db"}};
  auto config = load();
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->store, "postgres://h/db");
  EXPECT_EQ(config->notes,
            std::vector<std::string>{"Orchestrator__SqlConnectionString is taken as BATON_STORE"});
  EXPECT_EQ(load({{"store", "sqlite:/x.db"}})->store, "sqlite:/x.db");
  EXPECT_EQ(load({{"data", "/d"}})->store, "sqlite:/d/baton.db");
  write("store: sqlite:/f.db\n");
  EXPECT_EQ(load({{"config", file}})->store, "sqlite:/f.db") << "they are the weakest";
}

TEST_F(Configuration, ANameOfAnotherAndOurOwnMustNotDiffer) {
  environment = {{"Orchestrator__SqlConnectionString", "postgres://u:secret@h/db"},
                 {"BATON_STORE", "postgres://h/x"}};
  const auto config = load();
  ASSERT_FALSE(config);
  ASSERT_EQ(config.error().size(), 1U);
  EXPECT_EQ(
      config.error()[0],
      "Orchestrator__SqlConnectionString and BATON_STORE are the same setting and differ: give one of them");
  environment["BATON_STORE"] = "postgres://u:secret@h/db";
  EXPECT_TRUE(load());
  environment["BATON_STORE"] = "";
  EXPECT_TRUE(load());
}

TEST_F(Configuration, ANamespaceIsTakenByTheNamesOfAnotherWithAManagedIdentity) {
  const std::vector<std::string> names{"Orchestrator__ServiceBusNamespace", "ServiceBusConnection__fullyQualifiedNamespace"};
  for (const std::string& name : names) environment[name] = "site.servicebus.windows.net";
  const auto config = load();
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->bus->shown(), "amqps://site.servicebus.windows.net:5671");
  EXPECT_EQ(config->bus->identity->kind, bus::Identity::Kind::managed);
  ASSERT_EQ(config->notes.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(config->notes[i], names[i] + " is taken as BATON_BUS_NAMESPACE");
  environment[names[1]] = "other.servicebus.windows.net";
  EXPECT_FALSE(load()) << "they differ";
}

TEST_F(Configuration, ABrokerWithAKeyWinsOverANamespaceByAnothersName) {
  environment = {{"Orchestrator__ServiceBusNamespace", "site.servicebus.windows.net"}, {"BATON_BUS", "amqp://rabbit"}};
  const auto config = load();
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->bus->shown(), "amqp://rabbit:5672");
  EXPECT_FALSE(config->bus->identity);
  EXPECT_TRUE(config->notes.back().contains("has no effect")) << config->notes.back();
  environment = {{"BATON_BUS_NAMESPACE", "site.servicebus.windows.net"}, {"BATON_BUS", "amqp://rabbit"}};
  EXPECT_FALSE(load()) << "both are ours";
}

TEST_F(Configuration, NamesOfAzureSayWhoBatonIsWhereNobodyElseDoes) {
  environment = {{"AZURE_CLIENT_ID", "app"}, {"AZURE_TENANT_ID", "site"}, {"AZURE_CLIENT_SECRET", "secret"}};
  EXPECT_TRUE(load()->notes.empty()) << "nobody needs an identity";
  environment["BATON_BUS_NAMESPACE"] = "site.servicebus.windows.net";
  environment["BATON_BUS_CLIENT_ID"] = "ours";
  const auto config = load();
  ASSERT_TRUE(config) << config.error().front();
  const bus::Identity& identity = *config->bus->identity;
  EXPECT_EQ(identity.kind, bus::Identity::Kind::client_secret);
  EXPECT_EQ(identity.client_id, "ours");
  EXPECT_EQ(identity.tenant_id, "site");
  EXPECT_EQ(identity.client_secret, "secret");
  EXPECT_EQ(config->notes, (std::vector<std::string>{"AZURE_TENANT_ID is taken as BATON_BUS_TENANT_ID", "AZURE_CLIENT_SECRET is taken as BATON_BUS_CLIENT_SECRET"}));
  environment["BATON_BUS_IDENTITY"] = "managed";
  EXPECT_EQ(load()->bus->identity->kind, bus::Identity::Kind::managed);
  EXPECT_EQ(load()->bus->identity->client_secret, "");
}

TEST_F(Configuration, TheEndpointOfAppServiceIsTakenWithItsHeader) {
  environment = {{"BATON_BUS_NAMESPACE", "h"}, {"IDENTITY_ENDPOINT", "http://127.0.0.1:42/msi/token"}};
  EXPECT_EQ(load()->bus->identity->endpoint, "");
  environment["IDENTITY_HEADER"] = "secret";
  EXPECT_EQ(load()->bus->identity->endpoint, "http://127.0.0.1:42/msi/token");
  EXPECT_EQ(load()->bus->identity->header, "secret");
}

TEST_F(Configuration, WhatAnIdentityLacksIsToldWithoutItsSecret) {
  environment = {{"BATON_BUS_NAMESPACE", "h"}, {"BATON_BUS_IDENTITY", "client_secret"}, {"BATON_BUS_CLIENT_SECRET", "hidden"}};
  const auto wrong = [&] {
    const auto config = load();
    EXPECT_FALSE(config);
    const std::string error = config ? "" : config.error()[0];
    EXPECT_FALSE(error.contains("hidden")) << error;
    return error;
  };
  EXPECT_EQ(wrong(), "a client secret needs bus_tenant_id too");
  environment["BATON_BUS_TENANT_ID"] = "t";
  EXPECT_EQ(wrong(), "a client secret needs bus_client_id too");
  environment["BATON_BUS_CLIENT_ID"] = "c";
  environment["BATON_BUS_TOKEN_ENDPOINT"] = "http://login.example";
  EXPECT_TRUE(wrong().contains("https only"));
  environment["BATON_BUS_TOKEN_ENDPOINT"] = "https://login.example";
  EXPECT_TRUE(load());
  environment.erase("BATON_BUS_NAMESPACE");
  EXPECT_TRUE(wrong().contains("bus_namespace"));
}

TEST_F(Configuration, ASecretIsTakenFromTheEnvironmentOnly) {
  write("bus_namespace: h\nbus_client_secret: hidden\n");
  const auto config = load({{"config", file}});
  ASSERT_FALSE(config);
  EXPECT_TRUE(config.error()[0].contains("BATON_BUS_CLIENT_SECRET only")) << config.error()[0];
  EXPECT_FALSE(config.error()[0].contains("hidden")) << config.error()[0];
}

TEST_F(Configuration, AWebsocketIsAnotherWayToTheSameBroker) {
  environment = {{"BATON_BUS_NAMESPACE", "site.servicebus.windows.net"}, {"BATON_BUS_TRANSPORT", "websocket"}};
  EXPECT_EQ(load()->bus->shown(), "wss://site.servicebus.windows.net:443/$servicebus/websocket");
  environment["BATON_BUS_TRANSPORT"] = "pigeon";
  EXPECT_FALSE(load());
  environment = {{"BATON_BUS_TRANSPORT", "websocket"}};
  EXPECT_FALSE(load()) << "there is no broker";
}

TEST_F(Configuration, TopicsHaveTheNamesThatTheyHadElsewhere) {
  environment["Orchestrator__OrchestratorEventsTopicName"] = "events";
  environment["Orchestrator__WorkerJobsTopicName"] = "jobs";
  environment["Orchestrator__WorkerResultsTopicName"] = "results";
  environment["BATON_AMQP"] = "127.0.0.1:5672";
  const auto config = load();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->bus_events_topic, "events");
  EXPECT_EQ(config->bus_jobs_topic, "jobs");
  EXPECT_EQ(config->bus_results_topic, "results");
  ASSERT_TRUE(config->amqp);
  EXPECT_EQ(config->amqp->port, 5672);
  environment["Orchestrator__WorkerJobsTopicName"] = "jobs/of mine";
  EXPECT_FALSE(load());
}

TEST_F(Configuration, TopicsHaveNamesThatAddressesReach) {
  const auto takes = [&](const char* setting, const std::string& name) {
    environment = {{setting, name}};
    return load().has_value();
  };
  for (const char* name : {"Rules", "subscriptions", "health", "a/b", "a b"}) EXPECT_FALSE(takes("BATON_BUS_EVENTS_TOPIC", name)) << name;
  EXPECT_TRUE(takes("BATON_BUS_EVENTS_TOPIC", "events-of.the_site"));
  EXPECT_TRUE(takes("BATON_BUS_EVENTS_SUBSCRIPTION", std::string(50, 's')));
  EXPECT_FALSE(takes("BATON_BUS_EVENTS_SUBSCRIPTION", std::string(51, 's')));
}

TEST_F(Configuration, AnExternalBrokerHasAnAddressPoolsAndSubscriptions) {
  environment["BATON_BUS"] = "amqp://me:secret@rabbit:5673";
  environment["BATON_BUS_POOLS"] = "a,b";
  environment["BATON_BUS_QUEUES"] = "functionapp-tasks";
  environment["Orchestrator__WorkerResultsSubscriptionName"] = "mine";
  const auto config = load();
  ASSERT_TRUE(config);
  EXPECT_EQ(config->bus->shown(), "amqp://rabbit:5673");
  EXPECT_EQ(config->bus_pools, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config->bus_queues, (std::vector<std::string>{"functionapp-tasks"}));
  EXPECT_EQ(config->bus_results_subscription, "mine");
  environment["BATON_BUS_POOLS"] = "a,,b";
  EXPECT_FALSE(load());
  environment["BATON_BUS_POOLS"] = "a";
  environment["BATON_BUS"] = "secret";
  const auto wrong = load();
  ASSERT_FALSE(wrong);
  EXPECT_FALSE(wrong.error()[0].contains("secret")) << wrong.error()[0];
  environment.erase("BATON_BUS");
  EXPECT_FALSE(load());
}

TEST_F(Configuration, OurOwnSettingsAreNoConnectionsOfRunbooksByWhateverName) {
  const Environment all = [](const std::string&) -> std::optional<std::string> { return "x"; };
  const auto named = connections(Config{}, all);
  EXPECT_EQ(named("PEOPLE"), "x");
  EXPECT_EQ(named("BATON_STORE"), std::nullopt);
  for (const char* secret : {"Orchestrator__SqlConnectionString", "AZURE_CLIENT_SECRET", "IDENTITY_HEADER"}) EXPECT_EQ(named(secret), std::nullopt) << secret;
}

TEST_F(Configuration, AConnectionStringOfSqlServerIsRefusedWithAHintAndNotShown) {
  environment = {
      {"Orchestrator__SqlConnectionString", "Server=tcp:h,1433;Database=d;User ID=u;Password=secret;"}};
  const auto config = load();
  ASSERT_FALSE(config);
  EXPECT_TRUE(config.error()[0].starts_with(
      "Orchestrator__SqlConnectionString: this is a connection string of SQL Server"))
      << config.error()[0];
  EXPECT_EQ(config.error()[0].find("secret"), std::string::npos);
  EXPECT_TRUE(config.error()[0].contains("postgres://")) << config.error()[0];
  environment["Orchestrator__SqlConnectionString"] = "Password=secret";
  EXPECT_FALSE(load().error()[0].contains("secret"));
}

TEST_F(Configuration, OnlyASqliteDatabaseIsStartedWithoutItsLog) {
  environment = {{"BATON_WITHOUT_LOG", "on"}};
  EXPECT_TRUE(load());
  environment["BATON_STORE"] = "postgres://baton@localhost/baton";
  const auto config = load();
  ASSERT_FALSE(config);
  EXPECT_TRUE(config.error()[0].starts_with("without_log is about the log beside a SQLite database")) << config.error()[0];
}

TEST(ListenAddress, TakesNamesAndBothKindsOfAddresses) {
  EXPECT_EQ(*parse_listen("localhost:0"), (Listen{"localhost", 0}));
  EXPECT_EQ(*parse_listen("[::]:8080"), (Listen{"::", 8080}));
  for (const char* wrong : {"", "8080", ":8080", "::1:80", "[::1]", "h:65536", "h:", "h:8x", "h:-1"})
    EXPECT_FALSE(parse_listen(wrong)) << wrong;
}

TEST(ListenAddress, HasTheUsualPortIfItSaysNone) {
  EXPECT_EQ(*parse_listen("localhost", 5672), (Listen{"localhost", 5672}));
  EXPECT_EQ(*parse_listen("127.0.0.1", 5672), (Listen{"127.0.0.1", 5672}));
  EXPECT_EQ(*parse_listen("[::1]", 5300), (Listen{"::1", 5300}));
  EXPECT_EQ(*parse_listen("[::1]:0", 5300), (Listen{"::1", 0}));
  EXPECT_EQ(*parse_listen("localhost:1", 5672), (Listen{"localhost", 1}));
  for (const char* wrong : {"", "5672", ":5672", "::1", "[::1", "[]", "[::1]x", "h:", "h:65536"})
    EXPECT_FALSE(parse_listen(wrong, 5672)) << wrong;
}

TEST_F(Configuration, TheEndpointsOfTheBusHaveUsualPorts) {
  const auto config = load({{"amqp", "0.0.0.0"}, {"amqp_admin", "localhost"}});
  ASSERT_TRUE(config) << config.error().front();
  EXPECT_EQ(config->amqp, (Listen{"0.0.0.0", 5672}));
  EXPECT_EQ(config->amqp_admin, (Listen{"localhost", 5300}));
  EXPECT_FALSE(load({{"listen", "localhost"}}));
}

TEST(ListenAddress, OnlyLoopbackIsLoopback) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "::1", "localhost"})
    EXPECT_TRUE((Listen{host, 1}).is_loopback());
  for (const char* host : {"0.0.0.0", "::", "127.example.org", "10.0.0.1", "example.org"})
    EXPECT_FALSE((Listen{host, 1}).is_loopback()) << host;
}

TEST(StoreAddress, IsShownWithoutItsPassword) {
  EXPECT_EQ(without_password("postgres://u:p@h:5432/db"), "postgres://u:***@h:5432/db");
  EXPECT_EQ(without_password("postgres://u:p@ss/w@h/db"), "postgres://u:***@h/db");
  EXPECT_EQ(without_password("postgres://u@h:5432/db"), "postgres://u@h:5432/db");
  EXPECT_EQ(without_password("postgres://h/db?user=u&password=p&x=1"),
            "postgres://h/db?user=u&password=***&x=1");
  EXPECT_EQ(without_password("sqlite:/a/b.db"), "sqlite:/a/b.db");
}

}  // namespace
}  // namespace baton::server
