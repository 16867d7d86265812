// What becomes of a request that is answered by a redirect. Pure.
#pragma once

#include <string_view>

#include "base/url.hpp"
#include "ports/caller.hpp"

namespace baton::caller {

// Whether this status sends a request elsewhere; 300 and 304 do not.
[[nodiscard]] bool is_redirect(int status);

// Changes the request to the one that follows, and says where that goes. A POST becomes a GET, but for 307
// and 308; what may be secret stays with the origin that it was meant for; from https there is no way back to
// http.
[[nodiscard]] Result<Url> redirect(OutgoingRequest& request, const Url& from, int status,
                                   std::string_view location);

}  // namespace baton::caller
