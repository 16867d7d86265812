#include "core/message/rule.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/result.hpp"

namespace baton::message {
namespace {

std::expected<bool, Problem> selects(const Filter& filter, const Envelope& envelope, const NewId& new_id) {
  using Selected = std::expected<bool, Problem>;
  return std::visit(overloaded{[](const TrueFilter&) -> Selected { return true; },
                               [](const FalseFilter&) -> Selected { return false; },
                               [&](const SqlFilter& sql) -> Selected {
                                 TRY_ASSIGN(const Truth truth, sql.evaluate(envelope, new_id));
                                 return truth == Truth::yes;
                               },
                               [&](const CorrelationFilter& correlation) -> Selected {
                                 return correlation.matches(envelope);
                               }},
                    filter);
}

// Nothing when the filter does not select the message.
std::expected<std::optional<Copy>, Problem> apply(const Rule& rule, const Envelope& envelope,
                                                  const NewId& new_id) {
  TRY_ASSIGN(const bool selected, selects(rule.filter, envelope, new_id));
  if (!selected) return std::nullopt;
  if (!rule.action) return Copy{rule.name, std::nullopt};
  TRY_ASSIGN(Envelope changed, rule.action->apply(envelope, new_id));
  changed.properties.insert_or_assign(std::string(rule_name_property), rule.name);
  return Copy{rule.name, std::move(changed)};
}

}  // namespace

Rule default_rule() { return {std::string(default_rule_name), TrueFilter{}, std::nullopt}; }

Matches matches(std::span<const Rule> rules, const Envelope& envelope, const NewId& new_id) {
  Matches found;
  bool plain = false;  // whether there is the copy of the rules without an action
  std::vector<Failure> plain_failures;
  for (const Rule& rule : rules) {
    if (!rule.action && plain) continue;
    auto copy = apply(rule, envelope, new_id);
    if (!copy) {
      (rule.action ? found.failures : plain_failures).push_back({rule.name, std::move(copy).error()});
    } else if (*copy) {
      plain |= !rule.action;
      found.copies.push_back(**std::move(copy));
    }
  }
  if (!plain) std::ranges::move(plain_failures, std::back_inserter(found.failures));
  return found;
}

std::optional<std::string> equality(const Filter& filter, std::string_view property) {
  return std::visit(
      overloaded{[](const one_of<TrueFilter, FalseFilter> auto&) { return std::optional<std::string>(); },
                 [&](const auto& compared) { return compared.equality(property); }},
      filter);
}

}  // namespace baton::message
