// Rules as $management speaks of them (bus-facts of the SDKs): plain maps in requests, described lists in answers.
#pragma once

#include <expected>
#include <string>

#include "bus/messages/wire.hpp"
#include "core/message/rule_description.hpp"

namespace baton::bus {

// Of `add-rule`: the map `rule-description`. The error says what is wrong.
[[nodiscard]] std::expected<message::RuleDescription, std::string> read_rule(std::string name, const wire::Item& description);

// One rule of the answer to `enumerate-rules`.
void write_rule(wire::Writer& writer, const message::RuleDescription& rule);

}  // namespace baton::bus
