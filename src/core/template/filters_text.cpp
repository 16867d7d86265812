// Filters of text.
#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>

#include "base/json.hpp"
#include "base/result.hpp"
#include "core/template/filters.hpp"
#include "core/template/text.hpp"

namespace baton::expression::filter {
namespace {

// The subject's characters, each changed with a look at the one before.
template <class Change>
Outcome changed(const FilterCall& call, Change change) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  std::string out(text);
  char before = ' ';
  for (char& c : out) {
    const char old = c;
    c = change(c, before);
    before = old;
  }
  return made_text(std::move(out), call.budget);
}

constexpr bool is_letter(char c) { return is_lower(c) || is_upper(c); }
// A character outside ASCII is taken for a letter.
constexpr bool joins_word(char c) {
  return is_letter(c) || is_digit(c) || c == '\'' || static_cast<unsigned char>(c) >= 0x80;
}

void append_encoded(std::string& out, std::string_view text, std::string_view safe) {
  constexpr char hex[] = "0123456789ABCDEF";
  for (const char c : text) {
    if (is_word_part(c) || safe.contains(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += hex[byte >> 4];
    out += hex[byte & 0xf];
  }
}

constexpr std::string_view base64_letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t no_digit = 64;
constexpr std::array<std::uint8_t, 256> base64_digits = [] {
  std::array<std::uint8_t, 256> digits{};
  digits.fill(no_digit);
  for (std::uint8_t i = 0; i < 64; ++i) digits[static_cast<unsigned char>(base64_letters[i])] = i;
  return digits;
}();

}  // namespace

Outcome lower(FilterCall& call) {
  return changed(call, [](char c, char) { return to_lower(c); });
}

Outcome upper(FilterCall& call) {
  return changed(call, [](char c, char) { return to_upper(c); });
}

Outcome title(FilterCall& call) {
  return changed(call, [](char c, char before) { return joins_word(before) ? to_lower(c) : to_upper(c); });
}

Outcome capitalize(FilterCall& call) {
  bool first = true;
  return changed(call, [&](char c, char) { return std::exchange(first, false) ? to_upper(c) : to_lower(c); });
}

Outcome trim(FilterCall& call) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  if (!call.budget.scan(text.size())) return call.budget.exceeded();
  return made_text(std::string(trimmed(text)), call.budget);
}

Outcome replace(FilterCall& call) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  TRY_ASSIGN(const std::string_view old, text_argument(call, 0));
  TRY_ASSIGN(const std::string_view fresh, text_argument(call, 1));
  TRY_ASSIGN(std::int64_t left, integer_argument(call, 2, std::numeric_limits<std::int64_t>::max()));
  if (old.empty()) return problem("invalid_value", "'replace' needs a text to look for");
  if (!call.budget.scan(text.size())) return call.budget.exceeded();
  std::string out;
  std::size_t at = 0;
  for (std::size_t found = 0; left > 0 && (found = find_text(text, old, at)) != text.npos; --left) {
    if (!call.budget.text(found - at + fresh.size()) || !call.budget.steps()) return call.budget.exceeded();
    out.append(text, at, found - at);
    out += fresh;
    at = found + old.size();
  }
  out += text.substr(at);
  return made_text(std::move(out), call.budget);
}

// Without a separator, at blanks, of which there may be several.
Outcome split(FilterCall& call) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  TRY_ASSIGN(const std::string_view separator, text_argument(call, 0));
  if (call.has(0) && separator.empty()) return problem("invalid_value", "'split' needs a separator");
  if (!call.budget.scan(text.size())) return call.budget.exceeded();
  json::array pieces;
  const auto add = [&](std::string_view piece) {
    pieces.emplace_back(json::string(piece));
    return call.budget.steps() && call.budget.text(piece.size());
  };
  std::size_t at = 0;
  while (at <= text.size()) {
    std::size_t end = call.has(0) ? find_text(text, separator, at) : at;
    if (!call.has(0))
      while (end < text.size() && !is_blank(text[end])) ++end;
    end = std::min(end, text.size());
    if ((call.has(0) || end > at) && !add(text.substr(at, end - at))) return call.budget.exceeded();
    at = end + (call.has(0) ? separator.size() : 1);
  }
  return json::value(std::move(pieces));
}

Outcome b64encode(FilterCall& call) {
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  std::string out;
  out.reserve((text.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      out += at + i > text.size() ? '=' : base64_letters[bits >> (18 - 6 * i) & 0x3f];
  }
  return made_text(std::move(out), call.budget);
}

Outcome b64decode(FilterCall& call) {
  TRY_ASSIGN(std::string_view text, text_of(*call.subject));
  const auto invalid = [] { return problem("invalid_value", "the text is not Base64"); };
  if (text.size() % 4 != 0) return invalid();
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  std::uint32_t count = 0;
  for (const char c : text) {
    const std::uint32_t digit = base64_digits[static_cast<unsigned char>(c)];
    if (digit == no_digit) return invalid();
    bits = (bits << 6 | digit) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  if (!is_utf8(out)) return problem("invalid_value", "the decoded bytes are not UTF-8 text");
  return made_text(std::move(out), call.budget);
}

// A text as a part of a path, an object as a query.
Outcome urlencode(FilterCall& call) {
  std::string out;
  if (const auto* object = call.subject->if_object()) {
    for (const auto& member : *object) {
      if (!out.empty()) out += '&';
      append_encoded(out, {member.key().data(), member.key().size()}, "-.~");
      out += '=';
      std::string value;
      if (!call.budget.steps() || !append_text(value, member.value(), call.budget))
        return call.budget.exceeded();
      append_encoded(out, value, "-.~");
    }
    return made_text(std::move(out), call.budget);
  }
  TRY_ASSIGN(const std::string_view text, text_of(*call.subject));
  append_encoded(out, text, "-.~/");
  return made_text(std::move(out), call.budget);
}

}  // namespace baton::expression::filter
