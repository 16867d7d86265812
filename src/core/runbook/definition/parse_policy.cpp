#include "core/runbook/definition/parse_policy.hpp"

#include <algorithm>

namespace baton::runbook {
namespace {

using yaml::NodeKind;

constexpr std::chrono::seconds duration_max = std::chrono::days{365};
constexpr std::int64_t retries_max = 100;
constexpr std::string_view duration_hint = "as 30s, 15m, 2h or 7d";
constexpr std::string_view offset_hint = "as T-5d, T-4h, T-30m, T-90s, T-0 or T+2h";

bool is_text(const yaml::Node& node) { return node.is_scalar() && node.kind != NodeKind::null; }

// What was probably meant by a text that is no offset; empty: no idea.
std::string offset_meant(std::string_view text) {
  std::string guess;
  for (const char c : text)
    if (c != ' ') guess += c;
  std::ranges::transform(guess, guess.begin(), [](char c) { return c == 't' ? 'T' : c; });
  if (!guess.starts_with('T'))
    guess = (guess.starts_with('-') || guess.starts_with('+') ? "T" : "T-") + guess;
  return parse_offset(guess) ? guess : "";
}

}  // namespace

std::optional<std::chrono::seconds> read_duration(const yaml::Node& node, const std::string& what,
                                                  Diagnostics& diagnostics) {
  if (!is_text(node)) {
    diagnostics.wrong_type(node, what, "a duration as 30s, 15m, 2h or 7d");
    return std::nullopt;
  }
  const auto duration = parse_duration(node.text);
  if (!duration) {
    const bool lacks_unit = node.kind == NodeKind::integer && parse_duration(node.text + "s");
    diagnostics.error(node.at, "invalid_duration", what + " must be a duration, found " + in_quotes(node.text),
                      lacks_unit ? "add a unit: " + node.text + "s" : std::string(duration_hint));
    return std::nullopt;
  }
  if (duration->count() > 0 && *duration <= duration_max) return duration;
  diagnostics.error(node.at, "out_of_range", what + " must be from 1s to 365d, found " + in_quotes(node.text));
  return std::nullopt;
}

std::optional<std::int32_t> read_offset(const yaml::Node& node, const std::string& what,
                                        Diagnostics& diagnostics) {
  if (!is_text(node)) {
    diagnostics.wrong_type(node, what, "an offset from T as T-5d");
    return std::nullopt;
  }
  const auto offset = parse_offset(node.text);
  if (offset) return offset;
  const std::string meant = offset_meant(node.text);
  diagnostics.error(node.at, "invalid_offset", what + " must be an offset from T, found " + in_quotes(node.text),
                    meant.empty() ? std::string(offset_hint) : "did you mean '" + meant + "'?");
  return std::nullopt;
}

Retry read_retry(const yaml::Node& node, const std::string& where, Diagnostics& diagnostics) {
  Retry retry;
  const std::string what = "'retry' of " + where;
  if (!diagnostics.expect(node, NodeKind::mapping, what)) return retry;
  diagnostics.check_keys(node, {"max_retries", "interval", "backoff", "max_interval"}, what);
  if (const auto* retries = node.find("max_retries")) {
    const auto number = diagnostics.integer(*retries, "'max_retries' of " + where, 0, retries_max);
    retry.max_retries = static_cast<std::int32_t>(number.value_or(0));
  } else {
    diagnostics.warning(node.at, "retry_without_max_retries", what + " has no 'max_retries': nothing is retried",
                        "add max_retries: 2, or 0 if that is meant");
  }
  const auto* interval = node.find("interval");
  const auto first =
      interval ? read_duration(*interval, "'interval' of " + what, diagnostics) : std::optional(retry.interval);
  retry.interval = first.value_or(retry.interval);
  const auto* backoff = node.find("backoff");
  if (backoff) {
    const auto word = diagnostics.word(*backoff, "'backoff' of " + where, {"fixed", "exponential"});
    retry.backoff = static_cast<Backoff>(word.value_or(0));
  }
  const auto* longest = node.find("max_interval");
  if (!longest) return retry;
  retry.max_interval = read_duration(*longest, "'max_interval' of " + where, diagnostics);
  if (retry.backoff != Backoff::exponential)
    diagnostics.warning(longest->at, "ignored_key",
                        "'max_interval' of " + where + " means nothing with fixed backoff",
                        "add backoff: exponential");
  else if (retry.max_interval && first && *retry.max_interval < *first)
    diagnostics.error(longest->at, "interval_order",
                      "'max_interval' of " + where + " is shorter than the interval it begins with");
  return retry;
}

PollPolicy read_poll(const yaml::Node& node, const std::string& where, Diagnostics& diagnostics) {
  const std::string what = "'poll' of " + where;
  if (!diagnostics.expect(node, NodeKind::mapping, what)) return {};
  diagnostics.check_keys(node, {"interval", "timeout", "strict"}, what);
  const auto part = [&](std::string_view key,
                        const yaml::Node* value) -> std::optional<std::chrono::seconds> {
    if (value) return read_duration(*value, "'" + std::string(key) + "' of " + what, diagnostics);
    diagnostics.error(node.at, "missing_key", what + " has no '" + std::string(key) + "'",
                      "as poll: {interval: 5m, timeout: 8h}");
    return std::nullopt;
  };
  const auto* end = node.find("timeout");
  const auto interval = part("interval", node.find("interval"));
  const auto timeout = part("timeout", end);
  if (interval && timeout && *timeout < *interval)
    diagnostics.error(end->at, "interval_order",
                      "'timeout' of " + what + " is shorter than its interval: it would never be asked again");
  const auto* strict = node.find("strict");
  return {.interval = interval.value_or(std::chrono::seconds{}),
          .timeout = timeout.value_or(std::chrono::seconds{}),
          .strict = strict && diagnostics.expect(*strict, NodeKind::boolean, "'strict' of " + what) &&
                    strict->as_bool()};
}

}  // namespace baton::runbook
