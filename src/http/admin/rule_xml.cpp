#include "http/admin/rule_xml.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>

#include "base/iso_duration.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace baton::http::admin {
namespace {

using message::CorrelationFilter;
using message::Properties;
using message::SqlText;
using message::Value;

template <class T>
using Read = std::expected<T, std::string>;

struct CorrelationText {
  const char* name;
  std::optional<std::string> CorrelationFilter::* field;
};
// In the order in which Service Bus writes them.
constexpr CorrelationText correlation_elements[] = {{"CorrelationId", &CorrelationFilter::correlation_id},
                                                    {"MessageId", &CorrelationFilter::message_id},
                                                    {"To", &CorrelationFilter::to},
                                                    {"ReplyTo", &CorrelationFilter::reply_to},
                                                    {"Label", &CorrelationFilter::label},
                                                    {"SessionId", &CorrelationFilter::session_id},
                                                    {"ReplyToSessionId", &CorrelationFilter::reply_to_session_id},
                                                    {"ContentType", &CorrelationFilter::content_type}};

template <class Number>
std::optional<Value> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return std::nullopt;
  return Value{number};
}

// None: it is not of its type, or that has no values here.
std::optional<Value> read_value(const std::string& type, const std::string& text) {
  static const std::set<std::string_view> integers{"int", "long", "short", "byte", "unsignedInt", "unsignedShort", "unsignedByte", "unsignedLong", "integer"};
  const std::string_view bare = trimmed(text);
  if (type.empty() || type == "string" || type == "guid") return Value{text};
  if (integers.contains(type)) return read_number<std::int64_t>(bare);
  if (type == "double" || type == "float" || type == "decimal") return read_number<double>(bare);
  if (type == "boolean" && (bare == "true" || bare == "1")) return Value{true};
  if (type == "boolean" && (bare == "false" || bare == "0")) return Value{false};
  if (type == "dateTime")
    if (const auto time = from_iso_or_utc(bare)) return Value{*time};
  if (type == "duration")
    if (const auto duration = from_iso_duration(bare)) return Value{*duration};
  return std::nullopt;
}

Read<Properties> read_pairs(pugi::xml_node list) {
  Properties properties;
  for (const pugi::xml_node each : list.children()) {
    if (each.type() != pugi::node_element) continue;
    const std::string key = text_of(find(each, "Key"));
    const pugi::xml_node value = find(each, "Value");
    if (key.empty()) return std::unexpected("a property or parameter has no key");
    const auto read = read_value(type_of(value), text_of(value));
    if (!read) return std::unexpected(fmt::format("the value of '{}' is not of its type, or of a type that has no meaning in a rule: {}", key, type_of(value)));
    properties.insert_or_assign(key, *read);
  }
  return properties;
}

Read<SqlText> read_sql_text(pugi::xml_node from, std::string_view what) {
  SqlText sql{text_of(find(from, "SqlExpression")), {}};
  if (trimmed(sql.expression).empty()) return std::unexpected(fmt::format("the {} has no SqlExpression", what));
  auto parameters = read_pairs(find(from, "Parameters"));
  if (!parameters) return std::unexpected(std::move(parameters.error()));
  sql.parameters = *std::move(parameters);
  return sql;
}

Read<CorrelationFilter> read_correlation_filter(pugi::xml_node from) {
  CorrelationFilter filter;
  for (const auto& [name, field] : correlation_elements)
    if (const pugi::xml_node element = find(from, name); is_given(element)) filter.*field = text_of(element);
  auto properties = read_pairs(find(from, "Properties"));
  if (!properties) return std::unexpected(std::move(properties.error()));
  filter.properties = *std::move(properties);
  return filter;
}

using AnyFilter = decltype(message::RuleDescription::filter);

template <class Filter>
Read<AnyFilter> any_filter(Read<Filter> read) {
  if (!read) return std::unexpected(std::move(read.error()));
  return AnyFilter{*std::move(read)};
}

Read<AnyFilter> read_filter(pugi::xml_node filter) {
  const std::string type = type_of(filter);
  if (!filter || type == "TrueFilter") return message::TrueFilter{};
  if (type == "FalseFilter") return message::FalseFilter{};
  if (type == "SqlFilter") return any_filter(read_sql_text(filter, "filter"));
  if (type == "CorrelationFilter") return any_filter(read_correlation_filter(filter));
  return std::unexpected(fmt::format("there is no filter of type '{}'", type));
}

// --- writing

