// The service calls of a simulated world: the very Dispatch of the server, beside the engine and dying with
// it; a network that loses requests and answers; clients that submit, cancel, reschedule and repeat; and
// services that remember what they have received.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/metrics.hpp"
#include "caller/dispatch.hpp"
#include "store/memory/reads.hpp"
#include "tests/simulation/workload.hpp"
#include "tests/simulation/world.hpp"

namespace baton::simulation {

class CallWorkload final : public Workload, caller::DispatchActions {
 public:
  explicit CallWorkload(World& world);
  ~CallWorkload() override;

  void set_options(EngineOptions& options) override;
  [[nodiscard]] Duration storm_lasts() const override;
  [[nodiscard]] Duration calm_lasts() const override;
  void start() override;
  void engine_started() override;
  void engine_died() override;
  [[nodiscard]] bool at_rest() const override;
  void check_touched() override;
  void check_all() override;

 private:
  class StoredCalls;
  using Then = std::function<void(Reply)>;

  void after(Duration delay, std::function<void()> act) { world_.at(delay, std::move(act)); }
  void if_alive(Duration delay, std::function<void()> act);  // unless the server dies before
  void tell_engine(Command command, Then then = [](const Reply&) {});
  void stop();
  void damage_rows();
  void step();
  void step_after(Duration delay);

  // clients
  void client();
  void submit(Time due);
  void submit(NewCall wanted, Then then);
  void change(const call::CallKey& key);
  void damage(const call::CallKey& key);
  void meddle();  // says again what was said before, or what must be refused
  void submit_again(const NewCall& chosen);

  // what the Dispatch wants
  void ask(caller::Ticket ticket, Command command) override;
  void send(caller::Ticket ticket, const call::Destination& to, OutgoingRequest request) override;
  Result<CallReads*> reads() override;
  void drop_reads() override {}
  std::int64_t shown() const override { return world_.tables_.writers[{}].followed; }
  void tell_scheduled();
  void answer_probe(caller::Ticket ticket, const call::CallKey& key);
  void end(caller::Ticket ticket, const OutgoingResult& result);
  [[nodiscard]] call::CallKey key_of(const call::Destination& to, const OutgoingRequest& request) const;

  // what holds
  void check_places() const;
  void check_wire(const call::Destination& to) const;
  void check_nothing_waits() const;
  void check_ended(const call::Call& row) const;
  [[nodiscard]] std::vector<std::pair<call::CallKey, call::Status>> statuses() const;
  [[nodiscard]] bool rows_are_right() const;
  [[nodiscard]] bool is_repeated(const call::CallKey& key) const;
  static void expect(bool holds, const std::string& what, const call::CallKey& key);

  World& world_;
  Random& random_;
  const bool& calm_;
  store::MemoryDatabase& database_;
  const Time began_;
  std::optional<Time> wake_at_;
  std::uint64_t next_id_ = 0, life_ = 0;
  int clients_left_ = 30;

  metrics::Registry metrics_;
  std::unique_ptr<StoredCalls> stored_;
  std::shared_ptr<caller::Places> places_;
  std::unique_ptr<caller::Dispatch> dispatch_;  // null: the server is dead
  std::deque<DueCall> told_;

  std::map<caller::Ticket, call::Destination> on_the_wire_;
  std::map<call::CallKey, call::CallKey> repeats_;  // a call, and the one that it repeats

  std::vector<NewCall> submitted_;
  std::map<std::pair<Tenant, std::string>, call::CallId> acknowledged_;  // by idempotency key
  std::map<call::CallKey, int> seen_;                                    // by the service
  std::set<call::CallKey> in_doubt_;                                     // those that ran when a server died
  std::set<call::CallKey> probed_in_vain_;
};

}  // namespace baton::simulation
