// Where a broker is, and who baton is there: an AMQP URL, a connection string of Azure Service Bus, or a namespace of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bus/broker/identity.hpp"

namespace baton::bus {

struct BrokerAddress {
  std::string host;
  std::uint16_t port = 0;
  bool is_secure = false;  // TLS
  // Of a URL: for SASL PLAIN; without a user it is ANONYMOUS.
  std::string user, password;
  std::string virtual_host;  // of RabbitMQ; empty: its default
  // Of a connection string: what signs the tokens that are put to $cbs. Empty: none are signed.
  std::string key_name, key;
  // Of a namespace without a key: whose tokens are put there.
  std::optional<Identity> identity;
  bool has_port = false;      // it was said; else it goes without saying
  bool is_websocket = false;  // instead of TCP

  void use_websocket();
  [[nodiscard]] Result<Url> websocket_url() const;
  [[nodiscard]] bool has_own_tls() const { return is_secure && !is_websocket; }  // proton's, not that of the websocket
  [[nodiscard]] std::string shown() const;  // without secrets
};

// amqp://[USER:PASSWORD@]HOST[:PORT][/VIRTUAL-HOST], amqps://… or Endpoint=sb://HOST[:PORT]/;SharedAccessKeyName=…;SharedAccessKey=…, without TLS if
// that says UseDevelopmentEmulator=true. Errors hold nothing of the text.
[[nodiscard]] Result<BrokerAddress> parse_broker_address(std::string_view text);
// SITE.servicebus.windows.net[:PORT], also as sb://…/; always with TLS.
[[nodiscard]] Result<BrokerAddress> parse_namespace(std::string_view text);

}  // namespace baton::bus
