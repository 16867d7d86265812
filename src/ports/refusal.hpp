// Why something that was asked for is not done.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton {

enum class Refusal {
  workflow_not_found,
  job_not_found,
  task_not_found,
  invalid_input,
  idempotency_key_reused,
  version_exists,  // this version was published with another text
  stale_result,    // of an earlier lease or attempt
  job_ended,       // nothing can be done to it any more
  node_not_found,
  job_not_failed,  // only a failed one can be retried
  not_waiting,     // the node does not wait for an approval
  not_dead,        // the task was not given up
  runbook_not_found,
  batch_not_found,
  phase_not_found,
  member_not_found,
  step_not_found,
  call_not_found,
  entity_not_found,   // a queue, a topic, a subscription or a rule
  entity_exists,
  message_not_found,
  lock_lost,          // the message is somebody else's by now, or gone
  quota_exceeded,     // there is no room for more messages, or entities
  row_unreadable,  // what is stored cannot be read
  not_possible,        // the batch, member, step or call is not in a state that allows it
  runbook_replaced,    // the scheduler's: another version is active by now
  open_batches,        // what becomes of them was not said when a version was published
  hold_not_found,
  already_decided,     // somebody else was first
  overloaded,          // the inbox is full
  stopping,            // the server is shutting down
  store_unavailable,
  store_full,
};
[[nodiscard]] std::string_view name(Refusal refusal);

struct Refused {
  Refusal refusal{};
  std::string message;
  std::vector<std::string> details;
};

}  // namespace baton
