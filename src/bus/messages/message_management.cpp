#include "bus/messages/message_management.hpp"

#include <algorithm>

#include "bus/inlet.hpp"
#include "bus/messages/lock_token.hpp"
#include "bus/messages/message_changes.hpp"
#include "bus/messages/message_encoding.hpp"
#include "bus/messages/message_outlet.hpp"
#include "bus/messages/rule_requests.hpp"

namespace baton::bus {
namespace {

constexpr std::int64_t peek_max = 1'000;

const Outcome ok{200, "OK"};
const Outcome malformed{400, "the body is not the map that this operation has", "com.microsoft:argument-error"};
const Outcome lock_is_lost{410, "The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.",
                           "com.microsoft:message-lock-lost"};

// What an entity refuses to do for who may do it: it is disabled.
Outcome outcome_here(const Refused& refused) {
  if (refused.refusal == Refusal::not_possible) return {403, refused.message, "com.microsoft:entity-disabled"};
  return outcome_of(refused);
}

Outcome wrong(std::string why) { return {400, std::move(why), "com.microsoft:argument-error"}; }

std::optional<std::int64_t> number_in(const wire::Item& map, const char* key) {
  const auto item = wire::find(map, key);
  return item ? wire::integer_of(*item) : std::nullopt;
}

std::string text_at(const wire::Item& map, const char* key) {
  const auto item = wire::find(map, key);
  return std::string(item ? wire::text_of(*item).value_or("") : "");
}

// None: there are none, or too many.
std::optional<std::vector<std::int64_t>> numbers_in(const wire::Item& body) {
  std::vector<std::int64_t> numbers;
  const auto listed = wire::find(body, "sequence-numbers");
  if (!listed) return std::nullopt;
  wire::for_each(*listed, [&](const wire::Item& item) {
    numbers.push_back(wire::integer_of(item).value_or(-1));
    return numbers.size() <= numbers_max;
  });
  if (numbers.empty() || numbers.size() > numbers_max) return std::nullopt;
  return numbers;
}

std::string body_with(const char* key, const std::function<void(wire::Writer&)>& write_value) {
  std::string body;
  wire::Writer writer(body);
  writer.map([&] { writer.text(key), write_value(writer); });
  return body;
}

std::string body_with_array(const char* key, std::uint8_t code, const std::vector<std::int64_t>& values) {
  return body_with(key, [&](wire::Writer& writer) {
    writer.array(code, [&] {
      for (const std::int64_t value : values) writer.element(value);
    });
  });
}

std::string messages_body(const std::vector<std::shared_ptr<const message::Message>>& messages, bool has_tokens) {
  return body_with("messages", [&](wire::Writer& writer) {
    writer.list([&] {
      for (const auto& one : messages)
        writer.map([&] {
          writer.text("message"), writer.binary(write_message(*one, has_tokens));
          if (!has_tokens) return;
          const LockToken token = swapped(token_of(lock_of(*one)));
          writer.text("lock-token"), writer.uuid({token.data(), token.size()});
        });
    });
  });
}

std::optional<Settlement::How> how_of_status(std::string_view status) {
  using enum Settlement::How;
  if (status == "completed") return complete;
  if (status == "abandoned") return abandon;
  if (status == "defered") return defer;  // as Service Bus spells it
  if (status == "suspended") return dead_letter;
  return std::nullopt;
}

class MessageManagement final : public RequestLink {
 public:
  MessageManagement(Client& client, pn_link_t* link, ManagedEntity entity)
      : RequestLink(client, link, answers_max, client.services().options.message_bytes_max + (64 << 10)),
        entity_(std::move(entity)),
        principal_(client.principal()) {}

 private:
  using RequestPtr = std::shared_ptr<Request>;
  using Operation = void (MessageManagement::*)(RequestPtr, const wire::Item&);
  struct Known {
    std::string_view name;
    Operation run;
    bool (*may)(Role);
    bool is_of_topics;  // too
  };

  static bool may_receive(Role role) { return allows(role, Permission::work); }
  static bool may_send(Role role) { return allows(role, Permission::work) || allows(role, Permission::submit); }
  static bool may_look(Role role) { return allows(role, Permission::work) || allows(role, Permission::read); }

  static const Known* find_operation(std::string_view name) {
    static constexpr std::array<Known, 6> known{{
        {"com.microsoft:renew-lock", &MessageManagement::renew, may_receive, false},
        {"com.microsoft:update-disposition", &MessageManagement::settle, may_receive, false},
        {"com.microsoft:receive-by-sequence-number", &MessageManagement::receive, may_receive, false},
        {"com.microsoft:peek-message", &MessageManagement::peek, may_look, true},
        {"com.microsoft:schedule-message", &MessageManagement::schedule, may_send, true},
        {"com.microsoft:cancel-scheduled-message", &MessageManagement::cancel, may_send, true},
    }};
    const auto found = std::ranges::find(known, name, &Known::name);
    return found == known.end() ? nullptr : found;
  }

