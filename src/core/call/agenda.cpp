#include "core/call/agenda.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/mutant.hpp"

namespace baton::call {

// A lane is filed by the time of its first call; one that has to be asked for by the time up to which it was
// asked.
void Agenda::file(Lanes::iterator lane) {
  State& state = lane->second;
  if (state.window.empty() && state.complete) {
    lanes_.erase(lane);
    return;
  }
  state.next = state.window.empty() ? state.last.at : state.window.begin()->at;
  state.is_filed = true;
  filed_.insert(lane);
}

// One that is ready or blocked stays so: whether something is due is looked at when its turn comes.
void Agenda::unfile(const Lanes::iterator& lane) {
  if (lane->second.is_filed) filed_.erase(lane);
}

void Agenda::know(Time until, const std::vector<std::pair<Lane, Time>>& lanes) {
  for (const auto& [lane, first_due] : lanes) {
    const auto [it, is_new] = lanes_.try_emplace(lane);
    State& state = it->second;
    if (!is_new && !state.complete) continue;  // what comes after its window is asked for anyway
    const bool is_filed = state.is_filed;
    if (!is_new) unfile(it);
    state.complete = false;
    state.last = {first_due, CallId{}};  // ids are not empty, so the first one comes after this
    if (is_filed) file(it);
  }
  known_until_ = std::max(known_until_, until);
}

void Agenda::forget(const Lane& lane, const Due& due) {
  const auto it = lanes_.find(lane);
  if (it == lanes_.end() || !it->second.window.contains(due)) return;
  unfile(it);
  it->second.window.erase(due);
  --size_;
  if (it->second.is_filed) file(it);
}

void Agenda::add(const Lane& lane, Due due, std::optional<Time> was) {
  if (was) forget(lane, {*was, due.id});
  if (due.at > known_until_) return;  // it is found in the store when its time is near
  const auto [it, is_new] = lanes_.try_emplace(lane);
  State& state = it->second;
  if (is_new)
    state.complete = true;  // nobody has told of this lane, so the store has nothing else of it
  else
    unfile(it);
  // Later than what is known of the store: it is found there.
  if (state.complete || due <= state.last) size_ += state.window.insert(std::move(due)).second;
  shorten(state);
  if (state.is_filed) file(it);
}

// The latest are left to the store.
void Agenda::shorten(State& state) {
  while (state.window.size() > window_) {
    state.window.erase(std::prev(state.window.end()));
    --size_;
    state.complete = false;
    state.last = *state.window.rbegin();
  }
}

std::optional<Agenda::Refill> Agenda::refill(Time soon) const {
  for (const auto& lane : filed_) {
    const State& state = lane->second;
    if (state.next > soon) break;
    if (state.window.empty()) return Refill{lane->first, state.last, known_until_, window_};
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
  if (state.is_filed) file(it);
}

void Agenda::make_ready(Time now) {
  for (auto& [tenant, lanes] : std::exchange(held_, {}))
    std::ranges::move(lanes, std::back_inserter(ready_[tenant]));
  for (auto it = filed_.begin(); it != filed_.end();) {
    const auto lane = *it;
    if (lane->second.next > now && !MUTANT(call_started_early)) break;
    ++it;
    if (lane->second.window.empty()) continue;  // to be asked for
    unfile(lane);
    lane->second.is_filed = false;
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
    const bool is_due =
        !state.window.empty() && (state.window.begin()->at <= now || MUTANT(call_started_early));
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
  if (!ready_.empty()) return Time{};
  if (filed_.empty()) return std::nullopt;
  return (*filed_.begin())->second.next;
}

}  // namespace baton::call
