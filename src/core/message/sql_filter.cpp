#include "core/message/sql_filter.hpp"

#include "base/result.hpp"
#include "core/message/sql/evaluator.hpp"
#include "core/message/sql/lexer.hpp"
#include "core/message/sql/parser.hpp"

namespace baton::message {

struct SqlFilter::Compiled {
  std::string text;
  Properties parameters;
  sql::Program program;
};

std::expected<SqlFilter, Problem> SqlFilter::parse(std::string_view text, const Properties& parameters) {
  TRY_ASSIGN(const std::vector<sql::Token> tokens, sql::tokenize(text));
  sql::Parser parser(tokens, parameters);
  TRY_ASSIGN(sql::Program program, parser.condition());
  if (parser.next().kind != sql::TokenKind::end) return parser.unexpected_token();
  return SqlFilter(std::make_shared<const Compiled>(std::string(text), parameters, std::move(program)));
}

const std::string& SqlFilter::text() const { return compiled_->text; }
const Properties& SqlFilter::parameters() const { return compiled_->parameters; }

std::expected<Truth, Problem> SqlFilter::evaluate(const Envelope& envelope, const NewId& new_id) const {
  TRY_ASSIGN(const Value value, sql::Evaluator(compiled_->program, envelope, new_id).run());
  const bool* const known = std::get_if<bool>(&value);
  return !known ? Truth::unknown : *known ? Truth::yes : Truth::no;
}

std::optional<std::string> SqlFilter::equality(std::string_view property) const {
  const auto& [code, constants] = compiled_->program;
  if (code.size() != 3 || code[2].op != sql::Op::equal) return std::nullopt;
  const bool reversed = code[0].op == sql::Op::constant;
  const sql::Instruction& name = code[reversed ? 1 : 0];
  const sql::Instruction& value = code[reversed ? 0 : 1];
  if (name.op != sql::Op::user || value.op != sql::Op::constant) return std::nullopt;
  if (!same_name(std::get<std::string>(constants[name.argument]), property)) return std::nullopt;
  const std::string* const constant = std::get_if<std::string>(&constants[value.argument]);
  return constant ? std::optional(*constant) : std::nullopt;
}

}  // namespace baton::message
