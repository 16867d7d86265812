#include "cli/terminal/fields.hpp"

#include <boost/json.hpp>
#include <charconv>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace json = boost::json;
namespace {

constexpr std::size_t depth_max = 1'000;  // results nest a little deeper than the inputs they came from

struct Child {
  std::string_view key;  // as written, with its quotes; empty in an array
  std::string_view value;
};

// The index behind the value that begins at `from`, in well-formed compact JSON.
std::size_t end_of_value(std::string_view json, std::size_t from) {
  int depth = 0;
  for (std::size_t i = from; i < json.size();) {
    const char c = json[i];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) return i;
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    i = c == '"' ? end_of_string(json, i) : i + 1;
    if (depth == 0 && (c == '"' || c == '}' || c == ']')) return i;
  }
  return json.size();
}

std::vector<Child> children(std::string_view json, char open) {
  std::vector<Child> all;
  if (!json.starts_with(open)) return all;
  for (std::size_t i = 1; i + 1 < json.size(); ++i) {  // the step passes the comma
    Child child;
    if (open == '{') {
      const std::size_t key_end = end_of_string(json, i);
      child.key = json.substr(i, key_end - i);
      i = key_end + 1;
    }
    const std::size_t end = end_of_value(json, i);
    child.value = json.substr(i, end - i);
    all.push_back(child);
    i = end;
  }
  return all;
}

std::string unquoted(std::string_view literal) {
  json::error_code error;
  const json::value value = json::parse(literal, error);
  return !error && value.is_string() ? std::string{value.get_string()} : "";
}

}  // namespace

Fields::Fields(std::string_view text) {
  json::parse_options options;
  options.max_depth = depth_max;
  json::error_code error;
  const json::value checked = json::parse(text, error, {}, options);
  text_ = std::make_shared<const std::string>(error ? "null" : compact(text));
  value_ = *text_;
}

std::string_view Fields::find(std::string_view key) const {
  for (const Child& child : children(value_, '{'))
    if (unquoted(child.key) == key) return child.value;
  return {};
}

bool Fields::has(std::string_view key) const {
  const std::string_view found = find(key);
  return !found.empty() && found != "null";
}

std::string Fields::text(std::string_view key) const { return unquoted(find(key)); }

std::int64_t Fields::number(std::string_view key) const {
  const std::string_view found = find(key);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), number);
  return error == std::errc{} && end == found.data() + found.size() ? number : 0;
}

bool Fields::flag(std::string_view key) const { return find(key) == "true"; }

std::string Fields::document(std::string_view key) const { return std::string{find(key)}; }

std::vector<Fields> Fields::items(std::string_view key) const {
  std::vector<Fields> all;
  for (const Child& child : children(find(key), '[')) all.push_back(Fields(text_, child.value));
  return all;
}

std::vector<std::pair<std::string, Fields>> Fields::members(std::string_view key) const {
  std::vector<std::pair<std::string, Fields>> all;
  for (const Child& child : children(find(key), '{'))
    all.emplace_back(unquoted(child.key), Fields(text_, child.value));
  return all;
}

std::string Fields::whole() const { return value_.starts_with('"') ? unquoted(value_) : std::string{value_}; }

}  // namespace baton::cli
