// The lock token of a job: it says where the job's row is, and which delivery of which attempt it belongs to. What a token stands for is usually
// remembered (Services::locks). After a restart it is not, and then the row is looked for: the token counts if the row is still at that delivery.
// So no token outlives its delivery, and nothing about locks is stored.
//
// 16 bytes, as they are in a delivery tag, each number with its largest byte first:
//   task of a workflow   the first 8 bytes of the job's id (a UUIDv7: its time and 12 bits of chance) | item + 1, or 0: 3 | delivery: 1 | hash: 4
//   job of a runbook     id of its row: 6 | 0: 1 | which table: 1                                     | 0: 3              | delivery: 1 | hash: 4
// The seventh byte tells them apart: a UUIDv7 has its version there. The hash is of the task's id, which names the attempt, and of the lease. Who makes a
// token up can do no more than who receives from the queue: it is compared with rows of that queue only, and the engine checks the lease.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "bus/message.hpp"
#include "ports/commands.hpp"
#include "ports/reads.hpp"

namespace baton::bus {

[[nodiscard]] LockToken token_of(const Handout& job);

struct FoundJob {
  TaskLease task;
  // Its worker has completed the message: the lease lasts as long as the job's own time, and is neither abandoned nor given up any more.
  bool is_kept = false;
};
using FindJob = std::function<void(Tenant, std::string queue, LockToken, std::function<void(Result<std::optional<FoundJob>>)>)>;

// The job of that queue whose last delivery the token belongs to; none: there is no such job any more. A lease that ends after `unkept_until` is one of a job
// that is kept. Reads a few rows.
[[nodiscard]] Result<std::optional<FoundJob>> find_job(Reads& reads, const Tenant& tenant, const std::string& queue, const LockToken& token, Time unkept_until);

}  // namespace baton::bus
