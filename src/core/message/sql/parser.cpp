#include "core/message/sql/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/diagnostic.hpp"
#include "base/result.hpp"

namespace baton::message::sql {
namespace {

struct Operator {
  std::string_view sign;
  Op op;
};

constexpr std::array<Operator, 7> comparisons{{{"=", Op::equal},
                                               {"<>", Op::not_equal},
                                               {"!=", Op::not_equal},
                                               {"<", Op::less},
                                               {"<=", Op::less_equal},
                                               {">", Op::greater},
                                               {">=", Op::greater_equal}}};
constexpr std::array<Operator, 2> sums{{{"+", Op::add}, {"-", Op::subtract}}};
constexpr std::array<Operator, 3> products{{{"*", Op::multiply}, {"/", Op::divide}, {"%", Op::modulo}}};

constexpr std::array<std::string_view, 11> keywords{"AND",  "OR",     "NOT",    "IS",   "NULL", "IN",
                                                    "LIKE", "ESCAPE", "EXISTS", "TRUE", "FALSE"};

std::optional<Op> find_operator(std::span<const Operator> operators, const Token& token) {
  for (const Operator& each : operators)
    if (token.is_sign(each.sign)) return each.op;
  return std::nullopt;
}

bool is_keyword(const Token& token) {
  return std::ranges::any_of(keywords, [&](std::string_view keyword) { return token.is_word(keyword); });
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::end: return "the end of the text";
    case TokenKind::string: return "the text " + in_quotes(token.text);
    case TokenKind::parameter: return in_quotes('@' + token.text);
    default: return in_quotes(token.text);
  }
}

}  // namespace

// ---- What is asked for ----

std::expected<Program, Problem> Parser::condition() {
  const Token& begin = next();
  TRY_ASSIGN(const Kind kind, disjunction());
  TRY(need(kind, Kind::condition, begin));
  return finish();
}

std::expected<Program, Problem> Parser::value() {
  TRY(value_operand(&Parser::sum));
  return finish();
}

std::expected<PropertyName, Problem> Parser::property() {
  const auto take_name = [&]() -> std::expected<const Token*, Problem> {
    const Token& token = next();
    if (is_keyword(token))
      return fail(token, in_quotes(token.text) + " is a keyword",
                  "a property of that name is written in brackets");
    if (token.kind == TokenKind::word || token.kind == TokenKind::name) return &take();
    return fail(token, "expected the name of a property, found " + shown(token));
  };
  TRY_ASSIGN(const Token* const first, take_name());
  if (!take_sign(".")) return PropertyName{nullptr, first->text, first->offset};
  TRY_ASSIGN(const Token* const name, take_name());
  if (same_name(first->text, "user")) return PropertyName{nullptr, name->text, name->offset};
  if (!same_name(first->text, "sys"))
    return fail(*first, "unknown scope " + in_quotes(first->text),
                "the scopes are user and sys; a name with a dot is written in brackets");
  if (const SystemProperty* const found = find_system_property(name->text))
    return PropertyName{found, name->text, name->offset};
  std::vector<std::string_view> names;
  for (const SystemProperty& each : system_properties()) names.push_back(each.name());
  const std::string guess = nearest(name->text, names);
  return fail(*name, "there is no system property " + in_quotes(name->text),
              guess.empty() ? "" : "did you mean sys." + guess + '?');
}

// ---- Operators, from loose to tight ----

Parser::Parsed Parser::disjunction() {
  const Token& begin = next();
  TRY_ASSIGN(Kind kind, conjunction());
  while (next().is_word("OR")) {
    TRY(need(kind, Kind::condition, begin));
    TRY_ASSIGN(kind, join(&Parser::conjunction, Op::skip_if_true, Op::logical_or));
  }
  return kind;
}

Parser::Parsed Parser::conjunction() {
  const Token& begin = next();
  TRY_ASSIGN(Kind kind, negation());
  while (next().is_word("AND")) {
    TRY(need(kind, Kind::condition, begin));
    TRY_ASSIGN(kind, join(&Parser::negation, Op::skip_if_false, Op::logical_and));
  }
  return kind;
}

// The right side is skipped when the left one decides alone, so that `n <> 0 AND 10 / n > 2` is safe.
Parser::Parsed Parser::join(Parsed (Parser::*operand)(), Op skip, Op combine) {
  const Token& operation = take();
  const std::size_t jump = program_.code.size();
  emit(skip, operation);
  const Token& begin = next();
  TRY_ASSIGN(const Kind right, (this->*operand)());
  TRY(need(right, Kind::condition, begin));
  emit(combine, operation);
  program_.code[jump].argument = static_cast<std::uint32_t>(program_.code.size() - jump);
  return Kind::condition;
}

