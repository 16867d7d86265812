// Queues, topics and their messages through the real writer, on a store in memory and a clock that the test moves.
#include "engine/kinds/messages/messages_fixture.hpp"

namespace baton::engine::messages_test {
namespace {

TEST_F(MessageTurn, a_message_is_received_once_and_completed) {
  const auto queue = make(EntityType::queue, "orders");
  EXPECT_EQ(send("Orders", message("a")), 1);
  EXPECT_EQ(send("orders", message("b")), 2);
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 2U);
  EXPECT_EQ(given[0].message->message_id, "a");
  EXPECT_EQ(given[0].message->content.value, "body");
  EXPECT_EQ(given[0].message->delivery_count, 1);
  EXPECT_EQ(given[0].lease_until, clock_.time + 1min);
  EXPECT_TRUE(receive(queue).empty()) << "they are locked";
  EXPECT_FALSE(settle(given[0], How::complete));
  EXPECT_EQ(settle(given[0], How::complete).value().refusal, Refusal::lock_lost);
  EXPECT_EQ(counters("orders").active, 1);
  EXPECT_FALSE(settle(given[1], How::complete));
  EXPECT_EQ(counters("orders").active, 0);
  EXPECT_EQ(counters("orders").bytes, 0);
}

TEST_F(MessageTurn, a_lock_that_ends_gives_the_message_to_the_next_and_the_first_hears_that_it_is_lost) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  const auto first = receive(queue);
  pass(30s);
  EXPECT_TRUE(receive(queue).empty());
  pass(31s);
  const auto second = receive(queue);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].message->delivery_count, 2);
  EXPECT_EQ(settle(first.at(0), How::complete).value().refusal, Refusal::lock_lost);
  EXPECT_FALSE(settle(second[0], How::complete));
}

TEST_F(MessageTurn, a_lock_that_is_renewed_lasts) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  const auto given = receive(queue);
  for (int i = 0; i < 4; ++i) {
    pass(40s);
    const auto renewed = ask_for<RenewedReply>(RenewLocks{Tenant{"default"}, {lock_of(given.at(0))}});
    ASSERT_TRUE(renewed.until.at(0)) << i;
    EXPECT_EQ(*renewed.until.at(0), clock_.time + 1min);
  }
  EXPECT_TRUE(receive(queue).empty());
  EXPECT_FALSE(settle(given[0], How::complete));
}

TEST_F(MessageTurn, locks_outlive_a_restart) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  (void)send("q", message("b"));
  const auto given = receive(queue, 1);
  restart();
  const auto rest = receive(queue);
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].message->message_id, "b");
  EXPECT_FALSE(settle(given.at(0), How::complete));
  EXPECT_FALSE(settle(rest[0], How::complete));
  EXPECT_EQ(counters("q").bytes, 0) << "what was locked is counted after a restart too";
}

TEST_F(MessageTurn, a_lock_of_before_a_restart_lasts_no_longer_than_a_new_one_would) {
  const auto queue = make(EntityType::queue, "q", {.lock_time = 5s});
  (void)send("q", message("a"));
  EXPECT_EQ(receive(queue).size(), 1U);
  clock_.time += 1h;  // it has ended while nobody was there
  restart();
  pass(4s);
  EXPECT_TRUE(receive(queue).empty()) << "who has it may still say so";
  pass(1s);
  EXPECT_EQ(receive(queue).size(), 1U);
}

TEST_F(MessageTurn, a_message_that_is_abandoned_too_often_is_a_dead_letter) {
  const auto queue = make(EntityType::queue, "q", {.deliveries_max = 3});
  (void)send("q", message("a"));
  for (int i = 1; i <= 3; ++i) {
    const auto given = receive(queue);
    ASSERT_EQ(given.size(), 1U) << i;
    EXPECT_EQ(given[0].message->delivery_count, i);
    EXPECT_FALSE(settle(given[0], How::abandon));
  }
  EXPECT_TRUE(receive(queue).empty());
  EXPECT_EQ(counters("q").dead, 1);
  const auto dead = receive(queue, 10, Lane::dead);
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].message->dead_letter_reason, "MaxDeliveryCountExceeded");
  EXPECT_EQ(dead[0].message->dead_letter_source, "q");
}

TEST_F(MessageTurn, dead_letters_are_replayed) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  EXPECT_FALSE(settle(receive(queue).at(0), How::dead_letter, "poison"));
  EXPECT_EQ(ask_for<ReplayedReply>(ReplayDeadLetters{key("q"), {}, 10}).replayed, 1U);
  const auto again = receive(queue);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].message->delivery_count, 1);
  EXPECT_FALSE(again[0].message->dead_letter_reason);
  EXPECT_EQ(counters("q").dead, 0);
  EXPECT_EQ(refusal(ReplayDeadLetters{key("q"), {99}}), Refusal::message_not_found);
}

