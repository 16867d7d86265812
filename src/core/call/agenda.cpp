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

// With many lanes each has a smaller window, so that all of them together stay small.
std::size_t Agenda::window() const {
  constexpr std::size_t together = 65'536, least = 16;
  return std::min(window_, std::max(least, together / (lanes_.size() + 1)));
}

// A lane is filed by the time of its first call; one that has to be asked for by the time up to which it was
// asked.
void Agenda::file(Lanes::iterator lane) {
  State& state = lane->second;
  if (state.window.empty() && state.complete) {
    lanes_.erase(lane);
    return;
  }
  const bool is_hungry = state.window.empty();
  state.next = is_hungry ? state.last.at : state.window.begin()->at;
  state.where = is_hungry ? Where::hungry : Where::filed;
  (is_hungry ? hungry_ : filed_).insert(lane);
}

void Agenda::unfile(const Lanes::iterator& lane) {
  if (lane->second.where == Where::filed) filed_.erase(lane);
  if (lane->second.where == Where::hungry) hungry_.erase(lane);
}

void Agenda::know(Time until, const std::vector<std::pair<Lane, Time>>& lanes) {
  for (const auto& [lane, first_due] : lanes) {
    const auto [it, is_new] = lanes_.try_emplace(lane);
    State& state = it->second;
    if (!is_new && !state.complete) continue;  // what comes after its window is asked for anyway
    unfile(it);
    state.complete = false;
    state.last = {first_due, CallId{}};  // ids are not empty, so the first one comes after this
    if (is_new || state.where != Where::queued) file(it);
  }
  known_until_ = std::max(known_until_, until);
}

void Agenda::forget(const Lane& lane, const Due& due) {
  const auto it = lanes_.find(lane);
  if (it == lanes_.end() || !it->second.window.contains(due)) return;
  unfile(it);
  it->second.window.erase(due);
  --size_;
  if (it->second.where != Where::queued) file(it);
}

void Agenda::add(const Lane& lane, Due due, std::optional<Time> was) {
  if (was) forget(lane, {*was, due.id});
  if (due.at > known_until_) return;  // it is found in the store when its time is near
  const auto [it, is_new] = lanes_.try_emplace(lane);
  State& state = it->second;
  if (is_new) state.complete = true;  // nobody has told of this lane, so the store has nothing else of it
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
    const auto lane = *hungry_.begin();
    unfile(lane);
    lane->second.where = Where::queued;
    asking_[lane->first.tenant].push_back(lane);
  }
  if (asking_.empty()) return std::nullopt;
  const auto lane = next_turn(asking_, asking_turn_)->second.front();
  return Refill{lane->first, lane->second.last, known_until_, window()};
}

void Agenda::refilled(const Refill& asked, const std::vector<Due>& found) {
  const auto turn = next_turn(asking_, asking_turn_);
  const auto lane = turn->second.front();
  turn->second.pop_front();
  asking_turn_ = turn->first;
  if (turn->second.empty()) asking_.erase(turn);
  State& state = lane->second;
  for (const Due& due : found) size_ += state.window.insert(due).second;
  if (!found.empty()) state.last = std::max(state.last, found.back());
  state.complete = found.size() < asked.limit || MUTANT(agenda_forgets_rest);
  file(lane);
}

void Agenda::make_ready(Time now) {
  ready_.merge(held_);
  for (auto& [tenant, lanes] : std::exchange(held_, {}))
    std::ranges::move(lanes, std::back_inserter(ready_[tenant]));
  while (!filed_.empty() && has_come((*filed_.begin())->second.next, now)) {
    const auto lane = *filed_.begin();
    unfile(lane);
    lane->second.where = Where::queued;
    ready_[lane->first.tenant].push_back(lane);
  }
}

std::vector<std::pair<Lane, Due>> Agenda::take(Time now, std::size_t limit,
                                               const std::function<Place(const Lane&)>& place) {
  make_ready(now);
  std::vector<std::pair<Lane, Due>> taken;
  auto turn = ready_.upper_bound(turn_);
  while (taken.size() < limit && !ready_.empty()) {
    if (turn == ready_.end()) turn = ready_.begin();
    auto& lanes = turn->second;
    const auto lane = lanes.front();
    lanes.pop_front();
    State& state = lane->second;
    const bool is_due = !state.window.empty() && has_come(state.window.begin()->at, now);
    const Place found = is_due ? place(lane->first) : Place{};
    if (!is_due) {  // the clock was set back, or its first was put off
      file(lane);
    } else if (found == Place::none_for_origin) {
      blocked_[lane->first.origin].push_back(lane);
    } else if (found == Place::none_for_tenant) {
      lanes.push_front(lane);
      held_.insert(ready_.extract(turn++));
      continue;
    } else {
      turn_ = turn->first;
      taken.emplace_back(lane->first, std::move(state.window.extract(state.window.begin()).value()));
      --size_;
      if (state.window.empty())
        file(lane);
      else
        lanes.push_back(lane);  // filed again when its turn comes, if nothing is due then
    }
    turn = lanes.empty() ? ready_.erase(turn) : std::next(turn);
  }
  return taken;
}

void Agenda::place_is_free(const std::string& origin) {
  const auto found = blocked_.find(origin);
  if (found == blocked_.end()) return;
  for (const auto& lane : found->second) ready_[lane->first.tenant].push_back(lane);
  blocked_.erase(found);
}

std::optional<Time> Agenda::next_due() const {
  if (!ready_.empty() || !asking_.empty()) return Time{};
  std::optional<Time> next;
  for (const auto* lanes : {&filed_, &hungry_}) {
    if (lanes->empty()) continue;
    const Time first = (*lanes->begin())->second.next;
    next = next ? std::min(*next, first) : first;
  }
  return next;
}

}  // namespace baton::call
