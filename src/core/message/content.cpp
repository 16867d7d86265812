#include "core/message/content.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "base/base64.hpp"
#include "base/json_document.hpp"
#include "base/json_write.hpp"

namespace baton::message {
namespace {

constexpr int depth_max = 16;
constexpr std::array<std::string_view, 13> property_names = {
    "message_id",       "user_id",              "to",            "subject",  "reply_to",       "correlation_id",    "content_type",
    "content_encoding", "absolute_expiry_time", "creation_time", "group_id", "group_sequence", "reply_to_group_id"};

enum Section : std::uint64_t { properties = 0x73, application_properties = 0x74, data = 0x75, sequence = 0x76, value = 0x77, footer = 0x78 };

// Reads values of AMQP from bytes and writes them as JSON. After a failure it reads nothing more.
class AmqpReader {
 public:
  explicit AmqpReader(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

  std::optional<std::uint64_t> descriptor() {
    if (number(1) != 0x00) return std::nullopt;
    const std::uint64_t code = number(1);
    if (code == 0x53) return number(1);
    if (code == 0x80) return number(8);
    return std::nullopt;
  }

  // The bytes of a binary value.
  std::optional<std::string_view> binary() {
    const std::uint64_t code = number(1);
    if (code == 0xa0 || code == 0xb0) return take(number(code == 0xa0 ? 1 : 4));
    return std::nullopt;
  }

  // What a list or a map holds, and how many values that are.
  struct Inside {
    std::string_view bytes;
    std::uint64_t count = 0;
  };
  std::optional<Inside> inside(std::uint64_t code) {
    if (code == 0x45) return Inside{};
    const bool is_small = code == 0xc0 || code == 0xc1;
    if (!is_small && code != 0xd0 && code != 0xd1) return std::nullopt;
    const std::size_t width = is_small ? 1 : 4;
    const auto whole = take(number(width));
    if (!whole) return std::nullopt;
    AmqpReader reader(*whole);
    const std::uint64_t count = reader.number(width);
    if (reader.failed_ || count > reader.bytes_.size()) return std::nullopt;  // each takes a byte at least
    return Inside{reader.bytes_, count};
  }

  bool append(std::string& out, int depth = 0) {
    const std::uint64_t code = number(1);
    if (failed_ || depth > depth_max) return false;
    if (code == 0x00) {  // of a described value only the value is shown
      std::string ignored;
      return append(ignored, depth + 1) && append(out, depth + 1);
    }
    switch (code >> 4) {
      case 0x4:
      case 0x5:
      case 0x6:
      case 0x7:
      case 0x8:
      case 0x9: return append_fixed(out, code);
      case 0xa:
      case 0xb: return append_variable(out, code);
      case 0xc:
      case 0xd: return append_compound(out, code, depth);
      default: return append_array(out, code);
    }
  }

  std::uint64_t number(std::size_t width) {
    const auto taken = take(width);
    std::uint64_t result = 0;
    if (taken)
      for (const char c : *taken) result = result << 8 | static_cast<unsigned char>(c);
    return result;
  }

 private:
  std::optional<std::string_view> take(std::uint64_t count) {
    if (failed_ || count > bytes_.size()) {
      failed_ = true;
      return std::nullopt;
    }
    const auto taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }

  bool append_fixed(std::string& out, std::uint64_t code) {
    switch (code) {
      case 0x40: return out += "null", true;
      case 0x41: return out += "true", true;
      case 0x42: return out += "false", true;
      case 0x56: append_value(out, number(1) != 0); break;
      case 0x43:
      case 0x44: return out += '0', true;
      case 0x45: return out += "[]", true;
      case 0x50:
      case 0x52:
      case 0x53: append_value(out, number(1)); break;
      case 0x60: append_value(out, number(2)); break;
      case 0x70: append_value(out, number(4)); break;
      case 0x80: append_value(out, number(8)); break;
      case 0x51:
      case 0x54:
      case 0x55: append_value(out, static_cast<int>(static_cast<std::int8_t>(number(1)))); break;
      case 0x61: append_value(out, static_cast<int>(static_cast<std::int16_t>(number(2)))); break;
      case 0x71: append_value(out, static_cast<std::int32_t>(number(4))); break;
      case 0x81: append_value(out, static_cast<std::int64_t>(number(8))); break;
      case 0x72: append_value(out, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(number(4))))); break;
      case 0x82: append_value(out, std::bit_cast<double>(number(8))); break;
      case 0x73: append_value(out, number(4)); break;  // a character, by its number
      case 0x83: append_time(out, static_cast<std::int64_t>(number(8))); break;
      case 0x98: append_uuid(out); break;
      case 0x74: return append_bytes(out, take(4));  // decimals, as they are
      case 0x84: return append_bytes(out, take(8));
      case 0x94: return append_bytes(out, take(16));
      default: return false;
    }
    return !failed_;
  }

