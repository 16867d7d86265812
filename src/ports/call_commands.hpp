// What may be asked of the engine about service calls, and what it answers; see commands.hpp.
#pragma once

#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/call/agenda.hpp"
#include "core/call/call.hpp"
#include "ports/refusal.hpp"

namespace baton {

// A place that is reserved for a call which is due at once: its start is stored with its submission, and
// whoever makes the calls is handed it and keeps the place. One that was dropped instead is free again.
// `settle` is told once which of both it was, on the thread of the last one who had it.
class CallPlace {
 public:
  CallPlace(std::string token, std::function<void(bool is_kept)> settle)
      : token_(std::move(token)), settle_(std::move(settle)) {}
  ~CallPlace() {
    if (settle_) settle_(false);
  }
  CallPlace(const CallPlace&) = delete;
  CallPlace& operator=(const CallPlace&) = delete;

  void keep() { std::exchange(settle_, {})(true); }
  [[nodiscard]] const std::string& token() const { return token_; }  // the causation of the start

 private:
  const std::string token_;
  std::function<void(bool)> settle_;
};

// A call as somebody wants it made.
struct NewCall {
  call::CallKey key;  // made by the caller, so that a repeated command is the same call
  std::string name;
  std::optional<Time> due_at;  // none: at once
  call::Request request;
  Json request_spec;  // what everybody may read of it
  std::string origin;
  std::vector<std::string> tags;  // sorted, each once
  std::optional<std::string> idempotency_key;
  std::string request_hash;    // with a key: of what was asked for
  std::string correlation_id;  // empty: the id of the call
  std::string causation_id;
  std::shared_ptr<CallPlace> place;  // none: it waits for one
};

// All of them or, if the store fails, none; each is answered by itself.
struct SubmitCalls {
  std::vector<NewCall> calls;
};

// The same request once more, as a call of its own, when the first has ended.
struct RepeatCall {
  call::CallKey origin;
  call::CallId new_id;
  std::optional<Time> due_at;
  std::optional<std::string> idempotency_key;
  std::string request_hash;  // with a key: of what was asked for
  std::string causation_id;
};

// Only while it is Scheduled.
struct ChangeCall {
  enum class What { cancel, reschedule };
  call::CallKey key;
  What what{};
  Time due_at{};  // of a reschedule
  std::string by;
  std::string reason;
  std::string causation_id;
};

// Their time has come and there is a place for each: the start is durable before the answer, and what is
// answered as started is to be sent. Asked again with the same started_by, a call that was started so is
// answered as started: for when an answer was lost.
struct StartCalls {
  std::string started_by;
  std::vector<call::CallKey> keys;
};

// How a call that was started ended.
struct CallOutcome {
  call::CallKey key;
  bool succeeded = false;
  Json meta;  // responseMeta or errorMeta
  std::string causation_id;
};
struct EndCalls {
  std::vector<CallOutcome> outcomes;
};

// Their rows are missing, or are not what their events come to: they are written anew. Answered with the calls;
// `changed` says whether a row was.
struct RebuildCalls {
  std::vector<call::CallKey> keys;
};

struct CallReply {
  call::Call call;
  bool changed = true;  // false: it was so already
};
struct CallsReply {  // one for each, in order
  std::vector<std::expected<CallReply, Refused>> calls;
};
// A call that is begun: it is to be sent.
struct StartedCall {
  call::Call call;
  call::Request request;
};
// A call that has been given a time, for whoever makes the calls.
struct DueCall {
  call::Destination destination;
  call::Due due;
  std::optional<Time> was;  // the time that it had before
  // It was begun in the same commit, in this place, and is to be sent.
  struct Begun {
    StartedCall started;
    std::shared_ptr<CallPlace> place;
  };
  std::shared_ptr<Begun> begun = nullptr;
  std::int64_t commit_number = 0;  // that gave it this time: whoever reads tables that are behind does not see it there
};

struct StartedReply {
  using Started = StartedCall;
  std::vector<Started> started;
  std::vector<DueCall> not_due;  // these still wait; those that are in none of the lists are over
  std::vector<call::CallKey> running;  // by another start: their rows did not say so
};

}  // namespace baton
