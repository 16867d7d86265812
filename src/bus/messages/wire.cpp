#include "bus/messages/wire.hpp"

#include <bit>
#include <cstring>
#include <limits>

#include "base/json.hpp"
#include "base/result.hpp"

namespace baton::bus::wire {
namespace {

constexpr std::int64_t millis_max = 253'402'300'800'000;  // the year 10,000
constexpr std::int64_t ticks_per_millisecond = 10'000;
constexpr std::int64_t ticks_of_1970 = 621'355'968'000'000'000;  // of .NET: 100 ns since the year 1

// Of so many bytes, the largest first.
std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char c : bytes) number = number << 8 | static_cast<unsigned char>(c);
  return number;
}

// The bytes of a value behind its constructor; none: there is no such constructor.
std::optional<std::size_t> fixed_size(std::uint8_t code) {
  switch (code >> 4) {
    case 4: return 0;
    case 5: return 1;
    case 6: return 2;
    case 7: return 4;
    case 8: return 8;
    case 9: return 16;
    default: return std::nullopt;
  }
}

bool is_known(std::uint8_t code) {
  switch (code) {
    case 0x40: case 0x41: case 0x42: case 0x43: case 0x44: case 0x45:
    case 0x50: case 0x51: case 0x52: case 0x53: case 0x54: case 0x55: case 0x56:
    case 0x60: case 0x61: case 0x70: case 0x71: case 0x72: case 0x73: case 0x74:
    case 0x80: case 0x81: case 0x82: case 0x83: case 0x84: case 0x94: case 0x98:
    case 0xa0: case 0xa1: case 0xa3: case 0xb0: case 0xb1: case 0xb3:
    case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xe0: case 0xf0: return true;
    default: return false;
  }
}

std::optional<std::string_view> take_bytes(std::string_view& rest, std::size_t count) {
  if (rest.size() < count) return std::nullopt;
  const std::string_view taken = rest.substr(0, count);
  rest.remove_prefix(count);
  return taken;
}

// With a size before it, and a count if it holds other values.
std::optional<Item> take_sized(std::uint8_t code, std::string_view& rest) {
  const std::size_t width = (code & 0x10) != 0 ? 4 : 1;
  const auto size = take_bytes(rest, width);
  const auto inside = size ? take_bytes(rest, number_of(*size)) : std::nullopt;
  if (!inside) return std::nullopt;
  Item item{.code = code, .count = 0, .payload = *inside, .encoded = {}};
  if (code < 0xc0) return item;
  const auto count = take_bytes(item.payload, width);
  if (!count) return std::nullopt;
  item.count = static_cast<std::uint32_t>(number_of(*count));
  return item;
}

std::optional<Item> take_plain(std::uint8_t code, std::string_view& rest) {
  if (!is_known(code)) return std::nullopt;
  if (code >= 0xa0) return take_sized(code, rest);
  const auto payload = take_bytes(rest, *fixed_size(code));
  if (!payload) return std::nullopt;
  return Item{.code = code, .count = 0, .payload = *payload, .encoded = {}};
}

std::int64_t with_sign(std::string_view bytes) {
  const auto unused = static_cast<int>(64 - bytes.size() * 8);
  return static_cast<std::int64_t>(number_of(bytes) << unused) >> unused;
}

double real_of(const Item& item) {
  if (item.code == 0x72) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number_of(item.payload))));
  return std::bit_cast<double>(number_of(item.payload));
}

// What .NET has beyond AMQP's types.
std::optional<message::Value> value_of_dotnet(const Described& what) {
  const auto name = text_of(what.descriptor);
  const auto number = integer_of(what.value);
  if (name == "com.microsoft:uri" && text_of(what.value)) return std::string(*text_of(what.value));
  if (name == "com.microsoft:timespan" && number) return Duration{*number / ticks_per_millisecond};
  if (name != "com.microsoft:datetime-offset" || !number || *number < ticks_of_1970) return std::nullopt;
  const std::int64_t millis = (*number - ticks_of_1970) / ticks_per_millisecond;
  return millis < millis_max ? std::optional<message::Value>(from_millis(millis)) : std::nullopt;
}

}  // namespace

