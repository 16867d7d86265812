// The queues and topics of a simulated world: senders that repeat what was not answered, receivers that work, stall, vanish
// and settle late or twice, somebody who sets up and deletes, somebody who looks after dead letters and deferred
// messages, and intruders of another tenant. What is promised is in MessageLedger.
//
// Two tenants have entities of the same names. After a few minutes nothing new is sent, everybody behaves, and every queue
// must come to be empty, faults or not.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/message_ledger.hpp"

namespace baton::simulation {

class MessageWorkload final : public Workload {
 public:
  explicit MessageWorkload(World& world);
  ~MessageWorkload() override;

  [[nodiscard]] Duration storm_lasts() const override { return std::chrono::minutes{3}; }
  [[nodiscard]] Duration calm_lasts() const override { return std::chrono::minutes{30}; }
  void start() override;
  void tidy_up() override;
  [[nodiscard]] bool at_rest() const override;
  void arrived(const Command& command) override { ledger_.arrived(command); }
  void answered(const Command& command, const Reply& reply) override { ledger_.answered(command, reply); }
  void given_back(const TaskLease& task) override { ledger_.given_back(task); }
  void before_commit(const WriteSet& writes) override { ledger_.before_commit(writes.messages); }
  void committed(const WriteSet& writes) override { ledger_.committed(writes.messages); }
  void check_touched() override { ledger_.look_at_clock(); }
  void check_all() override { ledger_.check_end(); }

 private:
  struct Receiver {
    EntityKey from;
    message::Lane lane{};
    bool deletes = false;
    std::uint64_t polls = 0;
  };
  using Then = std::function<void(Reply)>;

  void after(Duration delay, std::function<void()> act) { world_.at(delay, std::move(act)); }
  [[nodiscard]] Duration within(std::int64_t low, std::int64_t high) { return Duration{random_.between(low, high)}; }
  void send(Command command, Then then = [](const Reply&) {}) { world_.send(std::move(command), std::move(then)); }
  // Until somebody who could decide it has answered.
  void send_surely(const Command& command, const Then& then, int tries = 12);
  [[nodiscard]] bool is_late() const { return calm_ || world_.clock_.time >= sending_ends_; }
  [[nodiscard]] const message::Entity* find(const EntityKey& key) const;
  [[nodiscard]] const message::Message* any_message(const std::function<bool(const message::Message&)>& is_wanted);

  // ---- who sets up (message_workload.cpp)
  void set_up();
  void ensure(const EntityKey& key, message::EntityType type, const message::Settings& settings, std::vector<message::RuleDescription> rules = {});
  void administrate();
  void change_something(const Tenant& tenant);
  void remove_passing();  // what is there only for a while

  // ---- who sends
  void sender(const Tenant& tenant);
  [[nodiscard]] NewMessage new_message(const EntityKey& to);
  void sent(const SendMessages& command, const SentReply& reply);

  // ---- who receives (message_receivers.cpp)
  void add_receivers();
  void poll(Receiver& receiver);
  void work_on(const EntityKey& from, const Grant& grant);
  void settle(const EntityKey& from, const Grant& grant, Settlement::How how);
  void settle_again(const SettleMessages& command);
  void renew(const EntityKey& from, const Grant& grant, int times);
  void receive_deferred(const EntityKey& from, bool dead, std::int64_t number);
  void look_after();  // what nobody is told of by itself: dead letters and deferred messages
  void look_after(const Tenant& tenant, const std::string& path);
  void intrude(const Tenant& tenant);

  World& world_;
  Random& random_;
  const bool& calm_;
  const store::MemoryDatabase& database_;
  MessageLedger ledger_;
  Time sending_ends_{};
  std::int64_t next_number_ = 0;
  int under_way_ = 0;  // senders that are not done
  std::map<std::string, message::Settings> settings_;  // by path
  std::deque<Receiver> receivers_;
};

}  // namespace baton::simulation
