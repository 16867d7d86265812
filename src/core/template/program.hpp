// What a template is compiled to: code for a stack machine, in one flat vector. A stack machine needs no
// recursion, so that a chain of a thousand `+` is as harmless as one. Private to the template folder.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/template/expression.hpp"

namespace baton::expression {

namespace json = boost::json;

enum class Op : std::uint8_t {
  constant,  // argument: which
  absent,    // a parameter of a filter that was not given
  inputs,
  node,  // argument: constant with the name; the field is the constant after it
  item,
  index,
  env,      // argument: constant with the name
  member,   // argument: constant with the key
  element,  // container, key → value
  slice,    // container, from or absent, to or absent → part
  list,     // argument: how many elements
  object,   // argument: how many pairs of key and value
  negate,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  concatenate,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
  jump,              // argument: how far, from this instruction
  jump_unless,       // pops the condition
  jump_and_keep_if,  // `or`: keeps a true operand and jumps, drops a false one
  jump_and_keep_unless,
  test,    // argument: a Test; count: 1 when negated
  filter,  // argument: which; count: how many arguments are on the stack
};

struct Instruction {
  Op op{};
  std::uint32_t argument = 0;
  std::uint32_t count = 0;
  // Where it stands in the source: the word or sign itself, and for a step of a path, the whole path up to
  // it.
  std::uint32_t offset = 0;
  std::uint32_t path_begin = 0;
  std::uint32_t base_end = 0;  // the path without this step
  std::uint32_t path_end = 0;
};

// Literal text, or else a piece of code that leaves one value.
struct Part {
  std::string text;
  std::uint32_t code_begin = 0;
  std::uint32_t code_end = 0;
  [[nodiscard]] bool is_expression() const { return code_end > code_begin; }
};

struct Program {
  std::string source;
  std::vector<Part> parts;
  std::vector<Instruction> code;
  std::vector<json::value> constants;
  References references;
  bool native = false;  // one expression whose value keeps its type; the only part
};

}  // namespace baton::expression
