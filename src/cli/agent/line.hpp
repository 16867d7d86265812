// How the agent talks to the server. The agent is one thread that must never block, and our HTTP client
// blocks: so each connection is a Line with a thread of its own, which does one request after the other and
// leaves the answers in the agent's mailbox. All decisions, retries too, are the agent's.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.hpp"
#include "cli/remote.hpp"
#include "http/wire/client.hpp"

namespace baton::cli::agent {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What other threads want to have done on the agent's thread.
class Mailbox {
 public:
  // `wake` ends the owner's wait, from any thread.
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}
  void put(std::function<void()> letter);
  void open_all();  // the owner's

 private:
  std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> letters_;
};

// What the agent's thread is to do later. Not thread-safe.
class Timers {
 public:
  using Id = std::pair<Clock::time_point, std::uint64_t>;
  Id at(Clock::time_point when, std::function<void()> what);
  Id after(milliseconds wait, std::function<void()> what) { return at(Clock::now() + wait, std::move(what)); }
  void cancel(const Id& id) { due_.erase(id); }
  void run_due();
  [[nodiscard]] milliseconds until_next(milliseconds wait_max) const;

 private:
  std::uint64_t last_ = 0;
  std::map<Id, std::function<void()>> due_;
};

// Waits that double, up to two seconds: a server that is back has 30 seconds to hear of what it has given
// out.
class Pauses {
 public:
  [[nodiscard]] milliseconds next();
  void reset() { wait_ = first; }
  [[nodiscard]] bool is_fresh() const { return wait_ == first; }

 private:
  static constexpr milliseconds first{100}, longest{2'000};
  milliseconds wait_ = first;
};

using Answered = Result<http::ClientResponse>;

class Line {
 public:
  Line(const ServerAccess& server, Mailbox& mailbox);
  ~Line();  // interrupts, joins; answers that have not been put are never put
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  // `then` is called on the owner's thread, from the mailbox. One by one, in the order of the calls.
  void post(std::string target, std::string body, milliseconds timeout, std::function<void(Answered)> then);
  void interrupt();  // for good: the connection is closed, later requests are not sent

 private:
  struct Request {
    std::string target, body;
    milliseconds timeout;
    std::function<void(Answered)> then;
  };
  void run();

  Mailbox& mailbox_;
  http::Client client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopping_ = false;
  std::thread thread_;
};

// Worth asking again: no answer, or one that says so.
[[nodiscard]] bool is_passing(const Answered& answer);
// Not allowed (any more), which somebody may put right while we go on.
[[nodiscard]] bool is_denied(const Answered& answer);
[[nodiscard]] std::string describe(const Answered& answer);

}  // namespace baton::cli::agent
