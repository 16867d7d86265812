#include "base/json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace baton {

std::string Range::text() const { return fmt::format("must be an integer from {} to {}", min, max); }

Fields::Fields(JsonView object, std::string prefix, std::vector<FieldError>& errors)
    : object_(object), prefix_(std::move(prefix)), errors_(errors) {
  if (object_.kind() != JsonKind::object) {
    errors_.push_back({prefix_, fmt::format("must be an object, not {}", name(object_.kind()))});
  }
}

void Fields::wrong(std::string_view key, std::string message) {
  errors_.push_back(
      {prefix_.empty() ? std::string(key) : fmt::format("{}.{}", prefix_, key), std::move(message)});
}

JsonView Fields::expect(std::string_view key, JsonKind kind) {
  const auto value = object_.find(key);
  if (!value || value.is_null()) return {};
  if (value.kind() != kind) {
    wrong(key, fmt::format("must be {}, not {}", name(kind), name(value.kind())));
    return {};
  }
  return value;
}

std::optional<std::string> Fields::text(std::string_view key, std::size_t length_max) {
  const auto value = expect(key, JsonKind::string);
  if (!value) return std::nullopt;
  if (!is_printable(value.string(), length_max)) {
    wrong(key, fmt::format("must have 1 to {} bytes and no control characters", length_max));
    return std::nullopt;
  }
  return std::string(value.string());
}

std::string Fields::required_text(std::string_view key, std::size_t length_max) {
  const auto value = object_.find(key);
  if (!value || value.is_null()) {
    if (object_.kind() == JsonKind::object) wrong(key, "is required");
    return {};
  }
  return text(key, length_max).value_or("");
}

std::optional<std::string> Fields::prose(std::string_view key) {
  const auto value = expect(key, JsonKind::string);
  if (!value) return std::nullopt;
  std::string text(value.string());
  for (auto at = text.find('\0'); at != std::string::npos; at = text.find('\0', at))
    text.replace(at, 1, "\xEF\xBF\xBD");
  return text;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, Range range) {
  const auto value = object_.find(key);
  if (!value || value.is_null()) return std::nullopt;
  if (value.kind() != JsonKind::integer || value.integer() < range.min || value.integer() > range.max) {
    wrong(key, range.text());
    return std::nullopt;
  }
  return value.integer();
}

std::optional<double> Fields::number(std::string_view key, double min, double max) {
  const auto value = object_.find(key);
  if (!value || value.is_null()) return std::nullopt;
  double number = 0;
  const std::string text = value.json().text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = value.kind() == JsonKind::integer || value.kind() == JsonKind::real;
  if (!is_number || error != std::errc{} || end != text.data() + text.size() ||
      !(number >= min && number <= max)) {
    wrong(key, fmt::format("must be a number from {} to {}", min, max));
    return std::nullopt;
  }
  return number;
}

std::optional<Time> Fields::time(std::string_view key) {
  const auto value = expect(key, JsonKind::string);
  if (!value) return std::nullopt;
  const auto time = from_iso(value.string());
  if (!time) wrong(key, "must be an instant as 2026-01-31T08:00:00Z, from 1970 to 9999");
  return time;
}

std::vector<std::string> Fields::texts(std::string_view key, std::size_t items_max, std::size_t length_max) {
  if (const auto value = object_.find(key); !value || value.is_null()) return {};
  std::vector<std::string> list;
  for (const JsonView& item : required_array(key, items_max)) {
    if (item.kind() == JsonKind::string && is_printable(item.string(), length_max))
      list.emplace_back(item.string());
    else
      wrong(fmt::format("{}[{}]", key, list.size()),
            fmt::format("must be a string of 1 to {} bytes without control characters", length_max));
  }
  return list;
}

std::vector<std::int64_t> Fields::ids(std::string_view key, std::size_t items_max) {
  if (const auto value = object_.find(key); !value || value.is_null()) return {};
  std::vector<std::int64_t> list;
  for (const JsonView& item : required_array(key, items_max)) {
    if (item.kind() == JsonKind::integer && item.integer() > 0)
      list.push_back(item.integer());
    else
      wrong(fmt::format("{}[{}]", key, list.size()), "must be a positive integer");
  }
  return list;
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const auto value = expect(key, JsonKind::boolean);
  if (!value) return std::nullopt;
  return value.boolean();
}

OptionalJson Fields::object(std::string_view key) {
  const auto value = expect(key, JsonKind::object);
  if (!value) return std::nullopt;
  return value.json();
}

OptionalJson Fields::any(std::string_view key) {
  const auto value = object_.find(key);
  if (!value || value.is_null()) return std::nullopt;
  return value.json();
}

std::vector<JsonView> Fields::required_array(std::string_view key, std::size_t items_max) {
  if (const auto value = object_.find(key); !value || value.is_null()) {
    wrong(key, "is required");
    return {};
  }
  const auto value = expect(key, JsonKind::array);
  if (!value) return {};
  auto items = value.items();
  if (items.size() > items_max) {
    wrong(key, fmt::format("has {} items; at most {} are allowed", items.size(), items_max));
    items.clear();
  }
  return items;
}

void refuse_others(JsonView object, std::initializer_list<std::string_view> known, Fields& fields) {
  if (object.kind() != JsonKind::object) return;
  for (const auto& [key, value] : object.members())
    if (std::ranges::find(known, key) == known.end()) fields.wrong(key, "is not a field of this");
}

}  // namespace baton
