// The connection: limits, keep-alive, pipelining, waiting and stopping.
#include "http/api/server_fixture.hpp"
#include "tests/support/soon.hpp"

namespace baton::http {
namespace {

using namespace std::chrono_literals;
using support::soon;

const std::string health = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST_F(ServerTest, requests_in_one_segment_are_answered_in_order) {
  agree();
  start();
  RawConnection connection(port_);
  connection.send(health + post("/api/v1/jobs", R"({"workflow_id":"w"})") +
                  "GET /nope HTTP/1.1\r\nHost: localhost\r\n\r\n" + health);
  const auto seen = connection.read_until("X-Request-Id", 4);
  const auto first = seen.find("200 OK");
  const auto second = seen.find("201 Created");
  const auto third = seen.find("404 Not Found");
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_NE(seen.rfind("200 OK"), first);
}

TEST_F(ServerTest, a_request_may_come_byte_by_byte_and_in_chunks) {
  agree();
  start();
  RawConnection connection(port_);
  const std::string request =
      "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "10\r\n{\"workflow_id\":\"\r\n3\r\nw\"}\r\n0\r\n\r\n";
  for (const char c : request) connection.send({&c, 1});
  EXPECT_NE(connection.read_until("completed_at").find("201 Created"), std::string::npos);
}

TEST_F(ServerTest, a_client_that_expects_100_continue_hears_it) {
  agree();
  start();
  RawConnection connection(port_);
  connection.send(
      "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 19\r\n\r\n");
  EXPECT_NE(connection.read_until("\r\n\r\n").find("100 Continue"), std::string::npos);
  connection.send(R"({"workflow_id":"w"})");
  EXPECT_NE(connection.read_until("completed_at").find("201 Created"), std::string::npos);
}

TEST_F(ServerTest, head_is_refused_without_a_body) {
  start();
  RawConnection connection(port_);
  connection.send("HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const auto seen = connection.read_all();
  EXPECT_NE(seen.find("405"), std::string::npos);
  EXPECT_TRUE(seen.ends_with("\r\n\r\n"));
}

TEST_F(ServerTest, an_oversize_header_is_431_and_an_oversize_body_413) {
  options_.body_bytes_max = 1000;
  start();
  RawConnection header(port_);
  header.send("GET /healthz HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_NE(header.read_all().find("431"), std::string::npos);
  RawConnection body(port_);
  body.send(post("/api/v1/jobs", std::string(200'000, 'x')));
  const auto seen = body.read_all();
  EXPECT_NE(seen.find("413"), std::string::npos);
  EXPECT_NE(seen.find("body_too_large"), std::string::npos);
  RawConnection chunked(port_);
  chunked.send("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" +
               std::string(2048, 'x'));
  EXPECT_NE(chunked.read_all().find("413"), std::string::npos);
}

TEST_F(ServerTest, what_is_not_http_is_400) {
  start();
  for (const std::string garbage :
       {"\x16\x03\x01\x02hello\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "GET /healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"}) {
    RawConnection connection(port_);
    connection.send(garbage);
    EXPECT_NE(connection.read_all().find(" 400 "), std::string::npos) << garbage;
  }
}

// A proxy that checks such a header may have looked at the other one.
TEST_F(ServerTest, a_header_that_decides_and_comes_twice_is_400) {
  agree();
  start();
  for (const std::string field : {"Authorization: Bearer x", "Baton-Tenant: acme", "baton-tenant: acme",
                                  "Idempotency-Key: k"}) {
    RawConnection connection(port_);
    const auto name = field.substr(0, field.find(':'));
    connection.send("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\n" + name +
                    ": other\r\nContent-Length: 19\r\n\r\n{\"workflow_id\":\"w\"}");
    EXPECT_NE(connection.read_all().find(" 400 "), std::string::npos) << field;
  }
  RawConnection both_spellings(port_);
  both_spellings.send("GET /healthz HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: a\r\nidempotency-key: b\r\n\r\n");
  EXPECT_NE(both_spellings.read_all().find(" 400 "), std::string::npos);
}

// A proxy that checks or sets a header does not look for it behind the body.
TEST_F(ServerTest, fields_behind_the_body_are_ignored) {
  agree();
  options_.access = Access::open;
  start();
  for (const std::string field : {"Host: evil.example", "Authorization: Bearer wrong", "Baton-Tenant: not a name",
                                  "Origin: http://evil.example"}) {
    RawConnection connection(port_);
    connection.send("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "13\r\n{\"workflow_id\":\"w\"}\r\n0\r\n" +
                    field + "\r\n\r\n");
    EXPECT_NE(connection.read_until("\r\n\r\n").find("201 Created"), std::string::npos) << field;
  }
}

TEST_F(ServerTest, a_slow_header_and_a_slow_body_are_408) {
  options_.header_time = 100ms;
  options_.body_time = 100ms;
  start();
  RawConnection header(port_);
  header.send("GET /healthz HT");
  EXPECT_NE(header.read_all().find("408"), std::string::npos);
  RawConnection body(port_);
  body.send("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
  EXPECT_NE(body.read_all().find("408"), std::string::npos);
  RawConnection silent(port_);
  EXPECT_EQ(silent.read_all(), "");
}

TEST_F(ServerTest, an_idle_connection_is_closed) {
  options_.idle_time = 100ms;
  start();
  RawConnection connection(port_);
  connection.send(health);
  EXPECT_TRUE(connection.read_all().ends_with(R"({"status":"ok"})"));
}

TEST_F(ServerTest, one_connection_too_many_hears_503) {
  options_.connections_max = 2;
  start();
  RawConnection a(port_);
  RawConnection b(port_);
  a.send(health);
  b.send(health);
  a.read_until("ok");
  b.read_until("ok");
  RawConnection c(port_);
  c.send(health);
  EXPECT_NE(c.read_all().find("too_many_connections"), std::string::npos);
  a.close();
  c.close();
  EXPECT_TRUE(soon([&] {
    RawConnection d(port_);
    d.send(health);
    return d.read_until("\"}").find("200 OK") != std::string::npos;
  }));
}

TEST_F(ServerTest, a_client_that_goes_while_it_polls_is_seen_to_be_gone) {
  start();
  RawConnection connection(port_);
  connection.send(post("/api/v1/workers/q/jobs:poll", R"({"wait_ms":60000,"worker":"w"})"));
  ASSERT_TRUE(inbox_.wait_for<Poll>());
  const auto waiter = inbox_.held();
  EXPECT_FALSE(waiter->gone());
  connection.close();
  EXPECT_TRUE(soon([&] { return waiter->gone(); }));
  Handout task;
  task.task_id = "t";
  task.lease = "L";
  waiter->deliver(PollReply{{task}});
  const auto returned = inbox_.wait_for<ReturnTasks>();
  ASSERT_TRUE(returned);
  EXPECT_EQ(returned->tasks.at(0).task_id, "t");
  EXPECT_EQ(returned->tasks.at(0).lease, "L");
}

TEST_F(ServerTest, a_burst_of_replies_reaches_every_client) {
  start();
  std::vector<std::unique_ptr<RawConnection>> connections;
  std::vector<std::shared_ptr<Waiter>> waiters;
  for (std::size_t i = 0; i < 50; ++i) {
    connections.push_back(std::make_unique<RawConnection>(port_));
    connections.back()->send(post("/api/v1/workers/q/jobs:poll", R"({"wait_ms":60000})"));
    ASSERT_TRUE(soon([&] { return inbox_.count() == i + 1; }));
    ASSERT_TRUE(soon(
        [&] { return inbox_.held() != nullptr && (waiters.empty() || inbox_.held() != waiters.back()); }));
    waiters.push_back(inbox_.held());
  }
  for (auto& waiter : waiters) waiter->deliver(PollReply{});
  for (auto& connection : connections) {
    EXPECT_NE(connection->read_until("[]}").find("200 OK"), std::string::npos);
  }
}

TEST_F(ServerTest, stopping_answers_polls_closes_idle_and_finishes_what_is_in_flight) {
  start();
  RawConnection idle(port_);
  idle.send(health);
  idle.read_until("ok");
  RawConnection poll(port_);
  poll.send(post("/api/v1/workers/q/jobs:poll", R"({"wait_ms":60000})"));
  ASSERT_TRUE(inbox_.wait_for<Poll>());
  RawConnection submit(port_);
  submit.send(post("/api/v1/jobs", R"({"workflow_id":"w"})"));
  ASSERT_TRUE(inbox_.wait_for<SubmitJob>());
  ASSERT_TRUE(soon([&] { return inbox_.held() != nullptr; }));
  std::thread stopper([&] { stop(); });
  EXPECT_TRUE(poll.read_all().ends_with(R"({"jobs":[]})"));
  EXPECT_TRUE(idle.read_all().ends_with(R"({"status":"ok"})"));
  inbox_.held()->deliver(JobReply{job("j"), true});
  EXPECT_NE(submit.read_all().find("201 Created"), std::string::npos);
  submit.close();
  poll.close();
  stopper.join();
}

TEST_F(ServerTest, stopping_ends_although_the_engine_never_answers_and_clients_are_told) {
  options_.stop_time = 100ms;
  start();
  RawConnection submit(port_);
  submit.send(post("/api/v1/jobs", R"({"workflow_id":"w"})"));
  ASSERT_TRUE(inbox_.wait_for<SubmitJob>());
  ASSERT_TRUE(soon([&] { return inbox_.held() != nullptr; }));
  const auto waiter = inbox_.held();
  stop();
  const auto seen = submit.read_all();
  EXPECT_TRUE(seen.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) << seen;
  EXPECT_NE(seen.find("may or may not have happened"), std::string::npos) << seen;
  EXPECT_TRUE(seen.ends_with("}")) << seen;
  waiter->deliver(JobReply{job("j"), true});  // too late, and harmless
}

TEST_F(ServerTest, a_submitter_that_waits_hears_the_state_of_its_job_when_the_server_stops) {
  inbox_.answer([](const Command& command) -> std::optional<Reply> {
    if (const auto* look = std::get_if<AwaitJob>(&command)) return JobReply{job(look->job_id.value), false};
    return std::nullopt;
  });
  start();
  RawConnection submit(port_);
  submit.send(post("/api/v1/jobs?wait_ms=60000", R"({"workflow_id":"w"})"));
  ASSERT_TRUE(inbox_.wait_for<SubmitJob>());
  std::this_thread::sleep_for(20ms);
  std::thread stopper([&] { stop(); });
  EXPECT_NE(submit.read_all().find("RUNNING"), std::string::npos);
  submit.close();
  stopper.join();
}

TEST_F(ServerTest, the_client_keeps_its_connection_and_survives_a_restart) {
  start();
  Client client(url());
  EXPECT_EQ(client.request("GET", "/healthz")->status, 200);
  EXPECT_EQ(client.request("GET", "/healthz")->status, 200);
  const auto metrics = client.request("GET", "/metrics");
  EXPECT_NE(metrics->body.find("baton_http_connections 1"), std::string::npos);
  stop();
  const auto refused = client.request("GET", "/healthz");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "cannot connect to " + url() + ": connection refused\n  Is `baton serve` running?");
}

TEST_F(ServerTest, the_client_tells_a_wrong_url_and_a_late_answer) {
  EXPECT_EQ(Client("127.0.0.1:80").request("GET", "/").error().code, Code::invalid);
  start();
  Client client(url());
  const auto late =
      client.request("POST", "/api/v1/jobs", R"({"workflow_id":"w"})", "application/json", {}, 100ms);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("no answer in time"), std::string::npos);
  inbox_.held()->deliver(JobReply{job("j"), true});
}

}  // namespace
}  // namespace baton::http