Parser::Parsed Parser::negation() {
  const Token& operation = next();
  if (!take_word("NOT")) return comparison();
  TRY(enter(operation));
  const Token& begin = next();
  TRY_ASSIGN(const Kind kind, negation());
  TRY(need(kind, Kind::condition, begin));
  emit(Op::logical_not, operation);
  leave();
  return Kind::condition;
}

Parser::Parsed Parser::comparison() {
  const Token& begin = next();
  TRY_ASSIGN(const Kind left, sum());
  if (!compares(next())) return left;
  TRY(need(left, Kind::value, begin));
  const Token& operation = take();
  if (const std::optional<Op> op = find_operator(comparisons, operation)) {
    TRY(value_operand(&Parser::sum));
    emit(*op, operation);
  } else if (operation.is_word("IS")) {
    const bool negated = take_word("NOT");
    if (!take_word("NULL")) return fail(next(), "expected NULL after IS, found " + shown(next()));
    emit(negated ? Op::is_not_null : Op::is_null, operation);
  } else {
    TRY(membership(operation));
  }
  if (compares(next())) return fail(next(), "comparisons cannot be chained", "join two of them with AND");
  return Kind::condition;
}

bool Parser::compares(const Token& token) {
  constexpr std::array<std::string_view, 4> words{"IS", "IN", "LIKE", "NOT"};
  return find_operator(comparisons, token) ||
         std::ranges::any_of(words, [&](std::string_view word) { return token.is_word(word); });
}

// [NOT] IN and [NOT] LIKE, of which the first word is taken.
Parser::Check Parser::membership(const Token& operation) {
  const bool negated = operation.is_word("NOT");
  const Token& which = negated ? next() : operation;
  if (negated && (which.is_word("IN") || which.is_word("LIKE"))) ++at_;
  if (which.is_word("IN")) {
    TRY(in_list(which));
  } else if (which.is_word("LIKE")) {
    TRY(like(which));
  } else {
    return fail(which, "expected IN or LIKE after NOT, found " + shown(which));
  }
  if (negated) emit(Op::logical_not, operation);
  return {};
}

Parser::Check Parser::in_list(const Token& operation) {
  TRY(expect("("));
  std::size_t count = 0;
  do {
    TRY(value_operand(&Parser::sum));
    ++count;
  } while (take_sign(","));
  TRY(expect(")"));
  emit(Op::in, operation, count);
  return {};
}

Parser::Check Parser::like(const Token& operation) {
  TRY(value_operand(&Parser::sum));
  const bool escaped = take_word("ESCAPE");
  if (escaped) TRY(value_operand(&Parser::sum));
  emit(Op::like, operation, escaped ? 1 : 0);
  return {};
}

Parser::Parsed Parser::sum() {
  const Token& begin = next();
  TRY_ASSIGN(Kind kind, product());
  while (const std::optional<Op> op = find_operator(sums, next())) {
    TRY(need(kind, Kind::value, begin));
    TRY(binary(&Parser::product, *op));
  }
  return kind;
}

Parser::Parsed Parser::product() {
  const Token& begin = next();
  TRY_ASSIGN(Kind kind, sign());
  while (const std::optional<Op> op = find_operator(products, next())) {
    TRY(need(kind, Kind::value, begin));
    TRY(binary(&Parser::sign, *op));
  }
  return kind;
}

Parser::Check Parser::binary(Parsed (Parser::*operand)(), Op op) {
  const Token& operation = take();
  TRY(value_operand(operand));
  emit(op, operation);
  return {};
}

// A minus belongs to the number after it: the least integer has no positive counterpart.
Parser::Parsed Parser::sign() {
  const Token& operation = next();
  const bool negative = operation.is_sign("-");
  if (!negative && !operation.is_sign("+")) return primary();
  ++at_;
  if (next().kind == TokenKind::integer || next().kind == TokenKind::real) return number(negative);
  TRY(enter(operation));
  TRY(value_operand(&Parser::sign));
  emit(negative ? Op::negate : Op::plus, operation);
  leave();
  return Kind::value;
}

// ---- Operands ----

Parser::Parsed Parser::primary() {
  const Token& token = next();
  switch (token.kind) {
    case TokenKind::integer:
    case TokenKind::real: return number(false);
    case TokenKind::string: emit_constant(take().text, token); return Kind::value;
    case TokenKind::parameter: return parameter();
    case TokenKind::name: return load_property();
    case TokenKind::word: return word();
    case TokenKind::sign:
      if (token.is_sign("(")) return parenthesis();
      [[fallthrough]];
    case TokenKind::end: break;
  }
  return fail(token, "expected a value or a condition, found " + shown(token));
}

Parser::Parsed Parser::parenthesis() {
  TRY(enter(take()));
  TRY_ASSIGN(const Kind kind, disjunction());
  TRY(expect(")"));
  leave();
  return kind;
}

