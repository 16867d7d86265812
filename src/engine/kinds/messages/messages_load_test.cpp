// What a turn brings of messages from the store: as much as it decides on, and never more than its memory has room for.
#include "engine/kinds/messages/messages_fixture.hpp"

namespace baton::engine::messages_load_test {
namespace {

using namespace messages_test;

constexpr std::size_t mebibyte = 1 << 20;

class MessageLoad : public MessageTurn {
 protected:
  static NewMessage large(const std::string& id) { return message(id, std::string(mebibyte, 'x')); }
  EntityInfo queue_of_large_ones(message::Settings settings, std::size_t count) {
    const auto queue = make(EntityType::queue, "q", std::move(settings));
    for (std::size_t i = 0; i < count; ++i) (void)send("q", large(std::to_string(i)));
    return queue;
  }
  // As many answers as it takes.
  std::vector<Handout> receive_all(const EntityInfo& from, std::size_t count) {
    std::vector<Handout> all;
    for (std::size_t i = 0; i < count && all.size() < count; ++i) std::ranges::move(receive(from, 100), std::back_inserter(all));
    EXPECT_EQ(all.size(), count);
    return all;
  }
  static SettleMessages settle_all(const std::vector<Handout>& given, How how) {
    SettleMessages command{Tenant{"default"}, {}};
    for (const Handout& each : given) command.settlements.push_back({.lock = lock_of(each), .how = how, .reason = {}, .description = {}, .changes = {}});
    return command;
  }
  std::size_t refused_of(const SettledReply& reply) {
    return static_cast<std::size_t>(std::ranges::count_if(reply.settled, [](const auto& each) { return each && each->refusal == Refusal::overloaded; }));
  }
  std::vector<std::shared_ptr<support::KeptReply>> run(std::vector<Command> commands) {
    std::vector<std::shared_ptr<support::KeptReply>> answers;
    std::vector<Item> items;
    for (Command& each : commands) items.push_back({std::move(each), answers.emplace_back(std::make_shared<support::KeptReply>())});
    writer_->run(std::move(items));
    return answers;
  }
  static auto answered(const std::vector<std::shared_ptr<support::KeptReply>>& answers) {
    return std::ranges::count_if(answers, [](const auto& each) { return each->reply.has_value(); });
  }
};

TEST_F(MessageLoad, of_many_looks_those_are_brought_that_have_their_turn) {
  std::vector<Command> looks;
  for (int i = 0; i < 20; ++i) {
    const std::string queue = "q" + std::to_string(i);
    (void)make(EntityType::queue, queue);
    (void)send(queue, message("a", std::string(10'000, 'x')));
    looks.emplace_back(PeekMessages{key(queue), false, 0, 1});
  }
  store_->bytes = 0;
  const auto answers = run(std::move(looks));
  EXPECT_EQ(answered(answers), 8);
  EXPECT_EQ(store_->bytes, 80'000U);
  pass(0s);
  EXPECT_EQ(answered(answers), 20);
  EXPECT_EQ(store_->bytes, 200'000U) << "each once";
}

TEST_F(MessageLoad, lists_of_entities_are_looks_too) {
  EXPECT_EQ(answered(run(std::vector<Command>(20, ListEntities{{"default"}, EntityType::queue}))), 8);
}

TEST_F(MessageLoad, one_look_has_four_mebibytes_of_all_lanes_together) {
  const auto queue = queue_of_large_ones({}, 12);
  for (const Handout& each : receive_all(queue, 12))
    EXPECT_FALSE(settle(each, each.message->sequence_number % 2 == 0 ? How::defer : How::abandon));
  const auto seen = ask_for<MessagesReply>(PeekMessages{key("q"), false, 0, 100}).messages;
  ASSERT_EQ(seen.size(), 4U);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i]->sequence_number, static_cast<std::int64_t>(i + 1));
}

TEST_F(MessageLoad, of_messages_that_are_named_and_too_large_together_no_content_is_brought) {
  const auto queue = queue_of_large_ones({}, 18);
  std::vector<std::int64_t> later, dead;
  for (const Handout& each : receive_all(queue, 18)) {
    const bool is_later = each.message->sequence_number <= 9;
    (is_later ? later : dead).push_back(each.message->sequence_number);
    EXPECT_FALSE(settle(each, is_later ? How::defer : How::dead_letter));
  }
  store_->bytes = 0;
  EXPECT_EQ(refusal(ReceiveDeferred{key("q"), false, later}), Refusal::invalid_input);
  EXPECT_EQ(refusal(ReplayDeadLetters{key("q"), dead}), Refusal::invalid_input);
  EXPECT_EQ(store_->bytes, 0U);
  later.resize(7), dead.resize(7);
  EXPECT_EQ(ask_for<MessagesReply>(ReceiveDeferred{key("q"), false, later}).messages.size(), 7U);
  EXPECT_EQ(ask_for<ReplayedReply>(ReplayDeadLetters{key("q"), dead}).replayed, 7U);
  EXPECT_EQ(store_->bytes, 14 * mebibyte);
}

TEST_F(MessageLoad, what_is_cancelled_is_not_brought_for_that) {
  (void)make(EntityType::queue, "q");
  NewMessage sent = large("a");
  sent.scheduled_for = clock_.time + 1min;
  const std::int64_t number = send("q", sent);
  store_->bytes = 0;
  (void)ask_for<MessagesReply>(CancelScheduled{key("q"), {number, number, 99}});
  EXPECT_EQ(store_->bytes, 0U);
  EXPECT_EQ(counters("q").scheduled, 0);
  EXPECT_EQ(counters("q").bytes, 0);
  EXPECT_TRUE(database_.bus.messages.empty());
}

TEST_F(MessageLoad, who_receives_does_not_wait_for_the_timer_of_what_has_expired) {
  const auto queue = make(EntityType::queue, "q");
  std::vector<NewMessage> brief(2'500);
  for (std::size_t i = 0; i < brief.size(); ++i) brief[i] = message(std::to_string(i)), brief[i].time_to_live = 10s;
  (void)ask_for<SentReply>(SendMessages{key("q"), {std::move(brief)}});
  (void)send("q", message("lasts"));
  clock_.time += 11s;
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].message->message_id, "lasts");
}

TEST_F(MessageLoad, what_expires_while_it_is_known_to_wait_is_not_brought) {
  const auto queue = make(EntityType::queue, "q");
  for (int i = 0; i < 200; ++i) {
    NewMessage brief = message(std::to_string(i), std::string(10'000, 'x'));
    brief.time_to_live = 10s;
    (void)send("q", brief);
  }
  (void)send("q", message("lasts"));
  EXPECT_EQ(receive(queue, 1).size(), 1U);  // the others are known
  clock_.time += 11s;
  store_->bytes = 0;
  const auto given = receive(queue);
  ASSERT_EQ(given.size(), 1U);
  EXPECT_EQ(given[0].message->message_id, "lasts");
  EXPECT_EQ(store_->bytes, given[0].message->content.value.size());
  pass(1min);
  EXPECT_EQ(counters("q").active, 1);
}

TEST_F(MessageLoad, locks_that_end_for_the_last_time_bring_a_few_messages_in_a_turn) {
  for (const message::Settings& settings : {message::Settings{.deliveries_max = 1}, message::Settings{.time_to_live = 30s, .dead_letter_on_expiry = true}}) {
    const auto queue = queue_of_large_ones(settings, 12);
    (void)receive_all(queue, 12);
    clock_.time += 61s;
    store_->bytes = 0;
    writer_->run({});
    EXPECT_GE(store_->bytes, 1 * mebibyte);
    EXPECT_LE(store_->bytes, 4 * mebibyte);
    pass(0s);
    EXPECT_EQ(counters("q").dead, 12);
    EXPECT_EQ(store_->bytes, 12 * mebibyte);
    (void)ask_for<EntitiesReply>(ChangeEntity{ChangeEntity::What::remove, key("q"), EntityType::queue});
    pass(1s);
  }
}

TEST_F(MessageLoad, settlements_of_what_has_expired_are_put_off_when_they_would_bring_too_much) {
  const auto queue = queue_of_large_ones({.time_to_live = 30s, .dead_letter_on_expiry = true}, 20);
  const auto given = receive_all(queue, 20);
  clock_.time += 31s;
  store_->bytes = 0;
  const auto first = ask_for<SettledReply>(settle_all(given, How::abandon));
  EXPECT_EQ(refused_of(first), 4U);
  EXPECT_EQ(store_->bytes, 16 * mebibyte);
  EXPECT_EQ(refused_of(ask_for<SettledReply>(settle_all(given, How::abandon))), 0U);
  EXPECT_EQ(counters("q").dead, 20);
}

TEST_F(MessageLoad, what_is_given_back_and_has_expired_may_wait_for_the_end_of_its_lock) {
  const auto queue = queue_of_large_ones({.time_to_live = 30s, .dead_letter_on_expiry = true}, 20);
  ReturnTasks back;
  for (const Handout& each : receive_all(queue, 20)) back.tasks.push_back({each.task_id, each.lease});
  clock_.time += 31s;
  store_->bytes = 0;
  (void)ask(back);
  EXPECT_EQ(store_->bytes, 16 * mebibyte);
  EXPECT_EQ(counters("q").dead, 16);
  pass(30s);
  EXPECT_EQ(counters("q").dead, 20);
}

TEST_F(MessageLoad, a_change_of_the_settings_in_the_same_batch_lets_no_more_be_brought) {
  const auto queue = queue_of_large_ones({}, 20);
  const auto given = receive_all(queue, 20);
  store_->bytes = 0;
  const auto answers = run({ChangeEntity{ChangeEntity::What::update, key("q"), EntityType::queue, {.deliveries_max = 1}, {}}, settle_all(given, How::abandon)});
  EXPECT_EQ(store_->bytes, 16 * mebibyte);
  EXPECT_EQ(refused_of(std::get<SettledReply>(answers.at(1)->reply.value())), 4U);
  EXPECT_EQ(counters("q").dead, 16);
}

}  // namespace
}  // namespace baton::engine::messages_load_test
