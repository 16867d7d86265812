// An IP address as bytes, without Asio: what the egress policy judges.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace baton {

struct IpAddress {
  bool v4 = false;
  std::array<std::uint8_t, 16> bytes{};  // of an IPv4 address the first four

  // Four decimal numbers, or IPv6 without brackets and without a zone.
  [[nodiscard]] static std::optional<IpAddress> parse(const std::string& text);
  [[nodiscard]] std::string text() const;

  // An IPv4 address that is written as an IPv6 one (::ffff:1.2.3.4) is the IPv4 address: the kernel connects
  // to that.
  [[nodiscard]] IpAddress plain() const;
  // The IPv4 address that a translator or a tunnel would send the packets to: 6to4, Teredo, NAT64, ISATAP, SIIT, and
  // the old "compatible" form.
  [[nodiscard]] std::optional<IpAddress> embedded() const;

  bool operator==(const IpAddress&) const = default;
};

}  // namespace baton
