// Filters of lists and objects. Where a list is expected, a text stands for its characters and an object for
// its keys, as in Jinja.
#include <algorithm>
#include <boost/json.hpp>
#include <unordered_set>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/filters.hpp"
#include "core/template/operators.hpp"
#include "core/template/text.hpp"

namespace baton::expression::filter {
namespace {

// The subject as a list: borrowed or moved when it is one, made of characters or keys otherwise.
Outcome elements(Call& call) {
  if (call.subject->is_array()) return std::move(call.subject);
  json::array list;
  const auto add = [&](std::string_view text) {
    list.emplace_back(json::string(text));
    return call.budget.steps() && call.budget.text(text.size());
  };
  if (const auto* text = call.subject->if_string()) {
    const std::string_view all = view(*text);
    for (std::size_t at = 0; at < all.size(); at += character_size(all, at))
      if (!add(all.substr(at, character_size(all, at)))) return call.budget.exceeded();
    return json::value(std::move(list));
  }
  const auto* object = call.subject->if_object();
  if (!object) return wrong_subject("an array", *call.subject);
  for (const auto& member : *object)
    if (!add({member.key().data(), member.key().size()})) return call.budget.exceeded();
  return json::value(std::move(list));
}

// `name`, `a.b` or, for elements that are lists, a number. Null when there is nothing.
const json::value* attribute_of(const json::value& value, std::string_view path) {
  const json::value* at = &value;
  while (at && !path.empty()) {
    const std::string_view name = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), name.size() + 1));
    at = at->is_object() ? at->get_object().if_contains({name.data(), name.size()}) : nullptr;
  }
  return at;
}

std::expected<const json::value*, Problem> needed_attribute(const Call& call, const json::value& value,
                                                            std::string_view path) {
  if (path.empty()) return &value;
  if (!call.budget.scan(path.size())) return call.budget.exceeded();
  if (const json::value* found = attribute_of(value, path)) return found;
  if (!value.is_object()) return wrong_subject("an object with " + in_quotes(path), value);
  return problem("undefined_member", "an element has no member " + in_quotes(path));
}

// The list with what each element is looked at by.
struct Keyed {
  Value list;
  std::vector<const json::value*> keys;
  [[nodiscard]] const json::array& array() const { return list->get_array(); }
};

std::expected<Keyed, Problem> keyed(Call& call, std::size_t attribute) {
  TRY_ASSIGN(const std::string_view path, text_argument(call, attribute));
  TRY_ASSIGN(Value list, elements(call));
  std::vector<const json::value*> keys;
  if (!call.budget.steps(list->get_array().size())) return call.budget.exceeded();
  keys.reserve(list->get_array().size());
  for (const json::value& each : list->get_array()) {
    TRY_ASSIGN(const json::value* key, needed_attribute(call, each, path));
    keys.push_back(key);
  }
  // The elements of an owned list stay where they are when the list is moved.
  return Keyed{std::move(list), std::move(keys)};
}

// A new list of the elements with these numbers.
Outcome chosen(Value list, const std::vector<std::size_t>& numbers, Budget& budget) {
  json::array out;
  out.reserve(numbers.size());
  for (const std::size_t number : numbers) {
    TRY_ASSIGN(json::value each, copy(list->get_array()[number], budget));
    out.push_back(std::move(each));
  }
  return json::value(std::move(out));
}

Outcome extreme(Call& call, bool greatest) {
  TRY_ASSIGN(Keyed all, keyed(call, 0));
  if (all.keys.empty()) return problem("invalid_value", "the list is empty");
  std::size_t best = 0;
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    TRY_ASSIGN(const std::partial_ordering order, compare(*all.keys[i], *all.keys[best], call.budget));
    if (greatest ? order > 0 : order < 0) best = i;
  }
  const json::value& element = all.array()[best];
  return std::move(all.list).part(element);
}

Outcome end_of(Call& call, bool front) {
  TRY_ASSIGN(Value list, elements(call));
  const json::array& array = list->get_array();
  if (array.empty())
    return problem("invalid_value", "the list is empty", "test it before: 'x | first if x else ...'");
  const json::value& element = front ? array.front() : array.back();
  return std::move(list).part(element);
}

// ---- Tests by name, for select and its kin ----

