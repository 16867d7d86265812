// A world of service calls: clients, an engine on a store that fails, somebody who makes the calls and dies, and a
// sink that counts. The same seed gives the same run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/call/agenda.hpp"
#include "engine/writer.hpp"
#include "tests/simulation/random.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/memory_store.hpp"

namespace baton::simulation {

class CallWorld {
 public:
  explicit CallWorld(std::uint64_t seed);
  ~CallWorld();
  void run();  // to the end; throws Violation
  [[nodiscard]] std::size_t calls() const { return database_.calls.size(); }
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

 private:
  class WallClock final : public Clock {
   public:
    [[nodiscard]] Time now() const override { return at; }
    Time at{};
  };
  using Then = std::function<void(Reply)>;

  void after(Duration delay, std::function<void()> act);  // whatever happens
  void if_alive(Duration delay, std::function<void()> act);  // unless the server dies before
  void ask(Command command, Then then = [](Reply) {});
  void die();
  void start();

  // clients
  void client();
  void submit();
  void change();
  void meddle();  // says again what was said before, or what must be refused
  // who makes the calls
  void pump();
  void begin(const std::string& token, const std::vector<std::pair<call::Lane, call::Due>>& calls);
  void send(const call::Call& call);
  void end(const call::CallKey& key, bool succeeded, std::string_view kind, int tries = 0);
  // what holds
  void check_all() const;
  [[nodiscard]] bool all_over() const;
  static void expect(bool holds, const std::string& what, const call::CallKey& key);

  Random random_;
  WallClock clock_;
  bool calm_ = false;
  std::multimap<std::pair<Time, std::uint64_t>, std::function<void()>> future_;
  Time time_{};  // of the world; the clock on the wall may be set
  std::uint64_t next_event_ = 0, next_id_ = 0, next_token_ = 0, life_ = 0;
  std::size_t restarts_ = 0;

  support::MemoryDatabase database_;
  std::unique_ptr<support::MemoryStore> store_;
  std::unique_ptr<engine::Writer> writer_;
  std::unique_ptr<call::Agenda> agenda_;
  std::vector<DueCall> told_;
  std::map<std::string, int> places_;  // taken, by origin

  std::vector<NewCall> submitted_;
  std::map<std::pair<Tenant, std::string>, call::CallId> acknowledged_;  // by idempotency key
  std::map<call::CallKey, int> seen_;                                    // by the sink
  std::set<call::CallKey> in_doubt_;                                     // those that ran when the server died
};

}  // namespace baton::simulation