std::optional<Item> take(std::string_view& rest, int depth) {
  const std::string_view from = rest;
  if (rest.empty() || depth > depth_max) return std::nullopt;
  const auto code = static_cast<std::uint8_t>(rest[0]);
  rest.remove_prefix(1);
  std::optional<Item> item;
  if (code != 0) {
    item = take_plain(code, rest);
  } else if (take(rest, depth + 1) && take(rest, depth + 1)) {
    item = Item{.code = 0, .count = 0, .payload = from.substr(1, from.size() - rest.size() - 1), .encoded = {}};
  }
  if (item) item->encoded = from.substr(0, from.size() - rest.size());
  return item;
}

std::optional<Item> detail::take_element(std::uint8_t code, std::string_view& rest) {
  const std::string_view from = rest;
  auto item = take_plain(code, rest);
  if (item) item->encoded = from.substr(0, from.size() - rest.size());
  return item;
}

bool is_well_formed(const Item& item, int depth) {
  if (depth > depth_max) return false;
  if (item.code == 0) {
    const auto what = described(item);
    return what && is_well_formed(what->descriptor, depth + 1) && is_well_formed(what->value, depth + 1);
  }
  if (is_text(item)) return is_utf8(item.payload);
  if (item.code < 0xc0) return true;
  std::string_view rest = item.payload;
  if (is_array(item)) {
    if (item.count == 0) return true;
    if (rest.empty() || rest[0] == 0) return false;
    const auto code = static_cast<std::uint8_t>(rest[0]);
    rest.remove_prefix(1);
    if (fixed_size(code) == 0U) return rest.empty();  // a count without bytes could be any
    for (std::uint32_t i = 0; i < item.count; ++i) {
      const auto next = detail::take_element(code, rest);
      if (!next || !is_well_formed(*next, depth + 1)) return false;
    }
    return rest.empty();
  }
  std::uint32_t count = 0;
  for (; !rest.empty(); ++count) {
    const auto next = take(rest, depth + 1);
    if (!next || !is_well_formed(*next, depth + 1)) return false;
  }
  return count == item.count && (!is_map(item) || count % 2 == 0);
}

std::optional<std::string_view> text_of(const Item& item) {
  return is_text(item) || is_symbol(item) ? std::optional(item.payload) : std::nullopt;
}

