#include "core/message/sql/lexer.hpp"

#include <array>
#include <utility>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "base/utf8.hpp"

namespace baton::message::sql {
namespace {

bool is_blank(char c) { return std::string_view(" \t\r\n\f\v").contains(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
// There is no table of the letters of all scripts here: whatever is not ASCII counts as one.
bool is_letter(char c) {
  return (lower(c) >= 'a' && lower(c) <= 'z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::expected<std::vector<Token>, Problem> read() {
    // A character has four bytes at most; text that is not well-formed must not pass as short.
    if (text_.size() > 4 * text_characters_max || character_count(text_) > text_characters_max)
      return fail(0, "the text is longer than " + std::to_string(text_characters_max) + " characters");
    while (true) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      Token& token = tokens_.emplace_back(Token{TokenKind::end, {}, at_});
      if (at_ == text_.size()) return std::move(tokens_);
      TRY(read_token(token));
    }
  }

 private:
  using Check = std::expected<void, Problem>;

  static std::unexpected<Problem> fail(std::size_t offset, std::string message, std::string hint = {}) {
    return std::unexpected(Problem{offset, std::move(message), std::move(hint)});
  }

  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  Check read_token(Token& token) {
    const char c = peek();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return read_number(token);
    if (c == '\'') return read_quoted(token, TokenKind::string, '\'', "the text");
    if (c == '"') return read_name(token, '"');
    if (c == '[') return read_name(token, ']');
    if (c == '@') return read_parameter(token);
    if (!is_letter(c)) return read_sign(token);
    token.kind = TokenKind::word;
    token.text = take_word();
    return {};
  }

  std::string_view take_word() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
    return text_.substr(from, at_ - from);
  }

  // The closing sign, twice, is that sign.
  Check read_quoted(Token& token, TokenKind kind, char closing, std::string_view what) {
    token.kind = kind;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == closing && peek(1) != closing) {
        ++at_;
        return {};
      }
      if (text_[at_] == closing) ++at_;
      token.text += text_[at_];
    }
    return fail(token.offset, std::string(what) + " is not closed by " + closing);
  }

  Check read_name(Token& token, char closing) {
    TRY(read_quoted(token, TokenKind::name, closing, "the name"));
    if (token.text.empty()) return fail(token.offset, "the name is empty");
    return {};
  }

  Check read_parameter(Token& token) {
    ++at_;
    token.kind = TokenKind::parameter;
    token.text = take_word();
    if (token.text.empty()) return fail(token.offset, "expected the name of a parameter after '@'");
    return {};
  }

  Check read_number(Token& token) {
    const std::size_t from = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (is_digit(peek())) ++at_;
      return at_ > first;
    };
    token.kind = TokenKind::integer;
    digits();
    if (peek() == '.') {
      token.kind = TokenKind::real;
      ++at_;
      digits();
    }
    bool well_formed = true;
    if (lower(peek()) == 'e') {
      token.kind = TokenKind::real;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      well_formed = digits();
    }
    if (!take_word().empty()) well_formed = false;
    token.text = text_.substr(from, at_ - from);
    if (well_formed) return {};
    return fail(from, in_quotes(token.text) + " is not a number",
                "a name that begins with a digit is written in brackets");
  }

  Check read_sign(Token& token) {
    constexpr std::array<std::string_view, 4> pairs{"<>", "!=", ">=", "<="};
    constexpr std::string_view singles = "=<>+-*/%(),.;";
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view pair : pairs)
      if (rest.starts_with(pair)) token.text = pair;
    if (token.text.empty() && singles.contains(rest.front())) token.text = rest.front();
    if (token.text.empty()) return unexpected_character(rest);
    token.kind = TokenKind::sign;
    at_ += token.text.size();
    return {};
  }

  [[nodiscard]] std::unexpected<Problem> unexpected_character(std::string_view rest) const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> hints{
        {{"&&", "write AND"},
         {"||", "write OR"},
         {"!", "write NOT"},
         {"_", "a name that begins with '_' is written in brackets"},
         {"$", "a name with '$' is written in brackets"},
         {"`", "a name is written in brackets, a text in single quotes"}}};
    std::string hint;
    for (const auto& [sign, advice] : hints)
      if (rest.starts_with(sign)) hint = advice;
    return fail(at_, "unexpected " + in_quotes(rest.substr(0, character_size(rest, 0))), std::move(hint));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::expected<std::vector<Token>, Problem> tokenize(std::string_view text) { return Lexer(text).read(); }

}  // namespace baton::message::sql
