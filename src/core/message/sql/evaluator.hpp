// The stack machine that runs one program for one message. Its cost is bounded: the code has no loops, LIKE
// takes its steps from a budget, and text that is built has a limit. Private to the message folder.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "core/message/envelope.hpp"
#include "core/message/problem.hpp"
#include "core/message/sql/program.hpp"

namespace baton::message::sql {

inline constexpr std::size_t like_steps_max = 100'000;  // of all LIKE of a program

// Everything must outlive it.
class Evaluator {
 public:
  Evaluator(const Program& program, const Envelope& envelope, const NewId& new_id)
      : program_(program), envelope_(envelope), new_id_(new_id) {}

  // Once.
  [[nodiscard]] std::expected<Value, Problem> run();

 private:
  // Properties and constants stay where they are: most filters compare one with the other.
  class Operand {
   public:
    explicit Operand(const Value* borrowed) : borrowed_(borrowed) {}
    explicit Operand(Value value) : owned_(std::move(value)) {}
    [[nodiscard]] const Value& operator*() const { return borrowed_ ? *borrowed_ : owned_; }
    [[nodiscard]] Value take() && { return borrowed_ ? *borrowed_ : std::move(owned_); }

   private:
    const Value* borrowed_ = nullptr;
    Value owned_;
  };
  using Check = std::expected<void, Problem>;

  Check execute(const Instruction& code, std::size_t& at);
  Check apply_binary(const Instruction& code);
  Check apply_unary(const Instruction& code);
  Check load_named(const Instruction& code);
  Check load_new_id(const Instruction& code);
  Check match(const Instruction& code);
  void find_among(std::size_t count);

  [[nodiscard]] const Value* user_property(std::string_view name) const;
  [[nodiscard]] const std::string& name_at(std::size_t constant) const;
  void push(Value value) { stack_.emplace_back(std::move(value)); }
  Operand pop();
  static std::unexpected<Problem> fail(const Instruction& code, std::string message);

  const Program& program_;
  const Envelope& envelope_;
  const NewId& new_id_;
  std::vector<Operand> stack_;
  std::size_t like_steps_ = like_steps_max;
};

}  // namespace baton::message::sql
