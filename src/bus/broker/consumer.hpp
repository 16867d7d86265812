// A link over which results, or what a scheduler says, come from a broker. A message is accepted when what it says is durable. One that can
// never be taken is rejected with the reason, which makes it a dead letter where the broker has those; what the engine
// has no time for is kept, and said again.
#pragma once

#include "bus/broker/connection_to_broker.hpp"
#include "bus/inlet.hpp"

namespace baton::bus {

[[nodiscard]] std::shared_ptr<Link> make_consumer(ConnectionToBroker& connection, pn_link_t* link, Inlet what);

}  // namespace baton::bus
