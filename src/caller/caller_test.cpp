#include "caller/caller.hpp"

#include <gtest/gtest.h>

#include "caller/caller_fixture.hpp"

namespace baton::caller {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(CallerTest, a_request_is_sent_as_it_was_asked_for) {
  std::string seen;
  TestServer server([&](Peer& peer) {
    seen = peer.request();
    peer.answer("hello", "HTTP/1.1 201 Created\r\nX-A: b\r\nSet-Cookie: secret\r\nX-Api-Key: secret\r\n");
  });
  OutgoingRequest request{.method = "PATCH", .url = server.url("/a?b=c#d", "Host.test"), .body = "body"};
  request.headers = {{"X-One", "1"}, {"x-one", "2"}, {"accept", "text/plain"}};
  const auto result = call(request);
  EXPECT_EQ(seen, "PATCH /a?b=c HTTP/1.1\r\nHost: host.test:" + std::to_string(server.port()) +
                      "\r\nX-One: 1\r\nx-one: 2\r\naccept: text/plain\r\nUser-Agent: baton\r\n"
                      "Accept-Encoding: identity\r\nContent-Length: 4\r\n\r\nbody");
  EXPECT_EQ(result.kind, OutgoingKind::answered);
  EXPECT_EQ(result.status, 201);
  EXPECT_EQ(result.snippet, "hello");
  EXPECT_EQ(result.body_bytes, 5U);
  EXPECT_FALSE(result.truncated);
  EXPECT_TRUE(result.may_have_left);
  EXPECT_EQ(result.address, "127.0.0.1");
  EXPECT_EQ(header(result, "X-A"), "b");
  EXPECT_EQ(header(result, "Set-Cookie"), "[redacted]");
  EXPECT_EQ(header(result, "X-Api-Key"), "[redacted]");
  expect_nothing_left();
}

TEST_F(CallerTest, any_other_status_is_an_error_with_its_answer) {
  TestServer server([](Peer& peer) {
    while (!peer.request().empty()) peer.answer("nothing here", "HTTP/1.1 404 Not Found\r\n");
  });
  const auto result = get(server.url());
  EXPECT_EQ(result.kind, OutgoingKind::http_error);
  EXPECT_EQ(result.status, 404);
  EXPECT_EQ(result.message, "the server answered 404 Not Found");
  EXPECT_EQ(result.snippet, "nothing here");
}

TEST_F(CallerTest, bodies_come_in_every_framing) {
  const struct {
    const char *method, *answer, *snippet;
    bool closes;
  } cases[] = {
      {"GET",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: x\r\n\r\n",
       "abcdefg", false},
      {"GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", "until the end", true},
      {"GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true},
      {"GET", "HTTP/1.1 204 No Content\r\n\r\n", "", false},
      {"HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "", false},
      {"GET",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: y\r\n\r\nHTTP/1.1 200 "
       "OK\r\nContent-Length: 2\r\n\r\nok",
       "ok", false},
  };
  for (const auto& each : cases) {
    TestServer server([&](Peer& peer) {
      peer.request();
      peer.send(each.answer);
      if (!each.closes) peer.request();
    });
    const auto result = call({.method = each.method, .url = server.url(), .timeout = seconds{5}});
    EXPECT_EQ(result.kind, OutgoingKind::answered) << each.answer << result.message;
    EXPECT_EQ(result.snippet, each.snippet) << each.answer;
  }
}

TEST_F(CallerTest, connections_are_kept) {
  TestServer server(agree);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(caller_->stats().connections_reused, 19U);
  EXPECT_EQ(caller_->stats().connections_open, 1U);
  expect_nothing_left();
}

TEST_F(CallerTest, connections_are_not_kept_for_long) {
  options_.idle_max = milliseconds{50};
  TestServer server(agree);
  EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
  std::this_thread::sleep_for(milliseconds{100});
  EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(CallerTest, connections_are_not_kept_against_the_word_of_the_server) {
  for (const char* head :
       {"HTTP/1.1 200 OK\r\nConnection: close\r\n", "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1, max=9\r\n"}) {
    TestServer server([&](Peer& peer) {
      while (!peer.request().empty()) peer.answer("fine", head);
    });
    EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
    EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
    EXPECT_EQ(server.connections(), 2) << head;
  }
}

TEST_F(CallerTest, no_more_connections_are_kept_than_wanted) {
  options_.idle_connections_max = 2;
  TestServer one(agree), two(agree), three(agree);
  for (const auto* server : {&one, &two, &three}) EXPECT_EQ(get(server->url()).kind, OutgoingKind::answered);
  EXPECT_EQ(caller_->stats().connections_open, 2U);
}

TEST_F(CallerTest, a_dead_connection_is_seen_before_it_is_used) {
  TestServer server([](Peer& peer) {
    peer.request();
    peer.answer("fine");
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
    std::this_thread::sleep_for(milliseconds{20});
  }
  EXPECT_EQ(server.connections(), 5);
  EXPECT_EQ(caller_->stats().connections_reused, 0U);
}

TEST_F(CallerTest, what_nobody_asked_for_ends_a_kept_connection) {
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.answer("fine");
    server.pause(milliseconds{20});
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
    peer.request();
  });
  EXPECT_EQ(get(server.url()).snippet, "fine");
  std::this_thread::sleep_for(milliseconds{60});
  EXPECT_EQ(get(server.url()).snippet, "fine");
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(CallerTest, a_request_is_not_sent_again_when_its_fate_is_in_doubt) {
  std::atomic<int> requests = 0;
  TestServer server([&](Peer& peer) {
    peer.request();
    ++requests;
    peer.answer("fine");
    if (!peer.request().empty()) ++requests;  // and hangs up
  });
  EXPECT_EQ(get(server.url()).kind, OutgoingKind::answered);
  const auto result = get(server.url());
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_TRUE(result.may_have_left);
  EXPECT_EQ(result.message, "the server closed the connection without an answer");
  EXPECT_EQ(requests, 2);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(CallerTest, slow_headers_end_in_a_timeout) {
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\n");
    while (server.pause(milliseconds{10}) && peer.send("X: y\r\n")) {
    }
  });
  const auto result = call({.url = server.url(), .timeout = milliseconds{150}});
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_EQ(result.message, "the answer did not end within 150 ms");
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.may_have_left);
  EXPECT_GE(result.total, milliseconds{150});
  EXPECT_LT(result.total, milliseconds{2000});
  expect_nothing_left();
}

TEST_F(CallerTest, no_answer_ends_in_a_timeout) {
  TestServer server([&](Peer& peer) {
    peer.request();
    server.hang();
  });
  auto result = call({.url = server.url(), .timeout = milliseconds{100}});
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_EQ(result.message, "no answer within 100 ms");
  caller_.reset();
  options_.first_byte_timeout = milliseconds{50};
  result = get(server.url());
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_EQ(result.message, "no answer within 50 ms");
}

TEST_F(CallerTest, a_body_that_drips_ends_in_a_timeout) {
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (server.pause(milliseconds{10}) && peer.send("1\r\nx\r\n")) {
    }
  });
  const auto result = call({.url = server.url(), .timeout = milliseconds{200}});
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_EQ(result.status, 200);
  EXPECT_TRUE(result.truncated);
  EXPECT_TRUE(result.snippet.starts_with("xx"));
  expect_nothing_left();
}

