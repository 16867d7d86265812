#include "bus/broker/identity.hpp"

#include <gtest/gtest.h>

namespace baton::bus {
namespace {

const Time now = from_millis(1'700'000'000'000);

Identity application() { return {.kind = Identity::Kind::client_secret, .client_id = "app", .client_secret = "a+b&c", .tenant_id = "my site"}; }

TEST(Identity, AVirtualMachineIsAskedWithItsHeader) {
  const auto request = token_request({});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->url.origin(), "http://169.254.169.254:80");
  EXPECT_EQ(request->url.target, "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fservicebus.azure.net%2F");
  EXPECT_EQ(request->headers, (std::vector<std::pair<std::string, std::string>>{{"Metadata", "true"}}));
  EXPECT_EQ(request->form, "");
  EXPECT_TRUE(token_request({.client_id = "one of two"})->url.target.ends_with("&client_id=one%20of%20two"));
}

TEST(Identity, AnAppIsAskedWithTheHeaderThatItWasGiven) {
  const auto request = token_request({.endpoint = "http://127.0.0.1:42/msi/token", .header = "h"});
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->url.target.starts_with("/msi/token?api-version=2019-08-01&resource=")) << request->url.target;
  EXPECT_EQ(request->headers.front(), (std::pair<std::string, std::string>{"X-IDENTITY-HEADER", "h"}));
  EXPECT_FALSE(token_request({.header = "a\r\nb"}));
}

TEST(Identity, AnApplicationShowsItsSecretInAForm) {
  const auto request = token_request(application());
  ASSERT_TRUE(request);
  EXPECT_EQ(request->url.origin() + request->url.target, "https://login.microsoftonline.com:443/my%20site/oauth2/v2.0/token");
  EXPECT_EQ(request->form, "client_id=app&client_secret=a%2Bb%26c&grant_type=client_credentials&scope=https%3A%2F%2Fservicebus.azure.net%2F.default");
}

TEST(Identity, ASecretGoesOverHttpsOrStaysOnTheMachine) {
  Identity identity = application();
  identity.endpoint = "http://login.example";
  EXPECT_FALSE(token_request(identity));
  for (const char* endpoint : {"http://127.0.0.1:7", "http://[::1]:7/", "http://localhost"}) {
    identity.endpoint = endpoint;
    EXPECT_TRUE(token_request(identity)) << endpoint;
  }
}

TEST(Identity, ATokenIsRenewedBeforeItExpires) {
  const auto token = read_token({}, 200, R"({"access_token":"abc","expires_in":"3600"})", now);
  ASSERT_TRUE(token);
  EXPECT_EQ(token->text, "abc");
  EXPECT_EQ(token->expires, now + std::chrono::minutes{60});
  EXPECT_EQ(token->renew_at, now + std::chrono::minutes{50});
  EXPECT_EQ(read_token({}, 200, R"({"access_token":"abc","expires_in":6})", now)->renew_at, now + std::chrono::seconds{4});
  EXPECT_EQ(read_token({}, 200, R"({"access_token":"abc","expires_on":"1700000060"})", now)->expires, now + std::chrono::seconds{60});
}

TEST(Identity, ATokenExpiresByTheSoonerOfItsTimes) {
  const auto expires = [](const char* body) { return read_token({}, 200, body, now)->expires; };
  EXPECT_EQ(expires(R"({"access_token":"abc","expires_in":"3600","expires_on":"1700000060"})"), now + std::chrono::seconds{60});
  EXPECT_EQ(expires(R"({"access_token":"abc","expires_in":"60","expires_on":"1700003600"})"), now + std::chrono::seconds{60});
  EXPECT_EQ(expires(R"({"access_token":"abc","expires_on":"9223372036854775807"})"), now + std::chrono::days{7});
  EXPECT_FALSE(read_token({}, 200, R"({"access_token":"abc","expires_on":"-9223372036854775808"})", now));
}

TEST(Identity, AnAnswerWithoutAGoodTokenIsNone) {
  for (const char* body : {"", "[]", "{}", R"({"access_token":"abc"})", R"({"access_token":"","expires_in":5})", R"({"access_token":7,"expires_in":5})",
                           R"({"access_token":"a\nb","expires_in":5})", R"({"access_token":"abc","expires_in":0})", R"({"access_token":"abc","expires_in":"soon"})",
                           R"({"access_token":"abc","expires_on":"1600000000"})"}) {
    const auto token = read_token({}, 200, body, now);
    ASSERT_FALSE(token) << body;
    EXPECT_FALSE(token.error().message.contains("abc"));
  }
}

TEST(Identity, ARefusalIsToldWithoutTheSecret) {
  const auto token = read_token(application(), 401, R"({"error":"invalid_client","error_description":"not a+b&c,\r\nnor a%2Bb%26c"})", now);
  ASSERT_FALSE(token);
  EXPECT_EQ(token.error().message, "the token endpoint answers 401: invalid_client: not ***,  nor ***");
  EXPECT_EQ(read_token(application(), 502, "<html>", now).error().message, "the token endpoint answers 502");
}

}  // namespace
}  // namespace baton::bus
