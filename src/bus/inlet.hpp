// A link over which a client sends to baton: what schedulers say, or what workers answer. A message is accepted when what it
// says is durable. One that says what is known already, or comes too late to change anything, is accepted too: a topic
// delivers at least once.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

enum class Inlet { events, results };

[[nodiscard]] std::shared_ptr<Link> make_inlet(Client& client, pn_link_t* link, Inlet what);

}  // namespace baton::bus
