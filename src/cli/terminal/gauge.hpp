// How much of many things is done, and how long until when: counts, bars, spans and relative times for
// people. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace baton::cli {

// Steps (or any jobs) by what a person wants to know of them.
struct Tally {
  std::int64_t succeeded = 0;
  std::int64_t failed = 0;  // for good, whatever came of it: rolled back, out of time
  std::int64_t cancelled = 0;
  std::int64_t dispatched = 0;  // or polling: a worker has it, or is to take it
  std::int64_t pending = 0;
  std::int64_t skipped = 0;  // of those that succeeded: because a person said so
  std::int64_t retrying = 0;  // failed, and wait for their next attempt; not among the pending ones

  void add(std::string_view status, std::int64_t number);  // one that is not known counts as pending
  Tally& operator+=(const Tally& other);
  [[nodiscard]] std::int64_t ended() const { return succeeded + failed + cancelled; }
  [[nodiscard]] std::int64_t open() const { return dispatched + pending + retrying; }
  [[nodiscard]] std::int64_t total() const { return ended() + open(); }
  [[nodiscard]] std::int64_t percent() const;  // 100 only when nothing is open; 0 of nothing
};

// "6,200 ok", "2 skipped", "31 failed", …: those that are not zero, in an order that can be cut at the end.
[[nodiscard]] std::vector<std::string> words(const Tally& tally);

// A bar of exactly so many columns. What is not zero has at least one of them, so that one failure of 10,000
// is seen. Without colour: '#' succeeded, 'x' failed, '-' cancelled, '>' dispatched, '.' pending.
[[nodiscard]] std::string bar(const Tally& tally, std::size_t columns, bool colour);

[[nodiscard]] std::string grouped(std::int64_t number);                         // 10,000
[[nodiscard]] std::string counted(std::int64_t number, std::string_view noun);  // "1 batch", "80 members"
[[nodiscard]] std::string span_text(Duration span);     // "45 s", "12 min", "2 h 5 min", "4 d 3 h"
[[nodiscard]] std::string relative(Time at, Time now);  // "in 2 h", "3 min ago", "now"
[[nodiscard]] std::string minute_text(Time at);         // "2026-11-20 22:00"
[[nodiscard]] std::string offset_text(std::int64_t minutes_before);  // "T-5d", "T-0", "T+2h"

}  // namespace baton::cli
