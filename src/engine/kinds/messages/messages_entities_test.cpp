// What the settings, rules and ends of entities mean for their messages.
#include "engine/kinds/messages/messages_fixture.hpp"

namespace baton::engine::messages_entities_test {
namespace {

using namespace messages_test;
using What = ChangeEntity::What;

class EntityTurn : public MessageTurn {
 protected:
  void with_metrics() {
    writer_ = std::make_unique<Writer>(*store_, clock_, make_kinds({}, &metrics_));
    ASSERT_TRUE(writer_->open());
  }
  bool is_shown(const std::string& path) const { return metrics_.render().contains("entity=\"" + path + "\""); }
  metrics::Registry metrics_;
};

TEST_F(EntityTurn, what_is_disabled_for_receiving_gives_no_deferred_messages_either) {
  const auto queue = make(EntityType::queue, "q");
  const std::int64_t number = send("q", message("a"));
  EXPECT_FALSE(settle(receive(queue).at(0), How::defer));
  (void)ask_for<EntitiesReply>(ChangeEntity{What::update, key("q"), EntityType::queue, {.availability = message::Availability::receive_disabled}, {}});
  EXPECT_EQ(refusal(ReceiveDeferred{key("q"), false, {number}}), Refusal::not_possible);
  (void)ask_for<EntitiesReply>(ChangeEntity{What::update, key("q"), EntityType::queue, {}, {}});
  EXPECT_EQ(ask_for<MessagesReply>(ReceiveDeferred{key("q"), false, {number}}).messages.size(), 1U);
}

TEST_F(EntityTurn, a_pool_of_workers_is_never_deleted_because_it_is_idle) {
  (void)ask_for<EntitiesReply>(FindEntity{.key = key("worker-jobs"), .is_attach = true});
  const auto pool = key("Worker-Jobs/Subscriptions/worker-a");
  EXPECT_EQ(refusal(ChangeEntity{What::create, pool, EntityType::subscription, {.delete_when_idle = 5min}, {}}), Refusal::invalid_input);
  (void)ask_for<EntitiesReply>(ChangeEntity{What::create, pool, EntityType::subscription, {}, {}});
  EXPECT_EQ(refusal(ChangeEntity{What::update, pool, EntityType::subscription, {.delete_when_idle = 5min}, {}}), Refusal::invalid_input);
  (void)ask_for<EntitiesReply>(ChangeEntity{What::create, key("worker-results/Subscriptions/mine"), EntityType::subscription, {.delete_when_idle = 5min}, {}});
}

TEST_F(EntityTurn, a_lock_is_known_by_its_token_however_often_the_message_was_locked) {
  const auto queue = make(EntityType::queue, "q");
  const std::int64_t number = send("q", message("a"));
  database_.bus.messages.change({queue.entity.entity_id, Lane::active, number}, [](message::Message& row) { row.locks = MessageLock::number_mask; });
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].message->locks, MessageLock::number_mask + 1);
  const MessageLock token{given[0].message->key(), 0}, other{given[0].message->key(), 1};
  const auto settled = [&](const MessageLock& lock) { return ask_for<SettledReply>(SettleMessages{Tenant{"default"}, {{.lock = lock, .how = How::abandon}}}).settled.at(0); };
  EXPECT_TRUE(settled(other));
  EXPECT_FALSE(settled(token));
  const auto again = receive(queue);
  (void)ask(ReturnTasks{{{again.at(0).task_id, "1"}}});
  EXPECT_EQ(receive(queue).size(), 1U) << "it was given back by its token";
}

TEST_F(EntityTurn, an_action_may_change_how_long_a_copy_lives) {
  (void)make(EntityType::topic, "t", {.time_to_live = 1min});
  const auto rule = [](const char* action, Duration time) {
    return std::vector<message::RuleDescription>{{"r", message::TrueFilter{}, message::SqlText{action, {{"@time", time}}}, {}}};
  };
  const auto brief = make(EntityType::subscription, "t/Subscriptions/brief", {}, rule("SET sys.TimeToLive = @time", 5s));
  const auto usual = make(EntityType::subscription, "t/Subscriptions/usual", {}, rule("SET a = @time", 5s));
  const auto longer = make(EntityType::subscription, "t/Subscriptions/longer", {}, rule("SET sys.TimeToLive = @time", 1h));
  (void)send("t", message("a"));
  pass(6s);
  EXPECT_EQ(counters("t/Subscriptions/brief").active, 0);
  EXPECT_EQ(counters("t/Subscriptions/usual").active, 1);
  EXPECT_EQ(counters("t/Subscriptions/longer").active, 1);
  pass(1min);
  EXPECT_EQ(counters("t/Subscriptions/longer").active, 0) << "a topic's time is the most";
  EXPECT_EQ(refusal(ChangeRule{ChangeRule::What::add, key("t/Subscriptions/usual"), {"at", message::TrueFilter{}, message::SqlText{"REMOVE sys.ScheduledEnqueueTimeUtc", {}}, {}}}),
            Refusal::invalid_input);
}

TEST_F(EntityTurn, what_is_deleted_has_no_gauges_and_leaves_room_for_those_of_others) {
  with_metrics();
  for (int i = 0; i < 250; ++i) {
    const std::string name = "q" + std::to_string(i);
    (void)make(EntityType::queue, name);
    ASSERT_TRUE(is_shown(name)) << i;
    (void)ask_for<EntitiesReply>(ChangeEntity{What::remove, key(name), EntityType::queue});
    EXPECT_FALSE(is_shown(name)) << i;
  }
}

}  // namespace
}  // namespace baton::engine::messages_entities_test
