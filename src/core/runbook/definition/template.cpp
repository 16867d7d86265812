#include "core/runbook/definition/template.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "core/runbook/definition/variable.hpp"
#include "core/template/read_json.hpp"

namespace baton::runbook {
namespace {

namespace json = boost::json;

constexpr int depth_max = 128;

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

// A JSON object, or one without members: text that is none counts as absent.
json::object read_object(const OptionalJson& text) {
  if (!text) return {};
  auto value = expression::read_json(text->text, depth_max);
  if (!value || !value->is_object()) return {};
  return std::move(value->get_object());
}

bool same_but_for_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

const json::value* find_exactly(const json::object& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &found->value();
}

const json::value* find_loosely(const json::object& object, std::string_view name) {
  for (const auto& member : object)
    if (same_but_for_case(member.key(), name)) return &member.value();
  return nullptr;
}

const json::value* find(const json::object& object, std::string_view name) {
  const auto* exact = find_exactly(object, name);
  return exact ? exact : find_loosely(object, name);
}

void append_value(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: out += "null"; break;
    case json::kind::bool_: out += value.get_bool() ? "true" : "false"; break;
    case json::kind::int64: out += std::to_string(value.get_int64()); break;
    case json::kind::uint64: out += std::to_string(value.get_uint64()); break;
    case json::kind::double_: append_real(out, value.get_double()); break;
    case json::kind::string: append_quoted(out, view(value.get_string())); break;
    case json::kind::array: {
      char before = '[';
      for (const auto& item : value.get_array()) {
        out += before;
        append_value(out, item);
        before = ',';
      }
      out += before == '[' ? "[]" : "]";
      break;
    }
    case json::kind::object: {
      char before = '{';
      for (const auto& member : value.get_object()) {
        out += before;
        append_quoted(out, member.key());
        out += ':';
        append_value(out, member.value());
        before = ',';
      }
      out += before == '{' ? "{}" : "}";
      break;
    }
  }
}

// As it stands in a longer text.
void append_text(std::string& out, const json::value& value) {
  if (value.is_string())
    out += view(value.get_string());
  else if (!value.is_null())
    append_value(out, value);
}

// ---- The strings of a JSON text ----

struct Token {
  std::size_t begin = 0;  // of the opening quote
  std::size_t end = 0;    // after the closing one
  bool is_key = false;
};

// The first string at or after `from`. The text is not parsed, so that everything but the strings that change
// stays as it is, to the byte.
std::optional<Token> next_string(std::string_view text, std::size_t from) {
  const auto begin = text.find('"', from);
  if (begin == std::string_view::npos) return std::nullopt;
  std::size_t end = begin + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  end = std::min(end + 1, text.size());
  const auto after = text.find_first_not_of(" \t\n\r", end);
  return Token{begin, end, after != std::string_view::npos && text[after] == ':'};
}

// What the token stands for; empty when it holds no braces. `storage` keeps it, where it is not the text's.
std::string_view string_with_braces(std::string_view text, const Token& token, std::string& storage) {
  const std::string_view raw = text.substr(token.begin, token.end - token.begin);
  if (raw.size() < 2 || (raw.find("{{") == raw.npos && raw.find("\\u007") == raw.npos)) return {};
  if (raw.find('\\') == raw.npos) return raw.substr(1, raw.size() - 2);
  const auto value = expression::read_json(raw);
  if (!value || !value->is_string()) return {};
  storage = view(value->get_string());
  return storage;
}

void add_variables(std::string_view text, std::vector<std::string>& names) {
  for (std::size_t at = 0;;) {
    const auto found = next_variable(text, at);
    if (!found || !*found) return;
    if (std::ranges::find(names, (*found)->name) == names.end()) names.emplace_back((*found)->name);
    at = (*found)->end;
  }
}

}  // namespace

std::vector<std::string> variables_in_text(std::string_view text) {
  std::vector<std::string> names;
  add_variables(text, names);
  return names;
}

std::vector<std::string> variables_in_json(const Json& document) {
  std::vector<std::string> names;
  std::string storage;
  for (auto token = next_string(document.text, 0); token; token = next_string(document.text, token->end))
    if (!token->is_key) add_variables(string_with_braces(document.text, *token, storage), names);
  return names;
}

std::string template_error(std::string_view text) {
  for (std::size_t at = 0;;) {
    const auto found = next_variable(text, at);
    if (!found) return found.error().why;
    if (!*found) return {};
    at = (*found)->end;
  }
}

// ---- Scope ----

struct Scope::Values {
  json::object batch;
  json::object worker_data;
  json::object data;

  [[nodiscard]] const json::value* find(std::string_view name) const {
    for (const auto* object : {&batch, &worker_data, &data})
      if (const auto* value = find_exactly(*object, name)) return value;
    for (const auto* object : {&batch, &worker_data, &data})
      if (const auto* value = find_loosely(*object, name)) return value;
    return nullptr;
  }

