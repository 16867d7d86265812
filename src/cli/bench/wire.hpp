// The bench's end of the wire: many kept-alive connections on one thread, and nothing but the HTTP that this
// server speaks. It shares two cores with the server it measures, so it looks for a status, a Content-Length
// and a body, and parses no more than that.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace baton::cli::bench {

using Steady = std::chrono::steady_clock;

// The whole text of a POST with a JSON body.
[[nodiscard]] std::string post(std::string_view target, std::string_view body);

class Wire {
 public:
  // connection is what open() answered; the body is valid only inside the call, which may send on.
  using Answer = std::function<Result<>(std::size_t connection, int status, std::string_view body)>;

  explicit Wire(std::string url);  // http://ADDRESS:PORT, as `baton serve` prints it
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  [[nodiscard]] Result<std::size_t> open();
  // One request at a time on each connection.
  [[nodiscard]] Result<> send(std::size_t connection, std::string_view request);
  // Hands over the answers that are there, or waits for the first of them. A lost connection and a signal are
  // errors.
  [[nodiscard]] Result<> wait(std::chrono::nanoseconds patience, const Answer& answer);

 private:
  struct Connection {
    int fd = -1;
    std::string in;  // an answer that came in pieces
  };
  [[nodiscard]] Result<> receive(std::size_t index, const Answer& answer);

  std::string url_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  std::vector<char> buffer_;
};

// After this SIGINT and SIGTERM make wait() fail with "interrupted", so that whoever owns processes and files
// can clean up.
void watch_signals();
[[nodiscard]] bool was_interrupted();

}  // namespace baton::cli::bench
