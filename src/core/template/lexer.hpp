// The words and signs of one expression. Private to the template folder.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "core/template/expression.hpp"

namespace baton::expression {

enum class TokenKind { name, integer, real, string, sign, end };

struct Token {
  TokenKind kind{};
  std::string text;        // strings: without quotes and escapes
  std::size_t offset = 0;  // into the template text
  std::size_t end = 0;

  [[nodiscard]] bool is_sign(std::string_view sign) const { return kind == TokenKind::sign && text == sign; }
  [[nodiscard]] bool is_word(std::string_view word) const { return kind == TokenKind::name && text == word; }
};

struct Tokens {
  std::vector<Token> tokens;  // the last is of kind end, and stands where the expression does
  std::size_t end = 0;        // the first byte after the expression and its braces
};

// Reads from `begin` to the "}}" that ends the expression, or, if it is bare, to the end of the text.
[[nodiscard]] std::expected<Tokens, Problem> tokenize(std::string_view text, std::size_t begin, bool bare);

}  // namespace baton::expression
