// What the parser stands on: the tokens it walks along, and the code it appends to. Private to the parser.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "core/template/lexer.hpp"
#include "core/template/program.hpp"

namespace baton::expression {

using Check = std::expected<void, Problem>;
using Words = std::vector<std::string_view>;

class Emitter {
 public:
  Emitter(const std::vector<Token>& tokens, Program& program) : tokens_(tokens), program_(program) {}

 protected:
  // ---- Tokens ----

  [[nodiscard]] const Token& next() const { return tokens_[at_]; }
  [[nodiscard]] const Token& after(std::size_t count) const {
    return tokens_[std::min(at_ + count, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[at_++]; }
  bool take_sign(std::string_view sign) { return next().is_sign(sign) && (++at_, true); }
  bool take_word(std::string_view word) { return next().is_word(word) && (++at_, true); }

  static std::string shown(const Token& token) {
    switch (token.kind) {
      case TokenKind::end: return "end of the expression";
      case TokenKind::string: return "string " + in_quotes(token.text);
      default: return in_quotes(token.text);
    }
  }

  static std::string meant(std::string_view word, const Words& candidates) {
    const std::string guess = nearest(word, candidates);
    return guess.empty() ? "" : "did you mean '" + guess + "'?";
  }

  static std::unexpected<Problem> fail(const Token& token, std::string message, std::string hint = {},
                                       std::string code = "expression_syntax") {
    return std::unexpected(Problem{token.offset, std::move(message), std::move(hint), std::move(code)});
  }

  Check expect(std::string_view sign) {
    if (take_sign(sign)) return {};
    return fail(next(), "expected '" + std::string(sign) + "', found " + shown(next()));
  }

  Check enter(const Token& token) {
    if (++depth_ <= depth_max) return {};
    return fail(token, "the expression is nested deeper than " + std::to_string(depth_max) + " levels", {},
                "expression_too_deep");
  }
  Check leave() {
    --depth_;
    return {};
  }

  // ---- Code ----

  Instruction& emit(Op op, const Token& token, std::size_t argument = 0, std::size_t count = 0) {
    Instruction& code = program_.code.emplace_back();
    code.op = op;
    code.argument = static_cast<std::uint32_t>(argument);
    code.count = static_cast<std::uint32_t>(count);
    code.offset = static_cast<std::uint32_t>(token.offset);
    return code;
  }

  // Code that ends a path, so that `default` after it has nothing to guard.
  void emit_operation(Op op, const Token& token, std::size_t argument = 0, std::size_t count = 0) {
    emit(op, token, argument, count);
    path_ = {};
  }

  // A step of a path that begins at `begin` and ends with the token read last.
  void emit_step(Op op, const Token& token, const Token& begin, std::size_t base_end,
                 std::size_t argument = 0) {
    Instruction& code = emit(op, token, argument);
    code.path_begin = static_cast<std::uint32_t>(begin.offset);
    code.base_end = static_cast<std::uint32_t>(base_end);
    code.path_end = static_cast<std::uint32_t>(last_end());
  }

  [[nodiscard]] std::size_t last_end() const { return tokens_[at_ - 1].end; }

  std::size_t add_constant(json::value value) {
    program_.constants.push_back(std::move(value));
    return program_.constants.size() - 1;
  }

  std::size_t here() const { return program_.code.size(); }
  void land(std::size_t jump) { program_.code[jump].argument = static_cast<std::uint32_t>(here() - jump); }

  // The reference that the value read last is a path from, if it is one.
  struct Path {
    enum class Root { none, input, node };
    Root root = Root::none;
    std::size_t number = 0;
  };

  // `default` and `is defined` follow: the path may lead nowhere.
  void guard() {
    if (path_.root == Path::Root::input) program_.references.input_names[path_.number].guarded = true;
    if (path_.root == Path::Root::node) program_.references.nodes[path_.number].guarded = true;
  }

  const std::vector<Token>& tokens_;
  Program& program_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Path path_;
};

}  // namespace baton::expression
