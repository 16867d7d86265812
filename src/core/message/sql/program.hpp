// What a filter or an expression of an action is compiled to: code for a stack machine, in one flat vector.
// What a condition leaves on the stack is a bool, or null for unknown. Private to the message folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/message/value.hpp"

namespace baton::message::sql {

enum class Op : std::uint8_t {
  constant,  // argument: which
  user,      // argument: constant with the name
  system,    // argument: which of system_properties()
  named,     // name → the application's property of that name
  new_id,
  plus,
  negate,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  is_null,
  is_not_null,
  exists_user,    // argument: constant with the name
  exists_system,  // argument: which of system_properties()
  in,             // argument: how many elements are above the value
  like,           // argument: 1 when there is an escape character above value and pattern
  logical_not,
  skip_if_false,  // argument: how far, from this instruction; keeps the operand
  skip_if_true,
  logical_and,
  logical_or,
};

struct Instruction {
  Op op{};
  std::uint32_t argument = 0;
  std::uint32_t offset = 0;  // of the word or sign in the text
};

struct Program {
  std::vector<Instruction> code;
  std::vector<Value> constants;
};

}  // namespace baton::message::sql