  // Broken braces, which no published runbook has, are told as they stand: they are never sent.
  static std::unexpected<NotRendered> broken(std::string_view text, const Broken& at) {
    return std::unexpected(NotRendered{.variable = std::string(text.substr(at.at, 100))});
  }
  static std::unexpected<NotRendered> too_long(std::string_view variable) {
    return std::unexpected(NotRendered{.variable = std::string(variable), .is_too_long = true});
  }

  // What stands for a variable after so many bytes. A text that there is no room for is not even copied.
  [[nodiscard]] std::expected<const json::value*, NotRendered> value_of(std::string_view name,
                                                                        std::size_t rendered) const {
    const auto* value = find(name);
    if (!value) return std::unexpected(NotRendered{.variable = std::string(name)});
    const std::size_t at_least = value->is_string() ? value->get_string().size() : 0;
    if (rendered + at_least > rendered_bytes_max) return too_long(name);
    return value;
  }

  // `first` is the first variable of the text.
  [[nodiscard]] std::expected<std::string, NotRendered> replace(std::string_view text, Variable first) const {
    std::string out;
    std::size_t copied = 0;
    for (std::optional<Variable> variable = first; variable;) {
      out += text.substr(copied, variable->begin - copied);
      const auto value = value_of(variable->name, out.size());
      if (!value) return std::unexpected(value.error());
      append_text(out, **value);
      if (out.size() > rendered_bytes_max) return too_long(variable->name);
      copied = variable->end;
      const auto next = next_variable(text, copied);
      if (!next) return broken(text, next.error());
      variable = *next;
    }
    out += text.substr(copied);
    if (out.size() > rendered_bytes_max) return too_long("");
    return out;
  }

  // Appends a JSON value for a string of a document.
  [[nodiscard]] std::expected<void, NotRendered> append(std::string& out, std::string_view text,
                                                        Variable first) const {
    if (first.begin == 0 && first.end == text.size()) {
      const auto value = value_of(first.name, out.size());
      if (!value) return std::unexpected(value.error());
      append_value(out, **value);
    } else {
      const auto replaced = replace(text, first);
      if (!replaced) return std::unexpected(replaced.error());
      append_quoted(out, *replaced);
    }
    if (out.size() > rendered_bytes_max) return too_long(first.name);
    return {};
  }
};

Scope::Scope(const OptionalJson& data, const OptionalJson& worker_data, std::int64_t batch_id,
             std::optional<Time> batch_start_time)
    : values_(std::make_unique<Values>()) {
  values_->data = read_object(data);
  values_->worker_data = read_object(worker_data);
  values_->batch[batch_id_variable] = std::to_string(batch_id);
  if (batch_start_time) values_->batch[batch_start_time_variable] = to_iso(*batch_start_time);
}
Scope::~Scope() = default;
Scope::Scope(Scope&&) noexcept = default;
Scope& Scope::operator=(Scope&&) noexcept = default;

std::expected<std::string, NotRendered> Scope::text(std::string_view text) const {
  const auto first = next_variable(text, 0);
  if (!first) return Values::broken(text, first.error());
  if (!*first) return std::string(text);
  return values_->replace(text, **first);
}

std::expected<Json, NotRendered> Scope::json(const Json& document) const {
  const std::string_view text = document.text;
  Json out;
  std::string storage;
  std::size_t copied = 0;
  for (auto token = next_string(text, 0); token; token = next_string(text, token->end)) {
    if (token->is_key) continue;
    const std::string_view value = string_with_braces(text, *token, storage);
    const auto first = next_variable(value, 0);
    if (!first) return Values::broken(value, first.error());
    if (!*first) continue;
    out.text += text.substr(copied, token->begin - copied);
    if (const auto done = values_->append(out.text, value, **first); !done)
      return std::unexpected(done.error());
    copied = token->end;
  }
  out.text += text.substr(copied);
  if (out.text.size() > rendered_bytes_max) return Values::too_long("");
  return out;
}

// ---- Outputs ----

namespace {

// A member of that name, or else of the name before the first dot, and in it the rest.
const json::value* find_field(const json::value& in, std::string_view path) {
  if (!in.is_object()) return nullptr;
  if (const auto* whole = find(in.get_object(), path)) return whole;
  const auto dot = path.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto* first = find(in.get_object(), path.substr(0, dot));
  return first ? find_field(*first, path.substr(dot + 1)) : nullptr;
}

}  // namespace

OptionalJson merge_outputs(const OptionalJson& before, const Json& result,
                           const std::map<std::string, std::string>& output_params) {
  if (output_params.empty()) return before;
  const auto value = expression::read_json(result.text, depth_max);
  if (!value) return before;
  json::object merged = read_object(before);
  bool any = false;
  for (const auto& [variable, field] : output_params) {
    const auto* found = find_field(*value, field);
    if (!found) continue;
    merged[variable] = *found;
    any = true;
  }
  if (!any) return before;
  Json text;
  append_value(text.text, json::value(std::move(merged)));
  return text;
}

}  // namespace baton::runbook
