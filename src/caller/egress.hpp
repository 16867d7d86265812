// Where requests of tenants may go. Without rules everything may be called but the machine itself and its
// neighbourhood: loopback, link-local (so the metadata of clouds), multicast, broadcast and unspecified
// addresses, in IPv6 disguise too. Rules allow more or deny more; deny wins over allow, allow over the
// default.
//
// Immutable once made; safe to share between threads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/ip_address.hpp"

namespace baton::caller {

struct Network {
  IpAddress first;
  int bits = 0;
  [[nodiscard]] bool contains(const IpAddress& address) const;  // false for the other family
};

class Egress {
 public:
  Egress() = default;

  // A rule is a network (10.0.0.0/8), an address, a host name, or *.name for all names below it. Each text
  // may hold several, separated by commas or blanks. Names match the host of the URL, networks the address
  // connected to. To deny "all" leaves only what is allowed; other denials win over what is allowed.
  [[nodiscard]] static Result<Egress> parse(std::span<const std::string> allow,
                                            std::span<const std::string> deny);

  // Whether the name alone is a reason to refuse, so that it need not be looked up.
  [[nodiscard]] bool denies_host(std::string_view host) const { return deny_.matches(host); }
  // Whether a request for this host may be sent to this address. The host is in lower case.
  [[nodiscard]] bool allows(std::string_view host, const IpAddress& address) const;

 private:
  struct Rules {
    std::vector<Network> networks;
    std::vector<std::string> hosts;  // ".name" for those below it
    bool all = false;
    [[nodiscard]] Result<> add(std::string_view texts);
    [[nodiscard]] bool matches(std::string_view host) const;
    [[nodiscard]] bool matches(const IpAddress& address) const;
  };
  Rules allow_, deny_;
};

}  // namespace baton::caller
