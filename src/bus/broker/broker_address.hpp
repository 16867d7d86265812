// Where a broker is, and who baton is there: an AMQP URL, or a connection string of Azure Service Bus.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace baton::bus {

struct BrokerAddress {
  std::string host;
  std::uint16_t port = 0;
  bool is_secure = false;  // TLS
  // Of a URL: for SASL PLAIN; without a user it is ANONYMOUS.
  std::string user, password;
  std::string virtual_host;  // of RabbitMQ; empty: its default
  // Of a connection string: what signs the tokens that are put to $cbs. Empty: none are.
  std::string key_name, key;

  [[nodiscard]] bool signs() const { return !key_name.empty(); }
  [[nodiscard]] std::string shown() const;  // without secrets
};

// amqp://[USER:PASSWORD@]HOST[:PORT][/VIRTUAL-HOST], amqps://… or Endpoint=sb://HOST[:PORT]/;SharedAccessKeyName=…;SharedAccessKey=…, without TLS if
// that says UseDevelopmentEmulator=true. Errors hold nothing of the text.
[[nodiscard]] Result<BrokerAddress> parse_broker_address(std::string_view text);

}  // namespace baton::bus
