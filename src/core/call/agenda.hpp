// The near future of service calls: which are due, and whose turn it is.
//
// What waits is in the store. Here are the destinations, one for each tenant and each origin that it calls, to
// which something is due soon, and for each a window over its first calls: neither a tenant nor a host with
// many calls keeps the others waiting, and what is due tomorrow costs nothing. Tenants take turns, the
// destinations of a tenant take turns, and of the calls to one destination the earliest is first.
//
// Invariants: each destination to which a call is due by known_until() is here. A window holds the earliest
// calls to its destination, and if it is complete, all that are due by known_until(). Whoever is given a time
// tells (add), so nothing is missed between two looks at the store. A call may be here although it is over:
// the start is decided elsewhere, and refuses it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/call/rows.hpp"

namespace baton::call {

// Where calls go, and for whom.
struct Destination {
  Tenant tenant;
  std::string origin;
  friend auto operator<=>(const Destination&, const Destination&) = default;
};

struct Due {
  Time at{};
  CallId id;
  friend auto operator<=>(const Due&, const Due&) = default;
};

class Agenda {
 public:
  explicit Agenda(std::size_t window = 512) : window_(window) {}

  // Up to this time, inclusive, nothing is missing.
  [[nodiscard]] Time known_until() const { return known_until_; }
  // The destinations to which the store has something due after known_until() and by `until`, and when the
  // first is.
  void know(Time until, const std::vector<std::pair<Destination, Time>>& destinations);
  // A call has been given a time; `was` is the one that it had before.
  void add(const Destination& destination, Due due, std::optional<Time> was = {});

  // A destination whose window is empty, though the store has more, and whose next may be due by `soon`: ask
  // the store for what comes after, and tell, before the next is asked for. Here too tenants take turns.
  struct Refill {
    Destination destination;
    Due after;
    Time until{};  // inclusive
    std::size_t limit = 0;
  };
  [[nodiscard]] std::optional<Refill> refill(Time soon);
  void refilled(const Refill& asked, const std::vector<Due>& found);

  // Those whose time has come and for whose destination `place` finds a place, in their turn. An origin without
  // a place is not asked about again before somebody says that it has one, a tenant without one not before the
  // next call.
  enum class Place { taken, none_for_origin, none_for_tenant };
  [[nodiscard]] std::vector<std::pair<Destination, Due>> take(
      Time now, std::size_t limit, const std::function<Place(const Destination&)>& place);
  void place_is_free(const std::string& origin);
  // Something that is due waits for a place, or may: the store has not been asked.
  [[nodiscard]] bool has_backlog() const {
    return !ready_.empty() || !held_.empty() || !blocked_.empty() || !asking_.empty();
  }
  // When there may be something to take next, unless a place is what is waited for.
  [[nodiscard]] std::optional<Time> next_due() const;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t destinations() const { return destinations_.size(); }

 private:
  // Where a destination is: it waits for its time, with calls in its window or without; or it is in a queue,
  // which it leaves only at its turn: whether there still is something to do is looked at then.
  enum class Where { filed, hungry, queued };
  struct State {
    std::set<Due> window;
    bool complete = false;
    Due last;     // up to this one the store has been asked, or there was nothing
    Time next{};  // the time that the destination is filed under
    Where where = Where::queued;
  };
  using Destinations = std::map<Destination, State>;
  struct Earlier {
    bool operator()(const Destinations::iterator& a, const Destinations::iterator& b) const {
      return std::tie(a->second.next, a->first) < std::tie(b->second.next, b->first);
    }
  };

  using Queues = std::map<Tenant, std::deque<Destinations::iterator>>;

  void file(Destinations::iterator destination);
  void unfile(const Destinations::iterator& destination);
  void forget(const Destination& destination, const Due& due);
  void make_ready(Time now);
  void shorten(State& state);
  [[nodiscard]] std::size_t window() const;

  const std::size_t window_;
  Time known_until_ = Time{} - Duration{1};
  Destinations destinations_;
  std::set<Destinations::iterator, Earlier> filed_;   // by when their first is due
  std::set<Destinations::iterator, Earlier> hungry_;  // nothing in their windows: by when something may be due
  Queues asking_;                                     // the store is to be asked
  Queues ready_;                                      // something is due; the longest waiting first
  Queues held_;                                       // … but the tenant has no place
  std::map<std::string, std::vector<Destinations::iterator>> blocked_;  // … but the origin has no place
  Tenant turn_, asking_turn_;                                           // who was served last
  std::size_t size_ = 0;
};

}  // namespace baton::call
