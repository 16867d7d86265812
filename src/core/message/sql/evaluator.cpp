#include "core/message/sql/evaluator.hpp"

#include "base/result.hpp"
#include "base/utf8.hpp"
#include "core/message/sql/like.hpp"
#include "core/message/sql/operators.hpp"

namespace baton::message::sql {

std::expected<Value, Problem> Evaluator::run() {
  stack_.reserve(8);
  for (std::size_t at = 0; at < program_.code.size();) TRY(execute(program_.code[at], at));
  ENSURE(stack_.size() == 1);
  return pop().take();
}

Evaluator::Check Evaluator::execute(const Instruction& code, std::size_t& at) {
  std::size_t step = 1;
  switch (code.op) {
    case Op::constant: stack_.emplace_back(&program_.constants[code.argument]); break;
    case Op::user: {
      const Value* const found = user_property(name_at(code.argument));
      found ? stack_.emplace_back(found) : stack_.emplace_back(Value(Null{}));
      break;
    }
    case Op::system: push(system_properties()[code.argument].get(envelope_)); break;
    case Op::exists_user: push(user_property(name_at(code.argument)) != nullptr); break;
    case Op::exists_system: push(!message::is_null(system_properties()[code.argument].get(envelope_))); break;
    case Op::named: TRY(load_named(code)); break;
    case Op::new_id: TRY(load_new_id(code)); break;
    case Op::in: find_among(code.argument); break;
    case Op::like: TRY(match(code)); break;
    case Op::skip_if_false:
    case Op::skip_if_true:
      if (*stack_.back() == Value(code.op == Op::skip_if_true)) step = code.argument;
      break;
    case Op::plus:
    case Op::negate:
    case Op::is_null:
    case Op::is_not_null:
    case Op::logical_not: TRY(apply_unary(code)); break;
    default: TRY(apply_binary(code)); break;
  }
  at += step;
  return {};
}

Evaluator::Check Evaluator::apply_unary(const Instruction& code) {
  const Operand operand = pop();
  std::expected<Value, std::string> result;
  switch (code.op) {
    case Op::is_null: result = message::is_null(*operand); break;
    case Op::is_not_null: result = !message::is_null(*operand); break;
    case Op::logical_not: result = logical_not(*operand); break;
    case Op::plus: result = plus(*operand); break;
    default: result = negate(*operand); break;
  }
  if (!result) return fail(code, std::move(result).error());
  push(*std::move(result));
  return {};
}

Evaluator::Check Evaluator::apply_binary(const Instruction& code) {
  const Operand right = pop();
  const Operand left = pop();
  std::expected<Value, std::string> result;
  switch (code.op) {
    case Op::logical_and: result = logical_and(*left, *right); break;
    case Op::logical_or: result = logical_or(*left, *right); break;
    case Op::add:
    case Op::subtract:
    case Op::multiply:
    case Op::divide:
    case Op::modulo: result = calculate(code.op, *left, *right); break;
    default: result = compare(code.op, *left, *right); break;
  }
  if (!result) return fail(code, std::move(result).error());
  push(*std::move(result));
  return {};
}

Evaluator::Check Evaluator::load_named(const Instruction& code) {
  const Operand operand = pop();
  if (is_unknown(*operand)) {
    push(Null{});
    return {};
  }
  const std::string* const name = std::get_if<std::string>(&*operand);
  if (!name) return fail(code, "the name of a property must be a text");
  const Value* const found = user_property(*name);
  found ? stack_.emplace_back(found) : stack_.emplace_back(Value(Null{}));
  return {};
}

Evaluator::Check Evaluator::load_new_id(const Instruction& code) {
  if (!new_id_) return fail(code, "there are no new ids here");
  push(new_id_());
  return {};
}

// As `value = a OR value = b OR …`, which is what SQL says and makes null among the elements unknown.
void Evaluator::find_among(std::size_t count) {
  const std::size_t first = stack_.size() - count;
  const Value& value = *stack_[first - 1];
  Value found = false;
  for (std::size_t i = first; i < stack_.size(); ++i)
    found = logical_or(found, compare(Op::equal, value, *stack_[i]));
  stack_.erase(stack_.end() - static_cast<std::ptrdiff_t>(count) - 1, stack_.end());
  push(std::move(found));
}

Evaluator::Check Evaluator::match(const Instruction& code) {
  const Operand escape = code.argument == 1 ? pop() : Operand(Value(Null{}));
  const Operand pattern = pop();
  const Operand operand = pop();
  const bool unknown =
      is_unknown(*operand) || is_unknown(*pattern) || (code.argument == 1 && is_unknown(*escape));
  const std::string* const text = std::get_if<std::string>(&*operand);
  if (unknown || !text) {
    push(Null{});
    return {};
  }
  const std::string* const wanted = std::get_if<std::string>(&*pattern);
  if (!wanted) return fail(code, "the pattern of LIKE must be a text");
  std::optional<std::string_view> sign;
  if (code.argument == 1) {
    const std::string* const given = std::get_if<std::string>(&*escape);
    if (!given || character_count(*given) != 1)
      return fail(code, "the escape character of LIKE must be a text of one character");
    sign = *given;
  }
  const std::optional<Pattern> read = Pattern::read(*wanted, sign);
  if (!read) return fail(code, "the pattern of LIKE ends with its escape character");
  const std::optional<bool> matches = read->matches(*text, like_steps_);
  if (!matches) return fail(code, "LIKE takes too many steps");
  push(*matches);
  return {};
}

const Value* Evaluator::user_property(std::string_view name) const {
  const auto found = find_property(envelope_.properties, name);
  return found == envelope_.properties.end() ? nullptr : &found->second;
}

const std::string& Evaluator::name_at(std::size_t constant) const {
  return std::get<std::string>(program_.constants[constant]);
}

Evaluator::Operand Evaluator::pop() {
  Operand top = std::move(stack_.back());
  stack_.pop_back();
  return top;
}

std::unexpected<Problem> Evaluator::fail(const Instruction& code, std::string message) {
  return std::unexpected(Problem{code.offset, std::move(message), {}});
}

}  // namespace baton::message::sql