TEST_F(MessageTurn, of_dead_letters_that_are_named_all_are_replayed_or_none) {
  const auto queue = make(EntityType::queue, "q");
  const std::int64_t a = send("q", message("a")), b = send("q", message("b"));
  for (const Handout& each : receive(queue)) EXPECT_FALSE(settle(each, How::dead_letter, "poison"));
  EXPECT_EQ(refusal(ReplayDeadLetters{key("q"), {a, 99, b}}), Refusal::message_not_found);
  EXPECT_EQ(counters("q").dead, 2) << "what is refused is not half done";
  EXPECT_EQ(ask_for<ReplayedReply>(ReplayDeadLetters{key("q"), {b, a, b}}).replayed, 2U) << "a number that is named twice is one";
  EXPECT_EQ(counters("q").active, 2);
  EXPECT_EQ(refusal(ReplayDeadLetters{key("q"), std::vector<std::int64_t>(numbers_max + 1, 1)}), Refusal::invalid_input);
}

TEST_F(MessageTurn, a_replay_goes_on_behind_what_is_locked_and_ends_where_it_was_told) {
  const auto queue = make(EntityType::queue, "q");
  for (int i = 0; i < 5; ++i) (void)send("q", message(std::to_string(i)));
  for (const Handout& each : receive(queue)) EXPECT_FALSE(settle(each, How::dead_letter, "poison"));
  (void)receive(queue, 2, Lane::dead);  // somebody has the first two
  const std::int64_t up_to = counters("q").last_sequence_number;
  std::int64_t first = 0, replayed = 0;
  for (int round = 0; round < 3; ++round) {
    const auto reply = ask_for<ReplayedReply>(ReplayDeadLetters{.from = key("q"), .sequence_numbers = {}, .max = 2, .first = first, .up_to = up_to});
    EXPECT_EQ(reply.are_more, round < 2) << round;
    first = reply.last + 1;
    replayed += static_cast<std::int64_t>(reply.replayed);
    for (const Handout& each : receive(queue)) EXPECT_FALSE(settle(each, How::dead_letter, "poison again"));
  }
  EXPECT_EQ(replayed, 3);
  EXPECT_EQ(counters("q").dead, 5) << "they died again, with other numbers";
}

TEST_F(MessageTurn, a_deferred_message_waits_until_it_is_asked_for) {
  const auto queue = make(EntityType::queue, "q");
  const std::int64_t number = send("q", message("a"));
  EXPECT_FALSE(settle(receive(queue).at(0), How::defer));
  EXPECT_TRUE(receive(queue).empty());
  const auto taken = ask_for<MessagesReply>(ReceiveDeferred{key("q"), false, {number}}).messages;
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(refusal(ReceiveDeferred{key("q"), false, {number}}), Refusal::message_not_found) << "it is locked";
  const auto done = ask_for<SettledReply>(SettleMessages{Tenant{"default"}, {{.lock = {taken[0]->key(), taken[0]->locks}, .how = How::complete}}});
  EXPECT_FALSE(done.settled.at(0));
  EXPECT_EQ(counters("q").deferred, 0);
}

TEST_F(MessageTurn, deferred_messages_that_are_too_large_for_one_answer_are_received_in_several) {
  const auto queue = make(EntityType::queue, "q");
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 9; ++i) {
    numbers.push_back(send("q", message(std::to_string(i), std::string(1 << 20, 'x'))));
    EXPECT_FALSE(settle(receive(queue).at(0), How::defer));
  }
  EXPECT_EQ(refusal(ReceiveDeferred{key("q"), false, numbers}), Refusal::invalid_input);
  const std::vector some(numbers.begin(), numbers.begin() + 7), rest(numbers.begin() + 7, numbers.end());
  EXPECT_EQ(ask_for<MessagesReply>(ReceiveDeferred{key("q"), false, some}).messages.size(), 7U);
  EXPECT_EQ(ask_for<MessagesReply>(ReceiveDeferred{key("q"), false, rest}).messages.size(), 2U);
}

