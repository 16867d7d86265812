#include "base/diagnostics.hpp"

#include <algorithm>
#include <cmath>

namespace baton {
namespace {

std::string_view describe(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::NodeKind::null: return "nothing";
    case yaml::NodeKind::boolean: return "a boolean";
    case yaml::NodeKind::integer: return "an integer";
    case yaml::NodeKind::real: return "a number";
    case yaml::NodeKind::string: return "a string";
    case yaml::NodeKind::sequence: return "a list";
    case yaml::NodeKind::mapping: return "a mapping";
  }
  return "";
}

std::string_view describe(yaml::NodeKind kind) {
  yaml::Node node;
  node.kind = kind;
  return describe(node);
}

std::string join(const std::vector<std::string_view>& words) {
  std::string joined;
  for (const std::string_view word : words) joined.append(joined.empty() ? "" : ", ").append(word);
  return joined;
}

// Whole numbers without a fraction, so that limits read as people write them.
std::string plain(double value) {
  return value == std::floor(value) ? std::to_string(static_cast<std::int64_t>(value))
                                    : std::to_string(value);
}

}  // namespace

void Diagnostics::add(Diagnostic::Level level, Position at, std::string code, std::string message,
                      std::string hint) {
  if (is_full()) return;
  diagnostics_.push_back({level, at, std::move(code), std::move(message), std::move(hint)});
}

void Diagnostics::add(std::vector<Diagnostic> found) {
  for (Diagnostic& each : found)
    if (!is_full()) diagnostics_.push_back(std::move(each));
}

void Diagnostics::error(Position at, std::string code, std::string message, std::string hint) {
  add(Diagnostic::Level::error, at, std::move(code), std::move(message), std::move(hint));
}

void Diagnostics::warning(Position at, std::string code, std::string message, std::string hint) {
  // The last place is kept for an error: a document full of warnings must not hide that it is wrong.
  if (diagnostics_.size() + 1 >= diagnostics_max) return;
  add(Diagnostic::Level::warning, at, std::move(code), std::move(message), std::move(hint));
}

std::string Diagnostics::did_you_mean(std::string_view word,
                                      const std::vector<std::string_view>& candidates) const {
  if (is_full()) return {};
  const std::string guess = nearest(word, candidates);
  return guess.empty() ? std::string{} : "did you mean '" + guess + "'?";
}

std::vector<Diagnostic> Diagnostics::take() {
  std::ranges::stable_sort(diagnostics_, {}, &Diagnostic::at);
  return std::move(diagnostics_);
}

void Diagnostics::wrong_type(const yaml::Node& node, std::string_view what, std::string_view expected) {
  std::string hint;
  if (node.kind == yaml::NodeKind::null) hint = "give it a value or remove the key";
  const bool unquoted = expected == "a string" && node.is_scalar() && node.kind != yaml::NodeKind::null;
  if (unquoted) hint = "quote it: \"" + node.text.substr(0, 100) + '"';
  error(node.at, "wrong_type",
        std::string(what) + " must be " + std::string(expected) + ", found " + std::string(describe(node)),
        std::move(hint));
}

bool Diagnostics::expect(const yaml::Node& node, yaml::NodeKind kind, std::string_view what) {
  if (node.kind == kind) return true;
  wrong_type(node, what, describe(kind));
  return false;
}

std::optional<std::string> Diagnostics::text(const yaml::Node& node, std::string_view what) {
  if (!expect(node, yaml::NodeKind::string, what)) return std::nullopt;
  return node.text;
}

std::string Diagnostics::short_text(const yaml::Node& node, std::string_view what) {
  std::string found = text(node, what).value_or("");
  if (node.kind == yaml::NodeKind::string && found.empty())
    error(node.at, "empty_value", std::string(what) + " must not be empty");
  // The same rule as for the names in a worker's request: what breaks it could never be asked for.
  if (found.size() > 200 || std::ranges::any_of(found, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    error(node.at, "invalid_name",
          std::string(what) + " must have at most 200 bytes and no control characters");
  return found;
}

std::optional<std::int64_t> Diagnostics::integer(const yaml::Node& node, std::string_view what,
                                                 std::int64_t min, std::int64_t max) {
  if (!expect(node, yaml::NodeKind::integer, what)) return std::nullopt;
  const std::int64_t value = node.as_int();
  if (value >= min && value <= max) return value;
  error(node.at, "out_of_range",
        std::string(what) + " must be from " + std::to_string(min) + " to " + std::to_string(max) +
            ", found " + std::to_string(value));
  return std::nullopt;
}

std::optional<double> Diagnostics::number(const yaml::Node& node, std::string_view what, double min,
                                          double max) {
  if (node.kind != yaml::NodeKind::integer && node.kind != yaml::NodeKind::real) {
    wrong_type(node, what, "a number");
    return std::nullopt;
  }
  const double value = node.as_real();
  if (value >= min && value <= max) return value;  // false for NaN
  error(node.at, "out_of_range",
        std::string(what) + " must be from " + plain(min) + " to " + plain(max) + ", found " +
            node.text.substr(0, 100));
  return std::nullopt;
}

std::optional<std::size_t> Diagnostics::word(const yaml::Node& node, std::string_view what,
                                             const std::vector<std::string_view>& words) {
  if (!expect(node, yaml::NodeKind::string, what)) return std::nullopt;
  const auto found = std::ranges::find(words, std::string_view(node.text));
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  error(node.at, "invalid_value",
        std::string(what) + " must be one of " + join(words) + ", found " + in_quotes(node.text),
        did_you_mean(node.text, words));
  return std::nullopt;
}

void Diagnostics::check_keys(const yaml::Node& mapping, const std::vector<std::string_view>& known,
                             std::string_view where) {
  for (const yaml::Entry& entry : mapping.entries) {
    if (std::ranges::find(known, std::string_view(entry.key)) != known.end()) continue;
    std::string message = "unknown key " + in_quotes(entry.key) + " in " + std::string(where);
    std::string hint = did_you_mean(entry.key, known);
    if (hint.empty()) {
      warning(entry.key_at, "unknown_key", std::move(message), "known keys are " + join(known));
    } else {
      error(entry.key_at, "unknown_key", std::move(message), std::move(hint));
    }
  }
}

void forgive(std::vector<Diagnostic>& diagnostics, const std::vector<std::string_view>& codes) {
  for (Diagnostic& each : diagnostics)
    if (std::ranges::find(codes, std::string_view(each.code)) != codes.end())
      each.level = Diagnostic::Level::warning;
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  };
  return !text.empty() && text.size() <= 100 && std::ranges::all_of(text, allowed);
}

}  // namespace baton
