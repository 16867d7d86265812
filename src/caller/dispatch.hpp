// Who makes the service calls that are due, as a machine that is driven step by step: it is told what
// happened, and says what is to be done. It has no thread, no clock and no socket, so the simulator drives
// the very same one.
//
//   due ─▶ (a place is free) ─▶ StartCalls is stored ─▶ sent ─▶ answered ─▶ EndCalls is stored
//                              └───────────── in its place ─────────────────┘
//   due when it is submitted ─▶ (a place was reserved) ─▶ stored with its start ─▶ sent ─▶ …
//
// Invariants: a call is sent only after its start is durable, and once; there are places_max places, so a
// crash puts no more in doubt. A tenant has no more places than are free, in all and at an origin, so that
// there is one for the next.
//
// It remembers nothing that matters for longer than the tables are behind: what waits and what was started is in the store. What an earlier server
// had started and not ended is not sent again; it is settled by the probe that its request declares, or it
// ends as OutcomeUnknown.
//
// The tables that it reads are a moment behind the commits. What it was told of a commit that they do not show yet it
// tells its agenda again after each look at them, which would have found it there.
//
// What is due and what runs is found by the rows of calls, which may be lost or damaged though the events are
// there. So it goes through all streams, little by little, after the start and again every ten minutes
// (look_again). It compares each row whole with the last event, and has those written anew that are missing
// or differ.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/metrics.hpp"
#include "caller/outcome.hpp"
#include "caller/places.hpp"
#include "core/call/agenda.hpp"
#include "ports/call_reads.hpp"
#include "ports/caller.hpp"
#include "ports/commands.hpp"

