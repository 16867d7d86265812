#include "base/xml_text.hpp"

#include <algorithm>

#include "base/json.hpp"

namespace baton {
namespace {

constexpr std::string_view not_characters[] = {"\xEF\xBF\xBE", "\xEF\xBF\xBF"};  // U+FFFE and U+FFFF

bool is_forbidden(char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r'; }

}  // namespace

bool is_xml_text(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, is_forbidden) &&
         std::ranges::none_of(not_characters, [&](std::string_view each) { return text.contains(each); });
}

std::string xml_text(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  if (is_xml_text(text)) return std::string(text);
  std::string out;
  for (const char c : clean_text(text, std::string::npos)) is_forbidden(c) ? out.append(replacement) : out.append(1, c);
  for (const std::string_view each : not_characters)
    for (auto at = out.find(each); at != out.npos; at = out.find(each, at)) out.replace(at, each.size(), replacement);
  return out;
}

}  // namespace baton
