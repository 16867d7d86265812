// Parameters in PostgreSQL's binary format: nothing is quoted, so nothing can be quoted wrongly. Integers are
// big-endian; an instant is microseconds since 2000-01-01; an array is a header and, for each element, its
// size (-1: NULL) and its bytes.
#pragma once

#include <libpq-fe.h>

#include <array>
#include <concepts>
#include <vector>

#include "store/connection.hpp"

namespace baton::store::postgres {

struct TypeOids {
  Oid element, array;
};

// From pg_type.dat; these numbers never change.
constexpr TypeOids oids(Type type) {
  switch (type) {
    case Type::text: return {25, 1009};
    case Type::json: return {114, 199};
    case Type::integer: return {20, 1016};
    case Type::time: return {1184, 1185};
    case Type::bytes: return {17, 1001};
  }
  return {};
}

template <std::integral T>
void append_big_endian(std::string& out, T value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<unsigned char>((bits >> shift) & 0xff));
  }
}

inline void append_bytes(std::string& out, const Value& value) {
  constexpr std::int64_t epoch_2000 = 946'684'800'000;
  std::visit(overloaded{
                 [](std::monostate) {},
                 [&](std::int64_t number) { append_big_endian(out, number); },
                 [&](Time time) { append_big_endian(out, (to_millis(time) - epoch_2000) * 1000); },
                 [&](std::string_view text) { out += text; },
             },
             value);
}

// One parameter of a statement: a scalar, or the array of the values that are added.
class Parameter {
 public:
  Parameter(Type type, bool array) : type_(oids(type)), array_(array) { clear(); }

  void add(const Value& value) {
    if (!array_) {
      is_null_ = std::holds_alternative<std::monostate>(value);
      append_bytes(bytes_, value);
      return;
    }
    ++count_;
    const std::size_t size_at = bytes_.size();
    bytes_.append(4, '\xff');  // -1
    if (std::holds_alternative<std::monostate>(value)) {
      is_null_ = true;
      return;
    }
    append_bytes(bytes_, value);
    put_int32(size_at, static_cast<std::int32_t>(bytes_.size() - size_at - 4));
  }

  // Query once, when all values are there.
  [[nodiscard]] const char* finish() {
    if (!array_) return is_null_ ? nullptr : bytes_.c_str();
    put_int32(4, is_null_ ? 1 : 0);
    put_int32(12, count_);
    return bytes_.data();
  }

  void clear() {
    bytes_.clear();
    is_null_ = false;
    count_ = 0;
    if (!array_) return;
    append_big_endian(bytes_, std::int32_t{1});  // dimensions
    append_big_endian(bytes_, std::int32_t{0});  // has NULLs
    append_big_endian(bytes_, type_.element);
    append_big_endian(bytes_, std::int32_t{0});  // elements
    append_big_endian(bytes_, std::int32_t{1});  // the first index
  }

  [[nodiscard]] Oid oid() const { return array_ ? type_.array : type_.element; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  void put_int32(std::size_t at, std::int32_t value) {
    for (int i = 0; i < 4; ++i) {
      bytes_[at + static_cast<std::size_t>(i)] =
          static_cast<char>((static_cast<std::uint32_t>(value) >> (24 - 8 * i)) & 0xff);
    }
  }

  TypeOids type_;
  bool array_;
  bool is_null_ = false;
  std::int32_t count_ = 0;
  std::string bytes_;
};

}  // namespace baton::store::postgres
