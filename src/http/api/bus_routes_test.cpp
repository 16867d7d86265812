#include <gtest/gtest.h>

#include "base/json_write.hpp"
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

using message::EntityType;

class BusRoutes : public ServerTest {
 protected:
  BusRoutes() {
    queue_.entity.path = "orders";
    queue_.entity.entity_type = EntityType::queue;
    queue_.settings.deliveries_max = 7;
  }
  void answer_with(Reply reply) {
    inbox_.answer([reply, found = queue_](const Command& command) -> std::optional<Reply> {
      if (std::holds_alternative<FindEntity>(command)) return EntitiesReply{{found}};
      return reply;
    });
    start();
  }
  void agree_to_all() { answer_with(EntitiesReply{{queue_}}); }

  EntityInfo queue_;
};

TEST_F(BusRoutes, an_entity_is_made_with_what_is_said) {
  agree_to_all();
  const auto response = ask("POST", "/api/v1/bus/entities",
                            R"({"type":"subscription","path":"events/Subscriptions/audit","lock_seconds":30.5,"time_to_live_seconds":60,"rules":[{"name":"r","sql":{"expression":"a = 1"}}]})");
  EXPECT_EQ(response.status, 201) << response.body;
  const auto command = inbox_.wait_for<ChangeEntity>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->type, EntityType::subscription);
  EXPECT_EQ(command->settings.lock_time, Duration{30'500});
  EXPECT_EQ(command->settings.time_to_live, Duration{60'000});
  ASSERT_EQ(command->rules.size(), 1U);
  EXPECT_EQ(std::get<message::SqlText>(command->rules[0].filter).expression, "a = 1");
}

TEST_F(BusRoutes, what_cannot_be_an_entity_is_refused_with_all_that_is_wrong) {
  agree_to_all();
  for (const char* body : {R"({})", R"({"type":"table","path":"x"})", R"({"type":"queue"})", R"({"type":"queue","path":"t/Subscriptions/s"})", R"({"type":"subscription","path":"s"})",
                           R"({"type":"queue","path":"x","lock_second":3})", R"({"type":"queue","path":"x","lock_seconds":"long"})", R"({"type":"queue","path":"x","status":"Asleep"})",
                           R"({"type":"queue","path":"x","rules":[{"name":"r"}]})", R"({"type":"subscription","path":"t/Subscriptions/s","rules":[{"name":"r","sqll":{}}]})",
                           R"({"type":"subscription","path":"t/Subscriptions/s","rules":[{"name":"r","sql":{"text":"a"}}]})",
                           R"({"type":"subscription","path":"t/Subscriptions/s","rules":[{"name":"r","sql":{}}]})",
                           R"({"type":"subscription","path":"t/Subscriptions/s","rules":[{"name":"r","correlation":{"lable":"a"}}]})", R"({"type":"subscription","path":"t/Subscriptions/s","rules":{}})"})
    EXPECT_EQ(ask("POST", "/api/v1/bus/entities", body).status, 422) << body;
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(BusRoutes, a_change_leaves_what_it_does_not_name) {
  queue_.settings.time_to_live = Duration{5'000};
  agree_to_all();
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/orders", R"({"lock_seconds":9,"time_to_live_seconds":0})").status, 200);
  const auto command = inbox_.wait_for<ChangeEntity>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->what, ChangeEntity::What::update);
  EXPECT_EQ(command->settings.deliveries_max, 7);
  EXPECT_FALSE(command->settings.time_to_live);
  EXPECT_EQ(command->settings.lock_time, Duration{9'000});
}

TEST_F(BusRoutes, an_entity_is_shown_with_its_oldest_message) {
  queue_.counters.active = 2;
  auto oldest = std::make_shared<message::Message>();
  oldest->lane = message::Lane::active;
  oldest->enqueued_at = from_millis(1'000);
  answer_with(MessagesReply{{oldest}});
  const auto shown = json(ask("GET", "/api/v1/bus/entities/orders"));
  EXPECT_EQ(text(shown, "oldest_enqueued_at"), "1970-01-01T00:00:01.000Z");
  EXPECT_EQ(inbox_.wait_for<PeekMessages>()->lane, message::Lane::active) << "whatever is deferred before it";
  EXPECT_EQ(shown.at("counts").at("active").as_int64(), 2);
  EXPECT_TRUE(shown.at("time_to_live_seconds").is_null());
}

TEST_F(BusRoutes, a_path_may_have_slashes_in_its_place) {
  agree_to_all();
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/events%2FSubscriptions%2Faudit/rules/r/delete").status, 200);
  const auto command = inbox_.wait_for<ChangeRule>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->what, ChangeRule::What::remove);
  EXPECT_EQ(command->subscription.path, "events/Subscriptions/audit");
  EXPECT_EQ(command->rule.name, "r");
}

TEST_F(BusRoutes, a_rule_is_replaced_under_its_own_name) {
  agree_to_all();
  const std::string target = "/api/v1/bus/entities/t%2FSubscriptions%2Fs/rules/r";
  EXPECT_EQ(ask("POST", target, R"({"name":"other","false":true})").status, 422);
  EXPECT_EQ(ask("POST", target, R"({"name":"R","false":true})").status, 200);
  EXPECT_EQ(inbox_.wait_for<ChangeRule>()->what, ChangeRule::What::replace);
}

TEST_F(BusRoutes, messages_are_shown_without_what_they_say_unless_asked) {
  auto message = std::make_shared<message::Message>();
  message->sequence_number = 7;
  message->lane = message::Lane::dead;
  message->message_id = "m";
  message->dead_letter_reason = "because";
  message->content.value = std::string("\x00\x53\x75\xa0\x02{}", 7);
  answer_with(MessagesReply{{message}});
  const auto brief = json(ask("GET", "/api/v1/bus/entities/orders/messages?dead=true&after=6&limit=3"));
  const auto command = inbox_.wait_for<PeekMessages>();
  ASSERT_TRUE(command);
  EXPECT_TRUE(command->dead);
  EXPECT_EQ(command->first, 7);
  EXPECT_EQ(command->max, 3U);
  EXPECT_EQ(brief.at("next_after").as_int64(), 7);
  EXPECT_EQ(text(brief.at("messages").at(0), "dead_letter_reason"), "because");
  EXPECT_FALSE(brief.at("messages").at(0).as_object().contains("body"));
  const auto full = json(ask("GET", "/api/v1/bus/entities/orders/messages?full=true"));
  EXPECT_TRUE(full.at("messages").at(0).at("body").is_object());
}

TEST_F(BusRoutes, dead_letters_are_replayed_by_number_or_the_first_of_them) {
  answer_with(ReplayedReply{2, true, 4});
  const auto response = ask("POST", "/api/v1/bus/entities/orders/dead-letters:replay", R"({"sequence_numbers":[3,4]})");
  EXPECT_EQ(response.body, R"({"replayed":2,"are_more":true,"next_after":4})");
  EXPECT_EQ(inbox_.wait_for<ReplayDeadLetters>()->sequence_numbers, (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/orders/dead-letters:replay", R"({"after":9,"up_to":20})").status, 200);
  EXPECT_EQ(inbox_.all<ReplayDeadLetters>().back().first, 10);
  EXPECT_EQ(inbox_.all<ReplayDeadLetters>().back().up_to, 20);
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/orders/dead-letters:replay", R"({"sequence_number":3})").status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/orders/dead-letters:replay", R"({"max":1001})").status, 422);
  std::vector<std::int64_t> too_many(numbers_max + 1, 7);
  EXPECT_EQ(ask("POST", "/api/v1/bus/entities/orders/dead-letters:replay", json_object("sequence_numbers", too_many).text).status, 422);
  EXPECT_EQ(inbox_.all<ReplayDeadLetters>().size(), 2U);
}

// Of the store, since the engine knows nothing of jobs here.
workflow::NodeState waiting_task(int number, const std::string& queue) {
  workflow::NodeState node;
  node.job_id.value = "j";
  node.node_id = "n" + std::to_string(number);
  node.tenant.value = "default";
  node.status = workflow::NodeStatus::dispatched;
  node.queue = queue;
  node.dispatched_at = from_millis(number);
  return node;
}

TEST_F(BusRoutes, a_pool_is_counted_by_its_jobs) {
  queue_.entity.path = "worker-jobs/Subscriptions/worker-p";
  queue_.entity.entity_type = EntityType::subscription;
  queue_.pool = "p";
  WriteSet jobs;
  jobs.nodes_new = {waiting_task(1, "p"), waiting_task(2, "p"), waiting_task(3, "other"), waiting_task(4, "p")};
  jobs.nodes_new[3].status = workflow::NodeStatus::failed;
  jobs.nodes_new[3].dead_at = from_millis(9);
  commit(jobs);
  agree_to_all();
  const auto check = [](const boost::json::value& entity) {
    EXPECT_EQ(text(entity, "pool"), "p");
    EXPECT_EQ(entity.at("counts").at("active").as_int64(), 2);
    EXPECT_EQ(entity.at("counts").at("dead").as_int64(), 1);
    EXPECT_FALSE(entity.at("counts_are_at_least").as_bool());
  };
  check(json(ask("GET", "/api/v1/bus/entities/worker-jobs%2FSubscriptions%2Fworker-p")));
  check(json(ask("GET", "/api/v1/bus/entities?type=subscription&topic=worker-jobs")).at("entities").at(0));
}

TEST_F(BusRoutes, the_external_broker_is_shown_with_its_links_and_what_was_rejected) {
  BrokerState broker("sb://site", {"p"}, from_millis(0));
  broker.disconnected("connection refused", from_millis(1'000));
  broker.connected({{.address = "worker-jobs", .is_sender = true, .queue = "p", .is_open = false, .since = from_millis(2'000), .trouble = {}}}, from_millis(2'000));
  broker.link_opened(0, from_millis(3'000));
  broker.rejected({.at = from_millis(4'000), .source = "worker-results", .message_id = "m", .by_broker = false, .reason = "amqp:decode-error", .description = "no JSON"});
  options_.broker = &broker;
  agree_to_all();
  EXPECT_EQ(ask("GET", "/api/v1/bus/broker").body,
            R"({"address":"sb://site","connected":true,"since":"1970-01-01T00:00:02.000Z","trouble":"connection refused","trouble_at":"1970-01-01T00:00:01.000Z",)"
            R"("links":[{"address":"worker-jobs","direction":"out","queue":"p","open":true,"since":"1970-01-01T00:00:03.000Z","trouble":null}],)"
            R"("rejected":[{"at":"1970-01-01T00:00:04.000Z","rejected_by":"baton","source":"worker-results","message_id":"m","reason":"amqp:decode-error","description":"no JSON"}]})");
}

TEST_F(BusRoutes, there_need_be_no_external_broker) {
  agree_to_all();
  EXPECT_EQ(ask("GET", "/api/v1/bus/broker").status, 404);
}

TEST_F(BusRoutes, a_list_of_subscriptions_needs_their_topic) {
  agree_to_all();
  EXPECT_EQ(ask("GET", "/api/v1/bus/entities?type=subscription").status, 422);
  EXPECT_EQ(ask("GET", "/api/v1/bus/entities?type=table").status, 422);
  EXPECT_EQ(json(ask("GET", "/api/v1/bus/entities")).at("entities").as_array().size(), 1U);
}

}  // namespace
}  // namespace baton::http
