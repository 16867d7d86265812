#include "core/message/rule_description.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "base/json_write.hpp"
#include "base/result.hpp"
#include "base/xml_text.hpp"
#include "core/message/typed_json.hpp"

namespace baton::message {
namespace {

using Texts = std::pair<std::string_view, std::optional<std::string> CorrelationFilter::*>;
constexpr Texts correlation_texts[] = {{"correlation_id", &CorrelationFilter::correlation_id},
                                       {"message_id", &CorrelationFilter::message_id},
                                       {"to", &CorrelationFilter::to},
                                       {"reply_to", &CorrelationFilter::reply_to},
                                       {"label", &CorrelationFilter::label},
                                       {"session_id", &CorrelationFilter::session_id},
                                       {"reply_to_session_id", &CorrelationFilter::reply_to_session_id},
                                       {"content_type", &CorrelationFilter::content_type}};

void append_sql(std::string& out, std::string_view key, const SqlText& sql) {
  append_key(out, key);
  out += '{';
  append_member(out, "expression", sql.expression);
  if (!sql.parameters.empty()) {
    append_key(out, "parameters");
    append_typed(out, sql.parameters);
  }
  out += '}';
}

void append_correlation(std::string& out, const CorrelationFilter& filter) {
  append_key(out, "correlation");
  out += '{';
  for (const auto& [name, field] : correlation_texts)
    if (filter.*field) append_member(out, name, *(filter.*field));
  if (!filter.properties.empty()) {
    append_key(out, "properties");
    append_typed(out, filter.properties);
  }
  out += '}';
}

bool are_text(const Properties& properties) {
  return std::ranges::all_of(properties, [](const auto& each) {
    const auto* text = std::get_if<std::string>(&each.second);
    return is_xml_text(each.first) && (!text || is_xml_text(*text));
  });
}

bool is_text(const SqlText& sql) { return is_xml_text(sql.expression) && are_text(sql.parameters); }

bool is_text(const CorrelationFilter& filter) {
  const auto is_field_text = [&](const Texts& each) { return is_xml_text((filter.*each.second).value_or("")); };
  return std::ranges::all_of(correlation_texts, is_field_text) && are_text(filter.properties);
}

bool is_text(const one_of<TrueFilter, FalseFilter> auto&) { return true; }

std::optional<SqlText> read_sql(const boost::json::value& json) {
  const auto* object = json.if_object();
  const auto* expression = object ? object->if_contains("expression") : nullptr;
  if (!expression || !expression->is_string()) return std::nullopt;
  SqlText sql{std::string(expression->get_string()), {}};
  if (const auto* parameters = object->if_contains("parameters")) {
    auto read = read_typed_properties(*parameters);
    if (!read) return std::nullopt;
    sql.parameters = *std::move(read);
  }
  return sql;
}

std::optional<CorrelationFilter> read_correlation(const boost::json::value& json) {
  const auto* object = json.if_object();
  if (!object) return std::nullopt;
  CorrelationFilter filter;
  for (const auto& [name, value] : *object) {
    const auto known = std::ranges::find(correlation_texts, std::string_view(name), &Texts::first);
    if (known == std::end(correlation_texts) ? name != "properties" : !value.is_string()) return std::nullopt;
    if (known != std::end(correlation_texts)) filter.*known->second = value.get_string();
  }
  if (const auto* properties = object->if_contains("properties")) {
    auto read = read_typed_properties(*properties);
    if (!read) return std::nullopt;
    filter.properties = *std::move(read);
  }
  return filter;
}

std::optional<RuleDescription> read_rule(const boost::json::value& json) {
  const auto* object = json.if_object();
  const auto* name = object ? object->if_contains("name") : nullptr;
  if (!name || !name->is_string()) return std::nullopt;
  constexpr std::string_view known[] = {"name", "true", "false", "sql", "correlation", "action", "created_ms"};
  for (const auto& [key, value] : *object)
    if (std::ranges::find(known, std::string_view(key)) == std::end(known)) return std::nullopt;
  RuleDescription rule{.name = std::string(name->get_string()), .filter = TrueFilter{}, .action = {}};
  if (object->contains("false")) rule.filter = FalseFilter{};
  if (const auto* sql = object->if_contains("sql")) {
    auto read = read_sql(*sql);
    if (!read) return std::nullopt;
    rule.filter = *std::move(read);
  }
  if (const auto* correlation = object->if_contains("correlation")) {
    auto read = read_correlation(*correlation);
    if (!read) return std::nullopt;
    rule.filter = *std::move(read);
  }
  if (const auto* action = object->if_contains("action")) {
    rule.action = read_sql(*action);
    if (!rule.action) return std::nullopt;
  }
  if (const auto* created = object->if_contains("created_ms"); created && created->is_int64()) rule.created_at = from_millis(created->get_int64());
  return rule;
}

}  // namespace

std::expected<Rule, std::string> compile(const RuleDescription& description) {
  using Compiled = std::expected<Filter, std::string>;
  auto filter = std::visit(overloaded{[](const one_of<TrueFilter, FalseFilter> auto& constant) -> Compiled { return constant; },
                                      [](const SqlText& sql) -> Compiled {
                                        auto parsed = SqlFilter::parse(sql.expression, sql.parameters);
                                        if (!parsed) return std::unexpected("the filter is wrong " + describe(parsed.error(), sql.expression));
                                        return *std::move(parsed);
                                      },
                                      [](const CorrelationFilter& correlation) -> Compiled {
                                        if (correlation.empty()) return std::unexpected("a correlation filter needs something to compare");
                                        return correlation;
                                      }},
                           description.filter);
  if (!filter) return std::unexpected(std::move(filter.error()));
  Rule rule{description.name, *std::move(filter), std::nullopt};
  if (description.action) {
    auto action = SqlAction::parse(description.action->expression, description.action->parameters);
    if (!action) return std::unexpected("the action is wrong " + describe(action.error(), description.action->expression));
    rule.action = *std::move(action);
  }
  return rule;
}

bool is_text(const RuleDescription& description) {
  const bool is_filter_text = std::visit([](const auto& filter) { return is_text(filter); }, description.filter);
  return is_xml_text(description.name) && is_filter_text && (!description.action || is_text(*description.action));
}

Json to_json(const std::vector<RuleDescription>& rules) {
  Json json;
  append_list(json.text, rules, [](std::string& out, const RuleDescription& rule) {
    out += '{';
    append_member(out, "name", rule.name);
    std::visit(overloaded{[](const TrueFilter&) {},
                          [&](const FalseFilter&) { append_member(out, "false", true); },
                          [&](const SqlText& sql) { append_sql(out, "sql", sql); },
                          [&](const CorrelationFilter& correlation) { append_correlation(out, correlation); }},
               rule.filter);
    if (rule.action) append_sql(out, "action", *rule.action);
    append_member(out, "created_ms", to_millis(rule.created_at));
    out += '}';
  });
  return json;
}

std::expected<std::vector<RuleDescription>, std::string> read_rules(const Json& json) {
  boost::system::error_code error;
  const auto value = boost::json::parse(json.text, error);
  std::vector<RuleDescription> rules;
  bool ok = !error && value.is_array();
  if (ok)
    for (const auto& each : value.get_array()) {
      auto rule = read_rule(each);
      ok = ok && rule;
      if (rule) rules.push_back(*std::move(rule));
    }
  if (!ok) return std::unexpected("the rules of a subscription cannot be read");
  return rules;
}

namespace {
constexpr std::string_view worker_property = "WorkerId";
}

std::optional<std::string> pool_of(const std::vector<RuleDescription>& rules) {
  if (rules.size() != 1 || rules.front().action) return std::nullopt;
  const auto rule = compile(rules.front());
  return rule ? equality(rule->filter, worker_property) : std::nullopt;
}

RuleDescription rule_of_pool(std::string_view pool) {
  std::string expression = std::string(worker_property) + " = '";
  for (const char c : pool) expression.append(c == '\'' ? 2 : 1, c);
  expression += '\'';
  return {.name = std::string(default_rule_name), .filter = SqlText{std::move(expression), {}}, .action = {}, .created_at = {}};
}

}  // namespace baton::message
