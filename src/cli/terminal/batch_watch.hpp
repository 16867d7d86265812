// Follows a batch to its end: a picture that is redrawn in place on a terminal, lines elsewhere.
#pragma once

#include <cstdint>

#include "cli/remote.hpp"

namespace baton::cli {

// Follows the batches that are open, of one runbook or of all, until all of them have ended. Answers the worst exit code.
[[nodiscard]] int watch_batches(const RemoteOptions& options, const std::string& runbook, const std::string& reconnect);

// Answers the exit code: 0 when the batch has completed, 5 when members of it failed. With --json nothing is drawn; the batch is printed
// when it has ended. reconnect: how long a server may be away, see Reconnecting.
[[nodiscard]] int watch_batch(const RemoteOptions& options, std::int64_t batch_id, const std::string& reconnect);

}  // namespace baton::cli