  static void append_time(std::string& out, std::int64_t millis) {
    constexpr std::int64_t latest = 253'402'300'799'999;  // the end of the year 9999
    if (millis >= 0 && millis <= latest) append_value(out, from_millis(millis));
    else append_value(out, millis);
  }

  void append_uuid(std::string& out) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto bytes = take(16);
    if (!bytes) return;
    std::string text;
    for (std::size_t i = 0; i < bytes->size(); ++i) {
      const auto byte = static_cast<unsigned char>((*bytes)[i]);
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      text += digits[byte >> 4U];
      text += digits[byte & 15U];
    }
    append_value(out, text);
  }

  static bool append_bytes(std::string& out, std::optional<std::string_view> bytes) {
    if (bytes) append_value(out, base64(*bytes));
    return bytes.has_value();
  }

  bool append_variable(std::string& out, std::uint64_t code) {
    const auto bytes = take(number(code >> 4 == 0xa ? 1 : 4));
    if (!bytes) return false;
    switch (code & 0xf) {
      case 0x0: return append_bytes(out, bytes);
      case 0x1:
      case 0x3: return append_value(out, *bytes), true;
      default: return false;
    }
  }

  bool append_compound(std::string& out, std::uint64_t code, int depth) {
    const auto held = inside(code);
    if (!held) return false;
    AmqpReader reader(held->bytes);
    const bool is_map = (code & 0xf) == 1;
    if (is_map && held->count % 2 != 0) return false;
    out += is_map ? '{' : '[';
    for (std::uint64_t i = 0; i < held->count; ++i) {
      const bool is_key = is_map && i % 2 == 0;
      if (i > 0) out += is_map && !is_key ? ':' : ',';
      if (!(is_key ? reader.append_map_key(out, depth + 1) : reader.append(out, depth + 1))) return false;
    }
    out += is_map ? '}' : ']';
    return true;
  }

  // Keys that are no texts become some.
  bool append_map_key(std::string& out, int depth) {
    std::string key;
    if (!append(key, depth)) return false;
    if (key.starts_with('"')) out += key;
    else append_value(out, key);
    return true;
  }

  // Its items share one code; nobody puts them where people look, so the bytes are shown.
  bool append_array(std::string& out, std::uint64_t code) {
    if (code != 0xe0 && code != 0xf0) return false;
    return append_bytes(out, take(number(code == 0xe0 ? 1 : 4)));
  }

  std::string_view bytes_;
  bool failed_ = false;
};

bool show_properties(AmqpReader& reader, Json& shown) {
  const auto held = reader.inside(reader.number(1));
  if (!held || held->count > property_names.size()) return false;
  AmqpReader fields(held->bytes);
  shown.text = "{";
  for (std::uint64_t i = 0; i < held->count; ++i) {
    std::string field;
    if (!fields.append(field)) return false;
    if (field != "null") append_member(shown.text, property_names[i], Json{field});
  }
  shown.text += '}';
  return true;
}

bool show_map(AmqpReader& reader, Json& shown) {
  std::string text;
  if (!reader.append(text) || !text.starts_with('{')) return false;
  shown.text = std::move(text);
  return true;
}

void show_bytes(const std::string& bytes, ShownContent& shown) {
  using enum ShownContent::Body;
  if (const auto document = JsonDocument::parse(bytes)) {
    shown.body_type = json;
    shown.body = document->root().json();
  } else if (is_utf8(bytes) && !bytes.contains('\0')) {
    shown.body_type = text;
    shown.body.text = quoted(bytes);
  } else {
    shown.body_type = base64;
    shown.body.text = quoted(baton::base64(bytes));
  }
}

}  // namespace

std::string_view name(ShownContent::Body body) {
  constexpr std::array<std::string_view, 4> names = {"none", "json", "text", "base64"};
  return names[static_cast<std::size_t>(body)];
}

std::optional<ShownContent> show_content(std::string_view content) {
  AmqpReader reader(content);
  ShownContent shown;
  std::string bytes, values;
  bool has_data = false;
  while (!reader.at_end()) {
    const auto section = reader.descriptor();
    if (!section) return std::nullopt;
    bool is_fine = true;
    if (*section == Section::properties) is_fine = show_properties(reader, shown.properties);
    else if (*section == Section::application_properties) is_fine = show_map(reader, shown.application_properties);
    else if (*section == Section::data) {
      const auto part = reader.binary();
      has_data = is_fine = part.has_value();
      if (part) bytes += *part;
    } else if (*section == Section::value || *section == Section::sequence) {
      values.clear();
      is_fine = reader.append(values);
    } else {
      std::string ignored;
      is_fine = reader.append(ignored);
    }
    if (!is_fine) return std::nullopt;
  }
  if (has_data) show_bytes(bytes, shown);
  else if (!values.empty()) {
    shown.body_type = values.starts_with('"') ? ShownContent::Body::text : ShownContent::Body::json;
    shown.body.text = std::move(values);
  }
  return shown;
}

}  // namespace baton::message
