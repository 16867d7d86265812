// The rules of a subscription: which messages of its topic it gets, and what is changed in its copies.
//
// Pure data, for any thread. As Service Bus has it: the rules without an action together give one copy, as it
// was sent, when any of them selects the message. Each rule with an action gives a copy of its own when it
// selects the message, with the action's changes and the property RuleName. A subscription without rules gets
// nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/message/correlation_filter.hpp"
#include "core/message/envelope.hpp"
#include "core/message/problem.hpp"
#include "core/message/sql_action.hpp"
#include "core/message/sql_filter.hpp"

namespace baton::message {

struct TrueFilter {};
struct FalseFilter {};
using Filter = std::variant<TrueFilter, FalseFilter, SqlFilter, CorrelationFilter>;

struct Rule {
  std::string name;
  Filter filter;
  std::optional<SqlAction> action;
};

// What a new subscription has: every message, as it was sent.
inline constexpr std::string_view default_rule_name = "$Default";
[[nodiscard]] Rule default_rule();

inline constexpr std::string_view rule_name_property = "RuleName";

struct Copy {
  std::string rule;  // which gave it; of those without an action, the first that selects the message
  std::optional<Envelope> changed;  // none: as it was sent
};

// A rule whose filter or action could not be evaluated for this message.
struct Failure {
  std::string rule;
  Problem problem;
};

struct Matches {
  std::vector<Copy> copies;
  // Service Bus dead-letters the message in the subscription then, if that is set, and otherwise passes the
  // rule over. A failed rule without an action is not here when another gave the copy that it could have
  // given.
  std::vector<Failure> failures;
};

[[nodiscard]] Matches matches(std::span<const Rule> rules, const Envelope& envelope,
                              const NewId& new_id = {});

// The constant, if the filter is nothing but `property = 'constant'` for that property of the application.
[[nodiscard]] std::optional<std::string> equality(const Filter& filter, std::string_view property);

}  // namespace baton::message
