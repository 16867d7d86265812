// Reads filters and the parts of actions, by recursive descent: a function for each level of precedence. What
// nests counts against a depth limit; what is only long is read in loops. Private to the message folder.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/message/envelope.hpp"
#include "core/message/problem.hpp"
#include "core/message/sql/lexer.hpp"
#include "core/message/sql/program.hpp"

namespace baton::message::sql {

inline constexpr int depth_max = 64;

// A property of the message, as the text names it. System is null for one of the application's.
struct PropertyName {
  const SystemProperty* system = nullptr;
  std::string name;
  std::size_t offset = 0;
};

class Parser {
 public:
  // Tokens, as of tokenize(), and parameters must outlive it.
  Parser(const std::vector<Token>& tokens, const Properties& parameters)
      : tokens_(tokens), parameters_(parameters) {}

  // Each reads as far as it can and leaves the rest.
  [[nodiscard]] std::expected<Program, Problem> condition();
  [[nodiscard]] std::expected<Program, Problem> value();
  [[nodiscard]] std::expected<PropertyName, Problem> property();

  [[nodiscard]] const Token& next() const { return tokens_[at_]; }
  bool take_sign(std::string_view sign) { return next().is_sign(sign) && (++at_, true); }
  bool take_word(std::string_view word) { return next().is_word(word) && (++at_, true); }
  [[nodiscard]] std::expected<void, Problem> expect(std::string_view sign);
  [[nodiscard]] std::unexpected<Problem> unexpected_token() const;

  static std::unexpected<Problem> fail(const Token& token, std::string message, std::string hint = {});

 private:
  // The grammar tells them apart: NOT, AND and OR join conditions, all other operators take values.
  enum class Kind { condition, value };
  using Parsed = std::expected<Kind, Problem>;
  using Check = std::expected<void, Problem>;

  Parsed disjunction();
  Parsed conjunction();
  Parsed negation();
  Parsed comparison();
  Parsed sum();
  Parsed product();
  Parsed sign();
  Parsed primary();
  Parsed parenthesis();
  Parsed word();
  Parsed function();
  Parsed exists();
  Parsed parameter();
  Parsed number(bool negative);
  Parsed load_property();

  Parsed join(Parsed (Parser::*operand)(), Op skip, Op combine);
  Check binary(Parsed (Parser::*operand)(), Op op);
  static bool compares(const Token& token);
  Check membership(const Token& operation);
  Check in_list(const Token& operation);
  Check like(const Token& operation);

  Check need(Kind found, Kind wanted, const Token& token) const;
  Check value_operand(Parsed (Parser::*operand)());
  Check enter(const Token& token);
  void leave() { --depth_; }

  [[nodiscard]] const Token& after(std::size_t count) const;
  const Token& take() { return tokens_[at_++]; }
  void emit(Op op, const Token& token, std::size_t argument = 0);
  void emit_constant(Value value, const Token& token);
  void emit_property(const PropertyName& name, Op user, Op system, const Token& token);
  Program finish();

  const std::vector<Token>& tokens_;
  const Properties& parameters_;
  Program program_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace baton::message::sql
