// Who receives messages, in all the ways that receivers have.
#include <algorithm>
#include <array>

#include "tests/simulation/message_rules.hpp"
#include "tests/simulation/message_workload.hpp"

namespace baton::simulation {

using message::Lane;
using message::Message;
using How = Settlement::How;
using namespace std::chrono_literals;

namespace {

constexpr std::array received_by{"default", "acme"};

}  // namespace

void MessageWorkload::add_receivers() {
  const auto add = [&](const Tenant& tenant, const std::string& path, Lane lane, bool deletes = false) {
    receivers_.push_back({{tenant, path}, lane, deletes});
  };
  for (const char* name : received_by) {
    const Tenant tenant{name};
    for (const char* path : {"plain", "strict", "short", "passing"}) add(tenant, path, Lane::active);
    add(tenant, random_.chance(0.5) ? "plain" : "strict", Lane::active);
    add(tenant, "fast", Lane::active, true);
    add(tenant, "own-" + tenant.value, Lane::active);
    for (const char* path : {"plain", "strict", "short", "fast"}) add(tenant, path, Lane::dead);
    add(tenant, "own-" + tenant.value, Lane::dead);
    for (const char* subscription : {"audit", "some", "passing"}) {
      const std::string path = message::subscription_path(topic_path, subscription);
      add(tenant, path, Lane::active);
      add(tenant, path, Lane::dead);
    }
  }
  for (Receiver& receiver : receivers_) after(within(0, 10'000), [this, &receiver] { poll(receiver); });
}

void MessageWorkload::poll(Receiver& receiver) {
  if (at_rest()) return;
  const std::uint64_t this_poll = ++receiver.polls;
  const auto again = [this, &receiver, this_poll](Duration delay) {
    after(delay, [this, &receiver, this_poll] {
      if (this_poll == receiver.polls) poll(receiver);
    });
  };
  const message::Entity* from = find(receiver.from);
  if (!from) return again(within(500, 8'000));
  const Duration wait = within(0, 20'000);
  Poll command{.tenant = receiver.from.tenant,
               .queue = message::queue_name(from->entity_id, receiver.lane),
               .worker = "receiver",
               .max = static_cast<std::uint32_t>(random_.between(1, 4)),
               .heartbeats = !receiver.deletes,
               .wait_until = world_.clock_.now() + wait,
               .is_listed = false};
  send(command, [this, &receiver, again](const Reply& reply) {
    const auto* given = std::get_if<PollReply>(&reply);
    if (given && !receiver.deletes)
      for (const Handout& each : given->jobs) work_on(receiver.from, {each.message->key(), each.message->locks});
    // Dead letters are left to lie for a while, for whoever sends them again.
    again(receiver.lane == Lane::dead && !is_late() ? within(500, 20'000) : within(0, 500));
  });
  again(wait + within(1'000, 10'000));  // the answer may have been lost
}

// ---- what becomes of a message

void MessageWorkload::work_on(const EntityKey& from, const Grant& grant) {
  const Duration takes = within(0, 2'000);
  const auto settle_by = [&](How how) { after(takes, [=, this] { settle(from, grant, how); }); };
  if (is_late()) return settle_by(How::complete);
  const auto what = random_.below(100);
  if (what < 45) return settle_by(How::complete);
  if (what < 57) return settle_by(How::abandon);
  if (what < 65) return settle_by(How::defer);
  if (what < 73) return settle_by(How::dead_letter);
  if (what < 80) return settle_by(How::release);
  if (what < 88) return after(within(2'000, 6'000), [=, this] { renew(from, grant, 3); });
  if (what < 94) return after(within(5'000, 40'000), [=, this] { settle(from, grant, How::complete); });  // too late, often
  // It vanishes.
}

void MessageWorkload::settle(const EntityKey& from, const Grant& grant, How how) {
  Settlement settlement{.lock = {grant.key, grant.number}, .how = how};
  if (how == How::dead_letter) settlement.reason = "poison";
  if (how != How::complete && random_.chance(0.3)) settlement.changes.set["tried"] = std::int64_t{grant.number};
  const SettleMessages command{from.tenant, {settlement}};
  send_surely(command, [=, this](const Reply& reply) {
    const auto* settled = std::get_if<SettledReply>(&reply);
    const bool is_deferred = how == How::defer && settled && !settled->settled.front();
    if (!is_deferred || !random_.chance(0.6)) return;
    const bool dead = grant.key.lane == Lane::dead || grant.key.lane == Lane::shelved;
    after(within(100, 10'000), [=, this] { receive_deferred(from, dead, grant.key.sequence_number); });
  }, 3);
  if (random_.chance(0.1)) settle_again(command);
}

// By mistake, or in another way.
void MessageWorkload::settle_again(const SettleMessages& command) {
  SettleMessages again = command;
  Settlement& settlement = again.settlements.front();
  if (random_.chance(0.5)) settlement.how = How::complete;
  after(within(0, 20'000), [this, again] { send(again); });
}

void MessageWorkload::renew(const EntityKey& from, const Grant& grant, int times) {
  send(RenewLocks{from.tenant, {{grant.key, grant.number}}}, [=, this](const Reply& reply) {
    const auto* renewed = std::get_if<RenewedReply>(&reply);
    if (!renewed || !renewed->until.front()) return;
    if (times > 0 && !is_late()) return after(within(1'000, 6'000), [=, this] { renew(from, grant, times - 1); });
    if (random_.chance(0.8)) settle(from, grant, random_.chance(0.7) ? How::complete : How::abandon);
  });
}

void MessageWorkload::receive_deferred(const EntityKey& from, bool dead, std::int64_t number) {
  const bool deletes = random_.chance(0.2);
  send(ReceiveDeferred{from, dead, {number}, deletes}, [=, this](const Reply& reply) {
    const auto* received = std::get_if<MessagesReply>(&reply);
    if (!received || deletes) return;
    for (const auto& each : received->messages) work_on(from, {each->key(), each->locks});
  });
}

// ---- what nobody is told of by itself

void MessageWorkload::look_after() {
  if (at_rest()) return;
  for (const char* name : received_by) {
    const Tenant tenant{name};
    for (const std::string& path : {std::string("plain"), std::string("strict"), std::string("short"), "own-" + tenant.value})
      look_after(tenant, path);
    for (const char* subscription : {"audit", "some", "passing"}) look_after(tenant, message::subscription_path(topic_path, subscription));
  }
  after(is_late() ? within(3'000, 10'000) : within(5'000, 30'000), [this] { look_after(); });
}

void MessageWorkload::look_after(const Tenant& tenant, const std::string& path) {
  const EntityKey from{tenant, path};
  if (!find(from) || (!is_late() && random_.chance(0.7))) return;
  const bool dead = random_.chance(0.5);
  if (dead && !is_late() && random_.chance(0.5)) {
    ReplayDeadLetters replay{.from = from, .sequence_numbers = {}, .max = static_cast<std::uint32_t>(random_.between(1, 5))};
    const auto* letter = any_message([&](const Message& row) { return row.entity_id == find(from)->entity_id && row.lane == Lane::dead; });
    if (letter && random_.chance(0.5)) replay.sequence_numbers.push_back(letter->sequence_number);
    return send(replay);
  }
  send(PeekMessages{.from = from, .dead = dead, .first = is_late() ? 0 : random_.between(0, 10), .max = 50}, [=, this](const Reply& reply) {
    const auto* seen = std::get_if<MessagesReply>(&reply);
    if (!seen) return;
    for (const auto& each : seen->messages)
      if ((each->lane == Lane::deferred || each->lane == Lane::shelved) && (is_late() || random_.chance(0.3)))
        receive_deferred(from, dead, each->sequence_number);
  });
}

// ---- who has got hold of what is another tenant's

void MessageWorkload::intrude(const Tenant& tenant) {
  if (is_late()) return;
  after(within(1'000, 10'000), [=, this] { intrude(tenant); });
  const auto* prey = any_message([&](const Message& row) { return database_.bus.entities.at(row.entity_id).tenant_id != tenant; });
  if (!prey) return;
  const message::MessageKey key = prey->key();
  Settlement settlement{.lock = {key, prey->locks}, .how = random_.chance(0.5) ? How::complete : How::abandon};
  const EntityKey others{tenant, tenant.value == received_by[0] ? "own-acme" : "own-default"};
  const auto must_be_refused = [](const Reply& reply) {
    const bool is_refused = std::holds_alternative<Refused>(reply) ||
                            (std::holds_alternative<SentReply>(reply) && !std::get<SentReply>(reply).transfers.front());
    if (!is_refused) throw Violation{"another tenant's queue is as one that is not there"};
  };
  switch (random_.below(6)) {
    case 0: return send(RenewLocks{tenant, {settlement.lock}});
    case 1: return send(PeekMessages{.from = others, .max = 10}, must_be_refused);
    case 2: return send(SendMessages{others, {{new_message(others)}}}, must_be_refused);
    case 3:
      return send(Poll{.tenant = tenant,
                       .queue = message::queue_name(key.entity_id, key.lane),
                       .worker = "intruder",
                       .max = 10,
                       .heartbeats = random_.chance(0.5),
                       .wait_until = world_.clock_.now() + within(0, 10'000),
                       .is_listed = false});
    default: return send(SettleMessages{tenant, {settlement}});
  }
}

}  // namespace baton::simulation
