// A world of service calls: clients, an engine on a store that fails, the Dispatch that makes the calls and
// dies, a network, and a sink that counts. The same seed gives the same run.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "caller/dispatch.hpp"
#include "engine/writer.hpp"
#include "ports/feed.hpp"
#include "tests/simulation/random.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/memory_store.hpp"

namespace baton::simulation {

class CallWorld final : caller::Outside {
 public:
  explicit CallWorld(std::uint64_t seed);
  ~CallWorld() override;
  void run();  // to the end; throws Violation
  [[nodiscard]] std::size_t calls() const { return database_.calls.size(); }
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

 private:
  class WallClock final : public Clock {
   public:
    [[nodiscard]] Time now() const override { return at; }
    Time at{};
  };
  class StoredCalls;
  using Then = std::function<void(Reply)>;

  void after(Duration delay, std::function<void()> act);     // whatever happens
  void if_alive(Duration delay, std::function<void()> act);  // unless the server dies before
  void tell_engine(Command command, Then then = [](const Reply&) {});
  void die();
  void stop();
  void start();
  void damage_rows();
  void step();

  // clients
  void client();
  void submit(Time due);
  void submit(NewCall wanted, Then then);
  void change(const call::CallKey& key);
  void damage(const call::CallKey& key);
  void meddle();  // says again what was said before, or what must be refused

  // what the Dispatch wants
  void ask(caller::Ticket ticket, Command command) override;
  void send(caller::Ticket ticket, const call::Lane& lane, OutgoingRequest request) override;
  Result<CallReads*> reads() override;
  void drop_reads() override {}
  void tell_scheduled();
  void answer_probe(caller::Ticket ticket, const call::CallKey& key);
  void end(caller::Ticket ticket, const OutgoingResult& result);
  [[nodiscard]] call::CallKey key_of(const call::Lane& lane, const OutgoingRequest& request) const;

  // what holds
  void check_places() const;
  void check_wire(const call::Lane& lane) const;
  void check_nothing_waits() const;
  void check_feed();
  void check_all() const;
  void check_ended(const call::Call& row) const;
  [[nodiscard]] bool is_repeated(const call::CallKey& key) const;
  [[nodiscard]] bool all_over() const;
  [[nodiscard]] std::vector<std::pair<call::CallKey, call::Status>> statuses() const;
  static void expect(bool holds, const std::string& what, const call::CallKey& key);

  Random random_;
  WallClock clock_;
  bool calm_ = false;
  std::multimap<std::pair<Time, std::uint64_t>, std::function<void()>> future_;
  Time time_{};  // of the world; the clock on the wall may be set
  std::optional<Time> wake_at_;
  std::uint64_t next_event_ = 0, next_id_ = 0, life_ = 0;
  std::size_t restarts_ = 0;

  support::MemoryDatabase database_;
  metrics::Registry metrics_;
  std::unique_ptr<Feed> feed_;                       // of this life of the server
  std::int64_t feed_read_ = 0;                       // up to this commit
  std::map<call::CallKey, std::int64_t> before_;     // versions when it began
  std::map<call::CallKey, std::pair<std::int64_t, std::string>> told_by_feed_;  // version and status
  std::unique_ptr<support::MemoryStore> store_;
  std::unique_ptr<engine::Writer> writer_;
  std::unique_ptr<StoredCalls> stored_;
  std::shared_ptr<caller::Places> places_;
  std::unique_ptr<caller::Dispatch> dispatch_;
  std::deque<DueCall> told_;

  std::map<caller::Ticket, call::Lane> on_the_wire_;
  std::map<call::CallKey, call::CallKey> repeats_;  // a call, and the one that it repeats

  std::vector<NewCall> submitted_;
  std::map<std::pair<Tenant, std::string>, call::CallId> acknowledged_;  // by idempotency key
  std::map<call::CallKey, int> seen_;                                    // by the sink
  std::set<call::CallKey> in_doubt_;                                     // those that ran when a server died
  std::set<call::CallKey> probed_in_vain_;
};

}  // namespace baton::simulation
