#include "base/url.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(Url, IsTakenApart) {
  const struct {
    const char *text, *origin, *authority, *target;
  } cases[] = {
      {"http://example.com", "http://example.com:80", "example.com", "/"},
      {"https://example.com", "https://example.com:443", "example.com", "/"},
      {"HTTP://EXAMPLE.Com/A?B#c", "http://example.com:80", "example.com", "/A?B"},
      {"https://example.com:443/", "https://example.com:443", "example.com", "/"},
      {"http://example.com:443/", "http://example.com:443", "example.com:443", "/"},
      {"http://example.com:/", "http://example.com:80", "example.com", "/"},
      {"http://example.com:0080/", "http://example.com:80", "example.com", "/"},
      {"http://example.com./", "http://example.com:80", "example.com", "/"},
      {"http://example.com?a=b", "http://example.com:80", "example.com", "/?a=b"},
      {"http://example.com/?", "http://example.com:80", "example.com", "/?"},
      {"http://example.com//a/../b", "http://example.com:80", "example.com", "//a/../b"},
      {"http://example.com/a%20b", "http://example.com:80", "example.com", "/a%20b"},
      {"http://my_service:8080/x", "http://my_service:8080", "my_service:8080", "/x"},
      {"http://xn--bcher-kva.example/", "http://xn--bcher-kva.example:80", "xn--bcher-kva.example", "/"},
      {"http://1.2.3.4/", "http://1.2.3.4:80", "1.2.3.4", "/"},
      {"http://1and1.example/", "http://1and1.example:80", "1and1.example", "/"},
      {"http://[::1]/", "http://[::1]:80", "[::1]", "/"},
      {"https://[2001:DB8:0::1]:8443/x", "https://[2001:db8::1]:8443", "[2001:db8::1]:8443", "/x"},
      {"http://[::ffff:127.0.0.1]/", "http://[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]", "/"},
  };
  for (const auto& each : cases) {
    const auto url = parse_url(each.text);
    ASSERT_TRUE(url) << each.text << ": " << url.error().message;
    EXPECT_EQ(url->origin(), each.origin);
    EXPECT_EQ(url->authority(), each.authority);
    EXPECT_EQ(url->target, each.target);
  }
}

TEST(Url, WhatCouldBeUnderstoodInTwoWaysIsRefused) {
  using namespace std::string_literals;
  const std::string refused[] = {
      "",
      "/path",
      "example.com",
      "//example.com/",
      "http:",
      "http:/example.com",
      "http://",
      "http:///path",
      "http://:80/",
      "http://./",
      "http://a..b/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "gopher://example.com/",
      "http://user@example.com/",
      "http://user:secret@example.com/",
      "http://@example.com/",
      "http://example.com@127.0.0.1/",
      "http://2130706433/",
      "http://0177.0.0.1/",
      "http://127.1/",
      "http://127.0.0.1./",
      "http://0x7f000001/",
      "http://0x7f.0.0.1/",
      "http://127.0.0.0x1/",
      "http://1.2.3.256/",
      "http://1.2.3.4.5/",
      "http://%31%32%37.0.0.1/",
      "http://exa%6dple.com/",
      "http://exam;ple.com/",
      "http://[::1/",
      "http://[::1%25eth0]/",
      "http://[fe80::1%eth0]/",
      "http://[v1.x]/",
      "http://[127.0.0.1]/",
      "http://example.com:0/",
      "http://example.com:65536/",
      "http://example.com:99999999999999999999/",
      "http://example.com:-1/",
      "http://example.com:8o/",
      " http://example.com/",
      "http://example.com/a b",
      "http://example.com/\r\nHost: x",
      "http://example.com/\0"s,
      "http://example.com/\t",
      "http://example.com\\@127.0.0.1/",
      "http://example.com/a\\b",
      "http://b\xc3\xbc"
      "cher.example/",
      "http://example.com/\xc3\xbc",
      "http://example.com/%zz",
      "http://example.com/{id}",
      "http://" + std::string(64, 'a') + ".example/",
      "http://example.com/" + std::string(9000, 'a'),
  };
  for (const auto& text : refused) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text << " is taken as " << url->origin() << url->target;
    EXPECT_EQ(url.error().code, Code::invalid);
    EXPECT_EQ(url.error().message.find("secret"), std::string::npos);
  }
}

TEST(Url, ALocationIsSeenFromWhereItCame) {
  const auto base = parse_url("https://example.com:8443/a/b?c");
  ASSERT_TRUE(base);
  const struct {
    const char *reference, *whole;
  } cases[] = {
      {"/x", "https://example.com:8443/x"},         {"x", "https://example.com:8443/a/x"},
      {"../x?y#z", "https://example.com:8443/x?y"}, {"?q", "https://example.com:8443/a/b?q"},
      {"//other/x", "https://other:443/x"},         {"http://other", "http://other:80/"},
      {"HTTPS://OTHER:443/", "https://other:443/"},
  };
  for (const auto& each : cases) {
    const auto url = resolve_url(*base, each.reference);
    ASSERT_TRUE(url) << each.reference << ": " << url.error().message;
    EXPECT_EQ(url->origin() + url->target, each.whole);
  }
  for (const char* wrong : {"http://u@x/", "//127.1/", "\\\\x", "javascript:x", "http://x/\n", "https:///x"})
    EXPECT_FALSE(resolve_url(*base, wrong)) << wrong;
}

TEST(Percent, EscapesAreDecodedOrRefused) {
  EXPECT_EQ(percent_decode("a%20b%2Fc"), "a b/c");
  EXPECT_EQ(percent_decode("a+b", true), "a b");
  for (const auto* wrong : {"%", "%2", "%zz"}) EXPECT_EQ(percent_decode(wrong), std::nullopt);
}

TEST(Percent, AllButUnreservedCharactersAreEscaped) {
  EXPECT_EQ(percent_encode("aZ09-_.~"), "aZ09-_.~");
  EXPECT_EQ(percent_encode("sb://h/a b"), "sb%3A%2F%2Fh%2Fa%20b");
  EXPECT_EQ(percent_decode(percent_encode("ü / ?&=")), "ü / ?&=");
}

}  // namespace
}  // namespace baton
