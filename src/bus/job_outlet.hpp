// A link over which a client receives jobs of a pool, or tasks of a queue: one more worker that polls, with the link's credit
// for how many it takes. The lock of a message is the lease of its job:
//   complete     the worker has it in hand; from then on the job's own timeout counts, until its result comes
//   abandon      another delivery, until there were as many as are allowed
//   dead-letter  the job is given up, for the reason that is said
//   released     given back; a delivery too, but never the last one
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

[[nodiscard]] std::shared_ptr<Link> make_job_outlet(Client& client, pn_link_t* link, std::string queue);

// What every message of a job has: its id, its properties, and what its worker is to do.
void write_job(MessageWriter& message, const Handout& job, std::string_view subject = {});

// What is said of a lock, as a command.
[[nodiscard]] SettleTask settlement(const Lock& lock, SettleTask::How how, std::string reason);
inline constexpr const char* abandoned = "abandoned by its worker";
[[nodiscard]] std::string dead_lettered(std::string_view reason, std::string_view description);

}  // namespace baton::bus
