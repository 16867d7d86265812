// What is kept of an answer: no secrets, and only text that every store takes. Pure.
#pragma once

#include <string>
#include <string_view>

namespace baton::caller {

// Whether a header of this name may hold a secret.
[[nodiscard]] bool is_sensitive(std::string_view header);

// At most bytes_max of the text, as valid UTF-8 without NUL: what is neither becomes U+FFFD, and no character
// is cut in the middle.
[[nodiscard]] std::string to_text(std::string_view bytes, std::size_t bytes_max);

}  // namespace baton::caller
