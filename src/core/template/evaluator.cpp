#include "core/template/evaluator.hpp"

#include <boost/json.hpp>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/filters.hpp"
#include "core/template/operators.hpp"
#include "core/template/text.hpp"

namespace baton::expression {
namespace {

std::string_view source(const Program& program, std::uint32_t begin, std::uint32_t end) {
  return std::string_view(program.source).substr(begin, end - begin);
}

std::string_view constant_text(const Program& program, std::size_t constant) {
  return view(program.constants[constant].get_string());
}

std::string no_root(const Program& program, const Instruction& code) {
  switch (code.op) {
    case Op::node:
      return "node " + in_quotes(constant_text(program, code.argument)) + " has no " +
             std::string(constant_text(program, code.argument + 1)) + " here";
    case Op::env: return "there is no " + in_quotes(constant_text(program, code.argument)) + " in env";
    default: return "there is no '" + std::string(source(program, code.path_begin, code.base_end)) + "' here";
  }
}

std::string reason(const Program& program, const Undefined& undefined) {
  const Instruction& code = *undefined.at;
  const std::string base(source(program, code.path_begin, code.base_end));
  switch (undefined.why) {
    case Undefined::Why::no_root: return no_root(program, code);
    case Undefined::Why::no_member:
      if (code.op == Op::element) return base + " has no such member";
      return in_quotes(constant_text(program, code.argument)) + " is not a member of " + base;
    case Undefined::Why::not_an_object:
    case Undefined::Why::not_a_container: break;
    case Undefined::Why::no_element:
      return base + " has " + std::to_string(undefined.size) + " elements, and none at " +
             std::to_string(undefined.index);
  }
  const bool object = undefined.why == Undefined::Why::not_an_object;
  return base + " is " + std::string(describe(undefined.kind)) + " and has no " +
         (object ? "members" : "elements");
}

Problem undefined_problem(const Program& program, const Undefined& undefined) {
  const std::string_view path = source(program, undefined.at->path_begin, undefined.path_end);
  return {undefined.at->offset, in_quotes(path) + " is not defined: " + reason(program, undefined),
          "give a value for this case: | default(...)", "undefined"};
}

// Steps of a path that goes on after it was lost.
Value lost(const Value& value, const Instruction& code) {
  Undefined undefined = *value.undefined();
  undefined.path_end = code.path_end;
  return Value(undefined);
}

Value lost(Undefined::Why why, const Instruction& code, json::kind kind = {}, std::int64_t index = 0,
           std::size_t size = 0) {
  return Value(Undefined{&code, code.path_end, why, kind, index, size});
}

}  // namespace

Outcome Evaluator::run(const Program& program, const Part& part) {
  stack_.clear();
  for (std::size_t at = part.code_begin; at < part.code_end;) {
    const Instruction& code = program.code[at];
    Check done = budget_.steps() ? execute(program, code, at) : budget_.exceeded();
    if (done && budget_.is_exceeded()) done = budget_.exceeded();  // a comparison cannot say so itself
    if (!done) {
      // What is undefined knows its place; everything else went wrong where the operator or filter stands.
      if (done.error().code != "undefined") done.error().offset = code.offset;
      return std::unexpected(std::move(done).error());
    }
  }
  TRY(need(program, 1));
  return pop();
}

Evaluator::Check Evaluator::push(Outcome outcome) {
  if (!outcome) return std::unexpected(std::move(outcome).error());
  stack_.push_back(*std::move(outcome));
  return {};
}

Value Evaluator::pop() {
  Value top = std::move(stack_.back());
  stack_.pop_back();
  return top;
}

Evaluator::Check Evaluator::need(const Program& program, std::size_t count) const {
  for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i)
    if (const Undefined* undefined = stack_[i].undefined()) [[unlikely]]
      return std::unexpected(undefined_problem(program, *undefined));
  return {};
}

Evaluator::Check Evaluator::execute(const Program& program, const Instruction& code, std::size_t& at) {
  ++at;
  switch (code.op) {
    case Op::constant: return push(Value::borrow(program.constants[code.argument]));
    case Op::absent: return push(Value());
    case Op::inputs:
    case Op::node:
    case Op::item:
    case Op::index:
    case Op::env: return push(load(program, code));
    case Op::member: return step_to_member(program, code);
    case Op::element: return step_to_element(program, code);
    case Op::slice: return slice_top(program);
    case Op::list: return make_list(program, code.argument);
    case Op::object: return make_object(program, code.argument);
    case Op::negate: TRY(need(program, 1)); return push(negate(*pop()));
    case Op::logical_not: TRY(need(program, 1)); return push(json::value(!truthy(*pop())));
    case Op::jump:
    case Op::jump_unless:
    case Op::jump_and_keep_if:
    case Op::jump_and_keep_unless: return decide(program, code, at);
    case Op::test: {
      const auto test = static_cast<Test>(code.argument);
      if (test != Test::defined) TRY(need(program, 1));
      return push(json::value(passes(test, pop()) == (code.count == 0)));
    }
    case Op::filter: return apply_filter(program, code);
    default: return apply_binary(program, code);
  }
}

