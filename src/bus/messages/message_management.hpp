// $management of a queue, a topic, a subscription or its dead letters: what the SDKs do with messages other than sending and
// receiving them over links, and with rules.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

// What it is the management of.
struct ManagedEntity {
  EntityKey key;
  std::int64_t entity_id = 0;
  message::EntityType type{};
  bool is_dead_letters = false;
  bool is_own = false;                  // baton itself receives from it
  std::optional<Condition> no_sending;  // why this client may not send to it, nor schedule or cancel
};

[[nodiscard]] std::shared_ptr<Link> make_message_management(Client& client, pn_link_t* link, ManagedEntity entity);

}  // namespace baton::bus
