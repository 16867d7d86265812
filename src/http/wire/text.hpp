// Small readers and writers of the text that URLs and headers are made of. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base64.hpp"

#include "base/json.hpp"
#include "base/url.hpp"

namespace baton::http {

// [A-Za-z0-9_.-]{1,length_max}
[[nodiscard]] bool is_name(std::string_view text, std::size_t length_max);
// W3C trace context: 00-<32 hex>-<16 hex>-<2 hex>, not all zeros.
[[nodiscard]] bool is_traceparent(std::string_view text);

[[nodiscard]] std::optional<std::int64_t> to_integer(std::string_view text);

using Query = std::vector<std::pair<std::string, std::string>>;
// None when an escape is malformed.
[[nodiscard]] std::optional<Query> parse_query(std::string_view text);

}  // namespace baton::http
