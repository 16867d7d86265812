#include "core/call/call.hpp"

#include <algorithm>
#include <array>

#include "base/json_document.hpp"
#include "base/json_write.hpp"
#include "base/mutant.hpp"

namespace baton::call {
namespace {

constexpr std::array<std::string_view, 4> status_words{"Scheduled", "Running", "Succeeded", "Failed"};
constexpr std::array<std::string_view, 5> event_words{"ServiceCallSubmitted", "ServiceCallScheduled",
                                                      "ExecutionStarted", "ExecutionSucceeded",
                                                      "ExecutionFailed"};

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& words, std::string_view name) {
  const auto it = std::ranges::find(words, name);
  if (it == words.end()) return std::nullopt;
  return static_cast<Enum>(it - words.begin());
}

// Fields of an event. A look that finds nothing makes the whole unreadable.
struct Reader {
  JsonView root;
  bool ok = true;

  std::string text(std::string_view key) {
    const JsonView at = root.find(key);
    ok = ok && at && at.kind() == JsonKind::string;
    return ok ? std::string(at.string()) : "";
  }
  Time time(std::string_view key) {
    const auto read = from_iso(text(key));
    ok = ok && read;
    return read.value_or(Time{});
  }
  Json json(std::string_view key) {
    const JsonView at = root.find(key);
    ok = ok && at;
    return ok ? at.json() : Json{};
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    const JsonView at = root.find(key);
    if (!at) return out;
    ok = ok && at.kind() == JsonKind::array;
    if (!ok) return out;
    for (const JsonView& item : at.items()) {
      ok = ok && item.kind() == JsonKind::string;
      if (ok) out.emplace_back(item.string());
    }
    return out;
  }
};

}  // namespace

std::string_view name(Status status) { return status_words[static_cast<std::size_t>(status)]; }
std::string_view name(EventType type) { return event_words[static_cast<std::size_t>(type)]; }
std::optional<Status> status(std::string_view name) { return find<Status>(status_words, name); }
std::optional<EventType> event_type(std::string_view name) { return find<EventType>(event_words, name); }

// --- events as JSON

EventType type_of(const Event& event) { return static_cast<EventType>(event.index()); }

Json to_json(const Event& event) {
  return std::visit(
      overloaded{
          [](const Submitted& e) {
            Json out{"{"};
            append_members(out.text, "name", e.name, "requestSpec", e.request_spec, "submittedAt",
                           e.submitted_at, "tags", e.tags, "origin", e.origin);
            append_given(out.text, "repeatOf", e.repeat_of);
            out.text += '}';
            return out;
          },
          [](const Scheduled& e) {
            Json out{"{"};
            append_member(out.text, "dueAt", e.due_at);
            append_given(out.text, "by", e.by, "reason", e.reason);
            out.text += '}';
            return out;
          },
          [](const Started& e) { return json_object("startedAt", e.started_at); },
          [](const Succeeded& e) {
            return json_object("finishedAt", e.finished_at, "responseMeta", e.response_meta);
          },
          [](const Failed& e) { return json_object("finishedAt", e.finished_at, "errorMeta", e.error_meta); },
      },
      event);
}

std::optional<Event> read_event(EventType type, const Json& data) {
  const auto document = JsonDocument::parse(data.text);
  if (!document || document->root().kind() != JsonKind::object) return std::nullopt;
  Reader in{document->root()};
  Event event;
  switch (type) {
    case EventType::submitted: {
      Submitted e{.name = in.text("name"),
                  .request_spec = in.json("requestSpec"),
                  .submitted_at = in.time("submittedAt"),
                  .tags = in.texts("tags"),
                  .origin = in.text("origin")};
      if (in.root.find("repeatOf")) e.repeat_of = in.text("repeatOf");
      event = std::move(e);
      break;
    }
    case EventType::scheduled: {
      Scheduled e{.due_at = in.time("dueAt"), .by = {}, .reason = {}};
      if (in.root.find("by")) e.by = in.text("by");
      if (in.root.find("reason")) e.reason = in.text("reason");
      event = std::move(e);
      break;
    }
    case EventType::started: event = Started{in.time("startedAt")}; break;
    case EventType::succeeded: event = Succeeded{in.time("finishedAt"), in.json("responseMeta")}; break;
    case EventType::failed: event = Failed{in.time("finishedAt"), in.json("errorMeta")}; break;
  }
  if (!in.ok) return std::nullopt;
  return event;
}

// --- the fold

void apply(const EventRow& row, const Event& event, Call& call) {
  call.version = row.version;
  std::visit(overloaded{
                 [&](const Submitted& e) {
                   call.tenant_id = row.tenant_id;
                   call.service_call_id = row.service_call_id;
                   call.correlation_id = row.correlation_id;
                   call.name = e.name;
                   call.request_spec = e.request_spec;
                   call.submitted_at = e.submitted_at;
                   call.tags.clear();
                   append_value(call.tags, e.tags);
                   call.origin = e.origin;
                   call.repeat_of = e.repeat_of;
                 },
                 [&](const Scheduled& e) {
                   call.status = Status::scheduled;
                   call.due_at = e.due_at;
                 },
                 [&](const Started& e) {
                   call.status = Status::running;
                   call.started_at = e.started_at;
                   call.started_by = row.causation_id;
                 },
                 [&](const Succeeded& e) {
                   call.status = Status::succeeded;
                   call.finished_at = e.finished_at;
                   call.response_meta = e.response_meta;
                 },
                 [&](const Failed& e) {
                   call.status = Status::failed;
                   call.finished_at = e.finished_at;
                   call.error_meta = e.error_meta;
                 },
             },
             event);
}

