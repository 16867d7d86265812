#include "http/json/fields.hpp"

#include <fmt/format.h>

namespace baton::http {

namespace {

bool is_form(std::string_view content_type) {
  return content_type.starts_with("multipart/") || content_type.starts_with("application/yaml");
}

}  // namespace

Response no_such_job(const std::string& job_id) {
  return problem(404, "job_not_found", "no job '" + job_id + "'");
}

std::int64_t query_integer(const Request& request, std::string_view key, std::int64_t absent, Range range,
                           std::vector<FieldError>& errors) {
  const auto* text = request.argument(key);
  if (text == nullptr) return absent;
  const auto value = to_integer(*text);
  if (!value || *value < range.min || *value > range.max) {
    errors.push_back({std::string(key), range.text()});
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
