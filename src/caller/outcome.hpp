// What came of a request, as it is stored and shown; and a stored request as it is sent.
#pragma once

#include "core/call/call.hpp"
#include "ports/caller.hpp"

namespace baton::caller {

[[nodiscard]] OutgoingRequest outgoing(const call::Request& request);
// The probe of a request; none if it declares none.
[[nodiscard]] std::optional<OutgoingRequest> probe_of(const call::Request& request);

[[nodiscard]] bool succeeded(const OutgoingResult& result);
[[nodiscard]] Json meta_of(const OutgoingResult& result);  // responseMeta or errorMeta

// How a call that was in doubt is settled by what its probe says.
struct Settled {
  bool succeeded = false;
  Json meta;
};
[[nodiscard]] Settled settle(const OutgoingResult& probe);
[[nodiscard]] Json in_doubt(const std::string& why);

}  // namespace baton::caller
