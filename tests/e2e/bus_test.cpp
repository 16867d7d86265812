// Queues, topics and subscriptions, by the command line and over HTTP. Messages in them: tests/bus.
#include "tests/e2e/server.hpp"
#include "tests/support/process.hpp"

namespace baton::e2e {
namespace {

class Bus : public testing::Test {
 protected:
  Ran bus(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "bus");
    return baton(std::move(arguments), {"BATON_SERVER=" + server_.url()});
  }
  json::value shown(const std::string& name) {
    const Ran ran = bus({"show", name, "--json"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    boost::system::error_code error;
    return json::parse(ran.out, error);
  }

  support::TemporaryDirectory data_;
  Server server_{{"--data", data_.path(), "--log-level", "warn"}};
};

TEST_F(Bus, HasTheTopicsOfASiteFromTheStart) {
  const Ran ran = bus({"list"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* path : {"orchestrator-events", "orchestrator-events/Subscriptions/orchestrator", "worker-jobs", "worker-results"})
    EXPECT_NE(ran.out.find(path), std::string::npos) << ran.out;
}

TEST_F(Bus, MakesWhatIsAskedForAndShowsIt) {
  EXPECT_EQ(bus({"create", "queue", "orders", "--lock", "30s", "--ttl", "7d", "--max-deliveries", "3", "--detect-duplicates", "5m", "--dead-letter-on-expiry"}).code, 0);
  const json::value queue = shown("ORDERS");
  EXPECT_EQ(queue.at("path").as_string(), "orders");
  EXPECT_EQ(queue.at("lock_seconds").as_int64(), 30);
  EXPECT_EQ(queue.at("time_to_live_seconds").as_int64(), 604'800);
  EXPECT_EQ(queue.at("deliveries_max").as_int64(), 3);
  EXPECT_EQ(queue.at("history_seconds").as_int64(), 300);
  EXPECT_TRUE(queue.at("detects_duplicates").as_bool());
  EXPECT_TRUE(queue.at("dead_letter_on_expiry").as_bool());
  const Ran again = bus({"create", "queue", "orders"});
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.err.find("already exists"), std::string::npos) << again.err;
}

TEST_F(Bus, MakesASubscriptionWithRules) {
  EXPECT_EQ(bus({"create", "topic", "events"}).code, 0);
  const Ran made = bus({"create", "subscription", "events/audit", "--rule", "total > 100", "--rule", "region = 'eu'"});
  EXPECT_EQ(made.code, 0) << made.err;
  const json::value subscription = shown("events/Subscriptions/audit");
  EXPECT_EQ(subscription.at("rules").at(0).at("sql").at("expression").as_string(), "total > 100");
  EXPECT_EQ(subscription.at("rules").at(1).at("name").as_string(), "rule-2");
  const Ran text = bus({"show", "events/Subscriptions/audit"});
  EXPECT_NE(text.out.find("region = 'eu'"), std::string::npos) << text.out;
  for (const char* command : {"show", "peek", "dead-letters"}) EXPECT_EQ(bus({command, "events/audit"}).code, 0) << command;
  const Ran listed = bus({"list", "--topic", "events", "--json"});
  EXPECT_EQ(json::parse(listed.out).at("entities").as_array().size(), 1U) << listed.out;
  const Ran wrong = bus({"create", "subscription", "events/broken", "--rule", "a = = 1"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("at character"), std::string::npos) << wrong.err;
}

TEST_F(Bus, TakesTheShortNameOfASubscriptionUnlessAQueueHasIt) {
  EXPECT_EQ(bus({"create", "topic", "events"}).code, 0);
  EXPECT_EQ(bus({"create", "subscription", "events/audit"}).code, 0);
  EXPECT_EQ(shown("events/audit").at("type").as_string(), "subscription");
  EXPECT_EQ(bus({"create", "queue", "events/audit"}).code, 0);
  EXPECT_EQ(shown("events/audit").at("type").as_string(), "queue");
  EXPECT_EQ(bus({"delete", "events/audit"}).code, 0);
  EXPECT_EQ(bus({"replay", "events/audit", "--all"}).out, "0 replayed.\n");
  EXPECT_EQ(bus({"delete", "events/audit"}).out, "events/Subscriptions/audit is deleted.\n");
  const Ran missing = bus({"show", "events/audit"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_NE(missing.err.find("'events/audit'"), std::string::npos) << missing.err;
}

TEST_F(Bus, RefusesOptionsThatSayNothing) {
  for (const char* option : {"--lock", "--ttl", "--detect-duplicates", "--delete-when-idle"}) EXPECT_EQ(bus({"create", "queue", "q", option, "0"}).code, 2) << option;
  EXPECT_EQ(bus({"show", "q"}).code, 1) << "nothing was made";
  EXPECT_EQ(bus({"list", "--type", "queue", "--topic", "t"}).code, 2);
}

TEST_F(Bus, DeletesATopicWithItsSubscriptions) {
  EXPECT_EQ(bus({"create", "topic", "gone"}).code, 0);
  EXPECT_EQ(bus({"create", "subscription", "gone/s"}).code, 0);
  EXPECT_EQ(bus({"delete", "gone"}).code, 0);
  EXPECT_EQ(bus({"show", "gone"}).code, 1);
  EXPECT_EQ(bus({"show", "gone/Subscriptions/s"}).code, 1);
  const Ran own = bus({"delete", "worker-jobs"});
  EXPECT_EQ(own.code, 1);
  EXPECT_NE(own.err.find("baton's own"), std::string::npos) << own.err;
}

TEST_F(Bus, LooksIntoWhatIsEmptyAndReplaysNothing) {
  EXPECT_EQ(bus({"create", "queue", "empty"}).code, 0);
  EXPECT_EQ(bus({"peek", "empty"}).code, 0);
  EXPECT_EQ(bus({"dead-letters", "empty"}).code, 0);
  EXPECT_EQ(bus({"replay", "empty", "--all"}).out, "0 replayed.\n");
  EXPECT_EQ(bus({"replay", "empty"}).code, 2);
  EXPECT_EQ(bus({"replay", "empty", "--sequence", "7"}).code, 1);
  EXPECT_EQ(bus({"peek", "missing"}).code, 1);
}

TEST_F(Bus, IsManagedOverHttp) {
  auto client = server_.client();
  const Answer made = ask(client, "POST", "/bus/entities", R"({"type":"queue","path":"team/orders","lock_seconds":45})");
  ASSERT_EQ(made.status, 201) << json::serialize(made.body);
  const Answer changed = ask(client, "POST", "/bus/entities/team%2Forders", R"({"deliveries_max":4})");
  ASSERT_EQ(changed.status, 200) << json::serialize(changed.body);
  EXPECT_EQ(changed.body.at("lock_seconds").as_int64(), 45) << "what is not named stays";
  EXPECT_EQ(changed.body.at("deliveries_max").as_int64(), 4);
  EXPECT_EQ(ask(client, "POST", "/bus/entities", R"({"type":"queue","path":"Team/Orders"})").status, 409);
  EXPECT_EQ(ask(client, "POST", "/bus/entities", R"({"type":"queue","path":"x","lock_seconds":3600})").status, 422);
  EXPECT_EQ(ask(client, "GET", "/bus/entities/nobody").status, 404);
  for (int i = 0; i < 5; ++i) ask(client, "POST", "/bus/entities", R"({"type":"queue","path":"q)" + std::to_string(i) + "\"}");
  const Answer page = ask(client, "GET", "/bus/entities?limit=2&cursor=1");
  EXPECT_EQ(page.body.at("entities").at(0).at("path").as_string(), "q1");
  EXPECT_EQ(page.text("next_cursor"), "3");
  EXPECT_EQ(ask(client, "POST", "/bus/entities/team%2Forders/delete").status, 200);
  EXPECT_EQ(ask(client, "GET", "/bus/entities/team%2Forders").status, 404);
}

TEST_F(Bus, RulesAreAddedReplacedAndDeletedOverHttp) {
  auto client = server_.client();
  ask(client, "POST", "/bus/entities", R"({"type":"topic","path":"t"})");
  ask(client, "POST", "/bus/entities", R"({"type":"subscription","path":"t/Subscriptions/s"})");
  const std::string rules = "/bus/entities/t%2FSubscriptions%2Fs/rules";
  EXPECT_EQ(ask(client, "POST", rules, R"({"name":"r","correlation":{"label":"order","properties":{"n":1}},"action":{"expression":"SET a = 1"}})").status, 200);
  EXPECT_EQ(ask(client, "POST", rules, R"({"name":"r","false":true})").status, 409);
  const Answer replaced = ask(client, "POST", rules + "/r", R"({"name":"r","sql":{"expression":"a = @p","parameters":{"@p":2}}})");
  ASSERT_EQ(replaced.status, 200) << json::serialize(replaced.body);
  EXPECT_EQ(replaced.body.at("rules").at(1).at("sql").at("parameters").at("@p").as_int64(), 2);
  EXPECT_EQ(ask(client, "POST", rules + "/$Default/delete").status, 200);
  EXPECT_EQ(ask(client, "POST", rules + "/$Default/delete").status, 404);
  EXPECT_EQ(ask(client, "POST", rules, R"({"name":"bad","sql":{"expression":"a ="}})").status, 422);
}

}  // namespace
}  // namespace baton::e2e