constexpr std::array<std::pair<std::string_view, Op>, 18> comparison_names{{{"==", Op::equal},
                                                                            {"eq", Op::equal},
                                                                            {"equalto", Op::equal},
                                                                            {"!=", Op::not_equal},
                                                                            {"ne", Op::not_equal},
                                                                            {"<", Op::less},
                                                                            {"lt", Op::less},
                                                                            {"lessthan", Op::less},
                                                                            {"<=", Op::less_equal},
                                                                            {"le", Op::less_equal},
                                                                            {">", Op::greater},
                                                                            {"gt", Op::greater},
                                                                            {"greaterthan", Op::greater},
                                                                            {">=", Op::greater_equal},
                                                                            {"ge", Op::greater_equal},
                                                                            {"in", Op::in},
                                                                            {"not in", Op::not_in},
                                                                            {"is", Op::equal}}};

// Whether `found`, null when there is nothing, passes the test at argument `test` with the value after it.
std::expected<bool, Problem> passes_named(const Call& call, std::size_t test, const json::value* found) {
  const bool named = call.has(test);
  TRY_ASSIGN(const std::string_view name, text_argument(call, test));
  if (named && name == "defined") return found != nullptr;
  if (!found)
    return problem("undefined_member", "an element lacks the member", "choose with 'defined' first");
  if (!named) return truthy(*found);
  if (const TestName* simple = find_test(name)) return passes(simple->test, Value::borrow(*found));
  const auto comparison =
      std::ranges::find(comparison_names, name, &decltype(comparison_names)::value_type::first);
  if (comparison == comparison_names.end())
    return problem("unknown_test", "unknown test " + in_quotes(name), "write it as in 'x == y': '=='");
  if (!call.has(test + 1))
    return problem("invalid_arguments", "the test " + in_quotes(name) + " needs a value");
  TRY_ASSIGN(const Value answer, binary(comparison->second, Value::borrow(*found),
                                        Value::borrow(call.argument(test + 1)), call.budget));
  return answer->get_bool();
}

Outcome choose(Call& call, std::size_t test, std::string_view attribute, bool wanted) {
  TRY_ASSIGN(Value list, elements(call));
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < list->get_array().size(); ++i) {
    if (!call.budget.scan(attribute.size())) return call.budget.exceeded();
    TRY_ASSIGN(const bool passed, passes_named(call, test, attribute_of(list->get_array()[i], attribute)));
    if (passed == wanted) numbers.push_back(i);
  }
  return chosen(std::move(list), numbers, call.budget);
}

Outcome choose_by_attribute(Call& call, bool wanted) {
  TRY_ASSIGN(const std::string_view attribute, text_argument(call, 0));
  return choose(call, 1, attribute, wanted);
}

// The members of an object as a list, each as `make` says.
template <class Make>
Outcome members(Call& call, Make make) {
  const auto* object = call.subject->if_object();
  if (!object) return wrong_subject("an object", *call.subject);
  json::array list;
  list.reserve(object->size());
  for (const auto& member : *object) {
    if (!call.budget.steps() || !call.budget.text(member.key().size())) return call.budget.exceeded();
    TRY_ASSIGN(json::value each, make(member));
    list.push_back(std::move(each));
  }
  return json::value(std::move(list));
}

}  // namespace

Outcome length(Call& call) {
  if (const auto* array = call.subject->if_array())
    return json::value(static_cast<std::int64_t>(array->size()));
  if (const auto* object = call.subject->if_object())
    return json::value(static_cast<std::int64_t>(object->size()));
  const auto* text = call.subject->if_string();
  if (!text) return wrong_subject("an array, an object or a string", *call.subject);
  if (!call.budget.scan(text->size())) return call.budget.exceeded();
  return json::value(static_cast<std::int64_t>(character_count(view(*text))));
}

Outcome join(Call& call) {
  TRY_ASSIGN(const std::string_view separator, text_argument(call, 0));
  TRY_ASSIGN(const Keyed all, keyed(call, 1));
  std::string out;
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    if (i > 0) out += separator;
    if (!call.budget.text(i > 0 ? separator.size() : 0) || !append_text(out, *all.keys[i], call.budget))
      return call.budget.exceeded();
  }
  return json::value(json::string(out));
}

Outcome first(Call& call) { return end_of(call, true); }
Outcome last(Call& call) { return end_of(call, false); }
Outcome min(Call& call) { return extreme(call, false); }
Outcome max(Call& call) { return extreme(call, true); }

