// Which queues tasks of workflows wait in: those that published workflows name, and the one of those that name none.
#pragma once

#include <string>

#include "base/result.hpp"
#include "ports/reads.hpp"

namespace baton {

// Looks through the tenant's workflows, the older versions of each too: jobs of theirs may still run.
[[nodiscard]] Result<bool> has_task_queue(Reads& reads, const Tenant& tenant, const std::string& queue);

}  // namespace baton
