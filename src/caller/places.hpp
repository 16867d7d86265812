// The places of service calls: how many may be begun and not stored as ended, in all, of a tenant, and at an
// origin.
//
// Whoever makes the calls takes a place before it asks for a start. Whoever submits a call that is due at
// once may reserve one instead, so that the start is stored in the commit of the submission. A reservation is
// a place like any other from the moment it is granted, so a crash puts no more calls in doubt than there are
// places.
//
// Thread-safe. Invariants: no more than places_max are taken; a tenant has no more than are free, in all and
// at an origin; a reservation is kept by whoever sends the call, or given back, once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/call/agenda.hpp"
#include "ports/call_commands.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"

namespace baton::caller {

class Places : public std::enable_shared_from_this<Places> {
 public:
  struct Limits {
    std::size_t places_max = 1'024;
    std::size_t per_origin_max = 128;
  };
  // The name is that of this process among all that ever were.
  Places(Limits limits, std::string name) : limits_(limits), name_(std::move(name)) {}

  // --- for whoever makes the calls
  [[nodiscard]] call::Agenda::Place take(const call::Destination& to);
  void leave_origin(const call::Destination& to);  // it has answered, and may be asked for something else
  void leave_place(const Tenant& tenant);     // it is stored as ended
  // Whether places may be reserved: not while something that is due waits for one.
  void grant(bool may);
  [[nodiscard]] std::size_t reserved() const;  // neither kept nor given back
  // The origins at which reserved places were given back since the last time.
  [[nodiscard]] std::vector<std::string> take_given_back();
  // Is called on any thread, with no lock held, when one was. Set it before anybody reserves.
  void when_given_back(std::function<void()> tell) { tell_ = std::move(tell); }

  // --- for whoever submits
  // None: there is none, or others wait for it.
  [[nodiscard]] std::shared_ptr<CallPlace> reserve(const call::Destination& to);

 private:
  [[nodiscard]] call::Agenda::Place take_locked(const call::Destination& to);
  void settle(const call::Destination& to, bool is_kept);

  const Limits limits_;
  const std::string name_;
  std::function<void()> tell_;
  mutable std::mutex mutex_;  // of all that follows
  bool may_reserve_ = false;
  std::size_t taken_ = 0, reserved_ = 0, reservations_ = 0;
  std::map<Tenant, std::size_t> taken_by_;
  std::map<std::string, std::size_t> to_origin_;  // of those that have not answered
  std::map<call::Destination, std::size_t> to_destination_;
  std::vector<std::string> given_back_;
};

// Passes commands on, and reserves places for the calls in them that are due. Both must outlive it. A repeat (RepeatCall)
// names a call and not its destination, which is known when the engine has loaded that call: nothing is reserved for it.
class ReservingInbox final : public Inbox {
 public:
  ReservingInbox(Inbox& inbox, const Clock& clock, std::shared_ptr<Places> places)
      : inbox_(inbox), clock_(clock), places_(std::move(places)) {}
  void submit(Command command, std::shared_ptr<Waiter> waiter) override;

 private:
  Inbox& inbox_;
  const Clock& clock_;
  const std::shared_ptr<Places> places_;
};

}  // namespace baton::caller
