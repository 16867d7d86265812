// What may be asked of the engine about runbooks, and what it answers; see commands.hpp. Runbooks belong to
// the tenant "default": their tables, which others write too, know no tenants.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/runbook/machine/left_out.hpp"
#include "core/runbook/machine/messages.hpp"
#include "core/runbook/machine/rows.hpp"
#include "core/runbook/members/members.hpp"

namespace baton {

// ---- commands ----

// What the scheduler asks for was computed from one version of a runbook, `of_runbook` (its id). It is refused
// with Refusal::runbook_replaced once that version is not active any more: the next look does it right. What
// people ask for has 0 there.

// A new version; the versions before it are deactivated, and open batches go over to it, unless they have begun and are to
// keep theirs. Refused with Refusal::open_batches when some have begun and it is not said what becomes of them. The very
// text of the active version changes nothing.
struct PublishRunbook {
  std::shared_ptr<const runbook::Definition> definition;
  std::string text;
  std::string overdue_behavior = "rerun";  // or ignore
  bool rerun_init = false;
  std::optional<runbook::OpenBatches> open_batches;
};  // → RunbookReply

struct ChangeRunbook {
  enum class What { activate, deactivate, automation_on, automation_off };
  std::string name;
  // activate: 0 is the latest. automation_on and _off: 0 is the active one. deactivate: always the active one.
  std::int32_t version = 0;
  What what{};
};  // → RunbookReply

// The scheduler has looked at the data source of a runbook; refused as those with `of_runbook` are.
struct NoteSync {
  std::int64_t runbook_id = 0;
  std::optional<std::string> error;  // none: it went well
  OptionalJson held_removals;        // see Runbook::held_removals; none: nothing is held
  std::vector<runbook::ApprovedRemovals> approvals_seen;  // when it went well: they are used up
};  // → RunbookReply

// Creates a batch with its phases and without members, or finds the open one of the runbook with that T. It is
// `importing` until StartBatch.
struct OpenBatch {
  std::string runbook_name;
  std::int32_t version = 0;        // 0: the active one
  std::optional<Time> batch_start_time;  // none: a manual batch, always a new one
  std::string by;
  std::int64_t of_runbook = 0;
};  // → BatchReply

// At most 1,000. A key that is active in the batch already is left out. In a batch that has begun this is what
// member-added says: they catch up.
struct AddMembers {
  std::int64_t batch_id = 0;
  std::vector<runbook::DataRow> members;
  std::int64_t of_runbook = 0;
  std::string by, reason;  // of whom adds them to a batch that is there
};  // → MembersReply

// The import is over: init steps begin, or the batch is active. Again: changes nothing.
struct StartBatch {
  std::int64_t batch_id = 0;
  std::int64_t of_runbook = 0;
};  // → BatchReply

// What the source now says of members that are there; at most 1,000.
struct RefreshMembers {
  struct One {
    std::int64_t member_id = 0;
    runbook::DataRow row;
  };
  std::vector<One> members;
  std::int64_t of_runbook = 0;
};  // → MembersReply

// Members leave: what member-removed says; at most 1,000. By key or by id.
struct RemoveMembers {
  std::int64_t batch_id = 0;
  std::vector<std::int64_t> member_ids;
  std::vector<std::string> member_keys;
  std::string by;
  std::int64_t of_runbook = 0;
  std::string reason;
};  // → MembersReply

// What the source says of its members, for the runbook's data table; at most 1,000 rows. The last of a sync has
// `finish`: rows that were last seen before `seen_at`, when the sync began, are no longer current. Refused as
// those with `of_runbook` are.
struct SyncData {
  std::int64_t runbook_id = 0;
  std::vector<runbook::DataRow> rows;
  Time seen_at{};
  bool finish = false;
};  // → RunbookReply

// A failed member goes on from what failed, all failed members of the batch when no ids and no keys are given
// (at most 1,000 at a time; `more` in the reply: call again).
struct RetryMembers {
  std::int64_t batch_id = 0;
  std::vector<std::int64_t> member_ids;
  std::vector<std::string> member_keys;
  std::string by;
  std::string reason;
};  // → MembersReply

struct ChangeBatch {
  enum class What { pause, resume, cancel, advance, approve_removals };
  std::int64_t batch_id = 0;
  What what{};
  std::string phase;  // advance: which; empty: the next one
  std::string by;
  std::string reason;
};  // → BatchReply

// What waits for a person is decided; see core/runbook/machine/holds.hpp.
struct AnswerHold {
  std::int64_t batch_id = 0;  // that it is about
  std::int64_t hold_id = 0;
  std::string answer;
  std::string by;
  std::string reason;
};  // → HoldReply

// What a person does to one step: try it again, take it as done, give it up.
struct ChangeStep {
  enum class What { retry, skip, cancel };
  runbook::Ref ref;  // step, init or cleanup
  What what{};
  std::string by;
  std::string reason;
};  // → StepReply

// A message of an external scheduler, or the same from inside.
struct RunbookEvent {
  runbook::SchedulerMessage message;
};  // → EventReply

// Phases that another scheduler has written are to be fired by ours; the writer asks this of itself.
struct AdoptPhases {
  std::vector<std::int64_t> phase_ids;
};  // → EventReply

// Jobs that another orchestrator has given out are to get our timeout and retries; the writer asks this of itself.
struct AdoptJobs {
  std::vector<runbook::Ref> jobs;
};  // → EventReply

// ---- replies ----

struct RunbookReply {
  runbook::Runbook runbook;
  bool changed = false;
};
struct BatchReply {
  runbook::Batch batch;
  bool changed = false;
  std::string note;  // advance: the phase that was begun
};
struct MembersReply {
  std::vector<std::int64_t> member_ids;  // those that were added, refreshed, removed or retried
  runbook::LeftOuts left_out;
  bool more = false;
  std::vector<std::string> phases;  // retried as a whole
  std::string note;                 // why there was nobody, when nobody was named
};
struct HoldReply {
  runbook::Hold hold;
  bool changed = false;  // false: the same person has said the same before
};
struct StepReply {
  runbook::Ref ref;
  runbook::StepStatus status{};
};
struct EventReply {
  bool changed = false;
  std::string note;  // why nothing was to be done
};

}  // namespace baton
