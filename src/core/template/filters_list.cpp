// Filters of lists and objects. Where a list is expected, a text stands for its characters and an object for
// its keys, as in Jinja.
#include <algorithm>
#include <boost/json.hpp>
#include <bit>
#include <cmath>
#include <limits>

#include "base/diagnostic.hpp"
#include "base/result.hpp"
#include "core/template/filters.hpp"
#include "core/template/operators.hpp"
#include "core/template/text.hpp"

namespace baton::expression::filter {
namespace {

// The subject as a list: borrowed or moved when it is one, made of characters or keys otherwise.
Outcome elements(FilterCall& call) {
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

std::expected<const json::value*, Problem> needed_attribute(const FilterCall& call, const json::value& value,
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

std::expected<Keyed, Problem> keyed(FilterCall& call, std::size_t attribute) {
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

Outcome extreme(FilterCall& call, bool greatest) {
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

Outcome end_of(FilterCall& call, bool front) {
  TRY_ASSIGN(Value list, elements(call));
  const json::array& array = list->get_array();
  if (array.empty())
    return problem("invalid_value", "the list is empty", "test it before: 'x | first if x else ...'");
  const json::value& element = front ? array.front() : array.back();
  return std::move(list).part(element);
}

// ---- Which values were seen before ----

std::uint64_t scattered(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return bits ^ (bits >> 31);
}

// Numbers that are equal have the same hash, whatever their type.
std::uint64_t hash_of(double real) {
  constexpr double least = -9223372036854775808.0, beyond = 18446744073709551616.0;
  if (std::trunc(real) != real || real < least || real >= beyond)
    return scattered(std::bit_cast<std::uint64_t>(real));
  return scattered(real < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(real))
                            : static_cast<std::uint64_t>(real));
}

// A table of hashes with open addressing: one array, however many values. Whoever chooses values that meet in
// one place of it pays for each look there.
class FirstOfEqual {
 public:
  FirstOfEqual(const std::vector<const json::value*>& values, Budget& budget)
      : values_(values),
        budget_(budget),
        table_(std::bit_ceil(2 * values.size() + 1), empty),
        looks_free_(8 * values.size()) {
    hashes_.reserve(values.size());
  }

  // The values in their order; false when an equal one was before, or the budget is exceeded.
  bool add(std::size_t i) {
    hashes_.push_back(hash(i));
    const std::size_t mask = table_.size() - 1;
    for (std::size_t at = hashes_[i] & mask;; at = (at + 1) & mask) {
      if (budget_.is_exceeded() || (looks_free_ == 0 && !budget_.steps())) return false;
      if (looks_free_ > 0) --looks_free_;
      if (table_[at] == empty) {
        table_[at] = static_cast<std::uint32_t>(i);
        return true;
      }
      if (hashes_[table_[at]] == hashes_[i] && same(table_[at], i)) return false;
    }
  }

 private:
  static constexpr std::uint32_t empty = std::numeric_limits<std::uint32_t>::max();

  std::uint64_t hash(std::size_t i) {
    const json::value& value = *values_[i];
    switch (value.kind()) {
      case json::kind::null: return 1;
      case json::kind::bool_: return value.get_bool() ? 2 : 3;
      case json::kind::int64: return scattered(static_cast<std::uint64_t>(value.get_int64()));
      case json::kind::uint64: return scattered(value.get_uint64());
      case json::kind::double_: return hash_of(value.get_double());
      case json::kind::string: return hash_text(view(value.get_string()));
      default: break;
    }
    texts_.resize(values_.size());
    (void)append_json(texts_[i], value, budget_);
    return hash_text(texts_[i]);
  }

  std::uint64_t hash_text(std::string_view text) {
    (void)budget_.steps(text.size() / 64);
    return std::hash<std::string_view>{}(text);
  }

  bool same(std::size_t a, std::size_t b) {
    const json::value& x = *values_[a];
    const json::value& y = *values_[b];
    if (Budget free; x.is_number() && y.is_number()) return is_equal(x, y, free);
    if (x.kind() != y.kind()) return false;
    if (x.is_structured()) return budget_.steps(texts_[a].size() / 64) && texts_[a] == texts_[b];
    if (x.is_string()) return budget_.steps(x.get_string().size() / 64) && x.get_string() == y.get_string();
    return x == y;
  }

  const std::vector<const json::value*>& values_;
  Budget& budget_;
  std::vector<std::uint32_t> table_;  // numbers of values
  std::vector<std::uint64_t> hashes_;
  std::vector<std::string> texts_;  // of lists and objects
  std::size_t looks_free_;
};

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
std::expected<bool, Problem> passes_named(const FilterCall& call, std::size_t test,
                                          const json::value* found) {
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

Outcome choose(FilterCall& call, std::size_t test, std::string_view attribute, bool wanted) {
  TRY_ASSIGN(Value list, elements(call));
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < list->get_array().size(); ++i) {
    if (!call.budget.scan(attribute.size())) return call.budget.exceeded();
    TRY_ASSIGN(const bool passed, passes_named(call, test, attribute_of(list->get_array()[i], attribute)));
    if (passed == wanted) numbers.push_back(i);
  }
  return chosen(std::move(list), numbers, call.budget);
}

Outcome choose_by_attribute(FilterCall& call, bool wanted) {
  TRY_ASSIGN(const std::string_view attribute, text_argument(call, 0));
  return choose(call, 1, attribute, wanted);
}

// The members of an object as a list, each as `make` says.
template <class Make>
Outcome members(FilterCall& call, Make make) {
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

Outcome length(FilterCall& call) {
  if (const auto* array = call.subject->if_array())
    return json::value(static_cast<std::int64_t>(array->size()));
  if (const auto* object = call.subject->if_object())
    return json::value(static_cast<std::int64_t>(object->size()));
  const auto* text = call.subject->if_string();
  if (!text) return wrong_subject("an array, an object or a string", *call.subject);
  if (!call.budget.scan(text->size())) return call.budget.exceeded();
  return json::value(static_cast<std::int64_t>(character_count(view(*text))));
}

Outcome join(FilterCall& call) {
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

Outcome first(FilterCall& call) { return end_of(call, true); }
Outcome last(FilterCall& call) { return end_of(call, false); }
Outcome min(FilterCall& call) { return extreme(call, false); }
Outcome max(FilterCall& call) { return extreme(call, true); }

// Stable, also in reverse. All keys must be numbers, or all strings, so that the order is a real one.
Outcome sort(FilterCall& call) {
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

// The first of those that are equal stays. Lists and objects are compared by their JSON, numbers across types.
Outcome unique(FilterCall& call) {
  TRY_ASSIGN(Keyed all, keyed(call, 0));
  FirstOfEqual known(all.keys, call.budget);
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < all.keys.size(); ++i) {
    if (known.add(i)) numbers.push_back(i);
    if (call.budget.is_exceeded()) return call.budget.exceeded();
  }
  return chosen(std::move(all.list), numbers, call.budget);
}

Outcome reverse(FilterCall& call) {
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

Outcome sum(FilterCall& call) {
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
Outcome map(FilterCall& call) {
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
      FilterCall inner{std::move(made), {}, call.budget};
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

Outcome select(FilterCall& call) { return choose(call, 0, {}, true); }
Outcome reject(FilterCall& call) { return choose(call, 0, {}, false); }
Outcome selectattr(FilterCall& call) { return choose_by_attribute(call, true); }
Outcome rejectattr(FilterCall& call) { return choose_by_attribute(call, false); }

Outcome list(FilterCall& call) { return elements(call); }

Outcome keys(FilterCall& call) {
  return members(call, [](const auto& member) -> std::expected<json::value, Problem> {
    return json::value(json::string(member.key()));
  });
}

Outcome values(FilterCall& call) {
  return members(call, [&](const auto& member) { return copy(member.value(), call.budget); });
}

Outcome items(FilterCall& call) {
  return members(call, [&](const auto& member) -> std::expected<json::value, Problem> {
    TRY_ASSIGN(json::value value, copy(member.value(), call.budget));
    return json::array{json::string(member.key()), std::move(value)};
  });
}

}  // namespace baton::expression::filter
