#include "ports/broker_state.hpp"

#include <algorithm>

namespace baton {

BrokerState::BrokerState(std::string address, std::vector<std::string> queues, Time now) : queues_(std::move(queues)) {
  view_.address = std::move(address);
  view_.since = now;
}

void BrokerState::connected(std::vector<Link> links, Time now) {
  const std::scoped_lock lock(mutex_);
  view_.is_connected = true;
  view_.since = now;
  view_.links = std::move(links);
}

void BrokerState::link_opened(std::size_t which, Time now) {
  const std::scoped_lock lock(mutex_);
  if (which >= view_.links.size()) return;
  Link& link = view_.links[which];
  link.is_open = true;
  link.since = now;
}

void BrokerState::link_closed(std::size_t which, std::string trouble, Time now) {
  const std::scoped_lock lock(mutex_);
  if (which >= view_.links.size()) return;
  Link& link = view_.links[which];
  if (std::exchange(link.is_open, false)) link.since = now;
  link.trouble = std::move(trouble);
}

void BrokerState::disconnected(std::string trouble, Time now) {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(view_.is_connected, false)) view_.since = now;
  for (Link& link : view_.links)
    if (std::exchange(link.is_open, false)) link.since = now;
  view_.trouble = std::move(trouble);
  view_.trouble_at = now;
}

void BrokerState::rejected(Rejected message) {
  const std::scoped_lock lock(mutex_);
  rejected_.push_back(std::move(message));
  if (rejected_.size() > rejected_max) rejected_.pop_front();
}

BrokerState::View BrokerState::view() const {
  const std::scoped_lock lock(mutex_);
  View view = view_;
  view.rejected.assign(rejected_.rbegin(), rejected_.rend());
  return view;
}

std::optional<std::string> BrokerState::trouble_of(const std::string& queue) const {
  const std::scoped_lock lock(mutex_);
  if (std::ranges::find(queues_, queue) == queues_.end()) return std::nullopt;
  const auto say = [](std::string what, Time since, const std::string& why) {
    return std::move(what) + " since " + to_iso(since) + (why.empty() ? "" : ": " + why);
  };
  if (!view_.is_connected) return say("the broker has been away", view_.since, view_.trouble);
  const auto link = std::ranges::find(view_.links, queue, &Link::queue);
  if (link == view_.links.end() || link->is_open) return std::nullopt;
  return say("the broker has not taken anything for '" + link->address + "'", link->since, link->trouble);
}

}  // namespace baton
