#include "core/template/expression.hpp"

#include <boost/json.hpp>

#include "base/json.hpp"
#include "base/result.hpp"
#include "core/template/evaluator.hpp"
#include "core/template/lexer.hpp"
#include "core/template/parser.hpp"
#include "core/template/program.hpp"
#include "core/template/text.hpp"

namespace baton::expression {
namespace {

std::unexpected<Problem> fail(std::size_t offset, std::string message, std::string hint = {},
                              std::string code = "expression_syntax") {
  return std::unexpected(Problem{offset, std::move(message), std::move(hint), std::move(code)});
}

// Of {{, {% and {#, the next one from `at`; npos when there is none.
std::size_t find_opening(std::string_view text, std::size_t at) {
  for (at = text.find('{', at); at != text.npos; at = text.find('{', at + 1))
    if (at + 1 < text.size() && std::string_view("{%#").contains(text[at + 1])) return at;
  return std::string_view::npos;
}

std::expected<void, Problem> check_size(std::string_view text) {
  if (text.size() <= template_bytes_max) return {};
  return fail(0, "a text with expressions has at most " + std::to_string(template_bytes_max) + " bytes", {},
              "expression_too_long");
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { program_.source = text; }

  std::expected<Program, Problem> read() {
    std::size_t at = 0;
    while (at < text_.size()) {
      const std::size_t opening = std::min(find_opening(text_, at), text_.size());
      literal_ += text_.substr(at, opening - at);
      at = opening;
      if (at == text_.size()) break;
      TRY_ASSIGN(at, read_opening(at));
    }
    end_literal();
    keep_type_if_alone();
    return std::move(program_);
  }

 private:
  std::expected<std::size_t, Problem> read_opening(std::size_t at) {
    switch (text_[at + 1]) {
      case '#': {
        const std::size_t end = text_.find("#}", at + 2);
        if (end == text_.npos) return fail(at, "the comment is not closed by '#}'");
        return end + 2;
      }
      case '%':
        return fail(at, "statements in {% %} are not supported", "only {{ expressions }} are",
                    "expression_statement");
      default: break;
    }
    if (text_.substr(at + 2).starts_with('-'))
      return fail(at, "'{{-' is not supported", "put a blank before a minus sign: '{{ -x }}'");
    TRY_ASSIGN(const Tokens tokens, tokenize(text_, at + 2, false));
    end_literal();
    const auto begin = static_cast<std::uint32_t>(program_.code.size());
    TRY(compile(tokens, program_));
    program_.parts.push_back({{}, begin, static_cast<std::uint32_t>(program_.code.size())});
    return tokens.end;
  }

  void end_literal() {
    if (!literal_.empty()) program_.parts.push_back({std::exchange(literal_, {}), 0, 0});
  }

  // Blanks around it do not count: a block of YAML ends with a line break.
  void keep_type_if_alone() {
    const Part* only = nullptr;
    for (const Part& part : program_.parts) {
      const bool counts = part.is_expression() || !trimmed(part.text).empty();
      if (!counts) continue;
      if (only || !part.is_expression()) return;
      only = &part;
    }
    if (!only) return;
    program_.native = true;
    program_.parts = {Part(*only)};
  }

  std::string_view text_;
  std::string literal_;
  Program program_;
};

std::expected<void, Problem> append_text(const Program& program, Evaluator& evaluator, std::string& out) {
  for (const Part& part : program.parts) {
    if (!part.is_expression()) {
      if (!evaluator.budget().text(part.text.size())) return evaluator.budget().exceeded();
      out += part.text;
      continue;
    }
    TRY_ASSIGN(const Value value, evaluator.run(program, part));
    if (!append_text(out, *value, evaluator.budget())) {
      Problem problem = evaluator.budget().exceeded().error();
      problem.offset = program.code[part.code_begin].offset;
      return std::unexpected(std::move(problem));
    }
  }
  return {};
}

}  // namespace

std::expected<Template, Problem> Template::parse(std::string_view text) {
  TRY(check_size(text));
  TRY_ASSIGN(Program program, Reader(text).read());
  return Template(std::make_shared<const Program>(std::move(program)));
}

std::expected<Template, Problem> Template::parse_expression(std::string_view text) {
  TRY(check_size(text));
  if (const std::size_t opening = text.find_first_not_of(" \t\r\n");
      opening != text.npos && text.substr(opening).starts_with("{{"))
    return fail(opening, "this is an expression already", "leave '{{' and '}}' out");
  Program program;
  program.source = text;
  program.native = true;
  TRY_ASSIGN(const Tokens tokens, tokenize(text, 0, true));
  TRY(compile(tokens, program));
  program.parts.push_back({{}, 0, static_cast<std::uint32_t>(program.code.size())});
  return Template(std::make_shared<const Program>(std::move(program)));
}

bool Template::is_constant() const { return program_->code.empty(); }

const References& Template::references() const { return program_->references; }

std::expected<json::value, Problem> Template::evaluate(const Scope& scope) const {
  Evaluator evaluator(scope);
  if (program_->native) {
    TRY_ASSIGN(Value value, evaluator.run(*program_, program_->parts.front()));
    return std::move(value).take(evaluator.budget());
  }
  std::string text;
  TRY(append_text(*program_, evaluator, text));
  return json::value(json::string(text));
}

std::expected<void, Problem> Template::append_json(Evaluator& evaluator, int depth, std::string& out) const {
  if (program_->native) {
    TRY_ASSIGN(const Value value, evaluator.run(*program_, program_->parts.front()));
    if (!expression::append_json(out, *value, evaluator.budget(), depth))
      return evaluator.budget().exceeded();
    return {};
  }
  std::string text;
  TRY(append_text(*program_, evaluator, text));
  append_quoted(out, text);
  return {};
}

bool has_expression(std::string_view text) { return find_opening(text, 0) != text.npos; }

}  // namespace baton::expression
