// Somebody who makes HTTP requests for service calls. A request is made once: whatever happens to it, it is
// not sent again, and the outcome says whether a byte of it may have left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"

namespace baton {

struct OutgoingRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  Duration timeout =
      std::chrono::seconds{30};  // of the whole, from when it is sent to when the answer is read
  int redirects_max = 0;         // followed; 0: a redirect is an answer like another
};

enum class OutgoingKind {
  answered,
  http_error,
  timeout,
  network_error,
  tls_error,
  egress_denied,
  invalid_request,
  stopped
};

struct OutgoingResult {
  OutgoingKind kind{};         // answered: 2xx; http_error: any other status
  std::string message;         // what went wrong, for people; nothing secret
  bool may_have_left = false;  // a byte of the request may have reached the server
  int status = 0;              // of the answer; 0: there was none
  std::vector<std::pair<std::string, std::string>> headers;  // sensitive ones redacted
  std::string snippet;             // of the answer's body, at most 1 KiB, valid UTF-8
  std::uint64_t body_bytes = 0;    // that were read of it
  bool truncated = false;          // there was more than the snippet, or than we cared to read
  std::string address;             // that was connected to
  std::string redirected_to;       // the last URL, if redirects were followed; nothing secret
  Duration first_byte{}, total{};  // since it was sent
};

constexpr Duration outgoing_timeout_max = std::chrono::hours{24};

// Where a request goes, as far as limits are concerned: scheme, host and port, in lower case.
[[nodiscard]] Result<std::string> origin_of(const std::string& url);

// Whether it is one that can be sent: method, URL, headers, timeout. Pure, and what send() asks first;
// whoever takes requests in asks it too, so that a wrong one is refused at once.
[[nodiscard]] Result<> check(const OutgoingRequest& request);

// What everybody may read of a request is without its secrets: of headers and of parameters of a URL whose
// names sound like one the values are left out.
constexpr std::string_view redacted = "[redacted]";
[[nodiscard]] bool is_sensitive(std::string_view name);
[[nodiscard]] std::string without_secrets(std::string_view url);

class Caller {
 public:
  virtual ~Caller() = default;

  // `done` is called once, on a thread of the caller's, and must not block. How many are under way at once is
  // for whoever sends to decide. Those for whom requests are made share neither connections nor a queue of
  // names to be looked up.
  virtual void send(const std::string& for_whom, const std::string& origin, OutgoingRequest request,
                    std::function<void(OutgoingResult)> done) = 0;
  // Ends what is under way, and returns when everybody has heard of it. Afterwards a send is answered at
  // once, on the thread that sends. Not from `done`.
  virtual void stop() = 0;
};

}  // namespace baton
