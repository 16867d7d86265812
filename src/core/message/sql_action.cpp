#include "core/message/sql_action.hpp"

#include <optional>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/message/sql/evaluator.hpp"
#include "core/message/sql/lexer.hpp"
#include "core/message/sql/parser.hpp"

namespace baton::message {
namespace {

struct Statement {
  sql::PropertyName target;
  std::optional<sql::Program> value;  // none: REMOVE
};

std::expected<Statement, Problem> read_statement(sql::Parser& parser) {
  const bool removes = parser.take_word("REMOVE");
  if (!removes && !parser.take_word("SET")) return sql::Parser::fail(parser.next(), "expected SET or REMOVE");
  const sql::Token& begin = parser.next();
  TRY_ASSIGN(sql::PropertyName target, parser.property());
  if (target.system && !target.system->settable())
    return sql::Parser::fail(begin, "sys." + std::string(target.system->name()) + " cannot be changed");
  if (removes) return Statement{std::move(target), std::nullopt};
  TRY(parser.expect("="));
  TRY_ASSIGN(sql::Program value, parser.value());
  return Statement{std::move(target), std::move(value)};
}

void set_user(Properties& properties, const std::string& name, Value value) {
  const auto found = find_property(properties, name);
  if (found == properties.end()) {
    properties.emplace(name, std::move(value));
    return;
  }
  const auto* const integer = std::get_if<std::int64_t>(&value);
  if (integer && std::holds_alternative<double>(found->second)) value = static_cast<double>(*integer);
  found->second = std::move(value);
}

void remove_user(Properties& properties, std::string_view name) {
  const auto found = find_property(properties, name);
  if (found != properties.end()) properties.erase(found);
}

std::expected<void, Problem> execute(const Statement& statement, Envelope& envelope, const NewId& new_id) {
  const auto& [target, expression] = statement;
  Value value = Null{};
  if (expression) {
    TRY_ASSIGN(value, sql::Evaluator(*expression, envelope, new_id).run());
  }
  if (target.system) {
    if (target.system->set(envelope, value)) return {};
    return std::unexpected(Problem{
        target.offset, "the value is not of the type of sys." + std::string(target.system->name()), {}});
  }
  if (expression) {
    set_user(envelope.properties, target.name, std::move(value));
  } else {
    remove_user(envelope.properties, target.name);
  }
  return {};
}

}  // namespace

struct SqlAction::Compiled {
  std::string text;
  Properties parameters;
  std::vector<Statement> statements;
};

std::expected<SqlAction, Problem> SqlAction::parse(std::string_view text, const Properties& parameters) {
  TRY_ASSIGN(const std::vector<sql::Token> tokens, sql::tokenize(text));
  sql::Parser parser(tokens, parameters);
  std::vector<Statement> statements;
  do {
    if (statements.size() == statements_max)
      return sql::Parser::fail(parser.next(),
                               "an action has at most " + std::to_string(statements_max) + " statements");
    TRY_ASSIGN(Statement statement, read_statement(parser));
    statements.push_back(std::move(statement));
    if (!parser.take_sign(";") && parser.take_sign(",") && parser.next().kind == sql::TokenKind::end)
      return parser.unexpected_token();
  } while (parser.next().kind != sql::TokenKind::end);
  return SqlAction(std::make_shared<const Compiled>(std::string(text), parameters, std::move(statements)));
}

const std::string& SqlAction::text() const { return compiled_->text; }
const Properties& SqlAction::parameters() const { return compiled_->parameters; }

std::expected<Envelope, Problem> SqlAction::apply(Envelope envelope, const NewId& new_id) const {
  for (const Statement& statement : compiled_->statements) TRY(execute(statement, envelope, new_id));
  return envelope;
}

}  // namespace baton::message
