#include "ports/mailbox.hpp"

#include <iterator>
#include <utility>

#include "ports/together.hpp"

namespace baton {

void Mailbox::put(std::shared_ptr<Arrival> arrival) {
  std::unique_lock lock(mutex_);
  if (closed_) {
    lock.unlock();
    return arrival->drop();
  }
  arrived_.push_back(std::move(arrival));
  const bool comes = awake_;
  lock.unlock();
  if (!comes) Together::wake(this, [self = shared_from_this()] { self->wake(); });
}

void Mailbox::wake() {
  const std::lock_guard lock(mutex_);
  if (!closed_ && !std::exchange(awake_, true)) wake_();
}

void Mailbox::drain() {
  std::vector<std::shared_ptr<Arrival>> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
    // Most likely more have come until then: to look again here is cheaper than to be woken for each of them.
    awake_ = !arrived.empty();
    if (awake_) wake_();
  }
  for (auto next = arrived.begin(); next != arrived.end();) try {
      const auto arrival = std::move(*next++);
      arrival->arrive();
    } catch (...) {  // the others arrive when it is drained again, for which it was woken
      const std::lock_guard lock(mutex_);
      arrived_.insert(arrived_.begin(), std::move_iterator(next), std::move_iterator(arrived.end()));
      throw;
    }
}

void Mailbox::close() {
  std::vector<std::shared_ptr<Arrival>> arrived;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    arrived.swap(arrived_);
  }
  for (const auto& arrival : arrived) arrival->drop();
}

}  // namespace baton
