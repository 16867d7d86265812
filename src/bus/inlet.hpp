// A link over which a client sends to baton: what schedulers say, or what workers answer. A message is accepted when what it
// says is durable. One that says what is known already, or comes too late to change anything, is accepted too: a topic
// delivers at least once.
#pragma once

#include <expected>

#include "bus/client.hpp"

namespace baton::bus {

enum class Inlet { events, results };

inline constexpr std::size_t batch_max = 4'096;  // messages; they must fit the engine's inbox together

// What a message says, on behalf of a tenant (none: of all of them).
[[nodiscard]] std::expected<Command, Condition> command_of(const Received& message, Inlet what, const std::optional<Tenant>& tenant, Time now);

[[nodiscard]] std::shared_ptr<Link> make_inlet(Client& client, pn_link_t* link, Inlet what);

}  // namespace baton::bus
