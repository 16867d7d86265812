// A whole system on virtual time: the real engine and core on an in-memory store, clients and workers that
// behave as real ones do, a network that loses, repeats, delays and reorders, a clock that is set, and an
// engine that dies between any two effects. The seed says which kinds of load there are (loads_of): workflows
// service calls and messages last minutes, runbooks days.
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
#include "ports/followed.hpp"
#include "tests/simulation/disk.hpp"
#include "tests/simulation/feed_watch.hpp"
#include "tests/simulation/random.hpp"
#include "store/memory/store.hpp"

namespace baton::simulation {

// A broken invariant; what() says which.
struct Violation {
  std::string what;
};
// Thrown through the engine's own code to kill it where it stands.
struct EngineDies {};

struct VirtualClock final : Clock {
  Time time = from_millis(1'800'000'000'000);  // of the world
  Duration set_by{};                           // the clock on the wall may be set
  Duration set_back{};                         // by how much in all, when it was set back
  [[nodiscard]] Time now() const override { return time + set_by; }
};

// Which kinds of load the world of a seed has: in every other seed all of them, else one or two, so that each is met
// in many ways within few seeds.
struct Loads {
  bool workflows = false, runbooks = false, calls = false, messages = false;
};
[[nodiscard]] Loads loads_of(std::uint64_t seed);

// How bad the world is; drawn from the seed.
struct Faults {
  double message_lost = 0, message_repeated = 0, commit_fails = 0, commit_unknown = 0, store_full = 0,
         load_fails = 0, row_held = 0, taken_over = 0, engine_dies = 0, machine_dies = 0, worker_dies = 0, worker_stalls = 0;
  Duration delay_max{20};
  bool refuses_rows = false;
};

struct EngineOptions;

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
  [[nodiscard]] std::size_t calls() const { return database_.calls.size(); }
  [[nodiscard]] std::size_t messages() const;  // that were ever there
  [[nodiscard]] std::size_t restarts() const { return restarts_; }

 private:
  friend class Client;
  friend class Worker;
  friend class Intruder;
  friend class Broker;
  friend class Publisher;
  friend class WorkflowLoad;
  friend class RunbookSide;
  friend class CallWorkload;
  friend class MessageWorkload;
  class FaultyStore;
  class ReplyTo;
  struct Engine;

  void tell(const std::string& what) const;

  // time and the network
  void at(Duration after, std::function<void()> what);
  void send(Command command, std::function<void(Reply)> on_reply);  // over the network, both ways
  void arrive(const Command& command, const std::function<void(Reply)>& on_reply);
  // Within the server, where nothing is lost, unless the server dies.
  void tell_engine(Command command, std::function<void(Reply)> on_reply);
  void set_clock(Duration by);
  Duration network_delay();
  Duration poll_patience();

  // the engine
  [[nodiscard]] EngineOptions engine_options();
  void start_engine();
  void kill_engine();
  void tidy_up();
  void check_feed();
  void schedule_engine();
  void engine_step();
  void maybe_die();
  [[nodiscard]] bool is_away() const;  // the engine, or its store
  [[nodiscard]] bool at_rest() const;

  void check_overtaken(const WriteSet& writes) const;
  // the tables that follow (following.cpp)
  void begin_following();
  void tables_show(std::int64_t commit_number, Time as_of);
  void check_followed() const;
  void machine_dies();  // with the engine
  void read(std::int64_t acknowledged);
  void check_behind() const;
  void erase_timer(const Timer& timer);  // as another program would
  void check_touched();
  void check_all();
  static void expect(bool truth, const std::string& what, const std::string& about);

  Random random_;
  Faults faults_;
  VirtualClock clock_;
  std::map<const ReplyTo*, Time> undecided_;  // results that came in, and when; outlives the engine
  std::string forgotten_;                     // a command that the engine has dropped without an answer
  std::multimap<Time, std::function<void()>> agenda_;
  std::size_t steps_ = 0;
  std::size_t restarts_ = 0;
  bool trace_ = false;
  bool calm_ = false;  // the faults are over: everything must come to its end
  Time storm_ends_{};  // when that is

  store::MemoryDatabase database_;  // every commit, at once
  store::MemoryDatabase tables_;    // of what goes through the journal: as far as they have followed
  Disk disk_;                       // of those
  std::set<Timer> timers_erased_;
  std::optional<Time> behind_since_;  // the tables do not show what was committed then; in the time of the world
  Time store_failed_at_{};            // the last time
  Time row_held_until_{};             // by another program
  bool following_ended_ = false;      // and the engine has not looked
  static constexpr Duration following_takes{20};  // at most
  bool taken_over_ = false;           // by another writer, from this life of the engine
  std::unique_ptr<FeedWatch> feed_;     // of this life of the engine
  std::unique_ptr<Followed> followed_;  // of this life of the engine
  std::unique_ptr<Engine> engine_;
  std::uint64_t generation_ = 0;  // of the engine
  std::optional<Time> scheduled_;
  const Loads has_;
  std::vector<std::unique_ptr<class Workload>> loads_;
};

}  // namespace baton::simulation
