#include "bus/inlet.hpp"

#include "bus/messages/message_encoding.hpp"
#include "bus/own_topics.hpp"
#include "core/runbook/machine/messages.hpp"
#include "ports/task_messages.hpp"

namespace baton::bus {

std::expected<Command, Condition> command_of(const Received& message, Inlet what, const std::optional<Tenant>& tenant, Time now) {
  if (message.scheduled_for && *message.scheduled_for > now)
    return std::unexpected(Condition{"amqp:not-implemented", "messages of this topic cannot be scheduled: baton has timers of its own"});
  const auto wrong = [](const std::string& why) { return std::unexpected(Condition{"amqp:decode-error", why}); };
  if (what == Inlet::events) {
    auto event = runbook::parse_message(message.body);
    if (!event) return wrong(event.error());
    return RunbookEvent{*std::move(event)};
  }
  auto result = parse_any_result(message.body);
  if (!result) return wrong(result.error());
  result->tenant = tenant;
  return *std::move(result);
}

namespace {

constexpr int inlet_credit = 200;

class InletLink final : public Link, public std::enable_shared_from_this<InletLink> {
 public:
  InletLink(Client& client, pn_link_t* link, Inlet what) : client_(client), link_(link), what_(what), principal_(client.principal()) {
    pn_link_set_max_message_size(link_, bytes_max());
    pn_link_flow(link_, inlet_credit);
  }

  void on_delivery(pn_delivery_t* delivery) override {
    const auto transfer = take_transfer(link_, delivery, bytes_max());
    if (!transfer) return;
    auto commands = read(*transfer);
    if (!commands) return settle(delivery, std::move(commands.error()));
    if (pn_delivery_settled(delivery)) {  // nobody wants to hear of it
      for (Command& command : *commands) client_.services().inbox.submit(std::move(command), std::make_shared<Nobody>());
      return finish(delivery);
    }
    const std::uint64_t number = ++last_;
    open_[number] = {.delivery = delivery, .undecided = commands->size(), .wrong = std::nullopt};
    for (Command& command : *commands)
      client_.submit(std::move(command), weak_from_this(), [this, number](const Reply& reply) { on_reply(number, reply); });
  }

 private:
  struct Open {  // a transfer whose messages are being decided
    pn_delivery_t* delivery = nullptr;
    std::size_t undecided = 0;
    std::optional<Condition> wrong;
  };

  [[nodiscard]] std::size_t bytes_max() const { return client_.services().options.message_bytes_max; }

  // What a transfer says at once, and if there is something for the topic's subscriptions, that behind it.
  std::expected<std::vector<Command>, Condition> read(std::string_view transfer) {
    const auto messages = split_transfer(transfer);
    if (!messages) return std::unexpected(Condition{"amqp:decode-error", messages.error()});
    if (messages->size() > batch_max)
      return std::unexpected(Condition{"amqp:link:message-size-exceeded", "a batch has at most 4,096 messages here"});
    client_.services().received.add(messages->size());
    std::vector<Command> commands;
    std::vector<NewMessage> for_topic;
    for (const Sections& message : *messages)
      if (auto wrong = take(message, commands, for_topic)) return std::unexpected(*std::move(wrong));
    if (!for_topic.empty()) {
      SendMessages copies{.to = *topic(), .transfers = {}};
      copies.transfers.push_back(std::move(for_topic));
      commands.emplace_back(std::move(copies));
    }
    return commands;
  }

  // A message whose time has not come waits in the topic; baton takes it from there (own_topics.hpp).
  std::optional<Condition> take(const Sections& sections, std::vector<Command>& commands, std::vector<NewMessage>& for_topic) {
    const Time now = client_.services().clock.now();
    Received said = received(sections);
    const bool is_for_later = topic() && said.scheduled_for && *said.scheduled_for > now;
    if (is_for_later) said.scheduled_for.reset();
    auto command = command_of(said, what_, principal_.tenant, now);
    if (!command) return std::move(command.error());
    if (!is_for_later) commands.push_back(*std::move(command));
    const bool is_copied = topic() && client_.services().own_topics->has_other_subscriptions(what_);
    if (!is_for_later && !is_copied) return std::nullopt;
    auto message = read_message(sections, {.has_rules = true, .new_id = [this] { return client_.services().new_id(); }});
    if (!message) return std::move(message.error());
    if (!is_for_later) message->annotations = marked_as_taken(message->annotations);
    for_topic.push_back(*std::move(message));
    return std::nullopt;
  }

  // Other tenants have none.
  [[nodiscard]] const EntityKey* topic() const {
    return principal_.own().value == "default" ? client_.services().own_topics->topic(what_) : nullptr;
  }

  void on_reply(std::uint64_t number, const Reply& reply) {
    Open& one = open_.at(number);
    const auto* refused = std::get_if<Refused>(&reply);
    const auto* sent = std::get_if<SentReply>(&reply);
    if (sent && !sent->transfers.empty() && !sent->transfers.front()) refused = &sent->transfers.front().error();
    const bool changes_nothing = refused && refused->refusal == Refusal::stale_result;
    if (refused && !changes_nothing && !one.wrong) one.wrong = condition_of(*refused);
    if (--one.undecided > 0) return;
    const Open done = std::move(one);
    open_.erase(number);
    settle(done.delivery, done.wrong);
  }

  void settle(pn_delivery_t* delivery, const std::optional<Condition>& wrong) {
    if (wrong) reject(delivery, *wrong);
    else pn_delivery_update(delivery, PN_ACCEPTED);
    finish(delivery);
  }

  void finish(pn_delivery_t* delivery) {
    pn_delivery_settle(delivery);
    pn_link_flow(link_, 1);
  }

  Client& client_;
  pn_link_t* const link_;
  const Inlet what_;
  const Principal principal_;  // as it was when the link was attached
  std::map<std::uint64_t, Open> open_;  // not by delivery: proton uses those again
  std::uint64_t last_ = 0;
};

}  // namespace

std::shared_ptr<Link> make_inlet(Client& client, pn_link_t* link, Inlet what) {
  return std::make_shared<InletLink>(client, link, what);
}

}  // namespace baton::bus