std::vector<std::string> read_tags(const Call& call) {
  const std::string text = "{\"tags\":" + call.tags + "}";
  const auto document = JsonDocument::parse(text);
  if (!document) return {};
  return Reader{document->root()}.texts("tags");
}

std::optional<Call> fold(const std::vector<EventRow>& events) {
  if (events.empty() || events.front().event_type != EventType::submitted) return std::nullopt;
  Call call;
  for (const EventRow& row : events) {
    const auto event = read_event(row.event_type, row.data);
    if (!event || row.version != call.version + 1) return std::nullopt;
    apply(row, *event, call);
  }
  return call;
}

// --- snapshots

Status status_after(EventType head) {
  switch (head) {
    case EventType::submitted:
    case EventType::scheduled: return Status::scheduled;
    case EventType::started: return Status::running;
    case EventType::succeeded: return Status::succeeded;
    case EventType::failed: return Status::failed;
  }
  return Status::scheduled;
}

bool has_readable_documents(const Call& row) {
  const auto is_of = [](JsonKind kind, const std::string& text) {
    const auto document = JsonDocument::parse(text);
    return document && document->root().kind() == kind;
  };
  return is_of(JsonKind::array, row.tags) && is_of(JsonKind::object, row.request_spec.text) &&
         (!row.response_meta || is_of(JsonKind::object, row.response_meta->text)) &&
         (!row.error_meta || is_of(JsonKind::object, row.error_meta->text));
}

bool is_snapshot(const Call& row, const EventRow& head) {
  if (MUTANT(damaged_row_believed)) return true;
  if (row.version != head.version || row.status != status_after(head.event_type)) return false;
  const auto last = read_event(head.event_type, head.data);
  if (!last || !has_readable_documents(row)) return false;
  Call again = row;
  apply(head, *last, again);
  return again == row;
}

// --- decisions

Submission submit(const CallKey& key, Submitted what, std::optional<Time> due_at, const std::string& correlation_id,
                  Time now) {
  Call call;
  call.tenant_id = key.tenant;
  call.service_call_id = key.id;
  call.correlation_id = correlation_id.empty() ? key.id.value : correlation_id;
  what.submitted_at = now;
  return {std::move(call), {std::move(what), Scheduled{due_at.value_or(now), {}, {}}}};
}

bool has_come(Time due_at, Time now) { return due_at <= now || MUTANT(call_started_early); }

Decision<Event> start(const Call& call, Time now) {
  if (call.status != Status::scheduled && !MUTANT(call_started_twice))
    return std::unexpected(Conflict::not_scheduled);
  if (!has_come(call.due_at, now)) return std::unexpected(Conflict::not_due);
  return Started{now};
}

Decision<Start> ask_to_start(const Call& call, bool has_request, const std::string& started_by, Time now) {
  const bool was_started = call.status == Status::running && call.started_by == started_by;
  if (was_started && has_request) return Start{.event = std::nullopt};
  const auto started = start(call, now);
  if (!started) return std::unexpected(started.error());
  if (has_request) return Start{.event = *started};
  const Event lost = Failed{now, error_meta(request_lost, "what was to be sent is not stored any more",
                                            "\"requestMayHaveLeft\":false")};
  return Start{.event = lost, .is_sent = false};
}

Decision<Event> finish(const Call& call, bool succeeded, Json meta, Time now) {
  if (call.status != Status::running && !MUTANT(call_ends_twice))
    return std::unexpected(Conflict::not_running);
  if (succeeded) return Succeeded{now, std::move(meta)};
  return Failed{now, std::move(meta)};
}

Decision<Event> cancel(const Call& call, const std::string& by, const std::string& reason, Time now) {
  if (call.status != Status::scheduled && !(MUTANT(running_call_cancelled) && call.status == Status::running))
    return std::unexpected(Conflict::not_scheduled);
  const std::string message =
      "cancelled" + (by.empty() ? "" : " by " + by) + (reason.empty() ? "" : ": " + reason);
  return Failed{now, error_meta(cancelled, message)};
}

Decision<std::optional<Event>> reschedule(const Call& call, Time due_at, const std::string& by,
                                          const std::string& reason) {
  if (call.status != Status::scheduled) return std::unexpected(Conflict::not_scheduled);
  if (call.due_at == due_at) return std::nullopt;
  return Scheduled{due_at, by, reason};
}

Decision<void> repeat(const Call& call, bool has_request) {
  if (!is_terminal(call.status)) return std::unexpected(Conflict::not_over);
  if (!has_request) return std::unexpected(Conflict::request_lost);
  return {};
}

Json error_meta(std::string_view kind, std::string_view message, std::string_view more) {
  Json meta{"{"};
  append_members(meta.text, "kind", kind, "message", message);
  if (!more.empty()) meta.text.append(",").append(more);
  meta.text += '}';
  return meta;
}

}  // namespace baton::call
