// Where {{Variable}} stands in a text. Private to the runbook folder.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace baton::runbook {

inline constexpr std::string_view batch_id_variable = "_batch_id";
inline constexpr std::string_view batch_start_time_variable = "_batch_start_time";

struct Variable {
  std::string_view name;  // without the blanks around it
  std::size_t begin = 0;  // of the opening braces
  std::size_t end = 0;    // after the closing ones
};

struct Broken {
  std::size_t at = 0;  // of the opening braces
  std::string why;
};

// The first variable at or after `from`; none: there is no more. Closing braces alone are text, so that JSON
// may be written into a text.
[[nodiscard]] std::expected<std::optional<Variable>, Broken> next_variable(std::string_view text,
                                                                           std::size_t from);

// What the header of a CSV file may be: letters (all of UTF-8), digits, '_', '-', '.', and blanks inside; at
// most 200 bytes.
[[nodiscard]] bool is_variable_name(std::string_view text);
inline constexpr std::string_view variable_rule = "letters, digits, '_', '-', '.' and blanks inside";

}  // namespace baton::runbook