TEST_F(MessageTurn, a_scheduled_message_comes_at_its_time_and_a_cancelled_one_never) {
  const auto queue = make(EntityType::queue, "q");
  NewMessage later = message("later"), never = message("never");
  later.scheduled_for = never.scheduled_for = clock_.time + 1min;
  (void)send("q", later);
  const std::int64_t number = send("q", never);
  (void)ask_for<MessagesReply>(CancelScheduled{key("q"), {number}});
  EXPECT_EQ(counters("q").scheduled, 1);
  restart();
  pass(59s);
  EXPECT_TRUE(receive(queue).empty());
  pass(1s);
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].message->message_id, "later");
  EXPECT_EQ(given[0].message->sequence_number, 3) << "it is enqueued as if it had just been sent";
}

TEST_F(MessageTurn, what_expires_is_gone_or_a_dead_letter) {
  const auto gone = make(EntityType::queue, "gone", {.time_to_live = 10s});
  const auto kept = make(EntityType::queue, "kept", {.dead_letter_on_expiry = true});
  (void)send("gone", message("a"));
  NewMessage brief = message("b");
  brief.time_to_live = 5s;
  (void)send("kept", brief);
  pass(11s);
  EXPECT_EQ(counters("gone").active, 0);
  EXPECT_EQ(counters("kept").active, 0);
  EXPECT_EQ(counters("kept").dead, 1);
  EXPECT_TRUE(receive(gone).empty());
  EXPECT_EQ(receive(kept, 1, Lane::dead).at(0).message->dead_letter_reason, "TTLExpiredException");
}

TEST_F(MessageTurn, duplicates_are_dropped_within_the_window) {
  const auto queue = make(EntityType::queue, "q", {.detects_duplicates = true, .history_time = 30s});
  EXPECT_EQ(send("q", message("a")), 1);
  EXPECT_EQ(send("q", message("a")), 0);
  restart();
  EXPECT_EQ(send("q", message("a")), 0);
  pass(31s);
  EXPECT_EQ(send("q", message("a")), 2);
  EXPECT_EQ(receive(queue).size(), 2U);
  pass(2min);
  EXPECT_TRUE(database_.bus.history.empty());
}

TEST_F(MessageTurn, a_topic_gives_each_subscription_what_its_rules_select) {
  (void)make(EntityType::topic, "events");
  const auto all = make(EntityType::subscription, "events/Subscriptions/all");
  const auto red = make(EntityType::subscription, "events/subscriptions/red", {}, {{"red", message::SqlText{"color = 'red'", {}}, std::nullopt, {}}});
  const auto changed = make(EntityType::subscription, "events/Subscriptions/changed", {},
                            {{"half", message::SqlText{"amount > 10", {}}, message::SqlText{"SET amount = amount / 2", {}}, {}}});
  auto envelope = std::make_shared<message::Envelope>();
  envelope->properties = {{"color", std::string("red")}, {"amount", std::int64_t{40}}};
  NewMessage sent = message("a");
  sent.envelope = envelope;
  (void)send("events", sent);
  (void)send("events", message("b"));
  EXPECT_EQ(receive(all).size(), 2U);
  ASSERT_EQ(receive(red).size(), 1U);
  const auto halved = receive(changed);
  ASSERT_EQ(halved.size(), 1U);
  const auto changes = message::read_changes(halved[0].message->changes.value());
  EXPECT_EQ(std::get<std::int64_t>(changes->set.at("amount")), 20);
}

TEST_F(MessageTurn, a_message_scheduled_in_a_topic_is_filtered_when_it_comes) {
  (void)make(EntityType::topic, "t");
  const auto red = make(EntityType::subscription, "t/Subscriptions/red", {}, {{"red", message::SqlText{"color = 'red'", {}}, std::nullopt, {}}});
  auto envelope = std::make_shared<message::Envelope>();
  envelope->properties = {{"color", std::string("red")}};
  NewMessage sent = message("a");
  sent.envelope = envelope;
  sent.scheduled_for = clock_.time + 1s;
  (void)send("t", sent);
  restart();
  pass(1s);
  EXPECT_EQ(receive(red).size(), 1U);
}

TEST_F(MessageTurn, whoever_receives_and_deletes_has_it_for_good) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  EXPECT_EQ(receive(queue, 1, Lane::active, true).size(), 1U);
  pass(2min);
  EXPECT_TRUE(receive(queue).empty());
  EXPECT_EQ(counters("q").active, 0);
}

TEST_F(MessageTurn, a_message_that_nobody_saw_is_given_back_without_a_delivery) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  const auto given = receive(queue);
  (void)ask(ReturnTasks{{{given.at(0).task_id, given.at(0).lease}}});
  const auto again = receive(queue);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0].message->delivery_count, 1);
}

