#include "caller/egress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace baton::caller {
namespace {

std::unexpected<Error> wrong(std::string_view rule) {
  return fail(
      Code::invalid,
      fmt::format("'{}' is not a network such as 10.0.0.0/8, an address, a host name or *.name", rule));
}

Result<Network> parse_network(std::string_view rule) {
  const auto slash = rule.find('/');
  auto text = rule.substr(0, slash);
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  const auto address = IpAddress::parse(std::string(text));
  if (!address) return wrong(rule);
  // What is written as IPv4 in IPv6 would never match: addresses are compared in their plain form.
  if (address->plain() != *address) return wrong(rule);
  const int bits_max = address->v4 ? 32 : 128;
  Network network{*address, bits_max};
  if (slash == std::string_view::npos) return network;
  const auto bits = rule.substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
  if (error != std::errc{} || end != bits.data() + bits.size() || network.bits < 0 || network.bits > bits_max)
    return wrong(rule);
  return network;
}

Result<std::string> parse_host(std::string_view rule) {
  std::string host(rule.starts_with("*.") ? rule.substr(1) : rule);
  for (auto& c : host)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  if (host.ends_with('.')) host.pop_back();
  const bool named = !host.empty() && host != "." && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  });
  const auto label = host.substr(host.rfind('.') + 1);
  // 127.1 would be a name that no URL can have: a slip that must not look like a rule.
  const bool number = std::ranges::all_of(label, [](char c) { return c >= '0' && c <= '9'; });
  if (!named || number || (host.starts_with('.') && !rule.starts_with('*'))) return wrong(rule);
  return host;
}

std::vector<Network> networks_of(std::initializer_list<const char*> texts) {
  std::vector<Network> made;
  for (const char* text : texts) {
    const auto network = parse_network(text);
    ENSURE(network.has_value());
    made.push_back(*network);
  }
  return made;
}

// The machine itself, and groups of machines.
const std::vector<Network>& own_networks() {
  static const auto networks =
      networks_of({"0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "255.255.255.255", "::", "::1", "ff00::/8"});
  return networks;
}

// Its neighbourhood, where clouds keep the credentials of a machine, and what hides an address where we
// cannot see it.
const std::vector<Network>& metadata_networks() {
  static const auto networks =
      networks_of({"169.254.0.0/16", "fe80::/10", "fec0::/10", "64:ff9b:1::/48", "fd00:ec2::/32",
                   "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"});
  return networks;
}

bool any_contains(const std::vector<Network>& networks, const IpAddress& address) {
  return std::ranges::any_of(networks, [&](const Network& network) { return network.contains(address); });
}

}  // namespace

bool Network::contains(const IpAddress& address) const {
  if (address.v4 != first.v4) return false;
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(first.bytes.begin(), first.bytes.begin() + whole, address.bytes.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || ((first.bytes[whole] ^ address.bytes[whole]) >> (8 - rest)) == 0;
}

Result<> Egress::Rules::add(std::string_view texts) {
  while (!texts.empty()) {
    const auto end = std::min(texts.find_first_of(", \t\n"), texts.size());
    const auto rule = texts.substr(0, end);
    texts.remove_prefix(std::min(end + 1, texts.size()));
    if (rule.empty()) continue;
    if (rule == "all") {
      all = true;
      continue;
    }
    if (auto network = parse_network(rule)) {
      networks.push_back(*network);
      continue;
    }
    TRY_ASSIGN(auto host, parse_host(rule));
    hosts.push_back(std::move(host));
  }
  return {};
}

bool Egress::Rules::matches(std::string_view host) const {
  return std::ranges::any_of(hosts, [&](const std::string& rule) {
    return rule.starts_with('.') ? host.ends_with(rule) : host == rule;
  });
}

bool Egress::Rules::matches(const IpAddress& address) const { return any_contains(networks, address); }

Result<Egress> Egress::parse(std::span<const std::string> allow, std::span<const std::string> deny) {
  Egress made;
  const auto add = [](Rules& rules, std::span<const std::string> all, std::string_view setting) -> Result<> {
    for (const auto& texts : all)
      if (const auto added = rules.add(texts); !added)
        return fail(Code::invalid, fmt::format("{}: {}", setting, added.error().message));
    return {};
  };
  TRY(add(made.allow_, allow, "egress_allow"));
  TRY(add(made.deny_, deny, "egress_deny"));
  if (made.allow_.all)
    return fail(Code::invalid, "'all' can be denied, not allowed: name what is to be allowed");
  return made;
}

bool Egress::allows(std::string_view host, const IpAddress& address) const {
  const auto plain = address.plain();
  const auto hidden = plain.embedded();
  if (deny_.matches(host) || deny_.matches(plain) || (hidden && deny_.matches(*hidden))) return false;
  if (allow_.matches(plain)) return true;
  const auto is_in = [&](const std::vector<Network>& networks) {
    return any_contains(networks, plain) || (hidden && any_contains(networks, *hidden));
  };
  // Whoever owns a name may let it lead anywhere: credentials of the machine are given by their address, or
  // not.
  if (is_in(metadata_networks()) || (is_in(own_networks()) && host != "localhost")) return false;
  return allow_.matches(host) || !(deny_.all || is_in(own_networks()));
}

}  // namespace baton::caller
