// What the properties of a message hold, as rules see them.
//
// Pure data, for any thread. Text is UTF-8. Letters with a case are those of ASCII.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "base/text.hpp"
#include "base/time.hpp"

namespace baton::message {

struct Null {
  friend bool operator==(const Null&, const Null&) = default;
};

// Bytes, lists and whatever else a filter cannot look into: it exists, and every comparison with it is
// unknown. `encoded` is for whoever made it and must write it again; rules carry it along unread.
struct Opaque {
  std::string encoded;
  friend bool operator==(const Opaque&, const Opaque&) = default;
};

using Value = std::variant<Null, bool, std::int64_t, double, std::string, Time, Duration, Opaque>;

[[nodiscard]] inline bool is_null(const Value& value) { return std::holds_alternative<Null>(value); }

// A name to be found in whatever case it was written.
struct AnyCase {
  std::string_view name;
};

// By the letters first and by their case last, so that the spellings of one name are neighbours.
struct NameOrder {
  using is_transparent = void;

  [[nodiscard]] static int compare(std::string_view a, std::string_view b) {
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
      if (lower(a[i]) != lower(b[i]))
        return static_cast<unsigned char>(lower(a[i])) < static_cast<unsigned char>(lower(b[i])) ? -1 : 1;
    return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
  }

  bool operator()(std::string_view a, std::string_view b) const {
    const int order = compare(a, b);
    return order != 0 ? order < 0 : a < b;
  }
  bool operator()(std::string_view a, AnyCase b) const { return compare(a, b.name) < 0; }
  bool operator()(AnyCase a, std::string_view b) const { return compare(a.name, b) < 0; }
};

[[nodiscard]] inline bool same_name(std::string_view a, std::string_view b) {
  return NameOrder::compare(a, b) == 0;
}

// The application's properties of a message, and the parameters of a filter. Two spellings of one name may
// both be there, since AMQP tells them apart.
using Properties = std::map<std::string, Value, NameOrder>;

// The one that is spelt so, or else the first that differs in case only; end() when there is none.
template <class Map>
[[nodiscard]] auto find_property(Map& properties, std::string_view name) {
  const auto exact = properties.find(name);
  return exact != properties.end() ? exact : properties.find(AnyCase{name});
}

}  // namespace baton::message
