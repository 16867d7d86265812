// The parts of an http or https URL, read strictly: what two readers could understand differently is refused,
// because one of them checks where a request goes and the other one connects. Pure. Errors hold nothing of
// the URL, which may hold a secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace baton {

struct Url {
  bool secure = false;
  std::string host;  // in lower case; an IPv6 address without its brackets; no dot at the end
  enum class HostKind { name, ipv4, ipv6 } host_kind{};
  std::uint16_t port = 0;
  std::string target;  // path and query, as a request line has them; the fragment stays at home

  [[nodiscard]] std::string authority()
      const;                                 // for the Host header: without a port that goes without saying
  [[nodiscard]] std::string origin() const;  // scheme, host and port, always with the port
};

[[nodiscard]] Result<Url> parse_url(std::string_view text);

[[nodiscard]] std::string percent_encode(std::string_view text);  // all but unreserved characters
// None: an escape is malformed.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank = false);

// Where a Location leads to that came with the answer from `base`.
[[nodiscard]] Result<Url> resolve_url(const Url& base, std::string_view reference);

}  // namespace baton