  void on_request(RequestPtr request) override {
    const std::weak_ptr<RequestLink> weak = weak_from_this();
    if (entity_.type == message::EntityType::subscription &&
        take_rule_request(client_, principal_, entity_.key, *request, weak, [this, request](const Answer& said) { reply(*request, said); }))
      return;
    const std::string name = request->property("operation");
    const Known* operation = find_operation(name);
    if (!operation || (entity_.type == message::EntityType::topic && !operation->is_of_topics))
      return answer(*request, {501, "'" + name + "' cannot be done here", "amqp:not-implemented"});
    if (!operation->may(principal_.role))
      return answer(*request, {401, "the role of this key may not do that here", "amqp:unauthorized-access"});
    if (entity_.is_own && operation->run != &MessageManagement::peek)
      return answer(*request, {401, "baton itself receives from '" + entity_.key.path + "'", "amqp:not-allowed"});
    const bool is_sending = operation->run == &MessageManagement::schedule || operation->run == &MessageManagement::cancel;
    if (is_sending && entity_.no_sending) return answer(*request, {401, entity_.no_sending->description, entity_.no_sending->name});
    const auto body = body_of(*request);
    if (!body) return answer(*request, malformed);
    if (wire::find(*body, "session-id")) return answer(*request, {501, "there are no message sessions here", "amqp:not-implemented"});
    (this->*operation->run)(std::move(request), *body);
  }

  // Hands a command in. Its reply, if it is of that type, is turned into an answer.
  template <class Expected, class Make>
  void ask(Command command, RequestPtr request, Make make, std::shared_ptr<const void> held = {}) {
    client_.submit(std::move(command), weak_from_this(), [this, request = std::move(request), make = std::move(make), held = std::move(held)](const Reply& said) {
      if (const auto* refused = std::get_if<Refused>(&said)) return answer(*request, outcome_here(*refused));
      const auto* expected = std::get_if<Expected>(&said);
      if (!expected) return answer(*request, {500, "the engine gave another answer", "amqp:internal-error"});
      reply(*request, make(*expected));
    });
  }

  // ---- locks

  // Only of this queue, and as a client shows them.
  std::expected<std::vector<MessageLock>, Outcome> locks_in(const wire::Item& body) const {
    std::vector<MessageLock> locks;
    bool are_ours = true;
    const auto tokens = wire::find(body, "lock-tokens");
    if (tokens)
      wire::for_each(*tokens, [&](const wire::Item& item) {
        LockToken token{};
        if (wire::is_uuid(item)) std::ranges::copy(item.payload, token.begin());
        const auto lock = lock_of(swapped(token));
        are_ours = lock && is_ours(*lock);
        if (are_ours) locks.push_back(*lock);
        return are_ours && locks.size() <= numbers_max;
      });
    if (!are_ours) return std::unexpected(lock_is_lost);
    if (locks.empty() || locks.size() > numbers_max) return std::unexpected(wrong("'lock-tokens' are 1 to 250 tokens"));
    return locks;
  }

  [[nodiscard]] bool is_ours(const MessageLock& lock) const {
    using enum message::Lane;
    const bool is_dead = lock.message.lane == dead || lock.message.lane == shelved;
    return lock.message.entity_id == entity_.entity_id && is_dead == entity_.is_dead_letters;
  }

  void renew(RequestPtr request, const wire::Item& body) {
    const auto locks = locks_in(body);
    if (!locks) return answer(*request, locks.error());
    ask<RenewedReply>(RenewLocks{entity_.key.tenant, *locks}, std::move(request), [](const RenewedReply& renewed) -> Answer {
      std::vector<std::int64_t> until;
      for (const auto& one : renewed.until) {
        if (!one) return {outcome_of(one.error()), {}};
        until.push_back(to_millis(*one));
      }
      return {ok, body_with_array("expirations", 0x83, until)};
    });
  }

  void settle(RequestPtr request, const wire::Item& body) {
    const std::string status = text_at(body, "disposition-status");
    const auto how = how_of_status(status);
    if (!how) return answer(*request, wrong("'" + status + "' is no disposition status"));
    const auto locks = locks_in(body);
    if (!locks) return answer(*request, locks.error());
    SettleMessages command{.tenant = entity_.key.tenant, .settlements = {}};
    const auto modified = wire::find(body, "properties-to-modify");
    for (const MessageLock& lock : *locks)
      command.settlements.push_back({.lock = lock,
                                     .how = *how,
                                     .reason = clean_reason(text_at(body, "deadletter-reason")),
                                     .description = clean_reason(text_at(body, "deadletter-description")),
                                     .changes = modified ? changes_in(*modified) : message::Changes{}});
    ask<SettledReply>(std::move(command), std::move(request), [](const SettledReply& settled) -> Answer {
      for (const auto& refused : settled.settled)
        if (refused) return {outcome_of(*refused), {}};
      return {ok, {}};
    });
  }

