// Reads the fields of a JSON object and of a query, and collects everything that is wrong with them, so that
// the caller hears it at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "http/json/json_body.hpp"
#include "http/json/problem.hpp"
#include "http/wire/message.hpp"

namespace baton::http {

struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// A field that is null counts as absent.
class Fields {
 public:
  Fields(JsonView object, std::string prefix, std::vector<FieldError>& errors);

  [[nodiscard]] std::optional<std::string> text(std::string_view key,
                                                std::size_t length_max);  // printable, not empty
  [[nodiscard]] std::string required_text(std::string_view key, std::size_t length_max);
  [[nodiscard]] std::optional<std::string> prose(std::string_view key);  // any text; NUL becomes U+FFFD
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, Range range);
  [[nodiscard]] std::optional<double> number(std::string_view key, double min, double max);
  [[nodiscard]] std::optional<Time> time(std::string_view key);  // ISO 8601 with an offset
  [[nodiscard]] std::optional<bool> boolean(std::string_view key);
  // A list of printable texts; absent is empty.
  [[nodiscard]] std::vector<std::string> texts(std::string_view key, std::size_t items_max,
                                               std::size_t length_max);
  // A list of positive integers; absent is empty.
  [[nodiscard]] std::vector<std::int64_t> ids(std::string_view key, std::size_t items_max);
  [[nodiscard]] OptionalJson object(std::string_view key);
  [[nodiscard]] OptionalJson any(std::string_view key);
  [[nodiscard]] std::vector<JsonView> required_array(std::string_view key, std::size_t items_max);

  void wrong(std::string_view key, std::string message);

 private:
  [[nodiscard]] JsonView expect(std::string_view key, JsonKind kind);
  JsonView object_;
  std::string prefix_;
  std::vector<FieldError>& errors_;
};

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
