// Requests of commands that wait for something: they go on when a server that was restarted is back.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "cli/remote.hpp"

namespace baton::cli {

// --reconnect SPAN
void add_reconnect_option(Parser command, std::string& span);

class Reconnecting {
 public:
  // Who hears, once for each time the server goes away, what is wrong, and with an empty text that it is back.
  using Tell = std::function<void(const std::string& trouble)>;

  // span: how long a server may be away; empty: 5 minutes.
  Reconnecting(const RemoteOptions& options, const std::string& span, Tell tell = tell_on_stderr);

  // A server that was never there is no reason to wait: the first request is repeated only when its
  // connection broke. Later ones are, until the server answers; an error or an answer of 500 and more means
  // that it did not come back in time.
  [[nodiscard]] Result<Answer> get(const std::string& target);
  // The same; a repeated request must not do its work twice.
  [[nodiscard]] Result<Answer> post(const std::string& target, const std::string& body, const Headers& headers);

  [[nodiscard]] Remote& remote() { return remote_; }

  static void tell_on_stderr(const std::string& trouble);

  // After a failure to reach the server by other means: waits before the next try. False: it was away too long.
  [[nodiscard]] bool wait_after(const std::string& trouble);
  void reached();

 private:
  [[nodiscard]] Result<Answer> repeat(const std::function<Result<Answer>()>& ask);

  using Clock = std::chrono::steady_clock;
  Remote remote_;
  const std::chrono::milliseconds patience_;
  const Tell tell_;
  bool was_reached_ = false;
  std::optional<Clock::time_point> away_since_;
  std::chrono::milliseconds pause_{0};
};

// An idempotency key that nobody else has: with it a request can be repeated and does its work once.
[[nodiscard]] std::string new_key();

// A server that is restarted, or busy, comes back; a refusal stays one.
[[nodiscard]] bool may_pass(const Result<Answer>& answer);
// Its first line: what follows is advice for those who begin.
[[nodiscard]] std::string trouble_of(const Result<Answer>& answer);

}  // namespace baton::cli
