#include "core/template/parser.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <tuple>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/emitter.hpp"
#include "core/template/filters.hpp"

namespace baton::expression {
namespace {

struct Operator {
  std::string_view sign;
  Op op;
};

// From loose to tight, as in Jinja, where ~ binds tighter than +.
constexpr std::array<std::array<Operator, 4>, 3> arithmetic{
    {{{{"+", Op::add}, {"-", Op::subtract}}},
     {{{"~", Op::concatenate}}},
     {{{"*", Op::multiply}, {"/", Op::divide}, {"//", Op::floor_divide}, {"%", Op::modulo}}}}};

constexpr std::array<Operator, 6> comparisons{{{"==", Op::equal},
                                               {"!=", Op::not_equal},
                                               {"<", Op::less},
                                               {"<=", Op::less_equal},
                                               {">", Op::greater},
                                               {">=", Op::greater_equal}}};

constexpr std::array<std::string_view, 7> reserved{"and", "or", "not", "in", "is", "if", "else"};

// Recursive descent, a function for each level of precedence. What nests counts against the depth limit; what
// is only long is read in loops. An error ends the parse, so that nothing is put back on the way out.
class Parser : Emitter {
 public:
  using Emitter::Emitter;

  Check parse() {
    if (next().kind == TokenKind::end) return fail(next(), "the expression is empty");
    TRY(conditional());
    if (next().kind == TokenKind::end) return {};
    return fail(next(), "unexpected " + shown(next()), hint_for_stray());
  }

 private:
  [[nodiscard]] std::string hint_for_stray() const {
    if (next().is_sign("=")) return "write '==' to compare";
    if (next().is_word("if")) return "put parentheses around one of the conditions";
    return next().is_sign(",") ? "a list is written in brackets" : "";
  }

  // ---- Operators, from loose to tight ----

  Check conditional() {
    TRY(enter(next()));
    const std::size_t value = here();
    TRY(disjunction());
    if (next().is_word("if")) TRY(condition(value));
    return leave();
  }

  // The condition is read after the value, and runs before it.
  Check condition(std::size_t value) {
    const Token& word = take();
    const std::size_t begin = here();
    TRY(disjunction());
    emit(Op::jump_unless, word);
    const auto code = program_.code.begin();
    std::rotate(code + static_cast<std::ptrdiff_t>(value), code + static_cast<std::ptrdiff_t>(begin),
                program_.code.end());
    const std::size_t unless = value + (here() - begin) - 1;
    const std::size_t over = here();
    emit(Op::jump, word);
    land(unless);
    if (take_word("else")) {
      TRY(conditional());
    } else {
      emit(Op::constant, word, add_constant(nullptr));
    }
    land(over);
    path_ = {};
    return {};
  }

  Check disjunction() {
    TRY(conjunction());
    while (next().is_word("or")) TRY(short_circuit(Op::jump_and_keep_if, &Parser::conjunction));
    return {};
  }

  Check conjunction() {
    TRY(negation());
    while (next().is_word("and")) TRY(short_circuit(Op::jump_and_keep_unless, &Parser::negation));
    return {};
  }

  Check short_circuit(Op op, Check (Parser::*operand)()) {
    const std::size_t jump = here();
    emit(op, take());
    TRY((this->*operand)());
    land(jump);
    path_ = {};
    return {};
  }

  Check negation() {
    if (!next().is_word("not")) return comparison();
    const Token& word = take();
    TRY(enter(word));
    TRY(negation());
    emit_operation(Op::logical_not, word);
    return leave();
  }

  Check comparison() {
    TRY(sum(0));
    const Token& sign = next();
    const std::optional<Op> op = take_comparison();
    if (!op) return {};
    if (*op == Op::not_in && !take_word("in")) return fail(next(), "expected 'in' after 'not'");
    TRY(sum(0));
    emit_operation(*op, sign);
    if (const Token& another = next(); take_comparison())
      return fail(another, "comparisons cannot be chained", "join two of them with 'and'");
    return {};
  }

  std::optional<Op> take_comparison() {
    if (take_word("in")) return Op::in;
    if (take_word("not")) return Op::not_in;
    if (next().kind != TokenKind::sign) return std::nullopt;
    const auto found = std::ranges::find(comparisons, std::string_view(next().text), &Operator::sign);
    if (found == comparisons.end()) return std::nullopt;
    ++at_;
    return found->op;
  }

