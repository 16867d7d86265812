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
  ~Evaluator() {
    const Usage used = budget_.used();
    scope_.spent(used.steps + used.text / text_per_step - remembered_);
  }
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Charges what an earlier evaluation of the same text has cost, so that what is remembered counts as if it
  // were evaluated again: whether a budget is exceeded must not depend on what is remembered.
  [[nodiscard]] bool charge_remembered(const Usage& usage) {
    remembered_ += usage.steps + usage.text / text_per_step;
    return budget_.steps(usage.steps) && budget_.text(usage.text);
  }

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
  std::size_t remembered_ = 0;  // of what was charged, the steps that nobody took
  std::vector<Value> stack_;
};

}  // namespace baton::expression
