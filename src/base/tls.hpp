// What all HTTP clients have in common about TLS: whom they trust, and that the other side is the one that
// the URL names.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "base/result.hpp"
#include "base/url.hpp"

namespace baton {

// Certificates are verified, with those of the system and, if named, those of a file; or with those of the file alone.
enum class Trust { system_and_file, file_alone };
[[nodiscard]] Result<> set_up_tls(SSL_CTX* context, const std::string& ca_file = {}, Trust trust = Trust::system_and_file);

// Before the handshake: the certificate has to be for the host, which is told to the server if it is a name.
[[nodiscard]] bool expect_host(SSL* ssl, const Url& url);

// Why a handshake failed: what is wrong with the certificate, else the error's own words.
[[nodiscard]] std::string tls_problem(SSL* ssl, std::string error);

}  // namespace baton
