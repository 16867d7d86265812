// How a client says who it is before AMQP begins. Those of Service Bus say nothing here (MSSBCBS, ANONYMOUS), and show a
// token for each entity later (cbs.cpp); others give a user and a password (PLAIN).
#pragma once

#include <proton/transport.h>

#include <optional>
#include <string>

namespace baton::bus {

struct Sasl {
  std::optional<std::string> password;  // of PLAIN; what is behind it is looked up later
};

// The server's side. `sasl` must outlive the transport.
void use_sasl(pn_transport_t* transport, Sasl& sasl);

}  // namespace baton::bus
