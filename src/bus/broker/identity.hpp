// Who baton is to a namespace of Service Bus that it has no key of: an identity of Azure, which is shown by a token. Here is what an endpoint is
// asked for a token, and how its answer is read; who asks is token_source. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "base/url.hpp"

namespace baton::bus {

struct Identity {
  // managed: what baton runs on has the identity, and hands out its tokens. client_secret: a registered application, which has a secret.
  enum class Kind { managed, client_secret } kind = Kind::managed;
  std::string endpoint;       // empty: Azure's own
  std::string client_id;      // of a managed identity: which one, if there is more than one
  std::string client_secret;  // never shown
  std::string tenant_id;
  // What the endpoint of App Service and Container Apps wants to hear; empty: it is that of a virtual machine. Never shown.
  std::string header;
};

struct TokenRequest {
  Url url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string form;  // empty: it is a GET
};

struct IdentityToken {
  std::string text;
  Time expires{}, renew_at{};
};

// What is missing or wrong, by the names of the settings.
[[nodiscard]] Result<TokenRequest> token_request(const Identity& identity);

// Errors have what the endpoint says, without what is secret.
[[nodiscard]] Result<IdentityToken> read_token(const Identity& identity, unsigned status, std::string_view body, Time now);

}  // namespace baton::bus
