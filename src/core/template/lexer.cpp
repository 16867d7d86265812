#include "core/template/lexer.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/text.hpp"

namespace baton::expression {
namespace {

class Lexer {
 public:
  Lexer(std::string_view text, std::size_t begin, bool bare)
      : text_(text), begin_(begin), at_(begin), bare_(bare) {}

  std::expected<Tokens, Problem> read() {
    while (true) {
      while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
      const std::size_t offset = at_;
      if (offset - begin_ > expression_bytes_max)
        return fail(begin_, "an expression has at most " + std::to_string(expression_bytes_max) + " bytes",
                    "expression_too_long");
      if (const std::optional<std::size_t> end = end_here()) {
        tokens_.push_back({TokenKind::end, {}, offset, offset});
        return Tokens{std::move(tokens_), *end};
      }
      if (at_ >= text_.size()) return fail(begin_, "the expression is not closed by '}}'");
      tokens_.push_back({TokenKind::sign, {}, offset, offset});
      TRY(read_token(tokens_.back()));
      tokens_.back().end = at_;
    }
  }

 private:
  static std::unexpected<Problem> fail(std::size_t offset, std::string message,
                                       std::string code = "expression_syntax", std::string hint = {}) {
    return std::unexpected(Problem{offset, std::move(message), std::move(hint), std::move(code)});
  }

  // Braces of an object inside the expression do not end it.
  [[nodiscard]] std::optional<std::size_t> end_here() const {
    if (bare_) return at_ >= text_.size() ? std::optional(at_) : std::nullopt;
    if (open_braces_ == 0 && text_.substr(at_).starts_with("}}")) return at_ + 2;
    return std::nullopt;
  }

  std::expected<void, Problem> read_token(Token& token) {
    const char c = text_[at_];
    if (is_digit(c)) return read_number(token);
    if (c == '"' || c == '\'') return read_string(token);
    if (is_word_start(c)) {
      token.kind = TokenKind::name;
      while (at_ < text_.size() && is_word_part(text_[at_])) token.text += text_[at_++];
      return {};
    }
    return read_sign(token);
  }

  std::expected<void, Problem> read_sign(Token& token) {
    constexpr std::array<std::string_view, 6> pairs{"==", "!=", "<=", ">=", "//", "**"};
    constexpr std::string_view singles = "+-*/%~<>=()[]{}.,:|";
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view pair : pairs)
      if (rest.starts_with(pair)) token.text = pair;
    if (token.text.empty() && singles.contains(rest.front())) token.text = rest.front();
    if (token.text.empty()) return unexpected_character();
    if (token.text == "**") return fail(at_, "'**' is not supported");
    if (token.text == "{") ++open_braces_;
    if (token.text == "}" && open_braces_ > 0) --open_braces_;
    at_ += token.text.size();
    return {};
  }

  [[nodiscard]] std::unexpected<Problem> unexpected_character() const {
    const std::string_view rest = text_.substr(at_);
    std::string hint;
    if (rest.starts_with("&&")) hint = "write 'and'";
    if (rest.starts_with("||")) hint = "write 'or'";
    if (rest.starts_with("!")) hint = "write 'not'";
    if (rest.starts_with("?")) hint = "write 'a if condition else b'";
    const std::size_t size = std::min(character_size(rest, 0), rest.size());
    return fail(at_, "unexpected " + in_quotes(rest.substr(0, size)) + " in an expression",
                "expression_syntax", std::move(hint));
  }

  std::expected<void, Problem> read_number(Token& token) {
    const std::size_t from = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return at_ > first;
    };
    token.kind = TokenKind::integer;
    bool well_formed = digits() && (text_[from] != '0' || at_ == from + 1);
    if (at_ + 1 < text_.size() && text_[at_] == '.' && is_digit(text_[at_ + 1])) {
      token.kind = TokenKind::real;
      ++at_;
      digits();
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      token.kind = TokenKind::real;
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      well_formed &= digits();
    }
    if (at_ < text_.size() && is_word_part(text_[at_])) {
      well_formed = false;
      while (at_ < text_.size() && is_word_part(text_[at_])) ++at_;
    }
    token.text = text_.substr(from, at_ - from);
    if (well_formed) return {};
    return fail(from, in_quotes(token.text) + " is not a number");
  }

  std::expected<void, Problem> read_string(Token& token) {
    token.kind = TokenKind::string;
    const std::size_t from = at_;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        token.text += text_[at_++];
      } else if (at_ + 1 >= text_.size()) {
        break;
      } else {
        TRY(read_escape(token.text));
      }
    }
    if (at_ >= text_.size()) return fail(from, "the string is not closed");
    ++at_;
    return {};
  }

  std::expected<void, Problem> read_escape(std::string& out) {
    constexpr std::string_view letters = "ntrbf\\/'\"";
    constexpr std::string_view meanings = "\n\t\r\b\f\\/'\"";
    const std::size_t from = at_;
    const char letter = text_[at_ + 1];
    at_ += 2;
    if (const std::size_t i = letters.find(letter); i != letters.npos) {
      out += meanings[i];
      return {};
    }
    std::optional<std::uint32_t> code;
    if (letter == 'x') code = read_hex(2);
    if (letter == 'u') code = read_hex(4);
    if (code && *code >= 0xd800 && *code < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
      at_ += 2;
      const auto low = read_hex(4);
      code = low && *low >= 0xdc00 && *low < 0xe000
                 ? std::optional(0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00))
                 : std::nullopt;
    }
    if (!code || (*code >= 0xd800 && *code < 0xe000))
      return fail(from, "unknown escape " + in_quotes(text_.substr(from, at_ - from)), "expression_syntax",
                  "write '\\\\' for a backslash");
    append_character(out, *code);
    return {};
  }

  std::optional<std::uint32_t> read_hex(std::size_t digits) {
    const std::string_view hex = text_.substr(std::min(at_, text_.size()), digits);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() != digits || error != std::errc{} || end != hex.data() + hex.size()) return std::nullopt;
    at_ += digits;
    return code;
  }

  std::string_view text_;
  std::size_t begin_;
  std::size_t at_;
  bool bare_;
  int open_braces_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::expected<Tokens, Problem> tokenize(std::string_view text, std::size_t begin, bool bare) {
  return Lexer(text, begin, bare).read();
}

}  // namespace baton::expression
