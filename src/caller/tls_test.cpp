#include <gtest/gtest.h>

#include <filesystem>

#include "caller/caller_fixture.hpp"
#include "tests/support/certificate.hpp"

namespace baton::caller {
namespace {

using support::make_certificate;
using support::Signed;
using Context = std::unique_ptr<SSL_CTX, support::Free<SSL_CTX_free>>;

class TlsCallerTest : public CallerTest {
 protected:
  TlsCallerTest() {
    support::write_pem(authority_.certificate.get(), file_.c_str());
    options_.ca_file = file_;
  }
  ~TlsCallerTest() override { std::filesystem::remove(file_); }

  Context context(const char* subject, long until = 3600, bool trusted = true) {
    const auto stranger = make_certificate("stranger", nullptr, 3600, nullptr);
    const auto leaf = make_certificate("leaf", subject, until, trusted ? &authority_ : &stranger);
    Context made(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate(made.get(), leaf.certificate.get());
    SSL_CTX_use_PrivateKey(made.get(), leaf.key.get());
    return made;
  }
  void expect_refused(Context context, std::string_view why) {
    std::string seen;
    TestServer server([&](Peer& peer) { seen = peer.request(); }, context.get());
    const auto result = get(server.url("/", "a.test", "https"));
    EXPECT_EQ(result.kind, OutgoingKind::tls_error);
    EXPECT_FALSE(result.may_have_left);
    EXPECT_NE(result.message.find(why), std::string::npos) << result.message;
    server.stop();
    EXPECT_EQ(seen, "");
    expect_nothing_left();
  }

  const Signed authority_ = make_certificate("authority", nullptr, 3600, nullptr);
  const std::string file_ = testing::TempDir() + "/baton-caller-" + std::to_string(::getpid()) + ".pem";
};

TEST_F(TlsCallerTest, a_trusted_server_is_called_and_its_connection_kept) {
  const auto tls = context("DNS:a.test");
  TestServer server(agree, tls.get());
  for (int i = 0; i < 3; ++i) {
    const auto result = get(server.url("/", "a.test", "https"));
    EXPECT_EQ(result.kind, OutgoingKind::answered) << result.message;
    EXPECT_EQ(result.snippet, "fine");
  }
  EXPECT_EQ(server.connections(), 1);
  expect_nothing_left();
}

TEST_F(TlsCallerTest, the_server_is_told_which_host_is_meant) {
  const auto tls = context("DNS:*.b.test");
  std::string name;
  SSL_CTX_set_tlsext_servername_callback(
      tls.get(), +[](SSL* ssl, int*, void* into) {
        *static_cast<std::string*>(into) = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
        return SSL_TLSEXT_ERR_OK;
      });
  SSL_CTX_set_tlsext_servername_arg(tls.get(), &name);
  TestServer server(agree, tls.get());
  EXPECT_EQ(get(server.url("/", "A.b.test", "https")).kind, OutgoingKind::answered);
  EXPECT_EQ(name, "a.b.test");
}

TEST_F(TlsCallerTest, an_address_is_checked_too) {
  const auto tls = context("IP:127.0.0.1");
  TestServer server(agree, tls.get());
  EXPECT_EQ(get(server.url("/", "127.0.0.1", "https")).kind, OutgoingKind::answered);
  const auto result = get(server.url("/", "127.0.0.2", "https"));
  EXPECT_NE(result.kind, OutgoingKind::answered);
}

TEST_F(TlsCallerTest, the_certificate_of_another_host_is_refused) {
  expect_refused(context("DNS:b.test"), "hostname mismatch");
}

TEST_F(TlsCallerTest, a_server_nobody_vouches_for_is_refused) {
  expect_refused(context("DNS:a.test", 3600, false), "unable to get local issuer certificate");
}

TEST_F(TlsCallerTest, an_expired_certificate_is_refused) {
  expect_refused(context("DNS:a.test", -3600), "certificate has expired");
}

TEST_F(TlsCallerTest, old_tls_is_refused) {
  auto tls = context("DNS:a.test");
  SSL_CTX_set_security_level(tls.get(), 0);
  SSL_CTX_set_min_proto_version(tls.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(tls.get(), TLS1_1_VERSION);
  expect_refused(std::move(tls), "");
}

TEST_F(TlsCallerTest, a_server_without_tls_is_told_as_one) {
  TestServer server([](Peer& peer) { peer.send("HTTP/1.1 400 Bad Request\r\n\r\n"); });
  const auto result = get(server.url("/", "a.test", "https"));
  EXPECT_EQ(result.kind, OutgoingKind::tls_error) << result.message;
  EXPECT_FALSE(result.may_have_left);
}

TEST_F(TlsCallerTest, a_handshake_without_an_end_ends_in_a_timeout) {
  options_.connect_timeout = std::chrono::milliseconds{100};
  TestServer server([&](Peer&) { server.hang(); });
  const auto result = get(server.url("/", "a.test", "https"));
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_FALSE(result.may_have_left);
  EXPECT_TRUE(result.message.starts_with("no TLS with a.test:")) << result.message;
}

TEST_F(TlsCallerTest, a_body_may_end_with_the_connection) {
  const auto tls = context("DNS:a.test");
  for (const bool polite : {true, false}) {
    TestServer server(
        [&](Peer& peer) {
          peer.request();
          peer.send("HTTP/1.1 200 OK\r\n\r\nall of it");
          if (polite) peer.take_leave();
        },
        tls.get());
    const auto result = get(server.url("/", "a.test", "https"));
    EXPECT_EQ(result.kind, OutgoingKind::answered) << result.message;
    EXPECT_EQ(result.snippet, "all of it");
    EXPECT_EQ(result.truncated, !polite);
  }
}

TEST_F(TlsCallerTest, an_answer_that_is_cut_off_is_no_answer) {
  const auto tls = context("DNS:a.test");
  TestServer server(
      [&](Peer& peer) {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
      },
      tls.get());
  const auto result = get(server.url("/", "a.test", "https"));
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_EQ(result.message, "the server closed the connection in the middle of its answer");
}

TEST_F(TlsCallerTest, there_is_no_redirect_from_https_to_http) {
  const auto tls = context("DNS:a.test");
  TestServer plain(agree);
  TestServer server(
      [&](Peer& peer) {
        peer.request();
        peer.answer("", "HTTP/1.1 302 Found\r\nLocation: " + plain.url("/", "a.test") + "\r\n");
      },
      tls.get());
  const auto result = call({.url = server.url("/", "a.test", "https"), .redirects_max = 2});
  EXPECT_EQ(result.kind, OutgoingKind::http_error);
  EXPECT_EQ(result.message, "the redirect is not followed: it leads from https to http");
  EXPECT_EQ(plain.connections(), 0);
}

TEST_F(TlsCallerTest, what_nobody_asked_for_is_no_answer_to_the_next) {
  const auto tls = context("DNS:a.test");
  TestServer server(
      [&](Peer& peer) {
        peer.request();
        peer.answer("fine");
        peer.answer("wrong");  // a record of its own, which may come with the first or after it
        peer.request();
      },
      tls.get());
  for (int i = 0; i < 50; ++i) EXPECT_NE(get(server.url("/", "a.test", "https")).snippet, "wrong");
}

TEST_F(TlsCallerTest, certificates_that_cannot_be_read_are_told_at_the_start) {
  options_.ca_file = "/nowhere.pem";
  EXPECT_FALSE(HttpCaller::start(options_));
}

}  // namespace
}  // namespace baton::caller
