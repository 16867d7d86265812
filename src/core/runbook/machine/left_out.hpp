// Why members that were named were left out of what was done, in a form that people can read and that does not grow
// with their number. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace baton::runbook {

struct LeftOut {
  static constexpr std::size_t keys_max = 5;
  std::string reason;   // a word for programs
  std::string message;  // the same for people: "not failed"
  std::size_t count = 0;
  std::vector<std::string> member_keys;  // the first few of them
};
using LeftOuts = std::vector<LeftOut>;  // each reason once

inline LeftOut& left_out_for(LeftOuts& all, std::string_view reason, std::string_view message) {
  const auto found = std::ranges::find(all, reason, &LeftOut::reason);
  if (found != all.end()) return *found;
  return all.emplace_back(LeftOut{.reason = std::string(reason), .message = std::string(message)});
}

inline void leave_out(LeftOuts& all, std::string_view reason, std::string_view message, const std::string& member_key) {
  LeftOut& one = left_out_for(all, reason, message);
  ++one.count;
  if (one.member_keys.size() < LeftOut::keys_max) one.member_keys.push_back(member_key);
}

// Those of one turn and of the next.
inline void append(LeftOuts& all, const LeftOuts& more) {
  for (const LeftOut& each : more) {
    LeftOut& one = left_out_for(all, each.reason, each.message);
    one.count += each.count;
    for (const std::string& key : each.member_keys)
      if (one.member_keys.size() < LeftOut::keys_max) one.member_keys.push_back(key);
  }
}

[[nodiscard]] inline std::size_t count_of(const LeftOuts& all) {
  std::size_t count = 0;
  for (const LeftOut& each : all) count += each.count;
  return count;
}

}  // namespace baton::runbook
