// The part of the Reads port that is about service calls.
#pragma once

#include "base/result.hpp"
#include "core/call/agenda.hpp"
#include "core/call/rows.hpp"
#include "ports/call_commands.hpp"

namespace baton {

struct CallFilter {
  Tenant tenant;
  std::optional<call::Status> status;
  std::optional<std::string> name;
  std::vector<std::string> tags;   // all of them
  std::optional<Time> due_from;    // inclusive
  std::optional<Time> due_until;   // exclusive
};

class CallReads {
 public:
  virtual ~CallReads() = default;

  [[nodiscard]] virtual Result<std::optional<call::Call>> service_call(const call::CallKey& key) = 0;
  [[nodiscard]] virtual Result<std::vector<call::EventRow>> call_events(const call::CallKey& key) = 0;
  // Newest first: ids sort by time, so the cursor is the last id of the page before.
  [[nodiscard]] virtual Result<std::vector<call::Call>> calls(const CallFilter& filter, const std::string& before,
                                                              std::size_t limit) = 0;
  // Scheduled ones, earliest first, after this one.
  [[nodiscard]] virtual Result<std::vector<call::Due>> due_calls(const call::Lane& lane, const call::Due& after,
                                                                 std::size_t limit) = 0;
  // The lane after this one in which something waits, and when its first is due.
  [[nodiscard]] virtual Result<std::optional<std::pair<call::Lane, Time>>> next_lane(const call::Lane& after) = 0;
  // By key, after this one.
  [[nodiscard]] virtual Result<std::vector<call::CallKey>> running_calls(const call::CallKey& after,
                                                                         std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<call::Request>> call_request(const call::CallKey& key) = 0;
  // Every stream, for a replay: by key, after this one.
  [[nodiscard]] virtual Result<std::vector<call::Call>> all_calls(const call::CallKey& after, std::size_t limit) = 0;
};

}  // namespace baton
