// A link over which a client sends messages to a queue or a topic. A transfer is accepted when its messages are durable, and
// rejected with the reason otherwise; all that comes in together is handed to the engine together.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

[[nodiscard]] std::shared_ptr<Link> make_message_inlet(Client& client, pn_link_t* link, EntityKey entity, bool has_rules);

}  // namespace baton::bus