  Check sum(std::size_t level) {
    if (level == arithmetic.size()) return unary(true);
    TRY(sum(level + 1));
    while (next().kind == TokenKind::sign) {
      const auto found = std::ranges::find(arithmetic[level], std::string_view(next().text), &Operator::sign);
      if (found == arithmetic[level].end()) break;
      const Token& sign = take();
      TRY(sum(level + 1));
      emit_operation(found->op, sign);
    }
    return {};
  }

  // As in Jinja, a filter sees the minus sign: -1 | abs is 1. A step of a path does not.
  Check unary(bool with_filters) {
    const Token& begin = next();
    if (take_sign("-")) {
      TRY(enter(begin));
      TRY(unary(false));
      emit_operation(Op::negate, begin);
      TRY(leave());
    } else {
      TRY(primary());
      TRY(steps(begin));
    }
    return with_filters ? filters_and_tests() : Check{};
  }

  // ---- Values ----

  Check primary() {
    const Token& token = next();
    switch (token.kind) {
      case TokenKind::string: ++at_; return literal(json::value(json::string(token.text)), token);
      case TokenKind::integer:
      case TokenKind::real: return number();
      case TokenKind::name: return name();
      case TokenKind::sign:
        if (token.text == "(") return parenthesized();
        if (token.text == "[") return list();
        if (token.text == "{") return object();
        break;
      case TokenKind::end: break;
    }
    return fail(token, "expected a value, found " + shown(token));
  }

  Check literal(json::value value, const Token& token) {
    emit_operation(Op::constant, token, add_constant(std::move(value)));
    return {};
  }

  Check number() {
    const Token& token = take();
    const char* const end = token.text.data() + token.text.size();
    if (token.kind == TokenKind::real) {
      double value = 0;
      if (std::from_chars(token.text.data(), end, value).ec != std::errc{})
        return fail(token, in_quotes(token.text) + " is out of range");
      return literal(value, token);
    }
    std::uint64_t value = 0;
    if (std::from_chars(token.text.data(), end, value).ec != std::errc{})
      return fail(token, in_quotes(token.text) + " is out of range");
    if (std::in_range<std::int64_t>(value)) return literal(static_cast<std::int64_t>(value), token);
    return literal(value, token);  // only for its minus sign: -9223372036854775808 is in range
  }

  Check parenthesized() {
    ++at_;
    TRY(conditional());
    return expect(")");
  }

  Check list() {
    const Token& open = take();
    std::size_t count = 0;
    while (!next().is_sign("]")) {
      if (count > 0) TRY(expect(","));
      if (next().is_sign("]")) break;  // a comma may stand after the last element
      TRY(conditional());
      ++count;
    }
    ++at_;
    emit_operation(Op::list, open, count);
    return {};
  }

  Check object() {
    const Token& open = take();
    std::size_t count = 0;
    while (!next().is_sign("}")) {
      if (count > 0) TRY(expect(","));
      if (next().is_sign("}")) break;
      TRY(conditional());
      TRY(expect(":"));
      TRY(conditional());
      ++count;
    }
    ++at_;
    emit_operation(Op::object, open, count);
    return {};
  }

  Check name() {
    const Token& token = next();
    const std::string_view word = token.text;
    const auto constant = [&](json::value value) {
      ++at_;
      return literal(std::move(value), token);
    };
    if (word == "true" || word == "True") return constant(true);
    if (word == "false" || word == "False") return constant(false);
    if (word == "none" || word == "None" || word == "null") return constant(nullptr);
    if (std::ranges::find(reserved, word) != reserved.end())
      return fail(token, "expected a value, found '" + token.text + "'");
    if (word == "inputs") return inputs();
    if (word == "nodes") return node();
    if (word == "env") return env();
    if (word == "item" || word == "index") return item();
    std::string guess =
        meant(word, {"inputs", "nodes", "item", "index", "env", "true", "false", "none", "not"});
    if (guess.empty()) guess = "names are inputs, nodes, item, index and env; text stands in quotes";
    return fail(token, "unknown name " + in_quotes(word), std::move(guess), "unknown_name");
  }

  // ---- Paths ----

