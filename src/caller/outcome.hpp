// What came of a request, as it is stored and shown; and a stored request as it is sent.
#pragma once

#include "core/call/call.hpp"
#include "ports/caller.hpp"

namespace baton::caller {

[[nodiscard]] OutgoingRequest outgoing(const call::Request& request);
// The probe of a request; none if it declares none.
[[nodiscard]] std::optional<OutgoingRequest> probe_of(const call::Request& request);

struct Outcome {
  bool succeeded = false;
  std::string_view kind;  // Succeeded, or the one in the errorMeta
  Json meta;              // responseMeta or errorMeta
};
[[nodiscard]] Outcome outcome_of(const OutgoingResult& result);
// How a call that was in doubt is settled by what its probe says.
[[nodiscard]] Outcome settled_by(const OutgoingResult& probe);
[[nodiscard]] Outcome in_doubt(const std::string& why);

}  // namespace baton::caller
