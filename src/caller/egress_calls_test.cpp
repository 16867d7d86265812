// The egress policy where it counts: on the connections that are made.
#include <gtest/gtest.h>

#include "caller/caller_fixture.hpp"

namespace baton::caller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<IpAddress> addresses(std::initializer_list<const char*> texts) {
  std::vector<IpAddress> made;
  for (const char* text : texts) made.push_back(*IpAddress::parse(text));
  return made;
}

TEST_F(CallerTest, the_machine_itself_is_not_called_by_default) {
  TestServer server(agree);
  options_.egress = Egress{};
  for (const char* host : {"127.0.0.1", "a.test", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0"}) {
    const auto result = get(server.url("/", host));
    EXPECT_EQ(result.kind, OutgoingKind::egress_denied) << host << result.message;
    EXPECT_FALSE(result.may_have_left);
  }
  EXPECT_EQ(server.connections(), 0);
  expect_nothing_left();
}

TEST_F(CallerTest, a_host_can_be_allowed_or_denied_by_name) {
  TestServer server(agree);
  const std::vector<std::string> allow{"localhost", "b.test"}, deny{"*.evil.test"};
  options_.egress = Egress::parse(allow, deny).value();
  int lookups = 0;
  options_.resolve = [&](const std::string&) {
    ++lookups;
    return addresses({"127.0.0.1"});
  };
  EXPECT_EQ(get(server.url("/", "localhost")).kind, OutgoingKind::answered);
  EXPECT_EQ(get(server.url("/", "b.test")).kind, OutgoingKind::egress_denied)
      << "a name does not open the machine";
  EXPECT_EQ(lookups, 2);
  EXPECT_EQ(get(server.url("/", "a.evil.test")).kind, OutgoingKind::egress_denied);
  EXPECT_EQ(lookups, 2) << "a denied name is not looked up";
}

TEST_F(CallerTest, only_allowed_addresses_of_a_name_are_tried) {
  TestServer server(agree);
  options_.resolve = [](const std::string&) {
    return addresses({"169.254.169.254", "127.0.0.2", "127.0.0.1"});
  };
  const auto result = get(server.url("/", "a.test"));
  EXPECT_EQ(result.kind, OutgoingKind::answered) << result.message;
  EXPECT_EQ(result.address, "127.0.0.1");
}

TEST_F(CallerTest, a_name_is_looked_up_once_for_a_connection) {
  TestServer server(agree);
  std::atomic<int> lookups = 0;
  options_.resolve = [&](const std::string&) {
    return ++lookups == 1 ? addresses({"127.0.0.1"}) : addresses({"169.254.169.254"});
  };
  EXPECT_EQ(get(server.url("/", "a.test")).kind, OutgoingKind::answered);
  EXPECT_EQ(get(server.url("/", "a.test")).kind, OutgoingKind::answered) << "the connection was kept";
  EXPECT_EQ(lookups, 1);
  server.stop();
  EXPECT_EQ(get(server.url("/", "a.test")).kind, OutgoingKind::egress_denied);
}

TEST_F(CallerTest, names_that_nobody_knows_are_told) {
  const auto result = get("http://nobody.invalid/");
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_EQ(result.message, "cannot find nobody.invalid: no such name");
  EXPECT_FALSE(result.may_have_left);
}

TEST_F(CallerTest, a_slow_lookup_ends_in_a_timeout_and_holds_nobody_up) {
  TestServer server(agree);
  options_.connect_timeout = milliseconds{300};
  options_.lookup_threads = 4;
  std::atomic<int> lookups = 0;
  options_.resolve = [&](const std::string& host) {
    ++lookups;
    if (host == "slow.test") std::this_thread::sleep_for(milliseconds{600});
    return addresses({"127.0.0.1"});
  };
  std::vector<std::future<OutgoingResult>> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(send({.url = server.url("/", "slow.test")}));
  const auto quick = get(server.url("/", "quick.test"));
  EXPECT_EQ(quick.kind, OutgoingKind::answered);
  EXPECT_LT(quick.total, milliseconds{250});
  for (auto& each : slow) {
    const auto result = wait(std::move(each));
    EXPECT_EQ(result.kind, OutgoingKind::timeout);
    EXPECT_EQ(result.message, "the address of slow.test was not found within 300 ms");
    EXPECT_FALSE(result.may_have_left);
  }
  EXPECT_EQ(lookups, 2);
  expect_nothing_left();
}

TEST_F(CallerTest, many_slow_lookups_of_one_hold_up_nobody_else) {
  TestServer server(agree);
  options_.connect_timeout = milliseconds{400};
  options_.lookup_threads = 4;
  options_.resolve = [&](const std::string& host) {
    if (host != "quick.test")
      std::this_thread::sleep_for(milliseconds{150});  // a name server that is far away
    return addresses({"127.0.0.1"});
  };
  std::vector<std::future<OutgoingResult>> slow;
  for (int i = 0; i < 40; ++i)
    slow.push_back(send({.url = server.url("/", "n" + std::to_string(i) + ".test")}, "a"));
  const auto quick = wait(send({.url = server.url("/", "quick.test")}, "b"));
  EXPECT_EQ(quick.kind, OutgoingKind::answered) << quick.message;
  EXPECT_LT(quick.total, milliseconds{140}) << "it has not waited for any other name";
  for (auto& each : slow) {
    const auto result = wait(std::move(each));
    EXPECT_TRUE(result.kind == OutgoingKind::answered || result.kind == OutgoingKind::timeout)
        << result.message;
  }
}

TEST_F(CallerTest, connections_are_not_shared) {
  TestServer server(agree);
  for (int i = 0; i < 3; ++i)
    for (const char* for_whom : {"a", "b"})
      EXPECT_EQ(wait(send({.url = server.url()}, for_whom)).kind, OutgoingKind::answered);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(CallerTest, redirects_are_answers_unless_they_are_to_be_followed) {
  TestServer server([](Peer& peer) {
    for (auto seen = peer.request(); !seen.empty(); seen = peer.request()) {
      const bool first = seen.starts_with("POST /a ");
      first ? peer.answer("", "HTTP/1.1 303 See Other\r\nLocation: /b?c#d\r\n") : peer.answer(seen);
    }
  });
  OutgoingRequest request{
      .method = "POST", .url = server.url("/a"), .headers = {{"Authorization", "x"}}, .body = "body"};
  auto result = call(request);
  EXPECT_EQ(result.kind, OutgoingKind::http_error);
  EXPECT_EQ(result.status, 303);
  EXPECT_EQ(header(result, "Location"), "/b?c#d");
  request.redirects_max = 1;
  result = call(request);
  EXPECT_EQ(result.kind, OutgoingKind::answered);
  EXPECT_TRUE(result.snippet.starts_with("GET /b?c HTTP/1.1\r\n")) << result.snippet;
  EXPECT_NE(result.snippet.find("Authorization: x"), std::string::npos);
  EXPECT_EQ(result.snippet.find("body"), std::string::npos);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(CallerTest, redirects_come_to_an_end) {
  TestServer server([](Peer& peer) {
    while (!peer.request().empty()) peer.answer("", "HTTP/1.1 302 Found\r\nLocation: /again\r\n");
  });
  const auto result = call({.url = server.url(), .redirects_max = 5});
  EXPECT_EQ(result.kind, OutgoingKind::http_error);
  EXPECT_EQ(result.status, 302);
  EXPECT_EQ(result.message, "more than 5 redirects");
  EXPECT_EQ(caller_->stats().connections_reused, 5U);
}

TEST_F(CallerTest, a_redirect_leads_nowhere_that_the_request_could_not_go) {
  for (const char* location : {"http://169.254.169.254/latest/meta-data/", "http://[::ffff:a9fe:a9fe]/",
                               "http://[64:ff9b::a9fe:a9fe]/", "//metadata.test/"}) {
    TestServer server([&](Peer& peer) {
      peer.request();
      peer.answer("", std::string("HTTP/1.1 307 Temporary Redirect\r\nLocation: ") + location + "\r\n");
    });
    options_.resolve = [](const std::string& host) {
      return host == "metadata.test" ? addresses({"169.254.169.254"}) : addresses({"127.0.0.1"});
    };
    const auto result = call({.url = server.url("/", "a.test"), .redirects_max = 3});
    EXPECT_EQ(result.kind, OutgoingKind::egress_denied) << location << result.message;
    EXPECT_TRUE(result.may_have_left) << "the first request has";
    EXPECT_EQ(result.status, 0);
    caller_.reset();
  }
  for (const char* location : {"ftp://a.test/", "http://u@a.test/", "http://2852039166/"}) {
    TestServer server([&](Peer& peer) {
      peer.request();
      peer.answer("", std::string("HTTP/1.1 302 Found\r\nLocation: ") + location + "\r\n");
    });
    const auto result = call({.url = server.url(), .redirects_max = 3});
    EXPECT_EQ(result.kind, OutgoingKind::http_error) << location;
    EXPECT_EQ(result.status, 302);
    EXPECT_TRUE(result.message.starts_with("the redirect is not followed: ")) << result.message;
  }
}

TEST_F(CallerTest, a_name_that_changes_between_hops_is_judged_again) {
  std::atomic<int> lookups = 0;
  options_.resolve = [&](const std::string&) {
    return ++lookups == 1 ? addresses({"127.0.0.1"}) : addresses({"169.254.169.254"});
  };
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.answer("", "HTTP/1.1 302 Found\r\nConnection: close\r\nLocation: /again\r\n");
  });
  const auto result = call({.url = server.url("/", "a.test"), .redirects_max = 3});
  EXPECT_EQ(result.kind, OutgoingKind::egress_denied);
  EXPECT_EQ(result.message, "the egress policy refuses 169.254.169.254, the address of a.test");
  EXPECT_EQ(lookups, 2);
}

TEST_F(CallerTest, secrets_stay_with_their_origin) {
  std::string seen;
  TestServer other([&](Peer& peer) {
    seen = peer.request();
    peer.answer("fine");
  });
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.answer("", "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + other.url("/x") + "\r\n");
  });
  OutgoingRequest request{.method = "POST", .url = server.url(), .body = "body", .redirects_max = 1};
  request.headers = {
      {"Authorization", "Bearer secret"}, {"cookie", "secret"}, {"X-Mine", "secret"}, {"Accept", "t"}};
  EXPECT_EQ(call(request).kind, OutgoingKind::answered);
  EXPECT_TRUE(seen.starts_with("POST /x "));
  EXPECT_TRUE(seen.ends_with("body"));
  EXPECT_EQ(seen.find("secret"), std::string::npos);
  EXPECT_NE(seen.find("Accept: t"), std::string::npos);
}

}  // namespace
}  // namespace baton::caller