  // `.name` or `['name']`, when that comes next.
  [[nodiscard]] const Token* fixed_key() const {
    if (next().is_sign(".") && after(1).kind == TokenKind::name) return &after(1);
    const bool bracketed = next().is_sign("[") && after(1).kind == TokenKind::string && after(2).is_sign("]");
    return bracketed ? &after(1) : nullptr;
  }
  const Token* take_fixed_key() {
    const Token* key = fixed_key();
    if (key) at_ += next().is_sign(".") ? 2 : 3;
    return key;
  }

  Check inputs() {
    const Token& root = take();
    emit_step(Op::inputs, root, root, root.end);
    path_ = {};
    program_.references.inputs = true;
    const Token* key = fixed_key();
    if (!key) return {};
    path_ = {Path::Root::input, program_.references.input_names.size()};
    program_.references.input_names.push_back({key->text, root.offset, false});
    return {};
  }

  Check node() {
    const Token& root = take();
    const Token* key = take_fixed_key();
    if (!key)
      return fail(
          root, "'nodes' needs the name of a node, written out",
          "write nodes.NAME.output, or nodes['NAME'].output when the name has other signs than letters, "
          "digits and '_'",
          "unknown_name");
    const Token* field = take_fixed_key();
    const std::string path = "nodes." + key->text;
    if (!field)
      return fail(next(), "expected .output, .status or .error after '" + path + "'",
                  next().is_sign("-") ? "a name with '-' is written nodes['" + key->text + "-...']" : "",
                  "unknown_name");
    const Words fields{"output", "status", "error"};
    if (std::ranges::find(fields, std::string_view(field->text)) == fields.end()) {
      std::string guess = meant(field->text, fields);
      if (guess.empty()) guess = "what a node has given is under '" + path + ".output'";
      return fail(*field, "a node has output, status and error, not " + in_quotes(field->text),
                  std::move(guess), "unknown_name");
    }
    const std::size_t constant = add_constant(json::string(key->text));
    add_constant(json::string(field->text));
    emit_step(Op::node, root, root, root.end, constant);
    path_ = {Path::Root::node, program_.references.nodes.size()};
    program_.references.nodes.push_back({key->text, field->text, root.offset, false});
    return {};
  }

  Check env() {
    const Token& root = take();
    const Token* key = take_fixed_key();
    if (!key) return fail(root, "'env' needs a name, written out", "write env.NAME", "unknown_name");
    emit_step(Op::env, root, root, root.end, add_constant(json::string(key->text)));
    path_ = {};
    program_.references.env.push_back(key->text);
    return {};
  }

  Check item() {
    const Token& root = take();
    path_ = {};
    References& references = program_.references;
    if (!references.item && !references.index) references.item_offset = root.offset;
    (root.text == "item" ? references.item : references.index) = true;
    emit_step(root.text == "item" ? Op::item : Op::index, root, root, root.end);
    return {};
  }

  Check steps(const Token& begin) {
    while (true) {
      if (next().is_sign(".")) {
        TRY(member(begin));
      } else if (next().is_sign("[")) {
        TRY(subscript(begin));
      } else if (next().is_sign("(")) {
        return fail(next(), "values cannot be called", "filters are written with '|', as in 'text | upper'");
      } else {
        return {};
      }
    }
  }

  Check member(const Token& begin) {
    const std::size_t base_end = last_end();
    ++at_;
    if (next().kind == TokenKind::integer || next().kind == TokenKind::real)
      return fail(next(), "expected a name after '.', found " + shown(next()), "an element is written [0]");
    if (next().kind != TokenKind::name)
      return fail(next(), "expected a name after '.', found " + shown(next()));
    const Token& key = take();
    if (next().is_sign("(") && find_filter(key.text))
      return fail(key, "values have no methods", "use the filter: | " + key.text);
    emit_step(Op::member, key, begin, base_end, add_constant(json::string(key.text)));
    return {};
  }

  Check subscript(const Token& begin) {
    const std::size_t base_end = last_end();
    const Path path = path_;
    const Token& open = next();
    if (const Token* key = take_fixed_key()) {
      emit_step(Op::member, *key, begin, base_end, add_constant(json::string(key->text)));
      return {};
    }
    ++at_;
    const bool from_start = next().is_sign(":");
    if (from_start) {
      emit(Op::absent, open);
    } else {
      TRY(conditional());
    }
    if (take_sign(":")) {
      if (next().is_sign("]")) {
        emit(Op::absent, open);
      } else {
        TRY(conditional());
      }
      TRY(expect("]"));
      emit_operation(Op::slice, open);
      return {};
    }
    TRY(expect("]"));
    emit_step(Op::element, open, begin, base_end);
    path_ = path;
    return {};
  }

