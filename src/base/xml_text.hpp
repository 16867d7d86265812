// Which texts XML can carry: UTF-8 without control characters but tab, LF and CR, and without U+FFFE and U+FFFF. No escape
// helps the others, and a document with one of them is refused by every parser.
#pragma once

#include <string>
#include <string_view>

namespace baton {

[[nodiscard]] bool is_xml_text(std::string_view text);
// With U+FFFD in place of what XML cannot carry.
[[nodiscard]] std::string xml_text(std::string_view text);

}  // namespace baton
