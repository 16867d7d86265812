#include "core/workflow/definition/input.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <unordered_set>

#include "base/diagnostic.hpp"

namespace baton::workflow {
namespace {

namespace json = boost::json;

constexpr std::size_t messages_max = 100;

std::string_view describe(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return "null";
    case json::kind::bool_: return "a boolean";
    case json::kind::int64:
    case json::kind::uint64: return "an integer";
    case json::kind::double_: return "a number";
    case json::kind::string: return "a string";
    case json::kind::array: return "an array";
    case json::kind::object: return "an object";
  }
  return "";
}

bool matches(InputType type, const json::value& value) {
  switch (type) {
    case InputType::any: return true;
    case InputType::string: return value.is_string();
    case InputType::integer: return value.is_int64() || value.is_uint64();
    case InputType::number: return value.is_number();
    case InputType::boolean: return value.is_bool();
    case InputType::array: return value.is_array();
    case InputType::object: return value.is_object();
  }
  return false;
}

std::string with_article(InputType type) {
  const std::string_view name = to_string(type);
  return (std::string_view("aio").contains(name.front()) ? "an " : "a ") + std::string(name);
}

void check_declared(const Definition& definition, const json::object& given,
                    std::vector<std::string>& problems) {
  for (const Input& input : definition.inputs) {
    const json::value* value = given.if_contains(input.name);
    if (!value) {
      if (input.required && !input.default_value)
        problems.push_back("input '" + input.name + "' is required");
    } else if (!matches(input.type, *value)) {
      problems.push_back("input '" + input.name + "' must be " + with_article(input.type) + ", found " +
                         std::string(describe(*value)));
    }
  }
}

void check_unknown(const Definition& definition, const json::object& given,
                   std::vector<std::string>& problems) {
  std::vector<std::string_view> names;
  for (const Input& input : definition.inputs) names.push_back(input.name);
  const std::unordered_set<std::string_view> declared(names.begin(), names.end());
  std::size_t unsaid = 0;
  for (const auto& member : given) {
    const std::string_view name(member.key().data(), member.key().size());
    if (declared.contains(name)) continue;
    if (problems.size() >= messages_max) {
      ++unsaid;
      continue;
    }
    const std::string guess = nearest(name, names);
    problems.push_back("unknown input " + in_quotes(name) +
                       (guess.empty() ? "" : "; did you mean '" + guess + "'?"));
  }
  if (unsaid > 0) problems.push_back("and " + std::to_string(unsaid) + " more unknown inputs");
}

// Adds to the text instead of writing the parsed value again, so that numbers stay as the caller wrote them.
Json with_defaults(const Definition& definition, const json::object& given, const Json& input) {
  Json filled = input;
  bool empty = given.empty();
  for (const Input& declared : definition.inputs) {
    if (!declared.default_value || given.contains(declared.name)) continue;
    filled.text.pop_back();  // the closing brace: Json is compact
    if (!empty) filled.text += ',';
    append_quoted(filled.text, declared.name);
    filled.text += ':' + declared.default_value->text + '}';
    empty = false;
  }
  return filled;
}

std::unexpected<std::vector<std::string>> refuse(std::string problem) {
  return std::unexpected(std::vector{std::move(problem)});
}

}  // namespace

std::string_view to_string(InputType type) {
  switch (type) {
    case InputType::any: return "any";
    case InputType::string: return "string";
    case InputType::integer: return "integer";
    case InputType::number: return "number";
    case InputType::boolean: return "boolean";
    case InputType::array: return "array";
    case InputType::object: return "object";
  }
  return "";
}

std::expected<Json, std::vector<std::string>> check_input(const Definition& definition, const Json& input) {
  if (!input.text.starts_with('{')) return refuse("the input must be an object");
  if (definition.inputs.empty()) return input;
  json::parse_options options;
  options.max_depth = 256;
  json::error_code error;
  const json::value value = json::parse(input.text, error, {}, options);
  if (error) return refuse("the input cannot be read: " + error.message());
  std::vector<std::string> problems;
  check_declared(definition, value.get_object(), problems);
  check_unknown(definition, value.get_object(), problems);
  if (!problems.empty()) return std::unexpected(std::move(problems));
  return with_defaults(definition, value.get_object(), input);
}

}  // namespace baton::workflow
