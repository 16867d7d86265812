#include "http/api/bus_body.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace baton::http {
namespace {

constexpr double seconds_most = 922'337'203'685;  // of ten thousand centuries

constexpr std::array<std::string_view, 11> setting_fields = {"status",
                                                             "lock_seconds",
                                                             "deliveries_max",
                                                             "time_to_live_seconds",
                                                             "dead_letter_on_expiry",
                                                             "dead_letter_on_filter_error",
                                                             "detects_duplicates",
                                                             "history_seconds",
                                                             "size_max_mb",
                                                             "delete_when_idle_seconds",
                                                             "user_metadata"};

std::optional<Duration> read_seconds(Fields& fields, std::string_view key) {
  const auto seconds = fields.number(key, 0, seconds_most);
  if (!seconds) return std::nullopt;
  return Duration{std::llround(*seconds * 1'000)};
}

void take(std::optional<Duration> said, Duration& into) {
  if (said) into = *said;
}
void take(std::optional<Duration> said, std::optional<Duration>& into) {
  if (said) into = *said == Duration{} ? std::nullopt : said;
}

// A filter that is misspelt would be none, and select everything.
std::optional<std::string> unknown_member(JsonView object, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.members())
    if (std::ranges::find(known, key) == known.end()) return "has no field '" + std::string(key) + "'";
  return std::nullopt;
}

std::optional<std::string> wrong_members(JsonView rule) {
  if (rule.kind() != JsonKind::object) return "must be an object";
  if (auto unknown = unknown_member(rule, {"name", "sql", "correlation", "false", "action", "created_ms"})) return unknown;
  for (const std::string_view key : {"sql", "action"})
    if (const JsonView sql = rule.find(key); sql && sql.kind() == JsonKind::object)
      if (auto unknown = unknown_member(sql, {"expression", "parameters"})) return std::string(key) + " " + *unknown;
  if (const JsonView filter = rule.find("correlation"); filter && filter.kind() == JsonKind::object)
    if (auto unknown = unknown_member(filter, {"correlation_id", "message_id", "to", "reply_to", "label", "session_id", "reply_to_session_id", "content_type",
                                               "properties"}))
      return "correlation " + *unknown;
  return std::nullopt;
}

}  // namespace

message::Settings read_settings(JsonView object, message::Settings settings, std::initializer_list<std::string_view> others, Fields& fields) {
  for (const auto& [key, value] : object.members())
    if (std::ranges::find(setting_fields, key) == setting_fields.end() && std::ranges::find(others, key) == others.end())
      fields.wrong(key, "is not known here");
  if (const auto status = fields.text("status", 20)) {
    const auto known = message::availability(*status);
    if (!known) fields.wrong("status", "must be Active, Disabled, SendDisabled or ReceiveDisabled");
    else settings.availability = *known;
  }
  take(read_seconds(fields, "lock_seconds"), settings.lock_time);
  take(read_seconds(fields, "time_to_live_seconds"), settings.time_to_live);
  take(read_seconds(fields, "history_seconds"), settings.history_time);
  take(read_seconds(fields, "delete_when_idle_seconds"), settings.delete_when_idle);
  if (const auto count = fields.integer("deliveries_max", {1, 2'000})) settings.deliveries_max = static_cast<std::int32_t>(*count);
  if (const auto size = fields.integer("size_max_mb", {1, 1 << 20})) settings.size_max_mb = *size;
  for (const auto& [key, into] : {std::pair{"dead_letter_on_expiry", &settings.dead_letter_on_expiry},
                                  std::pair{"dead_letter_on_filter_error", &settings.dead_letter_on_filter_error},
                                  std::pair{"detects_duplicates", &settings.detects_duplicates}})
    if (const auto flag = fields.boolean(key)) *into = *flag;
  if (auto metadata = fields.prose("user_metadata")) settings.user_metadata = *std::move(metadata);
  return settings;
}

std::expected<message::RuleDescription, std::string> read_rule(JsonView rule) {
  // A document is looked into three levels deep, and what a rule compares lies deeper: it is read as one of its own.
  const auto document = JsonDocument::parse(rule.json().text);
  if (!document) return std::unexpected("cannot be read");
  if (auto wrong = wrong_members(document->root())) return std::unexpected(*std::move(wrong));
  auto read = message::read_rules(Json{"[" + rule.json().text + "]"});
  if (!read || read->size() != 1)
    return std::unexpected(R"(must be {"name": …} with {"sql": {"expression": …}}, {"correlation": {…}} or {"false": true}, and perhaps {"action": {"expression": …}})");
  read->front().created_at = {};
  return std::move(read->front());
}

std::vector<message::RuleDescription> read_rules(JsonView object, Fields& fields) {
  std::vector<message::RuleDescription> rules;
  const JsonView list = object.find("rules");
  if (!list || list.is_null()) return rules;
  if (list.kind() != JsonKind::array) return fields.wrong("rules", "must be an array"), rules;
  for (const JsonView& each : list.items()) {
    auto rule = read_rule(each);
    if (!rule) return fields.wrong("rules[" + std::to_string(rules.size()) + "]", rule.error()), rules;
    rules.push_back(*std::move(rule));
  }
  return rules;
}

}  // namespace baton::http
