// Reads bodies and queries (fields of objects: base/json_fields.hpp), and collects everything that is wrong with them, so that
// the caller hears it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.hpp"
#include "base/time.hpp"
#include "http/json/json_body.hpp"
#include "http/json/problem.hpp"
#include "http/wire/message.hpp"

namespace baton::http {

[[nodiscard]] std::int64_t query_integer(const Request& request, std::string_view key, std::int64_t absent,
                                         Range range, std::vector<FieldError>& errors);
[[nodiscard]] std::optional<Time> query_time(const Request& request, std::string_view key,
                                             std::vector<FieldError>& errors);

[[nodiscard]] std::optional<bool> query_boolean(const Request& request, std::string_view key,
                                                std::vector<FieldError>& errors);

// Pages by id: the cursor is the last id of the page before, 0 for the first page.
struct Page {
  std::int64_t from = 0;
  std::size_t limit = 0;
};
[[nodiscard]] Page query_page(const Request& request, std::int64_t limit_default, std::int64_t limit_max,
                              std::vector<FieldError>& errors);

// The same by name: the cursor holds the last name of the page before, empty for the first page.
[[nodiscard]] std::string query_name_cursor(const Request& request, std::vector<FieldError>& errors);

// Who does something, and why: {"by": …, "reason": …}, both optional.
struct Attribution {
  std::string by;
  std::string reason;
};
[[nodiscard]] Attribution read_attribution(Fields& fields);
[[nodiscard]] std::expected<Attribution, Response> read_attribution(const Request& request);

// A path's part that may be the id of something.
[[nodiscard]] Response no_such_job(const std::string& job_id);

// The body as JSON, and as a JSON object; an empty body is an empty object where that makes sense.
[[nodiscard]] std::expected<JsonDocument, Response> parse_json(const Request& request, bool empty_is_object = false);
[[nodiscard]] std::expected<JsonDocument, Response> parse_object(const Request& request,
                                                                 bool empty_is_object = false);

}  // namespace baton::http
