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
  std::vector<std::string> tags;  // all of them
  std::optional<Time> due_from;   // inclusive
  std::optional<Time> due_until;  // exclusive
  [[nodiscard]] bool is_by_time() const { return due_from || due_until; }
};

class CallReads {
 public:
  virtual ~CallReads() = default;

  // What its stream comes to: its row where that is a snapshot of it, otherwise the fold of its events.
  [[nodiscard]] virtual Result<std::optional<call::Call>> service_call(const call::CallKey& key) = 0;
  [[nodiscard]] virtual Result<std::vector<call::EventRow>> call_events(const call::CallKey& key) = 0;
  // As their rows say; one whose row cannot be read is folded. Newest first: ids sort by time; or, of a range of time, by when they are due. `last` is the last one of
  // the page before, none for the first page.
  [[nodiscard]] virtual Result<std::vector<call::Call>> calls(const CallFilter& filter,
                                                              const std::optional<call::Due>& last,
                                                              std::size_t limit) = 0;
  // Scheduled ones, earliest first. One whose time cannot be read is told as due as early as can be: its start is
  // decided by its events, which know.
  [[nodiscard]] virtual Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) = 0;
  // The destinations to which something is due after one time and by the other, and when the first of it is.
  [[nodiscard]] virtual Result<std::vector<std::pair<call::Destination, Time>>> destinations_due(
      Time after, Time until) = 0;
  // By key, after this one.
  [[nodiscard]] virtual Result<std::vector<call::CallKey>> running_calls(const call::CallKey& after,
                                                                         std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::optional<call::Request>> call_request(const call::CallKey& key) = 0;
  // Streams by key, after this event: those whose rows are missing, cannot be read, or are not as their last event
  // says. Looks at so many events; `last` is the one to go on after, none when that was all.
  struct Streams {
    std::vector<call::CallKey> without_row;
    std::optional<call::EventKey> last;
  };
  [[nodiscard]] virtual Result<Streams> streams_without_row(const call::EventKey& after, std::size_t events) = 0;
  // The row itself, to be compared. Code::invalid: it cannot be read.
  [[nodiscard]] virtual Result<std::optional<call::Call>> call_row(const call::CallKey& key) = 0;
  // For a replay: whatever has a row, an event or a request, by key, after this one; whether a tag leads to a call; and
  // how many tags and idempotency keys belong to none.
  [[nodiscard]] virtual Result<std::vector<call::CallKey>> call_keys(const call::CallKey& after,
                                                                     std::size_t limit) = 0;
  [[nodiscard]] virtual Result<bool> has_tag(const call::CallKey& key, const std::string& tag) = 0;
  [[nodiscard]] virtual Result<std::int64_t> count_stray_rows() = 0;
};

}  // namespace baton
