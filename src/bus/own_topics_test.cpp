#include "bus/own_topics.hpp"

#include <gtest/gtest.h>

#include "tests/support/clocks.hpp"

namespace baton::bus {
namespace {

// Has one message in the subscription for events, which says nothing that can be understood.
class EngineOfOneMessage final : public Inbox {
 public:
  void submit(Command command, std::shared_ptr<Waiter> waiter) override {
    if (const auto* find = std::get_if<FindEntity>(&command)) return waiter->deliver(find_answer(*find));
    if (std::holds_alternative<Poll>(command)) {
      ++polls;
      if (polls > 1) return waiting.push_back(std::move(waiter));
      auto message = std::make_shared<message::Message>();
      message->entity_id = 1, message->sequence_number = 5, message->locks = 1;
      Handout handout;
      handout.message = std::move(message);
      PollReply reply;
      reply.jobs.push_back(std::move(handout));
      return waiter->deliver(std::move(reply));
    }
    if (auto* settle = std::get_if<SettleMessages>(&command)) {
      said.push_back(std::move(*settle));
      return waiter->deliver(answers.at(said.size() - 1));
    }
    ADD_FAILURE() << "nothing else is asked";
  }

  std::vector<Reply> answers;  // to settlements
  std::vector<SettleMessages> said;
  int polls = 0;
  std::vector<std::shared_ptr<Waiter>> waiting;

 private:
  static Reply find_answer(const FindEntity& find) {
    if (!find.key.path.starts_with("orchestrator-events")) return Refused{Refusal::entity_not_found, "", {}};
    EntitiesReply found;
    found.entities.emplace_back().entity.entity_id = 1;
    return found;
  }
};

TEST(OwnTopic, says_a_settlement_again_that_the_engine_had_no_time_for) {
  const Refused busy{Refusal::overloaded, "try again", {}};
  EngineOfOneMessage engine;
  engine.answers = {busy, SettledReply{{busy}}, SettledReply{{std::nullopt}}};
  const EndpointOptions options{};
  const support::ManualClock clock{};
  metrics::Registry metrics;
  const auto mailbox = std::make_shared<Mailbox>([] {});
  Services services{options, engine, clock, metrics.counter("received", ""), metrics.counter("sent", ""), mailbox, {}, {}, nullptr, std::mt19937_64{1}};
  OwnTopics topics(services);
  const auto tick = [&] {
    topics.on_tick();
    for (int i = 0; i < 10; ++i) mailbox->drain();
  };
  tick();
  ASSERT_EQ(engine.said.size(), 1U);
  EXPECT_EQ(engine.said[0].settlements.at(0).how, Settlement::How::dead_letter);
  tick();
  ASSERT_EQ(engine.said.size(), 2U);
  EXPECT_EQ(engine.polls, 1) << "nothing more is taken meanwhile";
  tick();
  ASSERT_EQ(engine.said.size(), 3U);
  for (const SettleMessages& each : engine.said) {
    ASSERT_EQ(each.settlements.size(), 1U);
    EXPECT_EQ(each.settlements[0].lock.message.sequence_number, 5);
  }
  EXPECT_EQ(engine.polls, 2) << "then come the next ones";
  tick();
  EXPECT_EQ(engine.said.size(), 3U);
  topics.stop();
}

}  // namespace
}  // namespace baton::bus
