// Compiles the tokens of one expression. Private to the template folder.
#pragma once

#include <expected>

#include "core/template/lexer.hpp"
#include "core/template/program.hpp"

namespace baton::expression {

// Appends the code of the expression to the program, with its constants and references.
[[nodiscard]] std::expected<void, Problem> compile(const Tokens& tokens, Program& program);

}  // namespace baton::expression
