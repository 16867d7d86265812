// Messages between the wire and the engine. What its sender said from the properties on is kept byte for byte; a broker's own
// sections, the header and the annotations, are written anew for each receiver.
//
// Pure, but for chance in new_id.
#pragma once

#include <expected>
#include <functional>
#include <string>
#include <string_view>

#include "bus/messages/sections.hpp"
#include "bus/transfer.hpp"
#include "ports/bus_commands.hpp"

namespace baton::bus {

struct Reading {
  bool has_rules = false;  // it goes to a topic, whose rules look at it
  std::function<std::string()> new_id;  // of messages without one
};

// A text of its own for each id, whatever its type; none: it is nothing that an id may be.
[[nodiscard]] std::optional<std::string> text_of_id(const wire::Item& id);

[[nodiscard]] std::expected<NewMessage, Condition> read_message(const Sections& sections, const Reading& how);

// For a receiver, or for who only looks: with the changes that rules and receivers made, if there are any.
[[nodiscard]] std::string write_message(const message::Message& message, bool is_received = true);

// What rules see of a message; of its properties alone.
[[nodiscard]] message::Envelope envelope_of(const Sections& sections);

// A copy for the subscriptions of others: baton itself has taken the message already.
[[nodiscard]] Bytes marked_as_taken(const Bytes& annotations);
[[nodiscard]] bool is_marked_as_taken(const Bytes& annotations);

}  // namespace baton::bus
