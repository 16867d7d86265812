#include "base/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/text.hpp"

namespace baton {
namespace {

// Longer words are not typed by hand, and comparing them would cost too much.
constexpr std::size_t word_size_max = 100;

// How many slips still make the same word: none in a single letter, where everything would be near.
std::size_t slips_max(std::size_t size) {
  if (size <= 1) return 0;
  if (size <= 5) return 1;
  return size <= 11 ? 2 : 3;
}

// The edits (insert, remove, replace, swap neighbours; case does not count) from `a` to `b`, or limit + 1
// when there are more. Cells farther than `limit` from the diagonal cannot matter, so that only a band is
// computed.
std::size_t distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::array<std::size_t, word_size_max + 1> before_last, last, row;
  before_last.fill(limit + 1);
  row.fill(limit + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const std::size_t from = i > limit ? i - limit : 1;
    const std::size_t to = std::min(b.size(), i + limit);
    row[from - 1] = from == 1 ? i : limit + 1;
    if (to < b.size()) row[to + 1] = limit + 1;  // the next row looks at it
    std::size_t least = row[from - 1];
    for (std::size_t j = from; j <= to; ++j) {
      const char x = lower(a[i - 1]);
      const char y = lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x == y ? 0u : 1u)});
      const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least > limit) return limit + 1;  // later rows only grow
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], limit + 1);
}

// `timeout` for `timeout_seconds`: the unit is what people leave out.
bool lacks_only_the_unit(std::string_view word, std::string_view candidate) {
  return word.size() >= 3 && candidate.size() > word.size() && candidate.starts_with(word) &&
         candidate[word.size()] == '_';
}

}  // namespace

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics,
                             [](const Diagnostic& d) { return d.level == Diagnostic::Level::error; });
}

std::string nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.empty() || word.size() > word_size_max) return {};
  const std::size_t limit = slips_max(word.size());
  std::size_t best_distance = limit + 1;
  std::string_view best;
  std::string_view with_unit;
  for (const std::string_view candidate : candidates) {
    if (candidate == word || candidate.size() > word_size_max) continue;
    const std::size_t d = distance(word, candidate, limit);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
    if (with_unit.empty() && lacks_only_the_unit(word, candidate)) with_unit = candidate;
  }
  return std::string(best.empty() ? with_unit : best);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t shown_max = 100;
  if (text.size() <= shown_max) return '\'' + std::string(text) + '\'';
  std::size_t cut = shown_max;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not inside a character
  return '\'' + std::string(text.substr(0, cut)) + "...'";
}

std::string render(std::string_view file, const Diagnostic& diagnostic) {
  std::string line(file);
  line += ':' + std::to_string(diagnostic.at.line) + ':' + std::to_string(diagnostic.at.column);
  line += diagnostic.level == Diagnostic::Level::error ? ": error: " : ": warning: ";
  line += diagnostic.message;
  if (!diagnostic.hint.empty()) line += " (" + diagnostic.hint + ')';
  line += " [" + diagnostic.code + ']';
  return line;
}

}  // namespace baton
