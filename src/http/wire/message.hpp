// One request and its answer, free of the library that reads and writes them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/wire/text.hpp"
#include "ports/commands.hpp"
#include "ports/reads.hpp"

namespace baton::http {

// The headers that some handler looks at; the rest is forgotten as soon as it is read.
struct Request {
  std::string method;
  std::string path;   // as sent, without the query
  std::string query;  // as sent
  std::string body;
  std::string request_id;
  std::optional<std::string> authorization;
  std::optional<std::string> tenant_header;
  std::optional<std::string> idempotency_key;
  std::optional<std::string> traceparent;
  std::optional<std::string> if_match;
  std::optional<std::string> last_event_id;
  std::string accept;
  std::string content_type;
  std::string origin;
  bool from_browser = false;  // it says where the page is that made it
  std::string host;

  // Known after routing and authentication.
  std::vector<std::string> captures;      // of the path pattern, decoded, in order
  Query arguments;                        // of the query, decoded
  workflow::Tenant tenant;                // whom the request acts for
  std::optional<workflow::Tenant> scope;  // none: the caller named no tenant and is bound to none
  Role role = Role::viewer;
  std::chrono::steady_clock::time_point
      allowed_until;  // then it is to be looked up again whether the token is good

  // The last one wins, as in JSON.
  [[nodiscard]] const std::string* argument(std::string_view key) const {
    for (auto it = arguments.rbegin(); it != arguments.rend(); ++it) {
      if (it->first == key) return &it->second;
    }
    return nullptr;
  }
};

class BodyStream;  // context.hpp

struct Response {
  int status = 200;
  std::string_view content_type = "application/json";  // always a literal
  std::string body;
  std::vector<std::pair<std::string_view, std::string>> headers;
  std::vector<TaskLease> handed_out;  // given back when the answer cannot be written
  std::shared_ptr<BodyStream> stream;  // follows the header instead of the body
};

[[nodiscard]] inline Response json_response(int status, std::string body) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

}  // namespace baton::http
