// The stack machine that runs the code of programs, within one budget. Private to the template folder.
#pragma once

#include <expected>
#include <vector>

#include "core/template/program.hpp"
#include "core/template/value.hpp"

namespace baton::expression {

class Evaluator {
 public:
  explicit Evaluator(const Scope& scope) : scope_(scope) { stack_.reserve(8); }

  // The value of one expression of the program, which must outlive it. Never undefined.
  [[nodiscard]] Outcome run(const Program& program, const Part& part);

  [[nodiscard]] Budget& budget() { return budget_; }

 private:
  using Check = std::expected<void, Problem>;

  Check execute(const Program& program, const Instruction& code, std::size_t& at);
  Value load(const Program& program, const Instruction& code) const;
  Check step_to_member(const Program& program, const Instruction& code);
  Check step_to_element(const Program& program, const Instruction& code);
  Check slice_top(const Program& program);
  Check make_list(const Program& program, std::size_t count);
  Check make_object(const Program& program, std::size_t pairs);
  Check apply_binary(const Program& program, const Instruction& code);
  Check apply_filter(const Program& program, const Instruction& code);
  Check decide(const Program& program, const Instruction& code, std::size_t& at);
  Check push(Outcome outcome);
  Value pop();
  // The topmost values must be defined.
  Check need(const Program& program, std::size_t count) const;

  const Scope& scope_;
  Budget budget_;
  std::vector<Value> stack_;
};

}  // namespace baton::expression
