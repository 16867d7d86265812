// JSON that people give on the command line: as text, as @FILE, or as - for standard input.
#pragma once

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "base/result.hpp"

namespace baton::cli {

inline constexpr const char* input_help = "the job's input: JSON, @FILE, or - for standard input; default {}";

[[nodiscard]] Result<Json> read_input(const std::string& argument);
// Compact; an object, or an error that names the byte where the text stops being JSON.
[[nodiscard]] Result<Json> parse_input(std::string_view text, std::string_view source);

// What is wrong with a span of time, for people; empty: nothing.
[[nodiscard]] std::string check_span(const std::string& text);

[[nodiscard]] Result<std::string> read_file(const std::string& path);  // - is standard input
// The same for what goes into JSON, which has no other encoding than UTF-8.
[[nodiscard]] Result<std::string> read_utf8_file(const std::string& path);

}  // namespace baton::cli
