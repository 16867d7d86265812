// Reads what requests say about queues, topics, subscriptions and their rules.
#pragma once

#include <expected>
#include <vector>

#include "core/message/rule_description.hpp"
#include "core/message/settings.hpp"
#include "http/json/fields.hpp"

namespace baton::http {

// The settings that are said, over those of before; 0 seconds to live, or until it is deleted: for ever. `others` are the
// fields that may stand beside them.
[[nodiscard]] message::Settings read_settings(JsonView object, message::Settings before, std::initializer_list<std::string_view> others, Fields& fields);

// {"name": …, "sql": {"expression": …}} and so on, as the answer about a subscription shows them.
[[nodiscard]] std::expected<message::RuleDescription, std::string> read_rule(JsonView rule);
[[nodiscard]] std::vector<message::RuleDescription> read_rules(JsonView object, Fields& fields);

}  // namespace baton::http