  // ---- Filters and tests ----

  Check filters_and_tests() {
    while (true) {
      if (take_sign("|")) {
        TRY(filter());
      } else if (take_word("is")) {
        TRY(test());
      } else {
        return {};
      }
    }
  }

  Check filter() {
    const Token& name = next();
    if (name.kind != TokenKind::name)
      return fail(name, "expected the name of a filter after '|', found " + shown(name),
                  name.is_sign("|") ? "write 'or'" : "");
    const Filter* const found = find_filter(name.text);
    if (!found) {
      Words names;
      for (const Filter& each : expression::filters()) names.push_back(each.name);
      return fail(name, "unknown filter " + in_quotes(name.text), meant(name.text, names), "unknown_filter");
    }
    ++at_;
    if (found->takes_undefined) guard();
    Arguments given;
    if (take_sign("(")) TRY(arguments(*found, name, given));
    for (std::size_t i = 0; i < found->required; ++i)
      if (given[i].empty())
        return fail(name, "the filter '" + name.text + "' needs '" + std::string(found->parameters[i]) + "'",
                    {}, "invalid_arguments");
    const std::size_t count = emit_arguments(given, name);
    emit_operation(Op::filter, name, static_cast<std::size_t>(found - expression::filters().data()), count);
    return {};
  }

  // The code of each argument, by the parameters; that of a parameter which is not given is empty.
  using Arguments = std::array<std::vector<Instruction>, std::tuple_size_v<decltype(Filter::parameters)>>;

  Check arguments(const Filter& filter, const Token& name, Arguments& given) {
    const std::size_t count = filter.parameter_count();
    const std::size_t begin = here();
    bool named = false;
    for (std::size_t place = 0; !take_sign(")"); ++place) {
      if (place > 0) TRY(expect(","));
      const Token& token = next();
      std::size_t parameter = place;
      if (token.kind == TokenKind::name && after(1).is_sign("=")) {
        parameter = static_cast<std::size_t>(std::ranges::find(filter.parameters, token.text) -
                                             filter.parameters.begin());
        named = true;
        at_ += 2;
      } else if (named) {
        return fail(token, "an argument without a name follows one with a name",
                    "name it too: " + listed(filter), "invalid_arguments");
      }
      if (parameter >= count)
        return fail(token, "the filter '" + name.text + "' takes " + listed(filter), {}, "invalid_arguments");
      if (!given[parameter].empty())
        return fail(token, "'" + token.text + "' is given twice", {}, "invalid_arguments");
      TRY(conditional());
      given[parameter].assign(program_.code.begin() + static_cast<std::ptrdiff_t>(begin),
                              program_.code.end());
      program_.code.resize(begin);
    }
    return {};
  }

  // In the order of the parameters, whatever order they were written in; those that are skipped are absent.
  // The answer is how many are on the stack then.
  std::size_t emit_arguments(const Arguments& given, const Token& name) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].empty()) continue;
      for (; count < i; ++count) emit(Op::absent, name);
      program_.code.insert(program_.code.end(), given[i].begin(), given[i].end());
      ++count;
    }
    return count;
  }

  static std::string listed(const Filter& filter) {
    std::string names;
    for (std::size_t i = 0; i < filter.parameter_count(); ++i)
      names += (names.empty() ? "" : ", ") + std::string(filter.parameters[i]);
    return names.empty() ? "no arguments" : names;
  }

  Check test() {
    const bool negated = take_word("not");
    const Token& name = next();
    const TestName* found = name.kind == TokenKind::name ? find_test(name.text) : nullptr;
    if (!found) {
      Words names;
      for (const TestName& each : tests()) names.push_back(each.name);
      return fail(name, "unknown test " + shown(name), meant(name.text, names), "unknown_test");
    }
    ++at_;
    if (found->test == Test::defined) guard();
    emit_operation(Op::test, name, static_cast<std::size_t>(found->test), negated ? 1 : 0);
    return {};
  }
};

}  // namespace

std::expected<void, Problem> compile(const Tokens& tokens, Program& program) {
  return Parser(tokens.tokens, program).parse();
}

}  // namespace baton::expression
