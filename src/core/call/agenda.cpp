#include "core/call/agenda.hpp"

#include <algorithm>
#include <deque>

#include "base/mutant.hpp"

namespace baton::call {

// A lane is filed by the time of its first call; one that has to be asked for by the time up to which it was asked.
void Agenda::file(Lanes::iterator lane) {
  State& state = lane->second;
  if (state.window.empty() && state.complete) {
    lanes_.erase(lane);
    return;
  }
  state.next = state.window.empty() ? state.last.at : state.window.begin()->at;
  by_time_.insert({state.next, lane->first});
}

void Agenda::unfile(const Lanes::iterator& lane) { by_time_.erase({lane->second.next, lane->first}); }

void Agenda::add_lane(const Lane& lane, Time first_due) {
  const auto [it, is_new] = lanes_.try_emplace(lane);
  if (!is_new) return;
  it->second.last = {first_due, CallId{}};
  file(it);
}

void Agenda::add(const Lane& lane, Due due) {
  const auto [it, is_new] = lanes_.try_emplace(lane);
  State& state = it->second;
  if (is_new)
    state.complete = true;  // nobody has told of this lane, so the store has nothing else of it
  else
    unfile(it);
  // Later than what is known of the store: it is found there.
  if (state.complete || due <= state.last) size_ += state.window.insert(std::move(due)).second;
  if (state.window.size() > window_) {  // the latest is left to the store
    const auto latest = std::prev(state.window.end());
    state.complete = false;
    state.last = *std::prev(latest);
    state.window.erase(latest);
    --size_;
  }
  file(it);
}

std::optional<Agenda::Refill> Agenda::refill(Time soon) const {
  for (const auto& [at, lane] : by_time_) {
    if (at > soon) break;
    const State& state = lanes_.at(lane);
    if (state.window.empty()) return Refill{lane, state.last, window_};
  }
  return std::nullopt;
}

void Agenda::refilled(const Refill& asked, const std::vector<Due>& found) {
  const auto it = lanes_.find(asked.lane);
  if (it == lanes_.end()) return;
  unfile(it);
  State& state = it->second;
  for (const Due& due : found) size_ += state.window.insert(due).second;
  if (!found.empty()) state.last = std::max(state.last, found.back());
  state.complete = found.size() < asked.limit || MUTANT(agenda_forgets_rest);
  file(it);
}

std::vector<std::pair<Lane, Due>> Agenda::take(Time now, std::size_t limit,
                                               const std::function<bool(const std::string&)>& place) {
  // The lanes whose first call is due, by tenant; of each tenant the one that has waited longest first.
  std::map<Tenant, std::deque<Lanes::iterator>> ready;
  for (const auto& [at, lane] : by_time_) {
    if (at > now && !MUTANT(call_started_early)) break;
    if (const auto it = lanes_.find(lane); !it->second.window.empty()) ready[lane.tenant].push_back(it);
  }
  std::vector<std::pair<Lane, Due>> taken;
  auto turn = ready.upper_bound(turn_);
  while (taken.size() < limit && !ready.empty()) {
    if (turn == ready.end()) turn = ready.begin();
    auto& lanes = turn->second;
    const auto lane = lanes.front();
    lanes.pop_front();
    if (place(lane->first.origin)) {
      turn_ = turn->first;
      Lane of = lane->first;  // the lane may be gone when its last call is taken
      Due due = take_first(lane);
      taken.emplace_back(std::move(of), std::move(due));
      if (const auto still = lanes_.find(taken.back().first);
          still != lanes_.end() && !still->second.window.empty() && still->second.next <= now)
        lanes.push_back(still);
    }
    turn = lanes.empty() ? ready.erase(turn) : std::next(turn);
  }
  return taken;
}

Due Agenda::take_first(const Lanes::iterator& lane) {
  unfile(lane);
  State& state = lane->second;
  Due due = std::move(state.window.extract(state.window.begin()).value());
  --size_;
  file(lane);
  return due;
}

std::optional<Time> Agenda::next_due() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

}  // namespace baton::call
