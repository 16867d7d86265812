#include "http/wire/get.hpp"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

namespace baton::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;

// A certificate that signs itself, for an address or a name ("IP:127.0.0.1", "DNS:other.example").
Certificate certificate_for(const char* subject, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("baton test"),
                             -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject);
  X509_add_ext(certificate.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate.get(), key, EVP_sha256());
  return certificate;
}

// Answers one connection with "[]", or fails to.
class TlsServer {
 public:
  explicit TlsServer(const char* subject) {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate = certificate_for(subject, key.get());
    context_.use_certificate(asio::buffer(pem([&](BIO* out) { PEM_write_bio_X509(out, certificate.get()); })),
                             asio::ssl::context::pem);
    context_.use_private_key(asio::buffer(pem([&](BIO* out) {
                               PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr,
                                                        nullptr);
                             })),
                             asio::ssl::context::pem);
    const auto file = trusted();
    BIO* out = BIO_new_file(file.c_str(), "w");
    PEM_write_bio_X509(out, certificate.get());
    BIO_free(out);
    thread_ = std::thread([this] { serve(); });
  }
  ~TlsServer() {
    thread_.join();
    std::filesystem::remove(trusted());
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  [[nodiscard]] std::string url() const {
    return "https://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + "/people";
  }
  // A file that makes whoever reads it trust this server.
  [[nodiscard]] std::string trusted() const {
    return testing::TempDir() + "/baton-tls-" + std::to_string(acceptor_.local_endpoint().port()) + ".pem";
  }

 private:
  template <class Write>
  static std::string pem(Write write) {
    BIO* out = BIO_new(BIO_s_mem());
    write(out);
    char* data = nullptr;
    const auto size = BIO_get_mem_data(out, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(out);
    return text;
  }
  void serve() {
    boost::system::error_code error;
    asio::ssl::stream<tcp::socket> stream(io_, context_);
    acceptor_.accept(stream.lowest_layer(), error);
    stream.handshake(asio::ssl::stream_base::server, error);
    if (error) return;
    asio::streambuf request;
    asio::read_until(stream, request, "\r\n\r\n", error);
    asio::write(stream,
                asio::buffer(std::string_view(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]")),
                error);
    stream.shutdown(error);
  }

  asio::io_context io_;
  asio::ssl::context context_{asio::ssl::context::tls_server};
  tcp::acceptor acceptor_{io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)};
  std::thread thread_;
};

TEST(Get, a_server_nobody_vouches_for_is_refused) {
  const TlsServer server("IP:127.0.0.1");
  const auto answer = get(server.url());
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().message, "cannot connect to the server: TLS: self-signed certificate");
}

TEST(Get, a_trusted_server_is_asked_over_tls) {
  const TlsServer server("IP:127.0.0.1");
  ::setenv("SSL_CERT_FILE", server.trusted().c_str(), 1);
  const auto answer = get(server.url());
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "application/json");
  EXPECT_EQ(answer->body, "[]");
}

TEST(Get, a_trusted_certificate_of_another_host_is_refused) {
  const TlsServer server("DNS:other.example");
  ::setenv("SSL_CERT_FILE", server.trusted().c_str(), 1);
  const auto answer = get(server.url());
  ::unsetenv("SSL_CERT_FILE");
  ASSERT_FALSE(answer.has_value());
  EXPECT_NE(answer.error().message.find("mismatch"), std::string::npos) << answer.error().message;
}

TEST(Get, errors_hold_nothing_of_the_url) {
  for (const std::string url :
       {"secret", "http://", "ftp://secret/", "http://secret:secret@127.0.0.1:1/secret",
        "http://secret.invalid/secret", "http://sec ret/", "https://secret@127.0.0.1:1"}) {
    const auto answer = get(url);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos) << answer.error().message;
  }
  EXPECT_EQ(get("http://to%0aken@127.0.0.1:1/").error().code, Code::invalid);
}

}  // namespace
}  // namespace baton::http