namespace baton::caller {

using Ticket = std::uint64_t;

// Carries out what a Dispatch wants, and tells it what came of it, not before the call that wants it has
// returned.
class DispatchActions {
 public:
  virtual ~DispatchActions() = default;
  virtual void ask(Ticket ticket, Command command) = 0;  // then Dispatch::answered()
  virtual void send(Ticket ticket, const call::Destination& to,
                    OutgoingRequest request) = 0;  // then Dispatch::ended()
  // A connection to read with, the same until it is dropped because a read has failed.
  [[nodiscard]] virtual Result<CallReads*> reads() = 0;
  virtual void drop_reads() = 0;
  // The commit that the tables show, at least: they are a moment behind.
  [[nodiscard]] virtual std::int64_t shown() const = 0;
};

struct DispatchOptions {
  std::size_t window = 512;          // of the calls to a destination that are known in memory
  std::size_t starts_max = 128;      // calls in one command: others wait for it
  std::size_t outcomes_max = 200;    // outcomes in one command
  std::size_t events_looked_at = 500;  // at a time, for rows that are lost …
  Duration look_after{5};              // … and how long after the last time
  Duration look_again{600'000};        // … and when all have been looked at
  Duration look_ahead{2'000};        // what is due so soon is known
  Duration retry_after{50};          // when the engine or the store cannot listen; doubles up to a second
  Duration patience{10'000};         // for calls that are under way when all ends
  std::string name = "server";       // of this process among all that ever were
  std::function<void(const std::string&)> log;
};

class Dispatch {
 public:
  // All of them must outlive this object.
  Dispatch(DispatchActions& actions, metrics::Registry& metrics, std::shared_ptr<Places> places,
           DispatchOptions options);

  // --- what happened
  void scheduled(DueCall call, Time now);
  void answered(Ticket ticket, Reply reply, Time now);
  void ended(Ticket ticket, const OutgoingResult& result);

  // Does what there is to do, by the clock on the wall and by one that is never set. Answers how long nothing
  // more is to be done, unless something happens before.
  [[nodiscard]] Duration step(Time now, Duration uptime);

  void begin_no_more() {
    begins_ = false;
    places_->grant(false);
  }
  // Of what was begun here all is stored as ended: it can be left without putting anything in doubt.
  [[nodiscard]] bool idle() const {
    return under_way_.empty() && asked_.empty() && outcomes_.outcomes.empty() && refused_.empty() &&
           retries_.empty() && places_->reserved() == 0;
  }
  // Begun and not stored as ended, by whomever.
  [[nodiscard]] std::size_t open() const { return open_.size(); }
  // The engine takes nothing more: nothing can be stored.
  [[nodiscard]] bool engine_is_gone() const { return engine_is_gone_; }

 private:
  struct Started {  // a StartCalls
    std::string token;
    std::vector<std::pair<call::Destination, call::Due>> calls;
  };
  struct Ended {  // an EndCalls
    std::vector<CallOutcome> outcomes;
    std::vector<std::string_view> kinds;  // of each, for who counts
  };
  struct Rebuild {  // a RebuildCalls
    std::vector<call::CallKey> keys;
  };
  struct Asked {
    std::variant<Started, Ended, Rebuild> what;
    Duration delay{};  // before the next try
  };
  struct UnderWay {
    call::CallKey key;
    call::Destination destination;
    std::string causation_id;
    bool is_probe = false;
  };
  struct Probe {
    call::CallKey key;
    call::Destination destination;
    Duration not_before{};  // of uptime: the other side may still be at work on the call
    OutgoingRequest request;
  };

  [[nodiscard]] Result<> begin_what_is_due(Time now, Duration uptime);
  // what an earlier server left
  [[nodiscard]] Result<> take_left_over(CallReads& reads, Duration uptime);
  [[nodiscard]] Result<> settle(CallReads& reads, const std::vector<call::CallKey>& keys, Duration uptime);
  [[nodiscard]] Result<std::optional<Probe>> probe_for(CallReads& reads, const call::CallKey& key,
                                                       Duration uptime);
  void send_probes(Duration uptime);
  // rows that are lost
  [[nodiscard]] Result<> look_for_lost_rows(CallReads& reads, Duration uptime);
  void rebuilt(const Rebuild& asked, const CallsReply& reply);
  // what is due
  void add_what_tables_lack();
  [[nodiscard]] Result<> look_ahead(CallReads& reads, Time now);
  [[nodiscard]] Result<bool> fill_some(CallReads& reads, Time now);  // false: nothing is to be filled
  [[nodiscard]] bool start_due(Time now);
  void begin(Started& asked, StartedReply& reply, Time now);
  void begin_submitted(const call::Destination& to, const DueCall::Begun& begun, Time now);
  void send(const call::Destination& to, const StartedCall& started, const std::string& token, Time now);
  // what has ended
  void end(const call::CallKey& key, const std::string& causation_id, Outcome outcome);
  void store_outcomes();
  // asking the engine
  void ask(Asked asked);
  void ask_again(Duration uptime);
  void refused(Asked asked, const Refused& why);
  void divide(Asked asked, const std::string& why);
  void give_up(const Started& start, const std::string& why);
  void give_up(const Ended& end, const std::string& why);
  void give_up(const Rebuild& rebuild, const std::string& why);
  // places
  void leave_origin(const call::Destination& to);
  void leave(const std::pair<call::Destination, call::Due>& call);
  void close(const call::CallKey& key);
  void say(const std::string& what) const {
    if (options_.log) options_.log(what);
  }

  DispatchActions& actions_;
  const std::shared_ptr<Places> places_;
  const DispatchOptions options_;
  call::Agenda agenda_;

  call::EventKey looked_until_;
  Duration look_not_before_{};  // of uptime
  std::vector<call::CallKey>
      found_running_;  // their rows were lost, and they were begun by an earlier server

  std::map<call::CallKey, DueCall> not_shown_;  // told of them, and the tables may not have them yet

  bool has_begun_ = false, begins_ = true, engine_is_gone_ = false;
  Ticket next_ticket_ = 0;
  std::set<call::CallKey> open_;  // begun and not stored as ended, by whomever
  std::set<call::CallKey>
      in_place_;           // of these, those that have answered and keep their place until it is stored
  std::map<Ticket, Asked> asked_;
  std::map<Ticket, UnderWay> under_way_;
  std::vector<Probe> probes_;  // that wait for their time or for a place
  Ended outcomes_;             // to be stored
  std::size_t ends_asked_ = 0;
  std::vector<Asked> refused_;              // since the last step
  std::multimap<Duration, Asked> retries_;  // by when
  Duration read_delay_{};                   // after a read that failed
  Duration read_not_before_{};
  std::string read_trouble_, engine_trouble_;  // what was last said of them

  struct Metrics {
    explicit Metrics(metrics::Registry& of) : registry(of) {}
    void count(std::string_view kind);
    metrics::Registry& registry;
    metrics::Gauge& running =
        registry.gauge("baton_service_calls_running", "Service calls that are begun and not stored as ended");
    metrics::Histogram& lag = registry.histogram("baton_service_call_lag_seconds",
                                                 "From when a service call is due to when it is sent");
    std::map<std::string_view, metrics::Counter*> by_kind;
  } metrics_;
};

}  // namespace baton::caller
