// AMQP's type system (AMQP 1.0, part 1) in bytes, read in place and written without a tree between: a broker looks at a few
// fields of a message and passes the rest on as it came.
//
// Pure; whatever the bytes are, reading ends and stays inside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.hpp"
#include "core/message/value.hpp"

namespace baton::bus::wire {

inline constexpr int depth_max = 32;  // of values in values

// One encoded value.
struct Item {
  std::uint8_t code = 0x40;   // its constructor; 0: described
  std::uint32_t count = 0;    // of what is in a list, a map or an array
  std::string_view payload;   // its bytes; of a list, a map or an array what is behind the count
  std::string_view encoded;   // all of it
};

// Takes the next value; none: what is there is no value. What is in lists, maps and arrays is not looked at.
[[nodiscard]] std::optional<Item> take(std::string_view& rest, int depth = 0);
// All the way down; texts are UTF-8.
[[nodiscard]] bool is_well_formed(const Item& item, int depth = 0);

[[nodiscard]] inline bool is_null(const Item& item) { return item.code == 0x40; }
[[nodiscard]] inline bool is_list(const Item& item) { return item.code == 0x45 || item.code == 0xc0 || item.code == 0xd0; }
[[nodiscard]] inline bool is_map(const Item& item) { return item.code == 0xc1 || item.code == 0xd1; }
[[nodiscard]] inline bool is_array(const Item& item) { return item.code == 0xe0 || item.code == 0xf0; }
[[nodiscard]] inline bool is_text(const Item& item) { return item.code == 0xa1 || item.code == 0xb1; }
[[nodiscard]] inline bool is_symbol(const Item& item) { return item.code == 0xa3 || item.code == 0xb3; }
[[nodiscard]] inline bool is_binary(const Item& item) { return item.code == 0xa0 || item.code == 0xb0; }
[[nodiscard]] inline bool is_uuid(const Item& item) { return item.code == 0x98; }

[[nodiscard]] std::optional<std::string_view> text_of(const Item& item);  // a text or a symbol
[[nodiscard]] std::optional<std::int64_t> integer_of(const Item& item);   // that fits
[[nodiscard]] std::optional<Time> time_of(const Item& item);              // years 1970 to 9999
[[nodiscard]] std::optional<bool> truth_of(const Item& item);
// As a filter sees it. What it cannot look into keeps its bytes.
[[nodiscard]] message::Value value_of(const Item& item);

// What is described, with by what.
struct Described {
  Item descriptor, value;
};
[[nodiscard]] std::optional<Described> described(const Item& item);

// Visits what is in a list or an array, one by one, until `visit` says false.
template <class Visit>
void for_each(const Item& item, Visit&& visit);
// The same for the pairs of a map.
template <class Visit>
void for_each_pair(const Item& map, Visit&& visit);
// Of a key that is a text or a symbol; none, if it is null.
[[nodiscard]] std::optional<Item> find(const Item& map, std::string_view key);

// Appends values to a text.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  void null();
  void truth(bool value);
  void uint(std::uint32_t value);
  void integer(std::int32_t value);
  void long_integer(std::int64_t value);
  void real(double value);
  void time(Time value);
  void uuid(std::string_view bytes);
  void text(std::string_view value);
  void symbol(std::string_view value);
  void binary(std::string_view value);
  void value(const message::Value& value);
  // As it was read: so many of them.
  void encoded(std::string_view bytes, std::uint32_t count = 1);

  // `fill` writes what is in it.
  template <class Fill>
  void list(Fill&& fill) {
    compound(0xd0, std::forward<Fill>(fill));
  }
  template <class Fill>
  void map(Fill&& fill) {
    compound(0xd1, std::forward<Fill>(fill));
  }
  // Of one constructor, whose values have the size that `fill` appends.
  template <class Fill>
  void array(std::uint8_t code, Fill&& fill) {
    compound(0xf0, [&] {
      out_ += static_cast<char>(code);
      fill();
    });
  }
  // One value of an array.
  void element(std::int64_t value);

  // The next value is what is described.
  void descriptor(std::uint64_t number);
  void descriptor(std::string_view symbol);

 private:
  template <class Fill>
  void compound(std::uint8_t code, Fill&& fill) {
    const std::uint32_t outer = std::exchange(count_, 0);
    out_ += static_cast<char>(code);
    const std::size_t at = out_.size();
    out_.append(8, '\0');
    fill();
    put(at, static_cast<std::uint32_t>(out_.size() - at - 4));
    put(at + 4, count_);
    count_ = outer + 1;
  }
  void put(std::size_t at, std::uint32_t value);
  void number(std::uint8_t code, std::uint64_t value, int bytes);
  void bytes(std::uint8_t code, std::string_view value);  // the code of the short form

  std::string& out_;
  std::uint32_t count_ = 0;  // of what is written into the list, map or array around
};

// ---- for_each

namespace detail {
// The next value of an array, all of which have one constructor.
[[nodiscard]] std::optional<Item> take_element(std::uint8_t code, std::string_view& rest);
}  // namespace detail

template <class Visit>
void for_each(const Item& item, Visit&& visit) {
  std::string_view rest = item.payload;
  if (is_array(item)) {
    if (rest.empty() || rest[0] == 0) return;  // arrays of described values: nobody sends them
    const auto code = static_cast<std::uint8_t>(rest[0]);
    rest.remove_prefix(1);
    for (std::uint32_t i = 0; i < item.count && !rest.empty(); ++i) {  // those without bytes are none: there may be any number
      const auto next = detail::take_element(code, rest);
      if (!next || !visit(*next)) return;
    }
  } else if (is_list(item)) {
    while (!rest.empty()) {
      const auto next = take(rest);
      if (!next || !visit(*next)) return;
    }
  }
}

template <class Visit>
void for_each_pair(const Item& map, Visit&& visit) {
  if (!is_map(map)) return;
  std::string_view rest = map.payload;
  while (!rest.empty()) {
    const auto key = take(rest);
    const auto value = key ? take(rest) : std::nullopt;
    if (!value || !visit(*key, *value)) return;
  }
}

}  // namespace baton::bus::wire