  // ---- messages

  void receive(RequestPtr request, const wire::Item& body) {
    auto numbers = numbers_in(body);
    if (!numbers) return answer(*request, wrong("'sequence-numbers' are 1 to 250 numbers"));
    const bool deletes = number_in(body, "receiver-settle-mode").value_or(1) == 0;
    auto held = place();
    if (!held) return answer(*request, too_much);
    ask<MessagesReply>(ReceiveDeferred{entity_.key, entity_.is_dead_letters, *std::move(numbers), deletes}, std::move(request),
                       [](const MessagesReply& found) -> Answer { return {ok, messages_body(found.messages, true)}; }, std::move(held));
  }

  void peek(RequestPtr request, const wire::Item& body) {
    const std::int64_t first = number_in(body, "from-sequence-number").value_or(0);
    const std::int64_t count = std::clamp<std::int64_t>(number_in(body, "message-count").value_or(1), 1, peek_max);
    auto held = place();
    if (!held) return answer(*request, too_much);
    PeekMessages command{.from = entity_.key, .dead = entity_.is_dead_letters, .first = first, .max = static_cast<std::uint32_t>(count)};
    ask<MessagesReply>(std::move(command), std::move(request), [](const MessagesReply& found) -> Answer {
      if (found.messages.empty()) return {{204, "there are no more messages"}, {}};
      return {ok, messages_body(found.messages, false)};
    }, std::move(held));
  }

  std::expected<std::vector<NewMessage>, Outcome> read_scheduled(const wire::Item& body) {
    const auto listed = wire::find(body, "messages");
    if (!listed || !wire::is_list(*listed)) return std::unexpected(wrong("'messages' is not a list"));
    const Reading reading{.has_rules = entity_.type == message::EntityType::topic, .new_id = [this] { return client_.services().new_id(); }};
    std::vector<NewMessage> messages;
    std::optional<Outcome> problem;
    wire::for_each(*listed, [&](const wire::Item& item) {
      const auto encoded = wire::find(item, "message");
      const auto sections = encoded && wire::is_binary(*encoded) ? split(encoded->payload) : std::unexpected(std::string("a message is missing"));
      if (!sections) return problem = wrong(sections.error()), false;
      auto message = read_message(*sections, reading);
      if (!message) return problem = wrong(message.error().description), false;
      if (!message->scheduled_for) return problem = wrong("a message has no time to be enqueued at"), false;
      messages.push_back(*std::move(message));
      return messages.size() <= batch_max;
    });
    if (problem) return std::unexpected(*std::move(problem));
    if (messages.empty() || messages.size() > batch_max) return std::unexpected(wrong("1 to 4,096 messages are scheduled at once"));
    return messages;
  }

  void schedule(RequestPtr request, const wire::Item& body) {
    if (entity_.type == message::EntityType::subscription || entity_.is_dead_letters)
      return answer(*request, {400, "messages are sent to queues and topics", "amqp:not-allowed"});
    auto messages = read_scheduled(body);
    if (!messages) return answer(*request, messages.error());
    client_.services().received.add(messages->size());
    SendMessages command{.to = entity_.key, .transfers = {}};
    command.transfers.push_back(*std::move(messages));
    ask<SentReply>(std::move(command), std::move(request), [](const SentReply& sent) -> Answer {
      if (sent.transfers.empty()) return {{500, "the engine gave another answer", "amqp:internal-error"}, {}};
      const auto& numbers = sent.transfers.front();
      if (!numbers) return {outcome_here(numbers.error()), {}};
      return {ok, body_with_array("sequence-numbers", 0x81, *numbers)};
    });
  }

  void cancel(RequestPtr request, const wire::Item& body) {
    auto numbers = numbers_in(body);
    if (!numbers) return answer(*request, wrong("'sequence-numbers' are 1 to 250 numbers"));
    client_.submit(CancelScheduled{entity_.key, *std::move(numbers)}, weak_from_this(), [this, request](const Reply& said) {
      const auto* refused = std::get_if<Refused>(&said);
      answer(*request, refused ? outcome_of(*refused) : ok);
    });
  }

  const ManagedEntity entity_;
  const Principal principal_;  // as it was when the link was attached
};

}  // namespace

std::shared_ptr<Link> make_message_management(Client& client, pn_link_t* link, ManagedEntity entity) {
  return std::make_shared<MessageManagement>(client, link, std::move(entity));
}

}  // namespace baton::bus
