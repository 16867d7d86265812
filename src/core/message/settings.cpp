#include "core/message/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>

#include "base/json_write.hpp"
#include "base/text.hpp"
#include "base/xml_text.hpp"

namespace baton::message {
namespace {

constexpr std::array<std::string_view, 4> availabilities = {"Active", "Disabled", "SendDisabled", "ReceiveDisabled"};
static_assert(availabilities.size() == static_cast<std::size_t>(Availability::receive_disabled) + 1);

constexpr std::string_view between = "/Subscriptions/";

template <class T>
std::optional<std::string> outside(std::string_view what, T value, T least, T most) {
  if (value >= least && value <= most) return std::nullopt;
  if constexpr (std::is_same_v<T, Duration>)
    return fmt::format("{} must be {} to {} seconds", what, least.count() / 1'000, most.count() / 1'000);
  else
    return fmt::format("{} must be {} to {}", what, least, most);
}

}  // namespace

std::string_view name(Availability availability) { return availabilities[static_cast<std::size_t>(availability)]; }

std::optional<Availability> availability(std::string_view name) {
  const auto found = std::ranges::find(availabilities, name);
  if (found == availabilities.end()) return std::nullopt;
  return static_cast<Availability>(found - availabilities.begin());
}

std::optional<std::string> problem_of(const Settings& s, EntityType type) {
  using namespace std::chrono_literals;
  constexpr Duration for_ever = std::chrono::days{10'675'199};
  for (const auto& problem : {outside<Duration>("the lock duration", s.lock_time, 5s, 5min),
                              outside("the maximum delivery count", s.deliveries_max, 1, 2'000),
                              outside<Duration>("the time to live of messages", s.time_to_live.value_or(for_ever), 1s, for_ever),
                              outside<Duration>("the history of duplicate detection", s.history_time, 20s, std::chrono::days{7}),
                              outside<std::int64_t>("the maximum size in megabytes", s.size_max_mb, 1, 1 << 20),
                              outside<Duration>("the time after which it is deleted when idle", s.delete_when_idle.value_or(for_ever), 5min, for_ever)})
    if (problem) return problem;
  if (s.user_metadata.size() > 1'024) return "the user metadata has at most 1,024 characters";
  if (!is_xml_text(s.user_metadata)) return "the user metadata must be UTF-8 without control characters";
  if (type == EntityType::subscription && s.detects_duplicates) return "a subscription detects no duplicates: its topic does";
  return std::nullopt;
}

namespace {

std::optional<std::string> problem_of_letters(std::string_view name, std::size_t length_max, std::string_view others) {
  if (name.empty() || name.size() > length_max) return fmt::format("a name has 1 to {} characters", length_max);
  const auto is_fine = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.contains(c);
  };
  if (!std::ranges::all_of(name, is_fine)) return fmt::format("a name has letters, digits and these: {}", others);
  return std::nullopt;
}

}  // namespace

// Names that addresses mean something else with cannot be reached.
std::optional<std::string> problem_of_name(std::string_view name, std::size_t length_max) {
  if (auto problem = problem_of_letters(name, length_max, ".-_/")) return problem;
  if (name.front() == '/' || name.back() == '/' || name.contains("//")) return "a name neither begins nor ends with '/', and has no empty part";
  const std::string parts = "/" + lower(std::string(name)) + "/";
  for (const std::string_view part : {"/subscriptions/", "/rules/"})
    if (parts.contains(part)) return "a name has no part 'Subscriptions' or 'Rules'";
  if (parts == "/health/") return "'health' is where one asks whether the server is well";
  return std::nullopt;
}

std::optional<std::string> problem_of_rule_name(std::string_view name) { return problem_of_letters(name, 50, ".-_$"); }

Json to_json(const Settings& s) {
  static const Settings usual;
  Json json{"{"};
  const auto add = [&](std::string_view key, const auto& value, const auto& default_value) {
    if (value == default_value) return;
    if constexpr (requires { value.count(); }) append_member(json.text, key, value.count());
    else append_member(json.text, key, value);
  };
  const auto millis = [](const std::optional<Duration>& time) { return time ? std::optional{time->count()} : std::nullopt; };
  add("lock_ms", s.lock_time, usual.lock_time);
  add("deliveries_max", s.deliveries_max, usual.deliveries_max);
  add("time_to_live_ms", millis(s.time_to_live), millis(usual.time_to_live));
  add("dead_letter_on_expiry", s.dead_letter_on_expiry, usual.dead_letter_on_expiry);
  add("dead_letter_on_filter_error", s.dead_letter_on_filter_error, usual.dead_letter_on_filter_error);
  add("detects_duplicates", s.detects_duplicates, usual.detects_duplicates);
  add("history_ms", s.history_time, usual.history_time);
  add("size_max_mb", s.size_max_mb, usual.size_max_mb);
  add("delete_when_idle_ms", millis(s.delete_when_idle), millis(usual.delete_when_idle));
  add("availability", name(s.availability), name(usual.availability));
  add("user_metadata", s.user_metadata, usual.user_metadata);
  json.text += '}';
  return json;
}

std::expected<Settings, std::string> read_settings(const Json& json) {
  boost::system::error_code error;
  const auto value = boost::json::parse(json.text, error);
  if (error || !value.is_object()) return std::unexpected("the settings of an entity cannot be read");
  Settings s;
  bool ok = true;
  const auto number = [&](const boost::json::value& from, auto& to) {
    if (!from.is_int64()) return void(ok = false);
    using T = std::remove_reference_t<decltype(to)>;
    if constexpr (std::is_integral_v<T>) to = static_cast<T>(from.get_int64());
    else to = T{Duration{from.get_int64()}};
  };
  const auto flag = [&](const boost::json::value& from, bool& to) { from.is_bool() ? void(to = from.get_bool()) : void(ok = false); };
  for (const auto& [key, from] : value.get_object()) {
    if (key == "lock_ms") number(from, s.lock_time);
    else if (key == "deliveries_max") number(from, s.deliveries_max);
    else if (key == "time_to_live_ms") number(from, s.time_to_live);
    else if (key == "dead_letter_on_expiry") flag(from, s.dead_letter_on_expiry);
    else if (key == "dead_letter_on_filter_error") flag(from, s.dead_letter_on_filter_error);
    else if (key == "detects_duplicates") flag(from, s.detects_duplicates);
    else if (key == "history_ms") number(from, s.history_time);
    else if (key == "size_max_mb") number(from, s.size_max_mb);
    else if (key == "delete_when_idle_ms") number(from, s.delete_when_idle);
    else if (key == "user_metadata" && from.is_string()) s.user_metadata = from.get_string();
    else if (key == "availability" && from.is_string() && availability(from.get_string())) s.availability = *availability(from.get_string());
    else ok = false;
  }
  if (!ok) return std::unexpected("the settings of an entity cannot be read");
  return s;
}

std::string subscription_path(std::string_view topic, std::string_view subscription) {
  return std::string(topic).append(between).append(subscription);
}

std::optional<SubscriptionName> split_subscription_path(std::string_view path) {
  const auto at = lower(std::string(path)).find(lower(std::string(between)));
  if (at == std::string::npos) return std::nullopt;
  return SubscriptionName{std::string(path.substr(0, at)), std::string(path.substr(at + between.size()))};
}

}  // namespace baton::message
