// What the text of a plain scalar means: the core schema of YAML 1.2. Private to the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/yaml.hpp"

namespace baton::yaml {

[[nodiscard]] NodeKind resolve_plain(std::string_view text);

// Of text that resolves to an integer or a real; to_int has none for integers beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> to_int(std::string_view text);
[[nodiscard]] double to_real(const std::string& text);

// The digits, without sign and leading zeros, of a decimal integer that has too many for a double; empty for
// others.
[[nodiscard]] std::string_view big_integer_digits(std::string_view text);

}  // namespace baton::yaml
