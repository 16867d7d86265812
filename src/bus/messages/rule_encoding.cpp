#include "bus/messages/rule_encoding.hpp"

#include <array>

#include "base/result.hpp"

namespace baton::bus {
namespace {

// What describes them in answers. The filters have one zero fewer than the rest.
constexpr std::uint64_t rule_descriptor = 0x13700000004, empty_action_descriptor = 0x13700000005, sql_action_descriptor = 0x13700000006;
constexpr std::uint64_t sql_filter_descriptor = 0x1370000006, true_filter_descriptor = 0x1370000007, false_filter_descriptor = 0x1370000008,
                        correlation_filter_descriptor = 0x1370000009;

using message::CorrelationFilter;

struct FieldOf {
  std::string_view name;
  std::optional<std::string> CorrelationFilter::* field;
};
// In the order of the answer; the properties are behind them.
constexpr std::array<FieldOf, 8> correlation_fields{{{"correlation-id", &CorrelationFilter::correlation_id},
                                                     {"message-id", &CorrelationFilter::message_id},
                                                     {"to", &CorrelationFilter::to},
                                                     {"reply-to", &CorrelationFilter::reply_to},
                                                     {"label", &CorrelationFilter::label},
                                                     {"session-id", &CorrelationFilter::session_id},
                                                     {"reply-to-session-id", &CorrelationFilter::reply_to_session_id},
                                                     {"content-type", &CorrelationFilter::content_type}}};

std::expected<std::string, std::string> read_expression(const wire::Item& map, const char* what) {
  const auto expression = wire::find(map, "expression");
  if (!expression || !wire::is_text(*expression)) return std::unexpected(std::string(what) + " has no text 'expression'");
  return std::string(expression->payload);
}

std::expected<CorrelationFilter, std::string> read_correlation(const wire::Item& map) {
  CorrelationFilter filter;
  for (const FieldOf& each : correlation_fields)
    if (const auto value = wire::find(map, each.name)) {
      const auto text = wire::text_of(*value);
      if (!text) return std::unexpected("'" + std::string(each.name) + "' of a correlation filter is no text");
      filter.*each.field = std::string(*text);
    }
  if (const auto properties = wire::find(map, "properties"))
    wire::for_each_pair(*properties, [&](const wire::Item& key, const wire::Item& value) {
      if (const auto name = wire::text_of(key)) filter.properties.insert_or_assign(std::string(*name), wire::value_of(value));
      return true;
    });
  return filter;
}

void write_filter(wire::Writer& writer, const message::RuleDescription& rule) {
  std::visit(overloaded{
                 [&](message::TrueFilter) { writer.descriptor(true_filter_descriptor), writer.list([] {}); },
                 [&](message::FalseFilter) { writer.descriptor(false_filter_descriptor), writer.list([] {}); },
                 [&](const message::SqlText& sql) {
                   writer.descriptor(sql_filter_descriptor);
                   writer.list([&] { writer.text(sql.expression); });
                 },
                 [&](const CorrelationFilter& filter) {
                   writer.descriptor(correlation_filter_descriptor);
                   writer.list([&] {
                     for (const FieldOf& each : correlation_fields) filter.*each.field ? writer.text(*(filter.*each.field)) : writer.null();
                     writer.map([&] {
                       for (const auto& [name, value] : filter.properties) writer.text(name), writer.value(value);
                     });
                   });
                 },
             },
             rule.filter);
}

}  // namespace

std::expected<message::RuleDescription, std::string> read_rule(std::string name, const wire::Item& description) {
  message::RuleDescription rule{.name = std::move(name), .filter = message::TrueFilter{}, .action = std::nullopt, .created_at = {}};
  if (const auto sql = wire::find(description, "sql-filter")) {
    auto expression = read_expression(*sql, "an SQL filter");
    if (!expression) return std::unexpected(std::move(expression.error()));
    rule.filter = message::SqlText{*std::move(expression), {}};
  } else if (const auto correlation = wire::find(description, "correlation-filter")) {
    auto filter = read_correlation(*correlation);
    if (!filter) return std::unexpected(std::move(filter.error()));
    rule.filter = *std::move(filter);
  } else {
    return std::unexpected("a rule has an 'sql-filter' or a 'correlation-filter'");
  }
  if (const auto action = wire::find(description, "sql-rule-action")) {
    auto expression = read_expression(*action, "an action");
    if (!expression) return std::unexpected(std::move(expression.error()));
    if (!expression->empty()) rule.action = message::SqlText{*std::move(expression), {}};
  }
  return rule;
}

void write_rule(wire::Writer& writer, const message::RuleDescription& rule) {
  writer.descriptor(rule_descriptor);
  writer.list([&] {
    write_filter(writer, rule);
    if (rule.action) {
      writer.descriptor(sql_action_descriptor);
      writer.list([&] { writer.text(rule.action->expression); });
    } else {
      writer.descriptor(empty_action_descriptor), writer.list([] {});
    }
    writer.text(rule.name);
  });
}

}  // namespace baton::bus
