#include "http/wire/get.hpp"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/support/certificate.hpp"

namespace baton::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// Answers one connection with "[]", or fails to.
class TlsServer {
 public:
  explicit TlsServer(const char* subject) {
    const auto [key, certificate] = support::make_certificate("baton test", subject, 3600, nullptr);
    context_.use_certificate(asio::buffer(pem([&](BIO* out) { PEM_write_bio_X509(out, certificate.get()); })),
                             asio::ssl::context::pem);
    context_.use_private_key(asio::buffer(pem([&](BIO* out) {
                               PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr,
                                                        nullptr);
                             })),
                             asio::ssl::context::pem);
    support::write_pem(certificate.get(), trusted().c_str());
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
