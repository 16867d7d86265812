// One GET of a whole URL, http or https with certificates verified, on a connection of its own. For data
// sources.
#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/result.hpp"
#include "http/wire/client.hpp"

namespace baton::http {

// user:password@ in the URL becomes basic authentication, token@ a bearer token. Any status is an answer,
// also a redirect, which is not followed. Errors hold nothing of the URL, which may hold a secret. When it is
// asked to stop it ends with an error, but for the time that a name server may take.
[[nodiscard]] Result<ClientResponse> get(const std::string& url,
                                         std::chrono::milliseconds timeout = std::chrono::seconds{60},
                                         std::stop_token stop = {});

}  // namespace baton::http
