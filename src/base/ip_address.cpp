#include "base/ip_address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <span>

namespace baton {
namespace {

IpAddress from_v4(std::span<const std::uint8_t, 4> bytes) {
  IpAddress made{.v4 = true};
  std::ranges::copy(bytes, made.bytes.begin());
  return made;
}

bool starts_with(const std::array<std::uint8_t, 16>& bytes, std::span<const std::uint8_t> prefix) {
  return std::ranges::equal(std::span(bytes).first(prefix.size()), prefix);
}

constexpr std::array<std::uint8_t, 12> mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::array<std::uint8_t, 12> compatible{};
constexpr std::array<std::uint8_t, 12> nat64{0, 0x64, 0xff, 0x9b};
constexpr std::array<std::uint8_t, 12> translated{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0};
constexpr std::array<std::uint8_t, 2> six_to_four{0x20, 0x02};
constexpr std::array<std::uint8_t, 4> teredo{0x20, 0x01, 0, 0};

}  // namespace

std::optional<IpAddress> IpAddress::parse(const std::string& text) {
  IpAddress made;
  if (::inet_pton(AF_INET, text.c_str(), made.bytes.data()) == 1) {
    made.v4 = true;
    return made;
  }
  if (::inet_pton(AF_INET6, text.c_str(), made.bytes.data()) == 1) return made;
  return std::nullopt;
}

std::string IpAddress::text() const {
  char buffer[INET6_ADDRSTRLEN];
  return ::inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data(), buffer, sizeof buffer);
}

IpAddress IpAddress::plain() const {
  if (v4 || !starts_with(bytes, mapped)) return *this;
  return from_v4(std::span(bytes).last<4>());
}

std::optional<IpAddress> IpAddress::embedded() const {
  if (v4) return std::nullopt;
  const auto last = std::span(bytes).last<4>();
  const bool isatap = (bytes[8] & ~2) == 0 && bytes[9] == 0 && bytes[10] == 0x5e && bytes[11] == 0xfe;
  if (starts_with(bytes, nat64) || starts_with(bytes, translated) || starts_with(bytes, compatible) || isatap)
    return from_v4(last);
  if (starts_with(bytes, six_to_four)) return from_v4(std::span(bytes).subspan<2, 4>());
  if (!starts_with(bytes, teredo)) return std::nullopt;
  auto hidden = from_v4(last);
  for (auto& byte : std::span(hidden.bytes).first(4)) byte = static_cast<std::uint8_t>(~byte);
  return hidden;
}

}  // namespace baton
