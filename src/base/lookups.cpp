#include "base/lookups.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace baton {

Result<std::vector<IpAddress>> resolve_by_system(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list); error != 0)
    return fail(Code::unavailable, ::gai_strerror(error));
  std::vector<IpAddress> found;
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    IpAddress address{.v4 = each->ai_family == AF_INET};
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
  struct Asked {
    std::vector<std::function<void(const Found&)>> who;
    std::chrono::steady_clock::time_point until{};  // of the most patient
    bool is_under_way = false;
  };
  struct Queue {
    std::deque<std::string> hosts;
    std::size_t under_way = 0;
  };

  Resolve resolve;
  std::size_t threads_max = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, Asked> asked;   // by host: queued or being looked up
  std::map<std::string, Queue> queues;  // by for whom it is; a host may be in more than one
  std::string turn;                     // who was served last
  std::size_t queued = 0, busy = 0, threads = 0, idle = 0;
  bool closed = false;

  Found resolve_safely(const std::string& host) const {
    try {
      return resolve(host);
    } catch (const std::exception& error) {
      return fail(Code::unavailable, error.what());
    }
  }

  // Whose turn it is, and the name that they want.
  std::optional<std::pair<std::string, std::string>> next() {
    auto it = queues.upper_bound(turn);
    for (std::size_t looks = queues.size(); looks > 0; --looks) {
      if (it == queues.end()) it = queues.begin();
      Queue& queue = it->second;
      // Nobody has more threads than are free for others.
      while (!queue.hosts.empty() && queue.under_way < std::max<std::size_t>(threads_max - busy, 1)) {
        std::string host = std::move(queue.hosts.front());
        queue.hosts.pop_front();
        --queued;
        const auto wanted = asked.find(host);
        if (wanted == asked.end() || wanted->second.is_under_way) continue;
        if (wanted->second.until <= std::chrono::steady_clock::now()) {  // all who wanted it have given up
          asked.erase(wanted);
          continue;
        }
        wanted->second.is_under_way = true;
        ++queue.under_way;
        ++busy;
        turn = it->first;
        return std::pair{turn, std::move(host)};
      }
      it = queue.hosts.empty() && queue.under_way == 0 ? queues.erase(it) : std::next(it);
    }
    return std::nullopt;
  }

  void done(const std::string& for_whom, const std::string& host, const Found& found) {
    --busy;
    const auto queue = queues.find(for_whom);
    if (queue != queues.end() && --queue->second.under_way == 0 && queue->second.hosts.empty())
      queues.erase(queue);
    // Called under the lock, so that nobody is called once close() has returned.
    const auto told = asked.extract(host);
    if (told) std::ranges::for_each(told.mapped().who, [&](const auto& each) { each(found); });
  }

  void work() {
    std::unique_lock lock(mutex);
    while (!closed) {
      const auto wanted = next();
      if (!wanted) {
        ++idle;
        changed.wait(lock);
        --idle;
        continue;
      }
      const auto& [for_whom, host] = *wanted;
      lock.unlock();
      const auto found = resolve_safely(host);
      lock.lock();
      done(for_whom, host, found);
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

void Lookups::find(const std::string& for_whom, const std::string& host, std::chrono::steady_clock::time_point until,
                   std::function<void(const Found&)> found) {
  auto& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.closed) return;
  auto& asked = state.asked[host];
  asked.who.push_back(std::move(found));
  asked.until = std::max(asked.until, until);
  if (asked.is_under_way) return;
  state.queues[for_whom].hosts.push_back(host);
  ++state.queued;
  if (state.idle < state.queued && state.threads < state.threads_max) {
    // Detached: a lookup cannot be interrupted, and a stop must not wait for a name server that is away.
    std::thread([shared = state_] { shared->work(); }).detach();
    ++state.threads;
  }
  state.changed.notify_one();
}

void Lookups::close() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->asked.clear();
  state_->queues.clear();
  state_->changed.notify_all();
}

}  // namespace baton
