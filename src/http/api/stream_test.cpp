// Streams: what they tell, to whom, from where on, and when they end.
#include "http/api/routes.hpp"
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

using namespace std::chrono_literals;

const std::string job_1 = "01a1e6b2-70e6-7c4d-9a11-5ffb7e3c2b01",
                  job_2 = "01a1e6b2-70e6-7c4d-9a11-5ffb7e3c2b02",
                  call_1 = "01a1e6b2-70e6-7c4d-9a11-5ffb7e3c2b03";

class StreamTest : public ServerTest {
 protected:
  // A stream is open when its first block is here.
  std::unique_ptr<RawConnection> open(const std::string& query = "", const std::string& headers = "") {
    auto connection = std::make_unique<RawConnection>(port_);
    connection->send("GET /api/v1/stream" + query + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
    connection->read_until("\n\n");
    return connection;
  }
  // Starts a server on which one token is known, and opens a stream with that.
  std::unique_ptr<RawConnection> open_with_token() {
    options_.access = Access::required;
    EXPECT_TRUE(tokens_.add({.token_id = "t", .token_hash = token_hash("t"), .role = Role::viewer}));
    start();
    return open("", "Authorization: Bearer t\r\n");
  }
  static baton::Change of_job(std::string_view id, std::string_view tenant = "default") {
    return {.subject = Subject::Type::job, .tenant = tenant, .id = id, .what = "job_started"};
  }
  static int count(const std::string& text, std::string_view part) {
    int found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  static std::string last_id(const std::string& text) {
    const auto at = text.rfind("\nid: ") + 5;
    return text.substr(at, text.find('\n', at) - at);
  }
  // Ends the stream and answers all that it said.
  std::string rest(RawConnection& connection) {
    publish({of_job("last")});
    return connection.read_until("\"id\":\"last\"");
  }
};

TEST_F(StreamTest, a_change_is_told_with_its_fields) {
  start();
  const auto stream = open();
  publish({{.subject = Subject::Type::job,
            .tenant = "default",
            .id = "j1",
            .what = "node_completed",
            .status = "RUNNING",
            .node = "a\"b",
            .workflow_id = "w",
            .version = 2}});
  const std::string text = stream->read_until("\"commit\":1}\n\n");
  EXPECT_NE(text.find("Content-Type: text/event-stream\r\n"), text.npos);
  EXPECT_EQ(text.find("Content-Length"), text.npos);
  EXPECT_NE(text.find("event: job\nid: s1-1-1\ndata: {\"kind\":\"job\",\"id\":\"j1\",\"what\":\"node_completed\","
                      "\"status\":\"RUNNING\",\"node_id\":\"a\\\"b\",\"workflow_id\":\"w\",\"version\":2,"
                      "\"tenant\":\"default\",\"at\":\""),
            text.npos)
      << text;
}

TEST_F(StreamTest, topics_choose_what_is_told) {
  runbook::Writes writes;
  writes.runbooks_new = {{.id = 5, .name = "move", .version = 1}};
  commit(writes);
  start();
  const auto jobs = open("?topic=job:" + job_1 + "&topic=call:" + call_1);
  const auto batch = open("?topic=batch:7");
  const auto runbook = open("?topic=runbook:move");
  const auto queues = open("?topic=queues");
  const auto queue = open("?topic=queue:q2");
  publish({of_job(job_1), of_job(job_2)});
  publish({{.subject = Subject::Type::call, .tenant = "default", .id = call_1, .what = "x"}});
  publish({{.subject = Subject::Type::batch, .tenant = "default", .id = "7", .what = "progress"}});
  publish({{.subject = Subject::Type::batch, .tenant = "default", .id = "8", .what = "created", .runbook_id = 5}});
  publish({{.subject = Subject::Type::batch, .tenant = "default", .id = "9", .what = "created", .runbook_id = 6}});
  // A new version, and at once a batch of it.
  publish({{.subject = Subject::Type::runbook, .tenant = "default", .id = "move", .what = "published", .runbook_id = 6}});
  publish({{.subject = Subject::Type::batch, .tenant = "default", .id = "10", .what = "created", .runbook_id = 6}});
  publish({{.subject = Subject::Type::queue, .tenant = "default", .id = "q1", .what = "changed"},
           {.subject = Subject::Type::queue, .tenant = "default", .id = "q2", .what = "changed"}});

  std::string text = jobs->read_until("\"id\":\"" + call_1 + "\"");
  EXPECT_EQ(count(text, "event: "), 2);
  EXPECT_EQ(count(text, "\"id\":\"" + job_1 + "\""), 1);
  EXPECT_EQ(count(batch->read_until("\"id\":\"7\""), "event: "), 1);
  text = runbook->read_until("\"id\":\"10\"");
  EXPECT_EQ(count(text, "\"id\":\"8\"") + count(text, "\"id\":\"10\"") + count(text, "\"id\":\"move\""), 3) << text;
  EXPECT_EQ(count(text, "event: "), 3) << text;
  EXPECT_EQ(count(queues->read_until("\"id\":\"q2\""), "event: "), 2);
  EXPECT_EQ(count(queue->read_until("\"id\":\"q2\""), "event: "), 1);
}

TEST_F(StreamTest, a_change_of_several_topics_is_told_once) {
  start();
  const auto stream = open("?topic=job:" + job_1 + "&topic=all&topic=job:" + job_1);
  publish({of_job(job_1)});
  EXPECT_EQ(count(rest(*stream), "\"id\":\"" + job_1), 1);
}

TEST_F(StreamTest, nobody_hears_of_another_tenant) {
  options_.access = Access::required;
  const auto add = [&](const std::string& token, std::optional<std::string> tenant) {
    Token stored{.token_id = token, .token_hash = token_hash(token), .role = Role::viewer};
    if (tenant) stored.tenant = workflow::Tenant{*tenant};
    EXPECT_TRUE(tokens_.add(stored));
  };
  add("acme", "acme"), add("any", std::nullopt);
  start();
  const std::string acme = "Authorization: Bearer acme\r\n";
  const auto mine = open("?topic=job:" + job_1 + "&topic=call:" + call_1 + "&topic=queues&topic=all", acme);
  const auto named = open("", "Authorization: Bearer any\r\nBaton-Tenant: acme\r\n");
  publish(
      {of_job(job_1), {.subject = Subject::Type::call, .tenant = "default", .id = call_1, .what = "theirs"}});
  publish({{.subject = Subject::Type::queue, .tenant = "default", .id = "theirs", .what = "changed"},
           {.subject = Subject::Type::batch, .tenant = "default", .id = "theirs", .what = "changed"}});
  publish({of_job("ours", "acme")});
  for (const auto& stream : {&mine, &named}) {
    const std::string text = (*stream)->read_until("\"id\":\"ours\"");
    EXPECT_EQ(count(text, "event: "), 1) << text;
    EXPECT_EQ(count(text, "theirs") + count(text, job_1) + count(text, call_1), 0) << text;
  }
  const Client::Headers as_acme{{"Authorization", "Bearer acme"}};
  EXPECT_EQ(ask("GET", "/api/v1/stream?topic=batch:1", {}, as_acme).status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/stream?topic=runbook:move", {}, as_acme).status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/stream", {}, {{"Authorization", "Bearer acme"}, {"Baton-Tenant", "default"}}).status,
            403);
  // Nor does resuming with an id of somebody else's stream show more.
  const auto resumed = open("?last_event_id=s1-0-0", acme);
  EXPECT_EQ(count(resumed->read_until("\"id\":\"ours\""), "theirs"), 0);
}

TEST_F(StreamTest, wrong_topics_are_refused) {
  start();
  for (const std::string topic : {"nonsense", "job:", "node:1", "", "job:abc", "call:1", "batch:abc",
                                  "batch:-1", "batch:0", "batch:1x", "runbook:", "queue:", "step:7", "workflow:w"})
    EXPECT_EQ(ask("GET", "/api/v1/stream?topic=" + topic).status, 422) << topic;
  const auto unknown = ask("GET", "/api/v1/stream?topic=step:7");
  EXPECT_NE(unknown.body.find("all, queues, job:ID, runbook:NAME, batch:NUMBER, call:ID, queue:NAME"), std::string::npos)
      << unknown.body;
}

TEST_F(StreamTest, unknown_parameters_are_refused) {
  start();
  const auto refused = ask("GET", "/api/v1/stream?topics=all");
  EXPECT_EQ(refused.status, 422);
  EXPECT_NE(refused.body.find("topic, last_event_id"), std::string::npos) << refused.body;
}

TEST_F(StreamTest, a_stream_resumes_after_the_last_id_within_a_commit_too) {
  start();
  for (int i = 0; i < 1'000; ++i) publish({of_job("a" + std::to_string(i)), of_job("b" + std::to_string(i))});
  const auto stream = open("?last_event_id=s1-10-1");
  const std::string text = rest(*stream);
  EXPECT_EQ(count(text, "event: gap"), 0);
  EXPECT_EQ(count(text, "event: job"), 1 + 2 * 990 + 1);
  EXPECT_EQ(count(text, "\"id\":\"a9\""), 0);
  EXPECT_EQ(count(text, "\"id\":\"b9\""), 1);
  const auto from_header = open("", "Last-Event-ID: s1-999-2\r\n");
  EXPECT_EQ(count(from_header->read_until("\"id\":\"last\""), "event: job"), 2 + 1);
  // A browser that reconnects sends the header, and the address that it was given at first.
  const auto again = open("?last_event_id=s1-10-1", "Last-Event-ID: s1-999-2\r\n");
  EXPECT_EQ(count(again->read_until("\"id\":\"last\""), "event: job"), 2 + 1);
}

TEST_F(StreamTest, a_long_resume_tells_all_in_order_and_lets_others_through) {
  start();
  for (int i = 0; i < 300; ++i) {
    std::vector<baton::Change> changes(200, of_job("other"));
    changes.push_back(of_job(i % 100 == 0 ? job_1 : job_2));
    publish(changes);
  }
  const auto stream = open("?last_event_id=s1-0-0&topic=job:" + job_1);
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  const std::string text = stream->read_until("\"commit\":201}");
  EXPECT_EQ(count(text, "event: job"), 3) << text;
  EXPECT_EQ(last_id(text), "s1-201-201");
  EXPECT_EQ(count(text, "event: gap"), 0);
}

TEST_F(StreamTest, a_gap_is_told) {
  start();
  publish({of_job("j")});
  EXPECT_NE(open("?last_event_id=s0-1-1")->read_until("\n\n").find("event: gap\ndata: {\"why\":\"restarted\"}"),
            std::string::npos);
  for (const std::string id : {"x", "s1-5-1", "s1--1-1", "-", "--", "s1-1-x", "%ff"}) {
    const std::string text = open("?last_event_id=" + id)->read_until("\n\n");
    EXPECT_EQ(count(text, "event: gap"), 1) << id << "\n" << text;
  }
  EXPECT_EQ(count(open("?last_event_id=s1-1-1")->read_until("\n\n"), "event: gap"), 0);
  for (int i = 0; i < 11'000; ++i) publish({of_job("j")});
  EXPECT_NE(open("?last_event_id=s1-1-1")->read_until("\n\n").find("{\"why\":\"too_far_behind\"}"),
            std::string::npos);
}

TEST_F(StreamTest, heartbeats_keep_the_place_of_a_quiet_stream) {
  options_.heartbeat_time = 50ms;
  start();
  const auto stream = open("?topic=job:" + job_1);
  publish({of_job("other")});
  publish({of_job("other")});
  const std::string text = stream->read_until(": heartbeat", 3);
  EXPECT_EQ(count(text, "event: "), 0);
  EXPECT_EQ(last_id(stream->read_until(": heartbeat\nid: s1-2-", 1)).substr(0, 5), "s1-2-");
}

TEST_F(StreamTest, a_slow_reader_is_cut_off) {
  options_.write_time = 300ms;
  start();
  const auto stream = open();
  const std::string large(2'000, 'x');
  for (int i = 0; i < 20'000; ++i) publish({of_job(large)});
  const auto& cut = metrics_.counter("baton_streams_cut_total", "");
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (cut.value() == 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(5ms);
  EXPECT_GE(cut.value(), 1U);
  // Others are not held up.
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  const auto& open_streams = metrics_.gauge("baton_streams", "");
  while (open_streams.value() != 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(open_streams.value(), 0);
}

TEST_F(StreamTest, a_commit_that_is_too_large_to_tell_is_a_gap) {
  start();
  const auto stream = open("?topic=job:" + job_1);
  publish({of_job(std::string(5 << 20, 'x'))});
  EXPECT_NE(stream->read_until("too_much").find("event: gap"), std::string::npos);
}

TEST_F(StreamTest, the_end_of_the_server_ends_streams_with_a_word) {
  start();
  const auto stream = open();
  const auto began = std::chrono::steady_clock::now();
  stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_NE(stream->read_all().find("event: end\ndata: {\"why\":\"stopping\"}"), std::string::npos);
}

TEST_F(StreamTest, a_client_that_goes_frees_its_stream) {
  start();
  auto stream = open();
  const auto& open_streams = metrics_.gauge("baton_streams", "");
  EXPECT_EQ(open_streams.value(), 1);
  stream->close();
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (open_streams.value() != 0 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(open_streams.value(), 0);
}

TEST_F(StreamTest, a_revoked_token_ends_its_stream) {
  options_.heartbeat_time = 50ms;
  options_.token_cache_time = 10ms;
  const auto stream = open_with_token();
  stream->read_until(": heartbeat", 2);
  EXPECT_EQ(tokens_.revoke("t", Time{}), true);
  EXPECT_NE(stream->read_all().find("event: end\ndata: {\"why\":\"unauthorized\"}"), std::string::npos);
}

// Told with every change and not only when nothing happens.
TEST_F(StreamTest, a_revoked_token_ends_a_busy_stream) {
  options_.token_cache_time = 100ms;
  const auto stream = open_with_token();
  std::thread busy([&] {
    for (int i = 0; i < 2'000; ++i) {
      publish({of_job("j")});
      std::this_thread::sleep_for(1ms);  // busy for two seconds, far longer than a token is believed
    }
  });
  stream->read_until("event: job", 300);  // longer than the cache's time
  EXPECT_EQ(tokens_.revoke("t", Time{}), true);
  const std::string text = stream->read_all();
  busy.join();
  EXPECT_NE(text.find("event: end\ndata: {\"why\":\"unauthorized\"}"), std::string::npos);
  EXPECT_LT(count(text, "event: job"), 1'500);
}

TEST_F(StreamTest, a_token_that_cannot_be_looked_up_holds_a_stream_and_does_not_end_it) {
  options_.heartbeat_time = 50ms;
  options_.token_cache_time = 20ms;
  const auto stream = open_with_token();
  stream->read_until(": heartbeat", 2);
  token_breaks_ = 1'000'000;
  std::this_thread::sleep_for(50ms);  // more than the cache's time: the token is looked up before the next change is told
  publish({of_job("j")});
  std::string text = stream->read_until(": heartbeat", 8);
  EXPECT_EQ(count(text, "event: "), 0) << text;
  token_breaks_ = 0;
  text = stream->read_until("event: job");
  EXPECT_EQ(count(text, "event: job"), 1) << text;
  EXPECT_EQ(count(text, "event: end"), 0) << text;
}

TEST_F(StreamTest, a_tenant_leaves_streams_to_the_others) {
  options_.connections_max = 100;
  start();
  std::vector<std::unique_ptr<RawConnection>> mine;
  for (int i = 0; i < 8; ++i) mine.push_back(open("", "Baton-Tenant: acme\r\n"));
  const auto refused = ask("GET", "/api/v1/stream", {}, {{"Baton-Tenant", "acme"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(code(refused), "too_many_streams");
  EXPECT_NE(refused.body.find("the tenant 'acme' has 8 streams"), std::string::npos) << refused.body;
  EXPECT_EQ(count(open()->read_until("\n\n"), "200 OK"), 1);
  // One that ends makes room.
  mine.pop_back();
  const auto& open_streams = metrics_.gauge("baton_streams", "");
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (open_streams.value() > 7 && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(5ms);
  EXPECT_EQ(count(open("", "Baton-Tenant: acme\r\n")->read_until("\n\n"), "200 OK"), 1);
}

TEST_F(StreamTest, many_streams_hear_everything_once_and_in_order) {
  options_.connections_max = 2'000;
  start();
  std::vector<std::unique_ptr<RawConnection>> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(open());
  for (int i = 0; i < 500; ++i) publish({of_job("a"), of_job("b")});
  for (const auto& stream : streams) {
    const std::string text = stream->read_until("id: s1-500-2\n");
    int expected = 0;
    for (int i = 1; i <= 500; ++i)
      for (const char* place : {"-1\n", "-2\n"})
        expected += count(text, "id: s1-" + std::to_string(i) + place);
    EXPECT_EQ(expected, 1'000);
    EXPECT_EQ(count(text, "event: job"), 1'000);
  }
}

TEST_F(StreamTest, streams_leave_connections_for_others) {
  options_.connections_max = 6;
  start();
  const auto first = open(), second = open(), third = open();
  EXPECT_EQ(code(ask("GET", "/api/v1/stream")), "too_many_streams");
}

}  // namespace
}  // namespace baton::http
