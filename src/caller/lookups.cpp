#include "caller/lookups.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

namespace baton::caller {

Result<std::vector<Address>> resolve_by_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0)
    return fail(Code::unavailable, ::gai_strerror(error));
  std::vector<Address> found;
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    Address address{.v4 = each->ai_family == AF_INET};
    if (each->ai_family == AF_INET) {
      std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in*>(each->ai_addr)->sin_addr, 4);
    } else if (each->ai_family == AF_INET6) {
      std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(each->ai_addr)->sin6_addr, 16);
    } else {
      continue;
    }
    if (std::ranges::find(found, address) == found.end()) found.push_back(address);
  }
  ::freeaddrinfo(list);
  return found;
}

struct Lookups::State {
  Resolve resolve;
  std::size_t threads_max = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::vector<std::function<void(const Found&)>>> waiting;  // queued or being looked up
  std::deque<std::string> queue;
  std::size_t threads = 0, idle = 0;
  bool closed = false;

  Found resolve_safely(const std::string& host) const {
    try {
      return resolve(host);
    } catch (const std::exception& error) {
      return fail(Code::unavailable, error.what());
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      ++idle;
      changed.wait(lock, [this] { return closed || !queue.empty(); });
      --idle;
      if (closed) break;
      const auto host = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      const auto found = resolve_safely(host);
      lock.lock();
      // Called under the lock, so that nobody is called once close() has returned.
      const auto asked = waiting.extract(host);
      if (asked) std::ranges::for_each(asked.mapped(), [&](const auto& each) { each(found); });
    }
    --threads;
    changed.notify_all();
  }
};

Lookups::Lookups(Resolve resolve, std::size_t threads_max) : state_(std::make_shared<State>()) {
  state_->resolve = std::move(resolve);
  state_->threads_max = threads_max;
}

Lookups::~Lookups() {
  close();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_for(lock, std::chrono::seconds{1}, [this] { return state_->threads == 0; });
}

void Lookups::find(const std::string& host, std::function<void(const Found&)> found) {
  auto& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.closed) return;
  auto& waiting = state.waiting[host];
  waiting.push_back(std::move(found));
  if (waiting.size() > 1) return;
  state.queue.push_back(host);
  if (state.idle < state.queue.size() && state.threads < state.threads_max) {
    // Detached: a lookup cannot be interrupted, and a stop must not wait for a name server that is away.
    std::thread([shared = state_] { shared->work(); }).detach();
    ++state.threads;
  }
  state.changed.notify_one();
}

void Lookups::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->waiting.clear();
  state_->queue.clear();
  state_->changed.notify_all();
}

}  // namespace baton::caller
