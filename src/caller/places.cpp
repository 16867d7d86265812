#include "caller/places.hpp"

#include "base/mutant.hpp"
#include "base/result.hpp"

namespace baton::caller {

using Place = call::Agenda::Place;

namespace {

template <class Counts, class Key>
std::size_t count_of(const Counts& counts, const Key& key) {
  const auto it = counts.find(key);
  return it == counts.end() ? 0 : it->second;
}

template <class Counts, class Key>
void count_down(Counts& counts, const Key& key) {
  const auto it = counts.find(key);
  ENSURE(it != counts.end());
  if (--it->second == 0) counts.erase(it);
}

}  // namespace

Place Places::take(const call::Destination& to) {
  const std::scoped_lock lock(mutex_);
  return take_locked(to);
}

// All share the places, and those who call an origin share its places. Nobody has more than are free.
Place Places::take_locked(const call::Destination& to) {
  const std::size_t free = limits_.places_max - taken_;
  if (count_of(taken_by_, to.tenant) >= free && !MUTANT(tenant_takes_all)) return Place::none_for_tenant;
  const std::size_t free_there = limits_.per_origin_max - count_of(to_origin_, to.origin);
  const bool may = MUTANT(tenant_takes_origin) ? free_there > 0 : count_of(to_destination_, to) < free_there;
  if (!may) return Place::none_for_origin;
  ++taken_, ++taken_by_[to.tenant], ++to_origin_[to.origin], ++to_destination_[to];
  return Place::taken;
}

void Places::leave_origin(const call::Destination& to) {
  const std::scoped_lock lock(mutex_);
  count_down(to_origin_, to.origin);
  count_down(to_destination_, to);
}

void Places::leave_place(const Tenant& tenant) {
  const std::scoped_lock lock(mutex_);
  count_down(taken_by_, tenant);
  --taken_;
}

void Places::grant(bool may) {
  const std::scoped_lock lock(mutex_);
  may_reserve_ = may;
}

std::size_t Places::reserved() const {
  const std::scoped_lock lock(mutex_);
  return reserved_;
}

std::vector<std::string> Places::take_given_back() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(given_back_, {});
}

std::shared_ptr<CallPlace> Places::reserve(const call::Destination& to) {
  const std::scoped_lock lock(mutex_);
  if (!may_reserve_ || take_locked(to) != Place::taken) return nullptr;
  ++reserved_;
  return std::make_shared<CallPlace>(
      name_ + "-r" + std::to_string(++reservations_),
      [self = shared_from_this(), to](bool is_kept) { self->settle(to, is_kept); });
}

void Places::settle(const call::Destination& to, bool is_kept) {
  {
    const std::scoped_lock lock(mutex_);
    --reserved_;
    if (is_kept || MUTANT(reservation_leaks)) return;
    count_down(to_origin_, to.origin);
    count_down(to_destination_, to);
    count_down(taken_by_, to.tenant);
    --taken_;
    given_back_.push_back(to.origin);
  }
  if (tell_) tell_();
}

void ReservingInbox::submit(Command command, std::shared_ptr<Waiter> waiter) {
  if (auto* submitted = std::get_if<SubmitCalls>(&command)) {
    const Time now = clock_.now();
    for (NewCall& each : submitted->calls)
      if (each.due_at.value_or(now) <= now) each.place = places_->reserve({each.key.tenant, each.origin});
  }
  inbox_.submit(std::move(command), std::move(waiter));
}

}  // namespace baton::caller
