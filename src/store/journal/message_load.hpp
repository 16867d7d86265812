// Loads of messages from tables that are behind by two backlogs: what the tables answer, brought up to date. It does not matter
// whether the tables show the older backlog already.
#pragma once

#include "store/journal/message_backlog.hpp"
#include "store/journal/tables.hpp"

namespace baton::store {

[[nodiscard]] Result<message::Loaded> load_messages(Tables& tables, const MessageBacklog& older, const MessageBacklog& newer,
                                                    const message::LoadRequest& asked);

[[nodiscard]] Result<std::vector<WaitingTask>> waiting_messages(Tables& tables, const MessageBacklog& older, const MessageBacklog& newer,
                                                                const QueueKey& queue, std::size_t limit, Time now);

}  // namespace baton::store