std::optional<std::int64_t> integer_of(const Item& item) {
  switch (item.code) {
    case 0x43: case 0x44: return 0;
    case 0x50: case 0x52: case 0x53: case 0x60: case 0x70: return static_cast<std::int64_t>(number_of(item.payload));
    case 0x51: case 0x54: case 0x55: case 0x61: case 0x71: case 0x81: return with_sign(item.payload);
    case 0x80: {
      const std::uint64_t number = number_of(item.payload);
      return number <= std::numeric_limits<std::int64_t>::max() ? std::optional(static_cast<std::int64_t>(number)) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<Time> time_of(const Item& item) {
  if (item.code != 0x83) return std::nullopt;
  const std::int64_t millis = with_sign(item.payload);
  return millis >= 0 && millis < millis_max ? std::optional(from_millis(millis)) : std::nullopt;
}

std::optional<bool> truth_of(const Item& item) {
  if (item.code == 0x41 || item.code == 0x42) return item.code == 0x41;
  if (item.code == 0x56) return item.payload[0] != 0;
  return std::nullopt;
}

message::Value value_of(const Item& item) {
  if (is_null(item)) return message::Null{};
  if (const auto text = text_of(item)) return std::string(*text);
  if (const auto truth = truth_of(item)) return *truth;
  if (const auto number = integer_of(item)) return *number;
  if (item.code == 0x72 || item.code == 0x82) return real_of(item);
  if (item.code == 0x80) return static_cast<double>(number_of(item.payload));
  if (const auto time = time_of(item)) return *time;
  if (const auto what = described(item))
    if (auto value = value_of_dotnet(*what)) return *std::move(value);
  return message::Opaque{std::string(item.encoded)};
}

std::optional<Described> described(const Item& item) {
  if (item.code != 0) return std::nullopt;
  std::string_view rest = item.payload;
  const auto descriptor = take(rest);
  const auto value = descriptor ? take(rest) : std::nullopt;
  if (!value) return std::nullopt;
  return Described{*descriptor, *value};
}

std::optional<Item> find(const Item& map, std::string_view key) {
  std::optional<Item> found;
  for_each_pair(map, [&](const Item& name, const Item& value) {
    if (text_of(name) != key) return true;
    if (!is_null(value)) found = value;
    return false;
  });
  return found;
}

// ---- writing

void Writer::put(std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) out_[at + i] = static_cast<char>(value >> (24 - i * 8));
}

void Writer::number(std::uint8_t code, std::uint64_t value, int bytes) {
  if (code != 0) out_ += static_cast<char>(code);
  for (int i = bytes - 1; i >= 0; --i) out_ += static_cast<char>(value >> (i * 8));
  ++count_;
}

void Writer::bytes(std::uint8_t code, std::string_view value) {
  const bool is_short = value.size() < 256;
  number(is_short ? code : code + 0x10, value.size(), is_short ? 1 : 4);
  out_ += value;
}

void Writer::null() { number(0x40, 0, 0); }
void Writer::truth(bool value) { number(value ? 0x41 : 0x42, 0, 0); }
void Writer::uint(std::uint32_t value) { value == 0 ? number(0x43, 0, 0) : value < 256 ? number(0x52, value, 1) : number(0x70, value, 4); }
void Writer::integer(std::int32_t value) { number(0x71, static_cast<std::uint32_t>(value), 4); }
void Writer::long_integer(std::int64_t value) { number(0x81, static_cast<std::uint64_t>(value), 8); }
void Writer::real(double value) { number(0x82, std::bit_cast<std::uint64_t>(value), 8); }
void Writer::time(Time value) { number(0x83, static_cast<std::uint64_t>(to_millis(value)), 8); }
void Writer::text(std::string_view value) { bytes(0xa1, value); }
void Writer::symbol(std::string_view value) { bytes(0xa3, value); }
void Writer::binary(std::string_view value) { bytes(0xa0, value); }
void Writer::element(std::int64_t value) { number(0, static_cast<std::uint64_t>(value), 8); }

void Writer::uuid(std::string_view value) {
  number(0x98, 0, 0);
  out_ += value;
}

void Writer::encoded(std::string_view value, std::uint32_t count) {
  out_ += value;
  count_ += count;
}

void Writer::descriptor(std::uint64_t described_by) {
  out_ += '\0';
  described_by < 256 ? number(0x53, described_by, 1) : number(0x80, described_by, 8);
  --count_;
}

void Writer::descriptor(std::string_view described_by) {
  out_ += '\0';
  symbol(described_by);
  --count_;
}

void Writer::value(const message::Value& value) {
  std::visit(overloaded{
                 [&](message::Null) { null(); },
                 [&](bool is) { truth(is); },
                 [&](std::int64_t is) { long_integer(is); },
                 [&](double is) { real(is); },
                 [&](const std::string& is) { text(is); },
                 [&](Time is) { time(is); },
                 [&](Duration is) {
                   descriptor("com.microsoft:timespan");
                   long_integer(is.count() * ticks_per_millisecond);
                 },
                 [&](const message::Opaque& is) {
                   std::string_view rest = is.encoded;
                   const bool is_ours = take(rest) && rest.empty();
                   is_ours ? encoded(is.encoded) : binary(is.encoded);
                 },
             },
             value);
}

}  // namespace baton::bus::wire
