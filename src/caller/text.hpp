// What is kept of an answer: only text that every store takes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace baton::caller {

// At most bytes_max of the text, as valid UTF-8 without NUL: what is neither becomes U+FFFD, and no character
// is cut in the middle.
[[nodiscard]] std::string to_text(std::string_view bytes, std::size_t bytes_max);

}  // namespace baton::caller
