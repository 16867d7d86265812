#include "http/json/fields.hpp"

#include <fmt/format.h>

#include <charconv>

namespace baton::http {

namespace {

bool is_form(std::string_view content_type) {
  return content_type.starts_with("multipart/") || content_type.starts_with("application/yaml");
}

std::string out_of(Range range) {
  return fmt::format("must be an integer from {} to {}", range.min, range.max);
}

}  // namespace

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
    wrong(key, out_of(range));
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

Response no_such_job(const std::string& job_id) {
  return problem(404, "job_not_found", "no job '" + job_id + "'");
}

std::int64_t query_integer(const Request& request, std::string_view key, std::int64_t absent, Range range,
                           std::vector<FieldError>& errors) {
  const auto* text = request.argument(key);
  if (text == nullptr) return absent;
  const auto value = to_integer(*text);
  if (!value || *value < range.min || *value > range.max) {
    errors.push_back({std::string(key), out_of(range)});
    return absent;
  }
  return *value;
}

std::optional<Time> query_time(const Request& request, std::string_view key,
                               std::vector<FieldError>& errors) {
  const auto* text = request.argument(key);
  if (text == nullptr) return std::nullopt;
  auto time = from_iso(*text);
  if (!time) {
    errors.push_back({std::string(key), "must be a time such as 2026-02-02T22:30:53Z (write + as %2B)"});
  }
  return time;
}

std::optional<bool> query_boolean(const Request& request, std::string_view key,
                                  std::vector<FieldError>& errors) {
  const auto* text = request.argument(key);
  if (text == nullptr) return std::nullopt;
  if (*text != "true" && *text != "false") errors.push_back({std::string(key), "must be true or false"});
  return *text == "true";
}

Page query_page(const Request& request, std::int64_t limit_default, std::int64_t limit_max,
                std::vector<FieldError>& errors) {
  Page page;
  page.limit =
      static_cast<std::size_t>(query_integer(request, "limit", limit_default, {1, limit_max}, errors));
  if (const auto* text = request.argument("cursor")) {
    const auto id = to_integer(*text);
    if (!id || *id < 1) errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
    page.from = id.value_or(0);
  }
  return page;
}

std::string query_name_cursor(const Request& request, std::vector<FieldError>& errors) {
  const auto* cursor = request.argument("cursor");
  if (cursor == nullptr) return {};
  auto name = from_base64url(*cursor).value_or("");
  if (!is_printable(name, 400)) errors.push_back({"cursor", "must be a next_cursor of an earlier page"});
  return name;
}

Attribution read_attribution(Fields& fields) {
  constexpr std::size_t reason_bytes_max = 2000;
  Attribution change{fields.text("by", 200).value_or(""), fields.prose("reason").value_or("")};
  if (change.reason.size() > reason_bytes_max) fields.wrong("reason", "must have at most 2000 bytes");
  return change;
}

std::expected<Attribution, Response> read_attribution(const Request& request) {
  auto document = parse_object(request, true);
  if (!document) return std::unexpected(std::move(document.error()));
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  auto change = read_attribution(fields);
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return change;
}

std::expected<JsonDocument, Response> parse_json(const Request& request, bool empty_is_object) {
  if (is_form(request.content_type)) {
    return std::unexpected(problem(415, "unsupported_media_type", "the body must be application/json"));
  }
  const std::string_view text =
      request.body.empty() && empty_is_object ? "{}" : std::string_view(request.body);
  auto document = JsonDocument::parse(text);
  if (!document) return std::unexpected(problem(400, "malformed_json", document.error().message));
  return *std::move(document);
}

std::expected<JsonDocument, Response> parse_object(const Request& request, bool empty_is_object) {
  auto document = parse_json(request, empty_is_object);
  if (document && document->root().kind() != JsonKind::object) {
    return std::unexpected(problem("the body must be a JSON object", {{"", "must be an object"}}));
  }
  return document;
}

}  // namespace baton::http