Parser::Parsed Parser::word() {
  const Token& token = next();
  if (token.is_word("EXISTS")) return exists();
  if (take_word("TRUE")) {
    emit_constant(true, token);
  } else if (take_word("FALSE")) {
    emit_constant(false, token);
  } else if (take_word("NULL")) {
    emit_constant(Null{}, token);
  } else {
    return after(1).is_sign("(") && !is_keyword(token) ? function() : load_property();
  }
  return Kind::value;
}

Parser::Parsed Parser::function() {
  const Token& name = take();
  TRY(expect("("));
  if (name.is_word("newid")) {
    emit(Op::new_id, name);
  } else if (name.is_word("property") || name.is_word("p")) {
    TRY(enter(name));
    TRY(value_operand(&Parser::sum));
    emit(Op::named, name);
    leave();
  } else {
    return fail(name, "there is no function " + in_quotes(name.text),
                "there are newid(), property(name) and p(name)");
  }
  TRY(expect(")"));
  return Kind::value;
}

Parser::Parsed Parser::exists() {
  const Token& token = take();
  TRY(expect("("));
  TRY_ASSIGN(const PropertyName name, property());
  TRY(expect(")"));
  emit_property(name, Op::exists_user, Op::exists_system, token);
  return Kind::condition;
}

Parser::Parsed Parser::load_property() {
  const Token& token = next();
  TRY_ASSIGN(const PropertyName name, property());
  emit_property(name, Op::user, Op::system, token);
  return Kind::value;
}

// Callers name parameters with the @ and without it.
Parser::Parsed Parser::parameter() {
  const Token& token = take();
  auto found = find_property(parameters_, '@' + token.text);
  if (found == parameters_.end()) found = find_property(parameters_, token.text);
  if (found == parameters_.end()) return fail(token, "the parameter " + shown(token) + " has no value");
  emit_constant(found->second, token);
  return Kind::value;
}

Parser::Parsed Parser::number(bool negative) {
  const Token& token = take();
  const std::string text = (negative ? "-" : "") + token.text;
  const auto read = [&]<class T>(T number) -> std::optional<Value> {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? std::optional<Value>(number)
                                                                    : std::nullopt;
  };
  std::optional<Value> value = token.kind == TokenKind::integer ? read(std::int64_t{}) : read(double{});
  if (!value) return fail(token, in_quotes(text) + " does not fit into 64 bits");
  emit_constant(*std::move(value), token);
  return Kind::value;
}

// ---- Tokens, checks and code ----

std::unexpected<Problem> Parser::fail(const Token& token, std::string message, std::string hint) {
  return std::unexpected(Problem{token.offset, std::move(message), std::move(hint)});
}

std::unexpected<Problem> Parser::unexpected_token() const {
  return fail(next(), "unexpected " + shown(next()), next().is_sign("=") ? "'=' is written once" : "");
}

Parser::Check Parser::expect(std::string_view sign) {
  if (take_sign(sign)) return {};
  return fail(next(), "expected '" + std::string(sign) + "', found " + shown(next()));
}

Parser::Check Parser::need(Kind found, Kind wanted, const Token& token) const {
  if (found == wanted) return {};
  if (wanted == Kind::value) return fail(token, "expected a value, found a condition");
  return fail(token, "expected a condition, found a value", "compare it, as in x = TRUE");
}

Parser::Check Parser::value_operand(Parsed (Parser::*operand)()) {
  const Token& begin = next();
  TRY_ASSIGN(const Kind kind, (this->*operand)());
  return need(kind, Kind::value, begin);
}

Parser::Check Parser::enter(const Token& token) {
  if (++depth_ <= depth_max) return {};
  return fail(token, "nested deeper than " + std::to_string(depth_max) + " levels");
}

const Token& Parser::after(std::size_t count) const {
  return tokens_[std::min(at_ + count, tokens_.size() - 1)];
}

void Parser::emit(Op op, const Token& token, std::size_t argument) {
  program_.code.push_back(
      {op, static_cast<std::uint32_t>(argument), static_cast<std::uint32_t>(token.offset)});
}

void Parser::emit_constant(Value value, const Token& token) {
  program_.constants.push_back(std::move(value));
  emit(Op::constant, token, program_.constants.size() - 1);
}

void Parser::emit_property(const PropertyName& name, Op user, Op system, const Token& token) {
  if (name.system)
    return emit(system, token, static_cast<std::size_t>(name.system - system_properties().data()));
  program_.constants.emplace_back(name.name);
  emit(user, token, program_.constants.size() - 1);
}

Program Parser::finish() { return std::exchange(program_, {}); }

}  // namespace baton::message::sql
