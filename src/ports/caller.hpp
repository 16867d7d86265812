// Somebody who makes HTTP requests for service calls. A request is made once: whatever happens to it, it is not sent
// again, and the outcome says whether a byte of it may have left.
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
  Duration timeout = std::chrono::seconds{30};  // of the whole, from when it is sent to when the answer is read
  int redirects_max = 0;                        // followed; 0: a redirect is an answer like another
};

struct OutgoingResult {
  enum class Kind { answered, http_error, timeout, network_error, tls_error, egress_denied, invalid_request };
  Kind kind{};                 // answered: 2xx; http_error: any other status
  std::string message;         // what went wrong, for people; nothing secret
  bool may_have_left = false;  // a byte of the request may have reached the server
  int status = 0;              // of the answer; 0: there was none
  std::vector<std::pair<std::string, std::string>> headers;  // sensitive ones redacted
  std::string snippet;         // of the answer's body, at most 1 KiB, valid UTF-8
  std::uint64_t body_bytes = 0;  // that were read of it
  bool truncated = false;      // there was more than the snippet, or than we cared to read
  std::string address;         // that was connected to
  Duration first_byte{}, total{};  // since it was sent
};

// Where a request goes, as far as limits are concerned: scheme, host and port, in lower case.
[[nodiscard]] Result<std::string> origin_of(const std::string& url);

// Whether it is one that can be sent: method, URL, headers, timeout. Pure, and what send() asks first; whoever takes
// requests in asks it too, so that a wrong one is refused at once.
[[nodiscard]] Result<> check(const OutgoingRequest& request);

class Caller {
 public:
  virtual ~Caller() = default;

  // Takes one of the places that this origin and all together have; false: none is free now. Thread-safe.
  [[nodiscard]] virtual bool take_place(const std::string& origin) = 0;
  virtual void give_place_back(const std::string& origin) = 0;

  // With a place taken, which is free again before `done` is called. `done` is called once, on a thread of the
  // caller's, and must not block.
  virtual void send(const std::string& origin, OutgoingRequest request, std::function<void(OutgoingResult)> done) = 0;
};

}  // namespace baton
