#include "ports/caller.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

Result<> checked(std::string method, Headers headers = {}) {
  OutgoingRequest request;
  request.method = std::move(method);
  request.url = "https://example.com/";
  request.headers = std::move(headers);
  return check(request);
}

TEST(OutgoingRequests, HaveTheOriginOfTheirUrl) {
  EXPECT_EQ(origin_of("HTTPS://Example.COM/x").value(), "https://example.com:443");
  EXPECT_FALSE(origin_of("ftp://example.com"));
  EXPECT_FALSE(origin_of("http://127.1/"));
}

TEST(OutgoingRequests, HaveAnyMethodButTwo) {
  for (const char* method :
       {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND", "M-SEARCH"})
    EXPECT_TRUE(checked(method)) << method;
  for (const char* method : {"", "CONNECT", "TRACE", "trace", "GET /", "GE\tT", "G\r\nX", "GE(T"})
    EXPECT_FALSE(checked(method)) << method;
  EXPECT_FALSE(checked(std::string(33, 'A')));
}

TEST(OutgoingRequests, HaveHeadersThatEndWhereTheyEnd) {
  using namespace std::string_literals;
  EXPECT_TRUE(
      checked("GET", {{"X-A", "b"}, {"X-A", ""}, {"Authorization", "Bearer x"}, {"X-B", "a\tb \xc3\xbc"}}));
  const Headers wrong = {{"", "x"},
                         {"a b", "x"},
                         {"a:", "x"},
                         {"a\r\nb", "x"},
                         {"a\0"s, "x"},
                         {"\xc3\xbc", "x"},
                         {"x", "a\r\nb: c"},
                         {"x", "a\nb"},
                         {"x", "a\rb"},
                         {"x", "a\0b"s},
                         {"x", "a\x7f"},
                         {"x", "\x01"},
                         {std::string(257, 'a'), "x"},
                         {"x", std::string(9000, 'a')}};
  for (const auto& each : wrong) EXPECT_FALSE(checked("GET", {each})) << each.first << ": " << each.second;
}

TEST(OutgoingRequests, LeaveTheFramingToUs) {
  for (const char* name : {"Host", "host", "Content-Length", "Transfer-Encoding", "CONNECTION", "Keep-Alive",
                           "Expect", "Upgrade", "TE", "Trailer", "Proxy-Authorization", "proxy-connection"}) {
    const auto refused = checked("GET", {{name, "x"}});
    ASSERT_FALSE(refused) << name;
    EXPECT_NE(refused.error().message.find(name), std::string::npos);
  }
}

TEST(OutgoingRequests, AreOfBoundedSize) {
  EXPECT_TRUE(checked("GET", Headers(64, {"x", "y"})));
  EXPECT_FALSE(checked("GET", Headers(65, {"x", "y"})));
  EXPECT_FALSE(checked("GET", Headers(5, {"x", std::string(8000, 'y')})));
  OutgoingRequest request;
  request.url = "http://example.com/";
  request.timeout = Duration::zero();
  EXPECT_FALSE(check(request));
  request.timeout = Duration::max();
  EXPECT_FALSE(check(request));
  request.timeout = std::chrono::seconds{1};
  request.redirects_max = 21;
  EXPECT_FALSE(check(request));
  request.redirects_max = 20;
  EXPECT_TRUE(check(request));
}

TEST(Secrets, HeadersThatMayHoldSecretsAreKnownByTheirNames) {
  for (const char* name : {"Set-Cookie", "set-cookie2", "WWW-Authenticate", "Authorization",
                           "Proxy-Authenticate", "X-Auth-Token", "X-CSRF-TOKEN", "Client-Secret", "X-Api-Key",
                           "x-password-hint", "Authentication-Info", "X-Amz-Credential", "X-Session-Id"})
    EXPECT_TRUE(is_sensitive(name)) << name;
  for (const char* name : {"Content-Type", "Location", "Keep-Alive", "Date", "X-Author", "ETag", "Server"})
    EXPECT_FALSE(is_sensitive(name)) << name;
}

TEST(Secrets, AreLeftOutOfUrls) {
  EXPECT_EQ(without_secrets("https://a.example/x"), "https://a.example/x");
  EXPECT_EQ(without_secrets("https://a.example/x?"), "https://a.example/x?");
  EXPECT_EQ(without_secrets("https://a.example/x?api_key=s3cret&n=1&token=t#f"),
            "https://a.example/x?api_key=[redacted]&n=1&token=[redacted]#f");
  EXPECT_EQ(without_secrets("https://a.example/?X-Amz-Signature=00&sig=1&sign=2;pwd=3"),
            "https://a.example/?X-Amz-Signature=[redacted]&sig=[redacted]&sign=2;pwd=[redacted]");
  EXPECT_EQ(without_secrets("https://a.example/cb#access_token=t"), "https://a.example/cb#access_token=[redacted]");
  EXPECT_EQ(without_secrets("https://u:p@a.example/x@y"), "https://[redacted]@a.example/x@y");
  EXPECT_EQ(without_secrets("https://a.example/?to%6ben=t"), "https://a.example/?to%6ben=[redacted]");
  EXPECT_EQ(without_secrets("https://a.example/?token&key="), "https://a.example/?token&key=[redacted]");
}

}  // namespace
}  // namespace baton
