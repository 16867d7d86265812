#include "core/call/agenda.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutant.hpp"
#include "core/call/call.hpp"

namespace baton::call {

namespace {

// Whose turn it is after this one.
template <class Queues>
auto next_turn(Queues& queues, const Tenant& last) {
  const auto next = queues.upper_bound(last);
  return next == queues.end() ? queues.begin() : next;
}

}  // namespace

// With many destinations each has a smaller window, so that all of them together stay small.
std::size_t Agenda::window() const {
  constexpr std::size_t together = 65'536, least = 16;
  return std::min(window_, std::max(least, together / (destinations_.size() + 1)));
}

// A destination is filed by the time of its first call; one that has to be asked for by the time up to which
// it was asked.
void Agenda::file(Destinations::iterator destination) {
  State& state = destination->second;
  if (state.window.empty() && state.complete) {
    destinations_.erase(destination);
    return;
  }
  const bool is_hungry = state.window.empty();
  state.next = is_hungry ? state.last.at : state.window.begin()->at;
  state.where = is_hungry ? Where::hungry : Where::filed;
  (is_hungry ? hungry_ : filed_).insert(destination);
}

void Agenda::unfile(const Destinations::iterator& destination) {
  if (destination->second.where == Where::filed) filed_.erase(destination);
  if (destination->second.where == Where::hungry) hungry_.erase(destination);
}

void Agenda::know(Time until, const std::vector<std::pair<Destination, Time>>& destinations) {
  for (const auto& [destination, first_due] : destinations) {
    const auto [it, is_new] = destinations_.try_emplace(destination);
    State& state = it->second;
    if (!is_new && !state.complete) continue;  // what comes after its window is asked for anyway
    unfile(it);
    state.complete = false;
    state.last = {first_due, CallId{}};  // ids are not empty, so the first one comes after this
    if (is_new || state.where != Where::queued) file(it);
  }
  known_until_ = std::max(known_until_, until);
}

void Agenda::forget(const Destination& destination, const Due& due) {
  const auto it = destinations_.find(destination);
  if (it == destinations_.end() || !it->second.window.contains(due)) return;
  unfile(it);
  it->second.window.erase(due);
  --size_;
  if (it->second.where != Where::queued) file(it);
}

void Agenda::add(const Destination& destination, Due due, std::optional<Time> was) {
  if (was) forget(destination, {*was, due.id});
  if (due.at > known_until_) return;  // it is found in the store when its time is near
  const auto [it, is_new] = destinations_.try_emplace(destination);
  State& state = it->second;
  if (is_new) state.complete = true;  // nobody has told of this destination: the store has nothing else for it
  unfile(it);
  // Later than what is known of the store: it is found there.
  if (state.complete || due <= state.last) size_ += state.window.insert(std::move(due)).second;
  shorten(state);
  if (is_new || state.where != Where::queued) file(it);
}

// The latest are left to the store.
void Agenda::shorten(State& state) {
  while (state.window.size() > window()) {
    state.window.erase(std::prev(state.window.end()));
    --size_;
    state.complete = false;
    state.last = *state.window.rbegin();
  }
}

std::optional<Agenda::Refill> Agenda::refill(Time soon) {
  while (!hungry_.empty() && (*hungry_.begin())->second.next <= soon) {
    const auto destination = *hungry_.begin();
    unfile(destination);
    destination->second.where = Where::queued;
    asking_[destination->first.tenant].push_back(destination);
  }
  if (asking_.empty()) return std::nullopt;
  const auto destination = next_turn(asking_, asking_turn_)->second.front();
  return Refill{destination->first, destination->second.last, known_until_, window()};
}

void Agenda::refilled(const Refill& asked, const std::vector<Due>& found) {
  const auto turn = next_turn(asking_, asking_turn_);
  const auto destination = turn->second.front();
  turn->second.pop_front();
  asking_turn_ = turn->first;
  if (turn->second.empty()) asking_.erase(turn);
  State& state = destination->second;
  for (const Due& due : found) size_ += state.window.insert(due).second;
  if (!found.empty()) state.last = std::max(state.last, found.back());
  state.complete = found.size() < asked.limit || MUTANT(agenda_forgets_rest);
  file(destination);
}

void Agenda::make_ready(Time now) {
  ready_.merge(held_);
  for (auto& [tenant, destinations] : std::exchange(held_, {}))
    std::ranges::move(destinations, std::back_inserter(ready_[tenant]));
  while (!filed_.empty() && has_come((*filed_.begin())->second.next, now)) {
    const auto destination = *filed_.begin();
    unfile(destination);
    destination->second.where = Where::queued;
    ready_[destination->first.tenant].push_back(destination);
  }
}

std::vector<std::pair<Destination, Due>> Agenda::take(
    Time now, std::size_t limit, const std::function<Place(const Destination&)>& place) {
  make_ready(now);
  std::vector<std::pair<Destination, Due>> taken;
  auto turn = ready_.upper_bound(turn_);
  while (taken.size() < limit && !ready_.empty()) {
    if (turn == ready_.end()) turn = ready_.begin();
    auto& destinations = turn->second;
    const auto destination = destinations.front();
    destinations.pop_front();
    State& state = destination->second;
    const bool is_due = !state.window.empty() && has_come(state.window.begin()->at, now);
    const Place found = is_due ? place(destination->first) : Place{};
    if (!is_due) {  // the clock was set back, or its first was put off
      file(destination);
    } else if (found == Place::none_for_origin) {
      blocked_[destination->first.origin].push_back(destination);
    } else if (found == Place::none_for_tenant) {
      destinations.push_front(destination);
      held_.insert(ready_.extract(turn++));
      continue;
    } else {
      turn_ = turn->first;
      taken.emplace_back(destination->first, std::move(state.window.extract(state.window.begin()).value()));
      --size_;
      if (state.window.empty())
        file(destination);
      else
        destinations.push_back(destination);  // filed again when its turn comes, if nothing is due then
    }
    turn = destinations.empty() ? ready_.erase(turn) : std::next(turn);
  }
  return taken;
}

void Agenda::place_is_free(const std::string& origin) {
  const auto found = blocked_.find(origin);
  if (found == blocked_.end()) return;
  for (const auto& destination : found->second) ready_[destination->first.tenant].push_back(destination);
  blocked_.erase(found);
}

std::optional<Time> Agenda::next_due() const {
  if (!ready_.empty() || !asking_.empty()) return Time{};
  std::optional<Time> next;
  for (const auto* destinations : {&filed_, &hungry_}) {
    if (destinations->empty()) continue;
    const Time first = (*destinations->begin())->second.next;
    next = next ? std::min(*next, first) : first;
  }
  return next;
}

}  // namespace baton::call