// Integers are of the types that the SDK for JavaScript knows, which has no `long`; those that it could not hold are one.
std::pair<const char*, std::string> typed_text(std::int64_t value) {
  constexpr std::int64_t exact_in_double = std::int64_t{1} << 53;
  if (value >= INT32_MIN && value <= INT32_MAX) return {"int", std::to_string(value)};
  return {value >= -exact_in_double && value <= exact_in_double ? "double" : "long", std::to_string(value)};
}

std::pair<const char*, std::string> typed_text(const Value& value) {
  using Typed = std::pair<const char*, std::string>;
  return std::visit(overloaded{[](const message::Null&) -> Typed { return {"string", ""}; },
                               [](bool flag) -> Typed { return {"boolean", flag ? "true" : "false"}; },
                               [](std::int64_t number) { return typed_text(number); },
                               [](double number) -> Typed { return {"double", fmt::format("{}", number)}; },
                               [](const std::string& text) -> Typed { return {"string", text}; },
                               [](Time time) -> Typed { return {"dateTime", to_iso(time)}; },
                               [](Duration duration) -> Typed { return {"duration", to_iso_duration(duration)}; },
                               [](const message::Opaque&) -> Typed { return {"string", ""}; }},
                    value);
}

void add_pairs(pugi::xml_node parent, const char* name, const Properties& properties) {
  if (properties.empty()) return;  // an empty list is an error to the SDK for JavaScript
  const pugi::xml_node list = add(parent, name);
  for (const auto& [key, value] : properties) {
    const pugi::xml_node pair = add(list, "KeyValueOfstringanyType");
    add(pair, "Key", key);
    const auto [type, text] = typed_text(value);
    add(pair, "Value", text);
    const pugi::xml_node written = pair.last_child();
    set(written, "i:type", std::string("d6p1:") + type);  // the SDK skips five characters to find the type
    set(written, "xmlns:d6p1", schema_namespace);
  }
}

void add_sql(pugi::xml_node parent, const SqlText& sql) {
  add(parent, "SqlExpression", sql.expression);
  add(parent, "CompatibilityLevel", 20);
  add_pairs(parent, "Parameters", sql.parameters);
}

void add_filter(pugi::xml_node parent, const AnyFilter& any) {
  const pugi::xml_node filter = add(parent, "Filter");
  std::visit(overloaded{[&](const message::TrueFilter&) {
                          set(filter, "i:type", "TrueFilter");
                          add_sql(filter, {"1=1", {}});  // without it the SDK for JavaScript takes it for a correlation filter
                        },
                        [&](const message::FalseFilter&) {
                          set(filter, "i:type", "FalseFilter");
                          add_sql(filter, {"1=0", {}});
                        },
                        [&](const SqlText& sql) {
                          set(filter, "i:type", "SqlFilter");
                          add_sql(filter, sql);
                        },
                        [&](const CorrelationFilter& correlation) {
                          set(filter, "i:type", "CorrelationFilter");
                          for (const auto& [name, field] : correlation_elements)
                            if (correlation.*field) add(filter, name, *(correlation.*field));
                          add_pairs(filter, "Properties", correlation.properties);
                        }},
             any);
}

}  // namespace

std::expected<message::RuleDescription, std::string> read_rule(pugi::xml_node described) {
  message::RuleDescription rule;
  rule.name = text_of(find(described, "Name"));
  auto filter = read_filter(find(described, "Filter"));
  if (!filter) return std::unexpected(std::move(filter.error()));
  rule.filter = *std::move(filter);
  const pugi::xml_node action = find(described, "Action");
  const std::string type = type_of(action);
  if (type == "SqlRuleAction") {
    auto sql = read_sql_text(action, "action");
    if (!sql) return std::unexpected(std::move(sql.error()));
    rule.action = *std::move(sql);
  } else if (is_given(action) && type != "EmptyRuleAction") {
    return std::unexpected(fmt::format("there is no action of type '{}'", type));
  }
  return rule;
}

void add_rule(pugi::xml_node content, const message::RuleDescription& rule) {
  const pugi::xml_node description = add(content, "RuleDescription");
  set(description, "xmlns", bus_namespace);
  set(description, "xmlns:i", instance_namespace);
  add_filter(description, rule.filter);
  const pugi::xml_node action = add(description, "Action");
  set(action, "i:type", rule.action ? "SqlRuleAction" : "EmptyRuleAction");
  if (rule.action) add_sql(action, *rule.action);
  add(description, "CreatedAt", to_iso(rule.created_at));
  add(description, "Name", rule.name);
}

}  // namespace baton::http::admin
