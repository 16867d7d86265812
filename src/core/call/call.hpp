// A service call: one HTTP request, made once, at or after its time. What may happen is decided here, on the
// fold of its events; nothing here knows of clocks, stores or sockets.
//
//   submit ─▶ Scheduled ──start──▶ Running ──▶ Succeeded | Failed
//                 └──cancel, or its request is lost──▶ Failed
//
// Invariants: a single attempt; never started before its time; what has ended never changes; each event is
// the version after the one before.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "core/call/rows.hpp"

namespace baton::call {

// --- facts

struct Submitted {
  std::string name;
  Json request_spec;
  Time submitted_at{};
  std::vector<std::string> tags;
  std::string origin;
  std::optional<std::string> repeat_of;
};
struct Scheduled {  // also again, when it is rescheduled
  Time due_at{};
  std::string by, reason;  // of a reschedule, if it was told
};
struct Started {
  Time started_at{};
};
struct Succeeded {
  Time finished_at{};
  Json response_meta;
};
struct Failed {
  Time finished_at{};
  Json error_meta;
};
using Event = std::variant<Submitted, Scheduled, Started, Succeeded, Failed>;

[[nodiscard]] EventType type_of(const Event& event);
[[nodiscard]] Json to_json(const Event& event);
// None: it is not what to_json writes.
[[nodiscard]] std::optional<Event> read_event(EventType type, const Json& data);

// What an event makes of a call. The first one makes it.
void apply(const EventRow& row, const Event& event, Call& call);
[[nodiscard]] std::vector<std::string> read_tags(const Call& call);
// The fold of a stream; none when it is empty, has a gap or holds what cannot be read.
[[nodiscard]] std::optional<Call> fold(const std::vector<EventRow>& events);

// Whether a stored row may stand for its stream: it is at the head, says what the last event says, and its
// documents can be read. For what earlier events said it is believed.
[[nodiscard]] bool is_snapshot(const Call& row, const EventRow& head);
[[nodiscard]] Status status_after(EventType head);
[[nodiscard]] bool has_readable_documents(const Call& row);

// --- decisions: what happens, or why nothing does

enum class Conflict { not_due, not_scheduled, not_running, not_over, request_lost };
template <class T>
using Decision = std::expected<T, Conflict>;

// A call that nobody has heard of begins with two events: what it is, and its time. Without one it is due at once;
// without a correlation its own id is that of its events.
struct Submission {
  Call call;  // before its first event
  std::array<Event, 2> events;
};
[[nodiscard]] Submission submit(const CallKey& key, Submitted what, std::optional<Time> due_at,
                                const std::string& correlation_id, Time now);

// Its time: whoever looks for calls to make and whoever starts them agree on it.
[[nodiscard]] bool has_come(Time due_at, Time now);
[[nodiscard]] Decision<Event> start(const Call& call, Time now);

// What becomes of a call that somebody wants to start and then send.
struct Start {
  std::optional<Event> event;  // none: it was started by the same one before, whose answer was lost
  bool is_sent = true;         // false: its request is lost, and it ends without having been begun
};
[[nodiscard]] Decision<Start> ask_to_start(const Call& call, bool has_request, const std::string& started_by,
                                           Time now);

[[nodiscard]] Decision<Event> finish(const Call& call, bool succeeded, Json meta, Time now);
[[nodiscard]] Decision<Event> cancel(const Call& call, const std::string& by, const std::string& reason,
                                     Time now);
// None: it has that time already.
[[nodiscard]] Decision<std::optional<Event>> reschedule(const Call& call, Time due_at, const std::string& by,
                                                        const std::string& reason);

// Whether it may be repeated: while it waits or runs, that would be the same thing done twice. Without its
// request there is nothing to send.
[[nodiscard]] Decision<void> repeat(const Call& call, bool has_request);

// {"kind": …, "message": …} and whatever else is known.
[[nodiscard]] Json error_meta(std::string_view kind, std::string_view message, std::string_view more = {});
inline constexpr std::string_view outcome_unknown = "OutcomeUnknown";
inline constexpr std::string_view cancelled = "Cancelled";
inline constexpr std::string_view request_lost = "RequestLost";

}  // namespace baton::call