// Stable, also in reverse. All keys must be numbers, or all strings, so that the order is a real one.
Outcome sort(Call& call) {
  const bool descending = flag_argument(call, 0);
  TRY_ASSIGN(Keyed all, keyed(call, 1));
  std::vector<std::size_t> order(all.keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    if (auto comparable = compare(*all.keys.front(), *all.keys[i], call.budget); !comparable)
      return std::unexpected(std::move(comparable).error());
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    if (call.budget.is_exceeded()) return false;  // everything is equal then, and the sort ends soon
    const auto found = compare(*all.keys[descending ? b : a], *all.keys[descending ? a : b], call.budget);
    return found && *found < 0;
  });
  if (call.budget.is_exceeded()) return call.budget.exceeded();
  return chosen(std::move(all.list), order, call.budget);
}

// The first of those that are equal stays. Values are compared by their JSON, with 1.0 as 1.
Outcome unique(Call& call) {
  TRY_ASSIGN(Keyed all, keyed(call, 0));
  std::unordered_set<std::string> seen;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    std::string text;
    if (!append_json(text, *all.keys[i], call.budget)) return call.budget.exceeded();
    if (all.keys[i]->is_double() && text.ends_with(".0")) text.resize(text.size() - 2);
    if (seen.insert(std::move(text)).second) numbers.push_back(i);
  }
  return chosen(std::move(all.list), numbers, call.budget);
}

Outcome reverse(Call& call) {
  const bool text = call.subject->is_string();
  TRY_ASSIGN(Value list, elements(call));
  if (!call.budget.steps(list->get_array().size())) return call.budget.exceeded();
  TRY_ASSIGN(json::value all, std::move(list).take(call.budget));
  std::ranges::reverse(all.get_array());
  if (!text) return all;
  std::string out;
  for (const json::value& each : all.get_array()) out += view(each.get_string());
  return made_text(std::move(out), call.budget);
}

Outcome sum(Call& call) {
  TRY_ASSIGN(const Keyed all, keyed(call, 0));
  json::value total = 0;
  if (call.has(1)) total = call.argument(1);
  for (const json::value* each : all.keys) {
    TRY_ASSIGN(json::value next, calculate(Op::add, total, *each));
    total = std::move(next);
  }
  return total;
}

// map('upper') applies a filter without arguments, map(attribute='name') takes a member of each.
Outcome map(Call& call) {
  if (call.has(0) == call.has(1))
    return problem("invalid_arguments", "'map' takes either a filter or an attribute",
                   "map('upper') or map(attribute='name')");
  TRY_ASSIGN(const std::string_view name, text_argument(call, 0));
  TRY_ASSIGN(const std::string_view attribute, text_argument(call, 1));
  const Filter* const filter = call.has(0) ? find_filter(name) : nullptr;
  if (call.has(0) && (!filter || filter->required > 0 || filter->apply == map))
    return problem("unknown_filter", in_quotes(name) + " is not a filter without arguments");
  TRY_ASSIGN(const Value list, elements(call));
  json::array out;
  for (const json::value& each : list->get_array()) {
    if (!call.budget.scan(attribute.size())) return call.budget.exceeded();
    Value made = Value::borrow(each);
    if (filter) {
      Call inner{std::move(made), {}, call.budget};
      TRY_ASSIGN(made, filter->apply(inner));
    } else if (call.has(2) && !attribute_of(each, attribute)) {
      made = Value::borrow(call.argument(2));
    } else {
      TRY_ASSIGN(const json::value* member, needed_attribute(call, each, attribute));
      made = Value::borrow(*member);
    }
    TRY_ASSIGN(json::value value, std::move(made).take(call.budget));
    out.push_back(std::move(value));
  }
  return json::value(std::move(out));
}

Outcome select(Call& call) { return choose(call, 0, {}, true); }
Outcome reject(Call& call) { return choose(call, 0, {}, false); }
Outcome selectattr(Call& call) { return choose_by_attribute(call, true); }
Outcome rejectattr(Call& call) { return choose_by_attribute(call, false); }

Outcome list(Call& call) { return elements(call); }

Outcome keys(Call& call) {
  return members(call, [](const auto& member) -> std::expected<json::value, Problem> {
    return json::value(json::string(member.key()));
  });
}

Outcome values(Call& call) {
  return members(call, [&](const auto& member) { return copy(member.value(), call.budget); });
}

Outcome items(Call& call) {
  return members(call, [&](const auto& member) -> std::expected<json::value, Problem> {
    TRY_ASSIGN(json::value value, copy(member.value(), call.budget));
    return json::array{json::string(member.key()), std::move(value)};
  });
}

}  // namespace baton::expression::filter
