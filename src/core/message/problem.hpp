// What is wrong with the text of a filter or an action, or why it could not be evaluated for a message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace baton::message {

struct Problem {
  std::size_t offset = 0;  // bytes into the text, at most its size
  std::string message;
  std::string hint;  // may be empty
};

// One line: "at character 12: expected ')', found 'x' (hint)".
[[nodiscard]] inline std::string describe(const Problem& problem, std::string_view text) {
  const std::size_t character = character_count(text.substr(0, std::min(problem.offset, text.size()))) + 1;
  std::string line = "at character " + std::to_string(character) + ": " + problem.message;
  if (!problem.hint.empty()) line += " (" + problem.hint + ')';
  return line;
}

}  // namespace baton::message
