#include "base/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

namespace baton {

Result<> set_up_tls(SSL_CTX* context, const std::string& ca_file, Trust trust) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  static constexpr unsigned char http11[] = "\x08http/1.1";
  SSL_CTX_set_alpn_protos(context, http11, sizeof http11 - 1);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  ERR_clear_error();
  const auto why = [] {
    const char* reason = ERR_reason_error_string(ERR_get_error());
    return reason == nullptr ? "no reason given" : reason;
  };
  if (trust == Trust::system_and_file && SSL_CTX_set_default_verify_paths(context) != 1)
    return fail(Code::unavailable, fmt::format("cannot read the certificates of the system: {}", why()));
  if (!ca_file.empty() && SSL_CTX_load_verify_file(context, ca_file.c_str()) != 1)
    return fail(Code::invalid, fmt::format("cannot read certificates from {}: {}", ca_file, why()));
  return {};
}

// OpenSSL checks it together with the chain, and says what was wrong.
bool expect_host(SSL* ssl, const Url& url) {
  X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl);
  if (url.host_kind != Url::HostKind::name)
    return X509_VERIFY_PARAM_set1_ip_asc(parameters, url.host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return X509_VERIFY_PARAM_set1_host(parameters, url.host.data(), url.host.size()) == 1 &&
         SSL_set_tlsext_host_name(ssl, url.host.c_str()) == 1;
}

std::string tls_problem(SSL* ssl, std::string error) {
  const long verdict = SSL_get_verify_result(ssl);
  return verdict == X509_V_OK ? error : X509_verify_cert_error_string(verdict);
}

}  // namespace baton
