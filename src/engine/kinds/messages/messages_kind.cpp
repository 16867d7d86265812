#include "engine/kinds/messages/messages_kind.hpp"

#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

MessagesKind::MessagesKind(MessagesOptions options, metrics::Registry* metrics)
    : options_(std::move(options)),
      counts_{.sent = counter_in(metrics, "baton_messages_sent_total", "Messages that were sent to queues and topics."),
              .duplicates = counter_in(metrics, "baton_messages_duplicates_total", "Messages that were dropped as duplicates."),
              .handed_out = counter_in(metrics, "baton_messages_handed_out_total", "Messages that were given to receivers."),
              .completed = counter_in(metrics, "baton_messages_completed_total", "Messages that receivers completed, or received and deleted."),
              .redelivered = counter_in(metrics, "baton_messages_redelivered_total", "Messages that were given to a receiver again."),
              .dead_lettered = counter_in(metrics, "baton_messages_dead_lettered_total", "Messages that became dead letters."),
              .expired = counter_in(metrics, "baton_messages_expired_total", "Messages whose time to live was over.")},
      gauges_(metrics) {}

std::unique_ptr<Transaction> MessagesKind::begin(Turn turn) { return std::make_unique<MessageTransaction>(*this, turn); }

// Nobody listens to single queues of messages yet.
void MessagesKind::tell(const WriteSet&, Changes&) const {}

}  // namespace baton::engine
