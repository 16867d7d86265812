// A rule as somebody wrote it, and as it is stored: compiled into a Rule (rule.hpp) when messages come.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/json.hpp"
#include "core/message/correlation_filter.hpp"
#include "core/message/rule.hpp"

namespace baton::message {

struct SqlText {
  std::string expression;
  Properties parameters;
  friend bool operator==(const SqlText&, const SqlText&) = default;
};

struct RuleDescription {
  std::string name;
  std::variant<TrueFilter, FalseFilter, SqlText, CorrelationFilter> filter;
  std::optional<SqlText> action;
  Time created_at{};
};

inline constexpr std::size_t rules_max = 100;  // of a subscription

[[nodiscard]] std::expected<Rule, std::string> compile(const RuleDescription& description);

// A subscription whose one rule is WorkerId = 'ID' is the pool of workers ID, if it is of the topic of jobs; none: its rules mean something else.
[[nodiscard]] std::optional<std::string> pool_of(const std::vector<RuleDescription>& rules);
[[nodiscard]] RuleDescription rule_of_pool(std::string_view pool);

// Whether all its texts are such as XML can carry, in which the management API of Service Bus shows them.
[[nodiscard]] bool is_text(const RuleDescription& description);

[[nodiscard]] Json to_json(const std::vector<RuleDescription>& rules);
[[nodiscard]] std::expected<std::vector<RuleDescription>, std::string> read_rules(const Json& json);

}  // namespace baton::message
