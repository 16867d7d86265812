#include "core/runbook/definition/definition.hpp"

#include <algorithm>
#include <charconv>

namespace baton::runbook {
namespace {

constexpr std::int64_t span_seconds_max = std::int64_t{3650} * 24 * 3600;
constexpr std::size_t table_name_bytes_max = 63;  // PostgreSQL cuts longer ones, silently

std::int64_t unit_seconds(char unit) {
  switch (unit) {
    case 's': return 1;
    case 'm': return 60;
    case 'h': return 3600;
    case 'd': return 24 * 3600;
    default: return 0;
  }
}

// The same on all machines and in all versions: the names of tables depend on it. FNV-1a.
std::string hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (int shift = 28; shift >= 0; shift -= 4) hex += digits[hash >> shift & 0xf];
  return hex;
}

}  // namespace

const Phase* Definition::phase(std::string_view phase_name) const {
  const auto found = std::ranges::find(phases, phase_name, &Phase::name);
  return found == phases.end() ? nullptr : &*found;
}

const std::vector<Step>& Definition::rollback(const std::string& rollback_name) const {
  static const std::vector<Step> none;
  const auto found = rollbacks.find(rollback_name);
  return found == rollbacks.end() ? none : found->second;
}

Retry Definition::retry_of(const Step& step) const {
  if (step.retry) return *step.retry;
  return retry.value_or(Retry{});
}

std::optional<std::chrono::seconds> parse_duration(std::string_view text) {
  if (text.size() < 2) return std::nullopt;
  const std::int64_t unit = unit_seconds(text.back());
  const char* const end = text.data() + text.size() - 1;
  std::int64_t number = 0;
  const bool digits = text.front() >= '0' && text.front() <= '9';
  const auto read = std::from_chars(text.data(), end, number);
  if (!digits || read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  if (unit == 0 || number > span_seconds_max / unit) return std::nullopt;
  return std::chrono::seconds{number * unit};
}

std::optional<std::int32_t> parse_offset(std::string_view text) {
  if (!text.starts_with("T-") && !text.starts_with("T+")) return std::nullopt;
  const bool before = text[1] == '-';
  text.remove_prefix(2);
  if (text == "0") return 0;
  const auto span = parse_duration(text);
  if (!span) return std::nullopt;
  const auto minutes = static_cast<std::int32_t>(std::chrono::ceil<std::chrono::minutes>(*span).count());
  return before ? minutes : -minutes;
}

std::string data_table_name(std::string_view runbook_name, std::int32_t version, bool is_taken) {
  const std::string prefix = "runbook_";
  const std::string suffix = "_v" + std::to_string(version);
  std::string name;
  for (const char c : runbook_name) {
    if (c >= 'A' && c <= 'Z')
      name += static_cast<char>(c - 'A' + 'a');
    else
      name += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  }
  const std::size_t room = table_name_bytes_max - prefix.size() - suffix.size();
  if (name.size() > room || is_taken) name = name.substr(0, room - 9) + '_' + hash_of(runbook_name);
  return prefix + name + suffix;
}

}  // namespace baton::runbook
