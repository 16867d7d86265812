#include "bus/messages/message_inlet.hpp"

#include "bus/inlet.hpp"
#include "bus/messages/message_encoding.hpp"

namespace baton::bus {
namespace {

constexpr int transfers_max = 1'000;               // that a client may send before the first is answered
constexpr std::size_t undecided_bytes_max = 4 << 20;  // handed in and not answered; what comes beyond waits in its session

// An entity refuses what it has room for only if it was disabled since the link was attached.
Condition condition_of_send(const Refused& refused) {
  if (refused.refusal == Refusal::not_possible) return {"com.microsoft:entity-disabled", refused.message};
  return condition_of(refused);
}

class MessageInlet final : public Link, public std::enable_shared_from_this<MessageInlet> {
 public:
  MessageInlet(Client& client, pn_link_t* link, EntityKey entity, bool has_rules)
      : client_(client),
        link_(link),
        entity_(std::move(entity)),
        reading_{.has_rules = has_rules, .new_id = [&client] { return client.services().new_id(); }} {
    pn_link_set_max_message_size(link_, bytes_max());
    pn_link_flow(link_, transfers_max);
  }

  void on_delivery(pn_delivery_t* delivery) override {
    if (undecided_bytes_ > undecided_bytes_max) return;  // it stays where it is
    const auto transfer = take_transfer(link_, delivery, bytes_max());
    if (!transfer) return;
    const bool is_settled = pn_delivery_settled(delivery);  // nobody wants to hear of it
    auto messages = read(*transfer);
    if (!messages) reject(delivery, messages.error());
    if (is_settled || !messages) pn_delivery_settle(delivery);
    if (!messages) return (void)pn_link_flow(link_, 1);
    if (batch_.transfers.empty()) client_.flush_later(weak_from_this());
    batch_.deliveries.push_back(is_settled ? nullptr : delivery);
    batch_.transfers.push_back(*std::move(messages));
    batch_.bytes += transfer->size();
    undecided_bytes_ += transfer->size();
  }

  void flush() override {
    if (batch_.transfers.empty()) return;
    Batch batch = std::exchange(batch_, {});
    SendMessages command{.to = entity_, .transfers = std::move(batch.transfers)};
    client_.submit(std::move(command), weak_from_this(),
                   [this, deliveries = std::move(batch.deliveries), bytes = batch.bytes](const Reply& reply) {
                     undecided_bytes_ -= bytes;
                     on_sent(deliveries, reply);
                     take_what_waits();
                   });
  }

  void on_end() override { flush(); }

 private:
  struct Batch {
    std::vector<pn_delivery_t*> deliveries;  // ours until we settle them; null: settled already
    std::vector<std::vector<NewMessage>> transfers;
    std::size_t bytes = 0;
  };

  [[nodiscard]] std::size_t bytes_max() const { return client_.services().options.message_bytes_max; }

  std::expected<std::vector<NewMessage>, Condition> read(std::string_view transfer) {
    const auto parts = split_transfer(transfer);
    if (!parts) return std::unexpected(Condition{"amqp:decode-error", parts.error()});
    if (parts->size() > batch_max) return std::unexpected(Condition{"amqp:link:message-size-exceeded", "a batch has at most 4,096 messages here"});
    client_.services().received.add(parts->size());
    std::vector<NewMessage> messages;
    messages.reserve(parts->size());
    for (const Sections& part : *parts) {
      auto message = read_message(part, reading_);
      if (!message) return std::unexpected(std::move(message.error()));
      messages.push_back(*std::move(message));
    }
    return messages;
  }

  void on_sent(const std::vector<pn_delivery_t*>& deliveries, const Reply& reply) {
    const auto* each = std::get_if<SentReply>(&reply);
    const auto* all = std::get_if<Refused>(&reply);
    for (std::size_t i = 0; i < deliveries.size(); ++i) {
      if (!deliveries[i]) continue;
      const Refused* refused = all ? all : each && i < each->transfers.size() && !each->transfers[i] ? &each->transfers[i].error() : nullptr;
      if (refused) reject(deliveries[i], condition_of_send(*refused));
      else pn_delivery_update(deliveries[i], PN_ACCEPTED);
      pn_delivery_settle(deliveries[i]);
    }
    pn_link_flow(link_, static_cast<int>(deliveries.size()));
  }

  void take_what_waits() {
    for (pn_delivery_t* next = pn_link_current(link_); next; next = pn_link_current(link_)) {
      on_delivery(next);
      if (pn_link_current(link_) == next) break;  // it is not whole, or there is no room
    }
    client_.count(pn_link_session(link_));
  }

  Client& client_;
  pn_link_t* const link_;
  const EntityKey entity_;
  const Reading reading_;
  Batch batch_;  // since the last flush
  std::size_t undecided_bytes_ = 0;
};

}  // namespace

std::shared_ptr<Link> make_message_inlet(Client& client, pn_link_t* link, EntityKey entity, bool has_rules) {
  return std::make_shared<MessageInlet>(client, link, std::move(entity), has_rules);
}

}  // namespace baton::bus
