// Reads the fields of a JSON object, and collects everything that is wrong with them, so that whoever sent it hears it
// at once.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_document.hpp"
#include "base/time.hpp"

namespace baton {

struct FieldError {
  std::string field;  // "results[3].status"; empty for the whole body
  std::string message;
};

struct Range {
  std::int64_t min = 0;
  std::int64_t max = 0;
  [[nodiscard]] std::string text() const;  // what must be so
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

// For what makes work: a field that is misspelt would be left out, and the work begun at once or without its key. That
// cannot be undone.
void refuse_others(JsonView object, std::initializer_list<std::string_view> known, Fields& fields);

}  // namespace baton