TEST_F(MessageTurn, what_is_deleted_leaves_nothing_behind) {
  (void)make(EntityType::topic, "t");
  const auto subscription = make(EntityType::subscription, "t/Subscriptions/s");
  for (int i = 0; i < 1'200; ++i) (void)send("t", message(std::to_string(i)));
  const auto given = receive(subscription, 5);
  (void)ask_for<EntitiesReply>(ChangeEntity{ChangeEntity::What::remove, key("t"), EntityType::topic});
  EXPECT_EQ(refusal(FindEntity{key("t/Subscriptions/s")}), Refusal::entity_not_found);
  EXPECT_EQ(settle(given.at(0), How::complete).value().refusal, Refusal::lock_lost);
  pass(1s);
  EXPECT_TRUE(database_.bus.messages.empty());
  const auto again = make(EntityType::topic, "t");
  EXPECT_GT(again.entity.entity_id, subscription.entity.entity_id) << "ids are not used again";
}

TEST_F(MessageTurn, another_tenant_gets_and_settles_nothing) {
  const auto queue = make(EntityType::queue, "q");
  (void)send("q", message("a"));
  const Poll foreign{.tenant = {"other"}, .queue = message::queue_name(queue.entity.entity_id, Lane::active), .worker = "x", .max = 1,
                     .heartbeats = true, .wait_until = clock_.time, .is_listed = false};
  EXPECT_TRUE(ask_for<PollReply>(foreign).jobs.empty());
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 1U);
  const auto stolen = ask_for<SettledReply>(SettleMessages{Tenant{"other"}, {{.lock = lock_of(given[0]), .how = How::complete}}});
  EXPECT_EQ(stolen.settled.at(0).value().refusal, Refusal::lock_lost);
  EXPECT_EQ(refusal(PeekMessages{key("q", "other"), false, 0, 10}), Refusal::entity_not_found);
}

TEST_F(MessageTurn, a_look_makes_nothing) {
  EXPECT_EQ(refusal(FindEntity{key("worker-jobs", "stranger")}), Refusal::entity_not_found);
  EXPECT_TRUE(ask_for<EntitiesReply>(ListEntities{{"stranger"}, EntityType::topic}).entities.empty());
  EXPECT_EQ(refusal(ListEntities{{"stranger"}, EntityType::subscription, "worker-jobs"}), Refusal::entity_not_found);
  EXPECT_TRUE(database_.bus.entities.empty());
}

TEST_F(MessageTurn, the_topics_of_baton_are_made_for_a_link_and_with_the_first_change) {
  (void)ask_for<EntitiesReply>(FindEntity{.key = key("worker-results", "a"), .is_attach = true});
  EXPECT_EQ(ask_for<EntitiesReply>(ListEntities{{"a"}, EntityType::topic}).entities.size(), 3U);
  (void)ask_for<EntitiesReply>(ChangeEntity{ChangeEntity::What::create, key("q", "b"), EntityType::queue, {}, {}});
  EXPECT_EQ(ask_for<EntitiesReply>(ListEntities{{"b"}, EntityType::topic}).entities.size(), 3U);
}

TEST_F(MessageTurn, the_topics_of_baton_are_there_and_stay) {
  (void)ask_for<EntitiesReply>(FindEntity{.key = key("worker-jobs"), .is_attach = true});
  const auto topics = ask_for<EntitiesReply>(ListEntities{{"default"}, EntityType::topic}).entities;
  ASSERT_EQ(topics.size(), 3U);
  EXPECT_TRUE(topics[0].is_reserved);
  EXPECT_EQ(refusal(ChangeEntity{ChangeEntity::What::remove, key("worker-jobs"), EntityType::topic}), Refusal::not_possible);
}

TEST_F(MessageTurn, a_subscription_that_is_a_pool_says_which_and_has_no_messages_to_look_at) {
  const auto pool = make(EntityType::subscription, "worker-jobs/Subscriptions/mine", {}, {message::rule_of_pool("pool-1")});
  EXPECT_EQ(pool.pool, "pool-1");
  EXPECT_EQ(make(EntityType::subscription, "worker-jobs/Subscriptions/all").pool, std::nullopt);
  EXPECT_EQ(make(EntityType::subscription, "worker-results/Subscriptions/mine", {}, {message::rule_of_pool("pool-1")}).pool, std::nullopt);
  for (const bool is_dead : {false, true}) EXPECT_EQ(refusal(PeekMessages{.from = key("worker-jobs/Subscriptions/mine"), .dead = is_dead}), Refusal::not_possible);
  EXPECT_EQ(refusal(ReplayDeadLetters{.from = key("worker-jobs/Subscriptions/mine"), .sequence_numbers = {}}), Refusal::not_possible);
  (void)ask_for<MessagesReply>(PeekMessages{.from = key("worker-jobs/Subscriptions/all")});
}

