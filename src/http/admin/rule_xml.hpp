// The rules of a subscription as XML: <RuleDescription> of the management API.
#pragma once

#include <expected>
#include <string>

#include "core/message/rule_description.hpp"
#include "http/admin/xml.hpp"

namespace baton::http::admin {

// Of a <RuleDescription> or <DefaultRuleDescription>. What is wrong with it otherwise.
[[nodiscard]] std::expected<message::RuleDescription, std::string> read_rule(pugi::xml_node described);

void add_rule(pugi::xml_node content, const message::RuleDescription& rule);

}  // namespace baton::http::admin
