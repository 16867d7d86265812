#include "bus/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.hpp"
#include "bus/connection.hpp"

namespace baton::bus {
namespace {

void let_go(pn_link_t* link, pn_delivery_t* delivery) {
  pn_link_advance(link);
  pn_delivery_settle(delivery);
  pn_link_flow(link, 1);
}

const Condition no_room{"com.microsoft:server-busy", "what was sent before over this connection waits still: try again later"};

// What is not taken is let go of as it comes, so that it takes no memory, and its sender hears why at its end. The delivery
// remembers it by its context: that there was no room, or itself if it is too large.
bool drop(pn_link_t* link, pn_delivery_t* delivery, const void* context) {
  pn_delivery_set_context(delivery, const_cast<void*>(context));
  std::string dropped(std::max<std::size_t>(pn_delivery_pending(delivery), 1), '\0');
  (void)pn_link_recv(link, dropped.data(), dropped.size());
  return !pn_delivery_partial(delivery);
}

void drop_too_large(pn_link_t* link, pn_delivery_t* delivery, std::size_t bytes_max, const std::function<void(const Condition&)>& on_too_large) {
  if (!drop(link, delivery, delivery)) return;
  const Condition why{"amqp:link:message-size-exceeded", fmt::format("a message has at most {} bytes here", bytes_max)};
  reject(delivery, why);
  if (on_too_large) on_too_large(why);
  let_go(link, delivery);
}

}  // namespace

std::string text_of_condition(pn_condition_t* condition) {
  if (!pn_condition_is_set(condition)) return "";
  return clean_text(fmt::format("{}: {}", text_of(pn_condition_get_name(condition)), text_of(pn_condition_get_description(condition))), 1'000);
}

bool may_pass(const Refused& refused) {
  switch (refused.refusal) {
    case Refusal::overloaded:
    case Refusal::stopping:
    case Refusal::store_full:
    case Refusal::store_unavailable: return true;
    default: return false;
  }
}

Condition condition_of(const Refused& refused) {
  const auto name = [&] {
    switch (refused.refusal) {
      case Refusal::quota_exceeded: return "amqp:resource-limit-exceeded";
      case Refusal::entity_not_found: return "amqp:not-found";
      case Refusal::entity_exists: return "com.microsoft:entity-already-exists";
      case Refusal::message_not_found: return "com.microsoft:message-not-found";
      case Refusal::lock_lost: return "com.microsoft:message-lock-lost";
      default: return may_pass(refused) ? "com.microsoft:server-busy" : "amqp:invalid-field";
    }
  };
  return {name(), refused.message};
}

void reject(pn_delivery_t* delivery, const Condition& why) {
  pn_condition_t* condition = pn_disposition_condition(pn_delivery_local(delivery));
  pn_condition_set_name(condition, why.name);
  pn_condition_set_description(condition, why.description.c_str());
  pn_delivery_update(delivery, PN_REJECTED);
}

bool shed(pn_link_t* link) {
  pn_delivery_t* delivery = pn_link_current(link);
  if (!delivery || !drop(link, delivery, &no_room)) return false;
  reject(delivery, no_room);
  let_go(link, delivery);
  return true;
}

std::optional<std::string> take_transfer(pn_link_t* link, pn_delivery_t* delivery, std::size_t bytes_max,
                                         const std::function<void(const Condition&)>& on_too_large) {
  if (delivery != pn_link_current(link)) return std::nullopt;  // it was taken before
  if (pn_delivery_aborted(delivery)) return let_go(link, delivery), std::nullopt;
  if (!pn_delivery_readable(delivery)) return std::nullopt;
  if (pn_delivery_get_context(delivery) == &no_room) return shed(link), std::nullopt;
  const std::size_t size = pn_delivery_pending(delivery);
  if (size > bytes_max || pn_delivery_get_context(delivery)) return drop_too_large(link, delivery, bytes_max, on_too_large), std::nullopt;
  if (pn_delivery_partial(delivery)) return std::nullopt;
  std::string bytes(size, '\0');
  const ssize_t got = pn_link_recv(link, bytes.data(), bytes.size());
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  pn_link_advance(link);
  return bytes;
}

}  // namespace baton::bus
