// A link over which jobs of one pool, or tasks of one queue, go to a broker. Baton polls for them as a worker does; the lease is the
// broker's until it has confirmed the message, and then whoever's that gets it there.
#pragma once

#include "bus/broker/connection_to_broker.hpp"

namespace baton::bus {

[[nodiscard]] std::shared_ptr<Link> make_publisher(ConnectionToBroker& connection, pn_link_t* link, std::string queue);

}  // namespace baton::bus
