// JSON that passes through is kept as text that has been checked once, at the edge; what is looked into is a
// boost::json::value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

// Well-formed JSON in compact form. Only code that has parsed or built it may make one.
struct Json {
  std::string text;
  friend bool operator==(const Json&, const Json&) = default;
};

using OptionalJson = std::optional<Json>;

void append_quoted(std::string& out,
                   std::string_view text);  // a JSON string, quotes included; invalid UTF-8 becomes U+FFFD
[[nodiscard]] std::string quoted(std::string_view text);

// The shortest text that reads back as the same number, and as a real: 1.0 stays one. Infinities and NaN,
// which JSON lacks, become null.
void append_real(std::string& out, double value);

[[nodiscard]] bool is_utf8(std::string_view text);
// Any text of 1 to length_max bytes without control characters.
[[nodiscard]] bool is_printable(std::string_view text, std::size_t length_max);
[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b);  // of ASCII letters
// The text as any store takes it: at most so many bytes, cut between characters, without NUL and invalid
// UTF-8, which become U+FFFD.
[[nodiscard]] std::string clean_text(std::string_view text, std::size_t bytes_max);

}  // namespace baton
