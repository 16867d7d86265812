// The addresses of links, as the SDKs of Service Bus write them: `topic/Subscriptions/name`, `/topic`, `amqps://host/queue`,
// with `/$management` or `/$DeadLetterQueue` behind. Fixed words match without regard to case.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::bus {

struct Address {
  std::string entity;        // a queue or a topic; $cbs
  std::string subscription;  // of a topic; empty: none
  bool is_management = false;
  bool is_dead_letters = false;
};

// None: it names nothing.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

}  // namespace baton::bus
