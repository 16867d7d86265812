#include "core/message/typed_json.hpp"

#include <boost/json.hpp>

#include "base/base64.hpp"
#include "base/json_write.hpp"
#include "base/result.hpp"

namespace baton::message {

void append_typed(std::string& out, const Value& value) {
  const auto boxed = [&](std::string_view type, const auto& inner) {
    out += '{';
    append_member(out, type, inner);
    out += '}';
  };
  std::visit(overloaded{[&](Null) { out += "null"; },
                        [&](const one_of<bool, std::int64_t, double, std::string> auto& plain) { append_value(out, plain); },
                        [&](Time time) { boxed("time", to_millis(time)); },
                        [&](Duration duration) { boxed("duration", duration.count()); },
                        [&](const Opaque& bytes) { boxed("bytes", base64(bytes.encoded)); }},
             value);
}

void append_typed(std::string& out, const Properties& properties) {
  out += '{';
  bool first = true;
  for (const auto& [name, value] : properties) {
    if (!std::exchange(first, false)) out += ',';
    append_quoted(out, name);
    out += ':';
    append_typed(out, value);
  }
  out += '}';
}

namespace {

std::optional<Value> read_boxed(const boost::json::object& box) {
  if (box.size() != 1) return std::nullopt;
  const auto& [type, inner] = *box.begin();
  if (type == "bytes" && inner.is_string()) {
    auto bytes = from_base64(inner.get_string());
    if (!bytes) return std::nullopt;
    return Opaque{*std::move(bytes)};
  }
  if (!inner.is_int64()) return std::nullopt;
  if (type == "time") return from_millis(inner.get_int64());
  if (type == "duration") return Duration{inner.get_int64()};
  return std::nullopt;
}

}  // namespace

std::optional<Value> read_typed(const boost::json::value& json) {
  switch (json.kind()) {
    case boost::json::kind::null: return Null{};
    case boost::json::kind::bool_: return json.get_bool();
    case boost::json::kind::int64: return json.get_int64();
    case boost::json::kind::double_: return json.get_double();
    case boost::json::kind::string: return std::string(json.get_string());
    case boost::json::kind::object: return read_boxed(json.get_object());
    default: return std::nullopt;
  }
}

std::optional<Properties> read_typed_properties(const boost::json::value& json) {
  if (!json.is_object()) return std::nullopt;
  Properties properties;
  for (const auto& [name, each] : json.get_object()) {
    auto value = read_typed(each);
    if (!value) return std::nullopt;
    properties.emplace(std::string(name), *std::move(value));
  }
  return properties;
}

}  // namespace baton::message