TEST_F(CallerTest, a_body_without_an_end_is_cut) {
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  const std::pair<const char*, std::string> cases[] = {
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"},
      {"HTTP/1.1 200 OK\r\n\r\n", std::string(1000, 'x')},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n", std::string(1000, 'x')}};
  for (const auto& [head, part] : cases) {
    TestServer server([&](Peer& peer) {
      peer.request();
      peer.send(head);
      while (peer.send(part)) {
      }
    });
    const auto result = get(server.url());
    EXPECT_EQ(result.kind, OutgoingKind::answered) << result.message;
    EXPECT_TRUE(result.truncated);
    EXPECT_EQ(result.snippet, std::string(1024, 'x'));
    EXPECT_GT(result.body_bytes, 64U * 1024);
    EXPECT_LT(result.body_bytes, 128U * 1024);
  }
  expect_nothing_left();
}

TEST_F(CallerTest, a_head_or_a_chunk_without_an_end_is_an_error) {
  const std::pair<const char*, std::string> cases[] = {
      {"HTTP/1.1 200 OK\r\nX: ", "yyyyyyyyyyyyyyyyyyyyyyyyyyyy"},
      {"HTTP/1.1 200 OK\r\n", "X: yyyyyyyyyyyyyyyyyyyyyyyy\r\n"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", "yyyyyyyyyyyyyyyyyyyy"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "X: yyyyyyyyyyyyyyyyy\r\n"},
      {"", "HTTP/1.1 100 Continue\r\n\r\n"},
      {"", "this is not HTTP\r\n"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "y"},
  };
  for (const auto& [begin, part] : cases) {
    TestServer server([&](Peer& peer) {
      peer.request();
      peer.send(begin);
      while (peer.send(part)) {
      }
    });
    const auto result = get(server.url());
    EXPECT_EQ(result.kind, OutgoingKind::network_error) << begin << part << result.message;
    EXPECT_FALSE(result.message.empty());
    EXPECT_TRUE(result.may_have_left);
  }
  expect_nothing_left();
}

TEST_F(CallerTest, many_headers_are_not_all_kept) {
  TestServer server([](Peer& peer) {
    peer.request();
    std::string head = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 100; ++i) head += "X-" + std::to_string(i) + ": \xff\r\n";
    peer.answer("fine", head);
  });
  const auto result = get(server.url());
  EXPECT_EQ(result.headers.size(), 32U);
  EXPECT_EQ(header(result, "X-3"), "\xef\xbf\xbd");
}

TEST_F(CallerTest, the_snippet_is_text_whatever_comes) {
  TestServer server([](Peer& peer) {
    peer.request();
    peer.answer(std::string("\x1f\x8b\x00\xff", 4) + std::string(2000, '\xfe'),
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n");
  });
  const auto result = get(server.url());
  EXPECT_EQ(result.kind, OutgoingKind::answered);
  EXPECT_TRUE(result.snippet.starts_with("\x1f\xef\xbf\xbd\xef\xbf\xbd"));
  EXPECT_LE(result.snippet.size(), 1024U);
  EXPECT_TRUE(result.truncated);
  EXPECT_EQ(result.body_bytes, 2004U);
}

// 10 GiB of zeros take 10 MiB as gzip. They are not asked for, not unpacked, and cut like any other body.
TEST_F(CallerTest, a_gzip_bomb_does_not_go_off) {
  std::string seen;
  TestServer server([&](Peer& peer) {
    seen = peer.request();
    std::string bomb("\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03", 10);
    bomb += std::string(10 << 20, '\xec');
    peer.answer(bomb, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n");
  });
  const auto result = get(server.url());
  EXPECT_NE(seen.find("Accept-Encoding: identity"), std::string::npos);
  EXPECT_EQ(result.kind, OutgoingKind::answered);
  EXPECT_TRUE(result.truncated);
  EXPECT_LE(result.body_bytes, 128U << 10);
  EXPECT_LE(result.snippet.size(), 1024U);
}

TEST_F(CallerTest, nobody_listens) {
  std::string url;
  {
    const TestServer server(agree);
    url = server.url();
  }
  const auto result = get(url);
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_FALSE(result.may_have_left);
  EXPECT_TRUE(result.message.ends_with("Connection refused")) << result.message;
  expect_nothing_left();
}

TEST_F(CallerTest, a_connection_that_breaks_in_the_answer_is_told_with_what_was_read) {
  TestServer server([&](Peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
    server.pause(milliseconds{50});
    peer.reset();
  });
  auto result = get(server.url());
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.snippet, "some");
  EXPECT_TRUE(result.truncated);
  EXPECT_TRUE(result.may_have_left);
  TestServer polite([](Peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome");
  });
  result = get(polite.url());
  EXPECT_EQ(result.kind, OutgoingKind::network_error);
  EXPECT_EQ(result.message, "the server closed the connection in the middle of its answer");
  expect_nothing_left();
}

TEST_F(CallerTest, a_server_may_refuse_a_body_before_it_has_read_it) {
  TestServer server([&](Peer& peer) {
    peer.send("HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    server.pause(milliseconds{50});
  });
  const auto result = call(
      {.method = "POST", .url = server.url(), .body = std::string(20'000'000, 'x'), .timeout = seconds{5}});
  // The answer may be lost with the connection, which is not ours to change.
  EXPECT_TRUE(result.status == 413 || result.kind == OutgoingKind::network_error) << result.message;
  EXPECT_TRUE(result.may_have_left);
  expect_nothing_left();
}

TEST_F(CallerTest, a_body_that_is_not_taken_ends_in_a_timeout) {
  TestServer server([&](Peer&) { server.hang(); });
  const auto result = call({.method = "POST",
                            .url = server.url(),
                            .body = std::string(20'000'000, 'x'),
                            .timeout = milliseconds{200}});
  EXPECT_EQ(result.kind, OutgoingKind::timeout);
  EXPECT_EQ(result.message, "the request was not taken within 200 ms");
  EXPECT_TRUE(result.may_have_left);
}

TEST_F(CallerTest, large_bodies_arrive) {
  const std::string body(5'000'000, 'y');
  std::atomic<std::size_t> seen = 0;
  TestServer server([&](Peer& peer) {
    seen = peer.request().size();
    peer.answer("fine");
  });
  EXPECT_EQ(call({.method = "PUT", .url = server.url(), .body = body, .timeout = seconds{9}}).kind,
            OutgoingKind::answered);
  EXPECT_GT(seen, body.size());
}

TEST_F(CallerTest, what_is_wrong_is_not_sent) {
  TestServer server(agree);
  for (const std::string url :
       {"ftp://127.0.0.1/", "http://2130706433/", "http://u:p@127.0.0.1/", "http://127.0.0.1/\r\nX: y"}) {
    const auto result = get(url);
    EXPECT_EQ(result.kind, OutgoingKind::invalid_request) << url;
    EXPECT_FALSE(result.may_have_left);
  }
  EXPECT_EQ(call({.url = server.url(), .headers = {{"Host", "x"}}}).kind, OutgoingKind::invalid_request);
  EXPECT_EQ(call({.method = "TRACE", .url = server.url()}).kind, OutgoingKind::invalid_request);
  EXPECT_EQ(server.connections(), 0);
  expect_nothing_left();
}

TEST_F(CallerTest, a_head_that_is_too_long_is_told_as_that) {
  TestServer server([](Peer& peer) {
    peer.request();
    peer.answer("fine", "HTTP/1.1 200 OK\r\nX: " + std::string(17'000, 'y') + "\r\n");
  });
  EXPECT_EQ(get(server.url()).message, "the headers of the answer are longer than 16 KiB");
}

TEST_F(CallerTest, no_timeout_is_too_long_to_be_refused) {
  const auto result = call({.url = "http://127.0.0.1/", .timeout = Duration::max()});
  EXPECT_EQ(result.kind, OutgoingKind::invalid_request);
}

TEST_F(CallerTest, what_is_under_way_ends_when_all_ends) {
  TestServer server([&](Peer& peer) {
    peer.request();
    server.hang();
  });
  const auto resolve = options_.resolve;
  options_.resolve = [resolve](const std::string& host) {
    if (host == "slow.test") std::this_thread::sleep_for(milliseconds{300});
    return resolve(host);
  };
  std::vector<std::future<OutgoingResult>> outcomes;
  for (int i = 0; i < 20; ++i) outcomes.push_back(send({.url = server.url(), .timeout = seconds{60}}));
  auto looking = send({.url = "http://slow.test/", .timeout = seconds{60}});
  while (server.connections() < 20) std::this_thread::sleep_for(milliseconds{5});
  std::this_thread::sleep_for(milliseconds{50});
  const auto began = std::chrono::steady_clock::now();
  caller_->stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds{1});
  for (auto& each : outcomes) {
    ASSERT_EQ(each.wait_for(seconds{0}), std::future_status::ready);
    const auto result = each.get();
    EXPECT_EQ(result.kind, OutgoingKind::stopped);
    EXPECT_EQ(result.message, "the server is stopping");
    EXPECT_TRUE(result.may_have_left);
  }
  const auto result = looking.get();
  EXPECT_EQ(result.message, "the server is stopping");
  EXPECT_FALSE(result.may_have_left);
  EXPECT_EQ(caller_->stats().under_way, 0U);
  EXPECT_EQ(caller_->stats().connections_open, 0U);
}

TEST_F(CallerTest, what_is_sent_after_the_end_is_answered_at_once) {
  start();
  caller_->stop();
  OutgoingResult result;
  caller_->send("a", "http://127.0.0.1:1", {.url = "http://127.0.0.1:1"},
                [&](OutgoingResult told) { result = std::move(told); });
  EXPECT_EQ(result.message, "the server is stopping");
  EXPECT_EQ(caller_->stats().under_way, 0U);
}

TEST_F(CallerTest, everybody_hears_once_when_the_end_comes_in_the_middle) {
  options_.threads = 2;
  TestServer one(agree), two(agree);
  for (int round = 0; round < 10; ++round) {
    start();
    std::atomic<int> sent = 0, heard = 0;
    std::atomic<bool> over = false;
    const auto flood = [&](const std::string& url) {
      const auto origin = origin_of(url).value();
      while (!over) {
        if (sent - heard > 64) {
          std::this_thread::yield();
          continue;
        }
        ++sent;
        caller_->send("a", origin, {.url = url}, [&](const OutgoingResult&) { ++heard; });
      }
    };
    std::thread first([&] { flood(one.url("/", "a.test")); });
    std::thread second([&] { flood(two.url("/", "b.test")); });
    std::this_thread::sleep_for(milliseconds{20});
    caller_->stop();
    over = true;  // some were sent after the end
    first.join();
    second.join();
    EXPECT_GT(sent, 0);
    EXPECT_EQ(sent, heard);
    EXPECT_EQ(caller_->stats().under_way, 0U);
    EXPECT_EQ(caller_->stats().connections_open, 0U);
  }
}

TEST_F(CallerTest, thousands_of_requests_leave_nothing_behind) {
  options_.threads = 2;
  TestServer one(agree), two(agree), rude([](Peer& peer) {
    peer.request();
    peer.reset();
  });
  const auto began = std::chrono::steady_clock::now();
  std::vector<std::future<OutgoingResult>> outcomes;
  std::size_t waited = 0;
  start();
  const TestServer* servers[] = {&one, &two, &rude};
  for (std::size_t i = 0; i < 2000; ++i) {
    const auto url = servers[i % 10 == 0 ? 2 : i % 2]->url("/", "a.test");
    while (outcomes.size() - waited > 20) outcomes[waited++].wait();
    outcomes.push_back(send({.url = url, .timeout = seconds{9}}));
  }
  std::size_t answered = 0;
  for (auto& each : outcomes) answered += wait(std::move(each)).kind == OutgoingKind::answered ? 1 : 0;
  EXPECT_EQ(answered, 1800U);
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds{20});
  EXPECT_LE(caller_->stats().connections_open, 64U);
  expect_nothing_left();
}

}  // namespace
}  // namespace baton::caller