Value Evaluator::load(const Program& program, const Instruction& code) const {
  const json::value* found = nullptr;
  switch (code.op) {
    case Op::inputs: found = scope_.inputs(); break;
    case Op::node:
      found = scope_.node(constant_text(program, code.argument), constant_text(program, code.argument + 1));
      break;
    case Op::item: found = scope_.item(); break;
    case Op::env: found = scope_.env(constant_text(program, code.argument)); break;
    default:
      if (const auto index = scope_.index()) return json::value(*index);
  }
  return found ? Value::borrow(*found) : lost(Undefined::Why::no_root, code);
}

Evaluator::Check Evaluator::step_to_member(const Program& program, const Instruction& code) {
  Value base = pop();
  if (base.undefined()) return push(lost(base, code));
  const auto* object = base->if_object();
  if (!object) return push(lost(Undefined::Why::not_an_object, code, base->kind()));
  const json::value* found = object->if_contains(program.constants[code.argument].get_string());
  return push(found ? std::move(base).part(*found) : lost(Undefined::Why::no_member, code));
}

Evaluator::Check Evaluator::step_to_element(const Program& program, const Instruction& code) {
  TRY(need(program, 1));
  const Value key = pop();
  Value base = pop();
  if (base.undefined()) return push(lost(base, code));
  if (const auto* name = key->if_string()) {
    const auto* object = base->if_object();
    if (!object) return push(lost(Undefined::Why::not_an_object, code, base->kind()));
    if (!budget_.scan(name->size())) return budget_.exceeded();
    const json::value* found = object->if_contains(*name);
    return push(found ? std::move(base).part(*found) : lost(Undefined::Why::no_member, code));
  }
  const auto* index = key->if_int64();
  if (!index)
    return problem("wrong_type",
                   "an index is an integer or a string, found " + std::string(describe(key->kind())));
  const auto* text = base->if_string();
  const auto* array = base->if_array();
  if (!text && !array) return push(lost(Undefined::Why::not_a_container, code, base->kind()));
  if (text && !budget_.scan(text->size())) return budget_.exceeded();
  const std::size_t size = text ? character_count(view(*text)) : array->size();
  const std::int64_t place = *index < 0 ? *index + static_cast<std::int64_t>(size) : *index;
  if (place < 0 || std::cmp_greater_equal(place, size))
    return push(lost(Undefined::Why::no_element, code, base->kind(), *index, size));
  if (array) return push(std::move(base).part((*array)[static_cast<std::size_t>(place)]));
  return push(slice(std::move(base), json::value(place), json::value(place + 1), budget_));
}

Evaluator::Check Evaluator::slice_top(const Program& program) {
  TRY(need(program, 3));
  const Value to = pop();
  const Value from = pop();
  return push(slice(pop(), from, to, budget_));
}

Evaluator::Check Evaluator::make_list(const Program& program, std::size_t count) {
  TRY(need(program, count));
  json::array list;
  list.reserve(count);
  for (std::size_t i = stack_.size() - count; i < stack_.size(); ++i) {
    TRY_ASSIGN(json::value each, std::move(stack_[i]).take(budget_));
    list.push_back(std::move(each));
  }
  stack_.resize(stack_.size() - count);
  return push(json::value(std::move(list)));
}

Evaluator::Check Evaluator::make_object(const Program& program, std::size_t pairs) {
  TRY(need(program, 2 * pairs));
  json::object object;
  object.reserve(pairs);
  for (std::size_t i = stack_.size() - 2 * pairs; i < stack_.size(); i += 2) {
    const Value key = std::move(stack_[i]);
    if (!key->is_string())
      return problem("wrong_type",
                     "the key of an object is a string, found " + std::string(describe(key->kind())));
    if (!budget_.text(key->get_string().size())) return budget_.exceeded();
    TRY_ASSIGN(json::value each, std::move(stack_[i + 1]).take(budget_));
    object.insert_or_assign(key->get_string(), std::move(each));
  }
  stack_.resize(stack_.size() - 2 * pairs);
  return push(json::value(std::move(object)));
}

Evaluator::Check Evaluator::apply_binary(const Program& program, const Instruction& code) {
  TRY(need(program, 2));
  Value right = pop();
  return push(binary(code.op, pop(), std::move(right), budget_));
}

Evaluator::Check Evaluator::apply_filter(const Program& program, const Instruction& code) {
  const Filter& filter = filters()[code.argument];
  if (!filter.takes_undefined) TRY(need(program, code.count + 1));
  const std::size_t first = stack_.size() - code.count;
  FilterCall call{std::move(stack_[first - 1]), std::span(stack_).subspan(first), budget_};
  Outcome outcome = filter.apply(call);
  stack_.resize(first - 1);
  return push(std::move(outcome));
}

Evaluator::Check Evaluator::decide(const Program& program, const Instruction& code, std::size_t& at) {
  const std::size_t target = at - 1 + code.argument;
  if (code.op == Op::jump) {
    at = target;
    return {};
  }
  TRY(need(program, 1));
  const bool condition = truthy(*stack_.back());
  const bool jumps = condition == (code.op == Op::jump_and_keep_if);
  if (jumps) at = target;
  if (!jumps || code.op == Op::jump_unless) stack_.pop_back();
  return {};
}

}  // namespace baton::expression
