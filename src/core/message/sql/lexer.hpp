// The words and signs of a filter or an action. Private to the message folder.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "core/message/problem.hpp"
#include "core/message/value.hpp"

namespace baton::message::sql {

// Service Bus has this limit for filters and for actions.
inline constexpr std::size_t text_characters_max = 1'024;

enum class TokenKind {
  word,
  name,
  integer,
  real,
  string,
  parameter,
  sign,
  end
};  // a name is quoted, so never a keyword

struct Token {
  TokenKind kind{};
  std::string text;        // without quotes and brackets; a parameter without its @
  std::size_t offset = 0;  // bytes into the text

  [[nodiscard]] bool is_sign(std::string_view sign) const { return kind == TokenKind::sign && text == sign; }
  [[nodiscard]] bool is_word(std::string_view word) const {
    return kind == TokenKind::word && same_name(text, word);
  }
};

// The last token is of kind end.
[[nodiscard]] std::expected<std::vector<Token>, Problem> tokenize(std::string_view text);

}  // namespace baton::message::sql
