#include "http/wire/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace baton::http {

namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_lower_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool is_name(std::string_view text, std::size_t length_max) {
  return !text.empty() && text.size() <= length_max && std::ranges::all_of(text, [](char c) {
    return is_alphanumeric(c) || c == '_' || c == '.' || c == '-';
  });
}

bool is_traceparent(std::string_view text) {
  if (text.size() != 55 || !text.starts_with("00-") || text[35] != '-' || text[52] != '-') return false;
  const auto trace = text.substr(3, 32);
  const auto span = text.substr(36, 16);
  const auto is_zero = [](std::string_view id) {
    return id.find_first_not_of('0') == std::string_view::npos;
  };
  return is_lower_hex(trace) && is_lower_hex(span) && is_lower_hex(text.substr(53)) && !is_zero(trace) &&
         !is_zero(span);
}

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Query> parse_query(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const auto pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const auto equals = std::min(pair.find('='), pair.size());
    auto key = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(pair.substr(std::min(equals + 1, pair.size())), true);
    if (!key || !value) return std::nullopt;
    query.emplace_back(*std::move(key), *std::move(value));
  }
  return query;
}

}  // namespace baton::http
