// A whole system on virtual time: the real engine and core on an in-memory store, clients and workers that
// behave as real ones do, a network that loses, repeats, delays and reorders, and an engine that dies between
// any two effects. Odd seeds are about workflows and last minutes, even ones about runbooks and last days,
// every tenth has both.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutant.hpp"
#include "engine/writer.hpp"
#include "ports/clock.hpp"
#include "tests/simulation/feed_watch.hpp"
#include "tests/simulation/random.hpp"
#include "tests/support/memory_store.hpp"

namespace baton::simulation {

// A broken invariant; what() says which.
struct Violation {
  std::string what;
};
// Thrown through the engine's own code to kill it where it stands.
struct EngineDies {};

struct VirtualClock final : Clock {
  Time time = from_millis(1'800'000'000'000);
  [[nodiscard]] Time now() const override { return time; }
};

// How bad the world is; drawn from the seed.
struct Faults {
  double message_lost = 0, message_repeated = 0, commit_fails = 0, commit_unknown = 0, store_full = 0,
         load_fails = 0, engine_dies = 0, worker_dies = 0, worker_stalls = 0;
  Duration delay_max{20};
  bool refuses_rows = false;
};

class World {
 public:
  explicit World(std::uint64_t seed);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs to the end; throws Violation.
  void run();
  // Tells what happens as it happens, for whoever replays a seed.
  void trace(bool on) { trace_ = on; }
  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] std::size_t jobs() const { return database_.jobs.size(); }
  [[nodiscard]] std::size_t batches() const { return database_.runbooks.batches.size(); }
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

 private:
  friend class Client;
  friend class Worker;
  friend class RunbookSide;
  class FaultyStore;
  class ReplyTo;
  struct Engine;

  void tell(const std::string& what) const;

  // time and the network
  void at(Duration after, std::function<void()> what);
  void send(Command command, std::function<void(Reply)> on_reply);  // over the network, both ways
  void arrive(const Command& command, const std::function<void(Reply)>& on_reply);
  Duration network_delay();
  Duration poll_patience();

  // the engine
  void start_engine();
  void kill_engine();
  void tidy_up();
  void check_feed();
  void schedule_engine();
  void engine_step();
  void maybe_die();
  void add_workflows();
  void publish_workflows();
  [[nodiscard]] bool at_rest() const;

  // what is promised
  void on_deliver(const Reply& reply, const std::optional<Command>& command);
  void on_changed(const ChangeJob& change, const workflow::JobId& job_id) const;
  void on_handed_out(const Handout& task);
  [[nodiscard]] const workflow::NodeState& stored_node(const workflow::JobId& job_id,
                                                       const std::string& node_id) const;
  void check_overtaken(const WriteSet& writes) const;
  void check_touched();
  void check_job(const workflow::Job& job);
  void check_nodes(const workflow::Job& job, const workflow::Definition& definition);
  void check_node(const workflow::Definition& definition, workflow::NodeIndex index,
                  const workflow::NodeState& node);
  void check_timers(const workflow::Job& job, const workflow::Node& def, const workflow::NodeState& node,
                    const workflow::NodeState* parent) const;
  void check_task(const workflow::NodeState& node) const;
  void check_fan_out(const workflow::Job& job, const workflow::Node& def,
                     const workflow::NodeState& node) const;
  void check_fan_in(const workflow::Definition& definition, const workflow::Node& def,
                    const workflow::NodeState& node) const;
  void check_events(const workflow::Job& job, const workflow::Definition& definition);
  void check_final(const workflow::Job& job);
  void check_all();
  void expect(bool truth, const std::string& what, const std::string& about) const;

  Random random_;
  Faults faults_;
  VirtualClock clock_;
  std::map<const ReplyTo*, Time> undecided_;  // results that came in, and when; outlives the engine
  std::multimap<Time, std::function<void()>> agenda_;
  std::size_t steps_ = 0;
  std::size_t restarts_ = 0;
  bool trace_ = false;
  bool calm_ = false;  // the faults are over: everything must come to its end

  support::MemoryDatabase database_;
  std::unique_ptr<FeedWatch> feed_;  // of this life of the engine
  std::unique_ptr<Engine> engine_;
  std::uint64_t generation_ = 0;  // of the engine
  std::optional<Time> scheduled_;
  std::set<workflow::JobId> touched_;

  std::map<std::string, std::shared_ptr<const workflow::Definition>> definitions_;
  std::vector<std::unique_ptr<class Client>> clients_;
  std::vector<std::unique_ptr<class Worker>> workers_;
  std::unique_ptr<class RunbookSide> runbooks_;  // null: a world without

  std::set<std::pair<std::string, std::string>> handed_out_;            // (task, lease): each at most once
  std::map<std::pair<std::string, std::string>, Time> lease_promised_;  // until when
  std::map<std::string, int> accepted_;                                 // results, by task id
  std::map<std::string, std::string> job_of_key_;                       // by idempotency key, as acknowledged
  std::map<workflow::JobId, int> retried_;                              // how often, by its timeline
  std::map<std::pair<workflow::JobId, int>, std::string>
      final_;  // terminal jobs, as first seen since the last retry
};

}  // namespace baton::simulation