TEST_F(MessageTurn, subscriptions_are_those_of_a_topic) {
  (void)make(EntityType::topic, "t");
  (void)make(EntityType::queue, "q");
  EXPECT_TRUE(ask_for<EntitiesReply>(ListEntities{{"default"}, EntityType::subscription, "t"}).entities.empty());
  EXPECT_EQ(refusal(ListEntities{{"default"}, EntityType::subscription, "q"}), Refusal::entity_not_found);
  EXPECT_EQ(refusal(ListEntities{{"default"}, EntityType::subscription, "missing"}), Refusal::entity_not_found);
}

TEST_F(MessageTurn, names_settings_and_rules_are_checked) {
  using What = ChangeEntity::What;
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("a b"), EntityType::queue}), Refusal::invalid_input);
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("q"), EntityType::queue, {.lock_time = 1s}}), Refusal::invalid_input);
  (void)make(EntityType::queue, "q");
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("Q"), EntityType::queue}), Refusal::entity_exists);
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("t/Subscriptions/s"), EntityType::subscription}), Refusal::entity_not_found);
  (void)make(EntityType::topic, "t");
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("t/Subscriptions/s"), EntityType::subscription, {}, {{"r", message::SqlText{"a = ", {}}, std::nullopt, {}}}}),
            Refusal::invalid_input);
}

TEST_F(MessageTurn, control_characters_are_refused_in_every_text_of_an_entity) {
  using What = ChangeEntity::What;
  using Rule = message::RuleDescription;
  EXPECT_EQ(refusal(ChangeEntity{What::create, key("q"), EntityType::queue, {.user_metadata = "\x01"}}), Refusal::invalid_input);
  (void)make(EntityType::queue, "q");
  EXPECT_EQ(refusal(ChangeEntity{What::update, key("q"), EntityType::queue, {.user_metadata = "\xEF\xBF\xBF"}}), Refusal::invalid_input);
  (void)make(EntityType::topic, "t");
  (void)make(EntityType::subscription, "t/Subscriptions/s");
  message::CorrelationFilter label, name, value;
  label.label = "a\x02";
  name.properties.insert_or_assign("a\x02", message::Value{true});
  value.properties.insert_or_assign("a", message::Value{std::string("\x02")});
  for (const Rule& each : {Rule{"r", message::SqlText{"a = '\x1b'", {}}, {}, {}}, Rule{"r", message::SqlText{"a = @p", {{"@p", message::Value{std::string("\x1b")}}}}, {}, {}},
                           Rule{"r", label, {}, {}}, Rule{"r", name, {}, {}}, Rule{"r", value, {}, {}}, Rule{"r", message::TrueFilter{}, message::SqlText{"SET a = '\x1b'", {}}, {}}})
    EXPECT_EQ(refusal(ChangeRule{ChangeRule::What::add, key("t/Subscriptions/s"), each}), Refusal::invalid_input) << message::to_json(std::vector<Rule>{each}).text;
  label.label = "a\tb";
  (void)ask_for<EntitiesReply>(ChangeRule{ChangeRule::What::add, key("t/Subscriptions/s"), Rule{"r", label, {}, {}}});
}

TEST_F(MessageTurn, a_full_queue_takes_no_more) {
  (void)make(EntityType::queue, "q", {.size_max_mb = 1});
  (void)send("q", message("a", std::string(900 << 10, 'x')));
  const auto reply = ask_for<SentReply>(SendMessages{key("q"), {{message("b", std::string(200 << 10, 'x'))}}});
  EXPECT_EQ(reply.transfers.at(0).error().refusal, Refusal::quota_exceeded);
}

TEST_F(MessageTurn, peeking_shows_what_is_there_in_order) {
  const auto queue = make(EntityType::queue, "q");
  for (int i = 0; i < 4; ++i) (void)send("q", message(std::to_string(i)));
  EXPECT_FALSE(settle(receive(queue, 1).at(0), How::defer));
  const auto seen = ask_for<MessagesReply>(PeekMessages{key("q"), false, 1, 3}).messages;
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0]->lane, Lane::deferred);
  EXPECT_EQ(seen[1]->message_id, "1");
  EXPECT_EQ(ask_for<MessagesReply>(PeekMessages{key("q"), false, 4, 10}).messages.size(), 1U);
  const auto active = ask_for<MessagesReply>(PeekMessages{key("q"), false, 0, 1, Lane::active}).messages;
  ASSERT_EQ(active.size(), 1U);
  EXPECT_EQ(active[0]->message_id, "1") << "the first one is deferred";
}

}  // namespace
}  // namespace baton::engine::messages_test
