#include "core/message/sql/like.hpp"

#include <utility>

#include "base/utf8.hpp"

namespace baton::message::sql {

std::optional<Pattern> Pattern::read(std::string_view pattern, std::optional<std::string_view> escape) {
  Pattern read;
  read.elements_.reserve(pattern.size());
  using Kind = Element::Kind;
  bool escaped = false;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::string_view character = pattern.substr(at, character_size(pattern, at));
    at += character.size();
    if (!escaped && escape && character == *escape) {
      escaped = true;
      continue;
    }
    const bool wild = !std::exchange(escaped, false);
    const Kind kind = wild && character == "%"   ? Kind::any_text
                      : wild && character == "_" ? Kind::any_one
                                                 : Kind::character;
    read.elements_.push_back({kind, character});
  }
  if (escaped) return std::nullopt;
  return read;
}

// When a character does not fit, only the last `%` takes one more: what an earlier one could take instead,
// the last one can take too. So there is one way back at each place, where a plain recursion has
// exponentially many.
std::optional<bool> Pattern::matches(std::string_view text, std::size_t& steps) const {
  using Kind = Element::Kind;
  std::size_t at = 0, element = 0;
  std::optional<std::size_t> after_any;  // the element after the last `%`
  std::size_t taken = 0;                 // where the text goes on that this `%` has not taken
  while (at < text.size()) {
    if (steps == 0) return std::nullopt;
    --steps;
    const std::size_t size = character_size(text, at);
    if (element < elements_.size() && elements_[element].kind == Kind::any_text) {
      after_any = ++element;
      taken = at;
    } else if (element < elements_.size() && (elements_[element].kind == Kind::any_one ||
                                              elements_[element].character == text.substr(at, size))) {
      at += size;
      ++element;
    } else if (after_any) {
      taken += character_size(text, taken);
      at = taken;
      element = *after_any;
    } else {
      return false;
    }
  }
  while (element < elements_.size() && elements_[element].kind == Kind::any_text) ++element;
  return element == elements_.size();
}

}  // namespace baton::message::sql
