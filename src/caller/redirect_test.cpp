#include "caller/redirect.hpp"

#include <gtest/gtest.h>

namespace baton::caller {
namespace {

OutgoingRequest request(std::string method) {
  OutgoingRequest made;
  made.method = std::move(method);
  made.headers = {{"authorization", "Bearer x"},
                  {"Cookie", "a=b"},
                  {"X-Api-Key", "k"},
                  {"Content-Type", "text/plain"},
                  {"X-Trace", "1"}};
  made.body = "body";
  return made;
}

const Url from = parse_url("https://a.example/x/y").value();

std::vector<std::string> names(const OutgoingRequest& request) {
  std::vector<std::string> found;
  for (const auto& header : request.headers) found.push_back(header.first);
  return found;
}

TEST(Redirect, KeepsTheMethodOrMakesItGet) {
  const struct {
    int status;
    const char *method, *next;
  } cases[] = {{301, "POST", "GET"},  {302, "POST", "GET"}, {303, "POST", "GET"},      {303, "PUT", "GET"},
               {303, "HEAD", "HEAD"}, {301, "PUT", "PUT"},  {302, "DELETE", "DELETE"}, {307, "POST", "POST"},
               {308, "POST", "POST"}, {302, "GET", "GET"}};
  for (const auto& each : cases) {
    auto changed = request(each.method);
    const auto to = redirect(changed, from, each.status, "/z");
    ASSERT_TRUE(to);
    EXPECT_EQ(to->origin() + to->target, "https://a.example:443/z");
    EXPECT_EQ(changed.method, each.next);
    const bool dropped = std::string(each.method) != "GET" && std::string(each.next) == "GET";
    EXPECT_EQ(changed.body, dropped ? "" : "body");
    EXPECT_EQ(changed.headers.size(), dropped ? 4U : 5U);
  }
}

TEST(Redirect, SecretsStayWithTheirOrigin) {
  for (const char* elsewhere : {"https://b.example/", "https://a.example:8443/", "//a.example.evil/"}) {
    auto changed = request("PUT");
    ASSERT_TRUE(redirect(changed, from, 307, elsewhere));
    EXPECT_EQ(names(changed), std::vector<std::string>{"Content-Type"});
  }
  auto changed = request("PUT");
  ASSERT_TRUE(redirect(changed, from, 307, "https://A.example:443/other"));
  EXPECT_EQ(changed.headers.size(), 5U);
}

TEST(Redirect, ThereIsNoWayBackFromHttpsAndNoneToStrangePlaces) {
  for (const char* wrong : {"http://a.example/", "ftp://a.example/", "https://u:p@a.example/", "//127.1/",
                            "https://[/", "/a b", "javascript:alert(1)"}) {
    auto changed = request("GET");
    EXPECT_FALSE(redirect(changed, from, 302, wrong)) << wrong;
  }
  auto changed = request("GET");
  EXPECT_TRUE(redirect(changed, parse_url("http://a.example").value(), 302, "https://a.example/"));
}

TEST(Redirect, OnlySomeStatusesLeadElsewhere) {
  for (const int status : {301, 302, 303, 307, 308}) EXPECT_TRUE(is_redirect(status));
  for (const int status : {200, 300, 304, 305, 306, 309, 400}) EXPECT_FALSE(is_redirect(status));
}

}  // namespace
}  // namespace baton::caller
