// The management API of Azure Service Bus, as ServiceBusAdministrationClient speaks it: Atom and XML over HTTP, at an address
// of its own, because names of queues are its paths. What it does are the commands of ports/bus_commands.hpp.
//
// Clients sign requests with a shared access key, or send a bearer token as for the other API.
#pragma once

#include "http/wire/api.hpp"

namespace baton::http {

[[nodiscard]] const Api& admin_api();

}  // namespace baton::http
