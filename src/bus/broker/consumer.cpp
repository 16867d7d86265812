#include "bus/broker/consumer.hpp"

#include <spdlog/spdlog.h>

#include "base/json.hpp"
#include "bus/messages/message_encoding.hpp"
#include "bus/transfer.hpp"

namespace baton::bus {
namespace {

constexpr int consumer_credit = 200;
constexpr std::size_t description_max = 4'000;  // of a dead letter
constexpr std::size_t id_shown_max = 200;

class ConsumerLink final : public Link, public std::enable_shared_from_this<ConsumerLink> {
 public:
  ConsumerLink(ConnectionToBroker& connection, pn_link_t* link, Inlet what)
      : connection_(connection), services_(connection.services()), link_(link), what_(what) {
    pn_link_flow(link_, consumer_credit);
  }

  void on_delivery(pn_delivery_t* delivery) override {
    auto transfer = take_transfer(link_, delivery, services_.options.message_bytes_max, [&](const Condition& why) { tell_rejected(delivery, why, {}); });
    if (!transfer) return;
    const std::uint64_t number = ++last_;
    open_[number] = {.delivery = delivery, .transfer = *std::move(transfer), .undecided = 0, .wrong = std::nullopt, .try_later = false};
    if (connection_.is_leaving()) later_.push_back(number);
    else decide(number);
  }

  [[nodiscard]] bool is_idle() const override { return open_.size() == later_.size(); }  // the engine has answered

  // Others get at once what was not decided. Not before: it might come back over this link.
  void on_goodbye() override {
    for (const std::uint64_t number : std::exchange(later_, {})) finish(open_.extract(number).mapped().delivery, PN_RELEASED);
  }

  // What the engine had no time for is said again, here: given back it would use up its deliveries there.
  void on_tick() override {
    if (connection_.is_leaving()) return;
    for (const std::uint64_t number : std::exchange(later_, {})) decide(number);
  }

 private:
  struct Open {
    pn_delivery_t* delivery = nullptr;
    std::string transfer;
    std::size_t undecided = 0;
    std::optional<Condition> wrong;
    bool try_later = false;
  };

  void decide(std::uint64_t number) {
    Open& one = open_.at(number);
    auto commands = read(one.transfer);
    if (!commands) {
      one.wrong = std::move(commands.error());
      return conclude(number);
    }
    one.undecided = commands->size();
    one.try_later = false;
    for (Command& command : *commands)
      connection_.submit(std::move(command), weak_from_this(), [this, number](const Reply& reply) { on_reply(number, reply); });
  }

  std::expected<std::vector<Command>, Condition> read(std::string_view transfer) {
    const auto messages = read_messages(transfer);
    if (!messages) return std::unexpected(Condition{"amqp:decode-error", messages.error().message});
    if (messages->size() > batch_max) return std::unexpected(Condition{"amqp:link:message-size-exceeded", "a batch has at most 4,096 messages here"});
    std::vector<Command> commands;
    for (const Received& message : *messages) {
      auto command = command_of(message, what_, Tenant{"default"}, services_.clock.now());
      if (!command) return std::unexpected(std::move(command.error()));
      commands.push_back(*std::move(command));
    }
    return commands;
  }

  void on_reply(std::uint64_t number, const Reply& reply) {
    Open& one = open_.at(number);
    const auto* refused = std::get_if<Refused>(&reply);
    if (refused && may_pass(*refused)) one.try_later = true;
    else if (refused && refused->refusal != Refusal::stale_result && !one.wrong) one.wrong = condition_of(*refused);
    if (--one.undecided == 0) conclude(number);
  }

  void conclude(std::uint64_t number) {
    if (open_.at(number).try_later) return later_.push_back(number);
    const Open one = std::move(open_.at(number));
    open_.erase(number);
    if (!one.wrong) {
      services_.consumed.add();
      return finish(one.delivery, PN_ACCEPTED);
    }
    tell_rejected(one.delivery, {one.wrong->name, clean_text(one.wrong->description, description_max)}, id_of(one.transfer));
    finish(one.delivery, 0);
  }

  // Of the first of a batch.
  static std::string id_of(std::string_view transfer) {
    const auto messages = split_transfer(transfer);
    const auto id = messages && !messages->empty() ? field(messages->front(), Property::message_id) : std::nullopt;
    return id ? clean_text(text_of_id(*id).value_or(""), id_shown_max) : "";
  }

  void tell_rejected(pn_delivery_t* delivery, const Condition& why, std::string message_id) {
    services_.rejected.add();
    const std::string source(text_of(pn_terminus_get_address(pn_link_source(link_))));
    spdlog::warn("a message from {} is rejected: {}", source, why.description);
    services_.state.rejected({.at = services_.clock.now(),
                              .source = source,
                              .message_id = std::move(message_id),
                              .by_broker = false,
                              .reason = why.name,
                              .description = why.description});
    dead_letter(delivery, why);
  }

  // As Service Bus wants it said.
  void dead_letter(pn_delivery_t* delivery, const Condition& why) {
    reject(delivery, {"com.microsoft:dead-letter", why.description});
    pn_data_t* info = pn_condition_info(pn_disposition_condition(pn_delivery_local(delivery)));
    pn_data_clear(info);
    begin_map(info);
    put_symbol(info, "DeadLetterReason");
    pn_data_put_string(info, bytes_of(why.name));
    put_symbol(info, "DeadLetterErrorDescription");
    pn_data_put_string(info, bytes_of(why.description));
    pn_data_exit(info);
  }

  void finish(pn_delivery_t* delivery, std::uint64_t outcome) {
    if (outcome != 0) pn_delivery_update(delivery, outcome);
    pn_delivery_settle(delivery);
    pn_link_flow(link_, 1);
  }

  ConnectionToBroker& connection_;
  BrokerServices& services_;
  pn_link_t* const link_;
  const Inlet what_;
  std::map<std::uint64_t, Open> open_;  // not by delivery: proton uses those again
  std::vector<std::uint64_t> later_;    // of those, what the engine is not asked about at the moment
  std::uint64_t last_ = 0;
};

}  // namespace

std::shared_ptr<Link> make_consumer(ConnectionToBroker& connection, pn_link_t* link, Inlet what) {
  return std::make_shared<ConsumerLink>(connection, link, what);
}

}  // namespace baton::bus
