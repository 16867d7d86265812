// A small blocking HTTP/1.1 client for the command line: one connection, kept alive between requests. Not
// thread-safe, but for interrupt().
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace baton::http {

struct ClientResponse {
  int status = 0;
  std::string content_type;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;

  [[nodiscard]] const std::string* header(std::string_view name) const;  // any case
};

class Client {
 public:
  // base_url: http://host:port or https://host, IPv6 in brackets, a path in front of the API allowed. A wrong
  // one is told by request(). called: how errors name the server; none: by its URL, as a baton.
  explicit Client(std::string base_url, std::optional<std::string> token = {},
                  std::optional<std::string> tenant = {}, std::optional<std::string> called = {});
  ~Client();
  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  using Headers = std::vector<std::pair<std::string, std::string>>;

  // Any status is an answer; errors are about not having got one. Only GET is sent again when a kept
  // connection turns out to be dead.
  [[nodiscard]] Result<ClientResponse> request(std::string_view method, std::string_view target,
                                               std::string body = {},
                                               std::string_view content_type = "application/json",
                                               const Headers& headers = {},
                                               std::chrono::milliseconds timeout = std::chrono::seconds{30});

  // Whether the last request found a server: without an answer it may or may not have been received.
  [[nodiscard]] bool was_connected() const;

  // From any thread: closes the connection, so that the request that is under way ends with an error, and so
  // does every later one. The object must not be moved meanwhile.
  void interrupt();

 private:
  friend class EventStream;
  struct State;
  std::unique_ptr<State> state_;
};

struct ServerEvent {
  std::string event = "message";
  std::string data;
};

// Server-sent events over a connection of their own. Blocking, for one thread.
class EventStream {
 public:
  explicit EventStream(Client client);
  ~EventStream();

  // Asks for events, after the last one that was seen if there was one. Any status is an answer; only after 200 do
  // events follow.
  [[nodiscard]] Result<ClientResponse> open(std::string_view target);
  // None: nothing within that time. An error: the connection has ended, and open() goes on after the last event.
  [[nodiscard]] Result<std::optional<ServerEvent>> next(std::chrono::milliseconds within);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace baton::http
