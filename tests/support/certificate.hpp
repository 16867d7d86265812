// Certificates for tests, made when they are needed.
#pragma once

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

namespace baton::support {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

struct Signed {
  Key key{EVP_EC_gen("P-256")};
  Certificate certificate{X509_new()};
};

inline void extend(X509* certificate, int what, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// For an address or a host ("IP:127.0.0.1", "DNS:other.example"), or for none. Valid until so many seconds from now;
// without an issuer it signs itself and may sign others.
inline Signed make_certificate(const char* name, const char* subject, long until, const Signed* issuer) {
  static long serial = 0;
  Signed made;
  auto* certificate = made.certificate.get();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, made.key.get());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer ? issuer->certificate.get() : certificate));
  if (issuer == nullptr) extend(certificate, NID_basic_constraints, "critical,CA:TRUE");
  if (subject != nullptr) extend(certificate, NID_subject_alt_name, subject);
  X509_sign(certificate, issuer ? issuer->key.get() : made.key.get(), EVP_sha256());
  return made;
}

// A file that makes whoever reads it trust the certificate.
inline void write_pem(const X509* certificate, const char* file) {
  BIO* out = BIO_new_file(file, "w");
  PEM_write_bio_X509(out, certificate);
  BIO_free(out);
}

}  // namespace baton::support
