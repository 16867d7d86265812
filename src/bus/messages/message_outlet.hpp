// A link over which a client receives the messages of a queue or a subscription, or its dead letters. Their locks are the
// engine's (lock_token.hpp), and settled there:
//   accepted                       complete
//   rejected                       dead-letter, for the reason that is said
//   modified                       abandon, with changes of its properties
//   modified, undeliverable here   defer
//   released                       given back unseen: it does not count as a delivery
// The answer is the same outcome, settled, after the commit.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

[[nodiscard]] std::shared_ptr<Link> make_message_outlet(Client& client, pn_link_t* link, EntityKey entity, std::int64_t entity_id,
                                                        message::Lane lane);

// What becomes of a message that is dead-lettered; at most as long as Service Bus takes it.
[[nodiscard]] std::string clean_reason(std::string_view text);

}  // namespace baton::bus
