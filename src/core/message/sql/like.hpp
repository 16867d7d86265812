// LIKE: `%` is any text, `_` any one character, and a character after the escape character is itself. A
// character is one of Unicode, and its case counts. Private to the message folder.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace baton::message::sql {

class Pattern {
 public:
  // Nothing when the pattern ends with the escape character. The pattern must outlive it.
  [[nodiscard]] static std::optional<Pattern> read(std::string_view pattern,
                                                   std::optional<std::string_view> escape);

  // Takes a step from `steps` for each character looked at; nothing when there are none left. In the worst
  // case the steps are the product of both lengths, never more.
  [[nodiscard]] std::optional<bool> matches(std::string_view text, std::size_t& steps) const;

 private:
  struct Element {
    enum class Kind { character, any_one, any_text };
    Kind kind;
    std::string_view character;
  };
  std::vector<Element> elements_;
};

}  // namespace baton::message::sql
