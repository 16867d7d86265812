// The one way to write JSON: straight as text, value after value.
#pragma once

#include <boost/json/fwd.hpp>
#include <charconv>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/json.hpp"
#include "base/time.hpp"

namespace baton {

// A value of boost::json, as that library writes it: a real is 1.5E0. What is stored looks so.
void append_parsed(std::string& out, const boost::json::value& value);

// A text in quotes, a number, true or false, a time in ISO 8601, Json as it is, a value of boost::json, a
// list of these, a map of these by text; an optional that is empty is null.
template <class T>
void append_value(std::string& out, const T& value) {
  if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    char digits[24];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else if constexpr (std::same_as<T, boost::json::value>) {
    append_parsed(out, value);
  } else if constexpr (std::floating_point<T>) {
    append_real(out, value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    append_quoted(out, value);
  } else if constexpr (std::same_as<T, Time>) {
    (out += '"').append(to_iso(value)) += '"';
  } else if constexpr (std::same_as<T, Json>) {
    out += value.text.empty() ? std::string_view("null") : std::string_view(value.text);
  } else if constexpr (requires { value.has_value(); }) {
    value ? append_value(out, *value) : void(out += "null");
  } else {
    constexpr bool is_map = requires { typename T::mapped_type; };
    out += is_map ? '{' : '[';
    bool first = true;
    for (const auto& each : value) {
      if (!std::exchange(first, false)) out += ',';
      if constexpr (is_map) {
        append_quoted(out, each.first);
        out += ':';
        append_value(out, each.second);
      } else {
        append_value(out, each);
      }
    }
    out += is_map ? '}' : ']';
  }
}

template <class T>
[[nodiscard]] std::string json_text(const T& value) {
  std::string out;
  append_value(out, value);
  return out;
}

// "key": with a comma before it unless it is the first.
inline void append_key(std::string& out, std::string_view key) {
  if (!out.empty() && out.back() != '{') out += ',';
  append_quoted(out, key);
  out += ':';
}

template <class T>
void append_member(std::string& out, std::string_view key, const T& value) {
  append_key(out, key);
  append_value(out, value);
}

// […], or "key":[…], each item written by `append`.
template <class Items, class Append>
void append_list(std::string& out, Items&& items, Append&& append) {
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!std::exchange(first, false)) out += ',';
    append(out, item);
  }
  out += ']';
}
template <class Items, class Append>
void append_list(std::string& out, std::string_view key, Items&& items, Append&& append) {
  append_key(out, key);
  append_list(out, items, std::forward<Append>(append));
}

// "key":value,"key":value,…
inline void append_members(std::string& /*out*/) {}
template <class T, class... Rest>
void append_members(std::string& out, std::string_view key, const T& value, const Rest&... rest) {
  append_member(out, key, value);
  append_members(out, rest...);
}

// The same without what is empty or 0. A time is neither: 1970 is one like any other.
inline void append_given(std::string& /*out*/) {}
template <class T, class... Rest>
void append_given(std::string& out, std::string_view key, const T& value, const Rest&... rest) {
  static_assert(!std::is_same_v<T, Time>);
  if (value != T{}) append_member(out, key, value);
  append_given(out, rest...);
}

// {"key":value,…}
template <class... Members>
void append_object(std::string& out, const Members&... members) {
  out += '{';
  append_members(out, members...);
  out += '}';
}
template <class... Members>
[[nodiscard]] Json json_object(const Members&... members) {
  Json json;
  append_object(json.text, members...);
  return json;
}
template <class... Members>
[[nodiscard]] Json json_object_of_given(const Members&... members) {
  Json json{"{"};
  append_given(json.text, members...);
  json.text += '}';
  return json;
}

}  // namespace baton
