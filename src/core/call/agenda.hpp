// The near future of service calls: which are due, and whose turn it is.
//
// What waits is in the store; here is a window over it for each lane, that is for each tenant and each origin that he
// calls, so that neither a tenant nor a host with many calls keeps the others waiting. Tenants take turns, the lanes
// of a tenant take turns, and within a lane the earliest is first.
//
// Invariants: a lane's window holds the earliest that the store has, all of them if it is complete; whoever is given a
// time tells (add), so nothing is missed between two looks at the store. A call may be here although it is over or was
// put off: the start is decided elsewhere, and refuses it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/call/rows.hpp"

namespace baton::call {

struct Lane {
  Tenant tenant;
  std::string origin;
  friend auto operator<=>(const Lane&, const Lane&) = default;
};

struct Due {
  Time at{};
  CallId id;
  friend auto operator<=>(const Due&, const Due&) = default;
};

class Agenda {
 public:
  explicit Agenda(std::size_t window = 512) : window_(window) {}

  // A lane that the store has, whose first call is due then; what is in it is asked for when it is needed.
  void add_lane(const Lane& lane, Time first_due);
  // A call has been given a time.
  void add(const Lane& lane, Due due);

  // A lane whose window is empty, though the store has more, and whose next may be due by then: ask the store for
  // what comes after, and tell.
  struct Refill {
    Lane lane;
    Due after;
    std::size_t limit = 0;
  };
  [[nodiscard]] std::optional<Refill> refill(Time soon) const;
  void refilled(const Refill& asked, const std::vector<Due>& found);

  // Those whose time has come and for whose origin `place` finds a place, in their turn.
  [[nodiscard]] std::vector<std::pair<Lane, Due>> take(Time now, std::size_t limit,
                                                       const std::function<bool(const std::string&)>& place);
  // When there may be something to do next, places aside.
  [[nodiscard]] std::optional<Time> next_due() const;

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t lanes() const { return lanes_.size(); }

 private:
  struct State {
    std::set<Due> window;
    bool complete = false;
    Due last;  // up to this one the store has been asked, or there was nothing
    Time next{};  // the time that the lane is filed under
  };
  using Lanes = std::map<Lane, State>;

  void file(Lanes::iterator lane);
  void unfile(const Lanes::iterator& lane);
  Due take_first(const Lanes::iterator& lane);

  const std::size_t window_;
  Lanes lanes_;
  std::set<std::pair<Time, Lane>> by_time_;  // lanes that have something, by when it is due
  Tenant turn_;                              // who was served last
  std::size_t size_ = 0;
};

}  // namespace baton::call
