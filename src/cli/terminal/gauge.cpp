#include "cli/terminal/gauge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

struct Segment {
  std::int64_t count = 0;
  std::string_view block, plain;
  Colour colour = Colour::none;
  std::size_t columns = 0;
};
using Segments = std::array<Segment, 5>;

Segments segments_of(const Tally& tally) {
  return {{{tally.succeeded, "█", "#", Colour::green},
           {tally.failed, "█", "x", Colour::red},
           {tally.cancelled, "▒", "-", Colour::yellow},
           {tally.dispatched, "▓", ">", Colour::blue},
           {tally.pending + tally.retrying, "░", ".", Colour::dim}}};
}

// Each gets its share rounded down, but one column if it is there at all; the largest takes what is left, or
// gives what is missing.
void share_out(Segments& segments, std::int64_t total, std::size_t columns) {
  std::int64_t left = static_cast<std::int64_t>(columns);
  for (Segment& each : segments) {
    const double share = static_cast<double>(each.count) / static_cast<double>(total);
    const auto exact = static_cast<std::int64_t>(share * static_cast<double>(columns));
    each.columns = each.count > 0 ? static_cast<std::size_t>(std::max<std::int64_t>(exact, 1)) : 0;
    left -= static_cast<std::int64_t>(each.columns);
  }
  for (; left > 0; --left) ++std::ranges::max_element(segments, {}, &Segment::count)->columns;
  for (; left < 0; ++left) --std::ranges::max_element(segments, {}, &Segment::columns)->columns;
}

template <class Big, class Small>
std::string two_units(Duration span, std::string_view big, std::string_view small) {
  const auto whole = std::chrono::floor<Big>(span);
  const auto rest = std::chrono::floor<Small>(span - whole);
  if (rest.count() == 0) return fmt::format("{} {}", whole.count(), big);
  return fmt::format("{} {} {} {}", whole.count(), big, rest.count(), small);
}

}  // namespace

void Tally::add(std::string_view status, std::int64_t number) {
  if (status == "succeeded")
    succeeded += number;
  else if (status == "failed" || status == "poll_timeout" || status == "rolled_back")
    failed += number;
  else if (status == "cancelled")
    cancelled += number;
  else if (status == "dispatched" || status == "polling")
    dispatched += number;
  else
    pending += number;
}

Tally& Tally::operator+=(const Tally& other) {
  succeeded += other.succeeded;
  failed += other.failed;
  cancelled += other.cancelled;
  dispatched += other.dispatched;
  pending += other.pending;
  skipped += other.skipped;
  retrying += other.retrying;
  return *this;
}

std::int64_t Tally::percent() const { return total() > 0 ? ended() * 100 / total() : 0; }

std::vector<std::string> words(const Tally& tally) {
  std::vector<std::string> all;
  const auto say = [&](std::int64_t number, std::string_view word) {
    if (number > 0) all.push_back(fmt::format("{} {}", grouped(number), word));
  };
  say(tally.succeeded - tally.skipped, "ok");
  say(tally.skipped, "skipped");
  say(tally.failed, "failed");
  say(tally.dispatched, "dispatched");
  say(tally.retrying, "retrying");
  say(tally.pending, "pending");
  say(tally.cancelled, "cancelled");
  return all;
}

std::string bar(const Tally& tally, std::size_t columns, bool colour) {
  Segments segments = segments_of(tally);
  if (tally.total() > 0)
    share_out(segments, tally.total(), columns);
  else
    segments.back().columns = columns;
  std::string text;
  for (const Segment& each : segments) {
    std::string part;
    for (std::size_t i = 0; i < each.columns; ++i) part += colour ? each.block : each.plain;
    if (!part.empty()) text += paint(part, each.colour, colour);
  }
  return text;
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string counted(std::int64_t number, std::string_view noun) {
  const std::string_view ending = number == 1 ? "" : noun.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", grouped(number), noun, ending);
}

std::string span_text(Duration span) {
  if (span < minutes{1}) return fmt::format("{} s", std::chrono::floor<seconds>(span).count());
  if (span < hours{1}) return fmt::format("{} min", std::chrono::floor<minutes>(span).count());
  if (span < days{1}) return two_units<hours, minutes>(span, "h", "min");
  return two_units<days, hours>(span, "d", "h");
}

std::string relative(Time at, Time now) {
  if (at - now >= seconds{1}) return "in " + span_text(at - now);
  if (now - at >= seconds{1}) return span_text(now - at) + " ago";
  return "now";
}

std::string minute_text(Time at) {
  std::string text = to_iso(at).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::string offset_text(std::int64_t minutes_before) {
  const std::int64_t size = std::abs(minutes_before);
  const char sign = minutes_before < 0 ? '+' : '-';
  if (size == 0) return "T-0";
  if (size % 1440 == 0) return fmt::format("T{}{}d", sign, size / 1440);
  if (size % 60 == 0) return fmt::format("T{}{}h", sign, size / 60);
  return fmt::format("T{}{}m", sign, size);
}

}  // namespace baton::cli
