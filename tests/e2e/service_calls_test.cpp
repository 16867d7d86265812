// What users do with service calls: submit, look, cancel, put off, repeat; and what is refused.
#include <algorithm>
#include <fstream>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/service_calls.hpp"

namespace baton::e2e {
namespace {

using ServiceCalls = ServiceCallsTest;

TEST_F(ServiceCalls, AreMadeOnceAtTheirTime) {
  Server server(options(data_.path()));
  auto client = server.client();
  const Time due = now() + 700ms;
  const Answer made = ask(client, "POST", calls(), json::serialize(call("/a", due)));
  ASSERT_EQ(made.status, 202) << json::serialize(made.body);
  EXPECT_EQ(made.text("status"), "Scheduled");
  const Answer done = ended(client, made.text("serviceCallId"));
  EXPECT_EQ(done.text("status"), "Succeeded") << json::serialize(done.body);
  EXPECT_EQ(types(done), "ServiceCallSubmitted ServiceCallScheduled ExecutionStarted ExecutionSucceeded");
  EXPECT_EQ(done.body.at("responseMeta").at("status").as_int64(), 200);
  EXPECT_EQ(seen("/a"), 1);
  EXPECT_GE(first_seen_["/a"], due);
}

TEST_F(ServiceCalls, ThatAreDueBeginInTheCommitThatStoresThem) {
  Server server(options(data_.path(), {"--calls-max", "4"}));
  auto client = server.client();
  ended(client, submit(client, call("/first"), "warm"), "warm");  // by now whoever makes the calls has begun
  const Answer made = ask(client, "POST", calls(), json::serialize(call("/hold-1")));
  EXPECT_EQ(made.text("status"), "Running") << json::serialize(made.body);
  // Two of four places are the tenant's: the third call has none.
  EXPECT_EQ(ask(client, "POST", calls(), json::serialize(call("/hold-2"))).text("status"), "Running");
  const Answer waits = ask(client, "POST", calls(), json::serialize(call("/hold-3")));
  EXPECT_EQ(waits.text("status"), "Scheduled") << json::serialize(waits.body);
  ASSERT_TRUE(wait_for_seen(3));
  EXPECT_EQ(seen("/hold-3"), 0);
  submit(client, call("/hold-4"), "zeta");
  ASSERT_TRUE(wait_for_seen(4)) << "another tenant has a place";
  let_go();
  const Answer done = ended(client, made.text("serviceCallId"));
  EXPECT_EQ(types(done), "ServiceCallSubmitted ServiceCallScheduled ExecutionStarted ExecutionSucceeded");
  EXPECT_EQ(done.text("startedAt"), done.text("submittedAt"));
  EXPECT_EQ(ended(client, waits.text("serviceCallId")).text("status"), "Succeeded");
  for (const char* path : {"/first", "/hold-1", "/hold-2", "/hold-3", "/hold-4"})
    EXPECT_EQ(seen(path), 1) << path;
}

TEST_F(ServiceCalls, ThatAreSubmittedAgainKeepNoPlace) {
  Server server(options(data_.path(), {"--calls-max", "2"}));
  auto client = server.client();
  json::object body = call("/k");
  body["idempotencyKey"] = "k";
  ended(client, submit(client, body));
  for (int i = 0; i < 5; ++i) submit(client, body);
  EXPECT_EQ(ended(client, submit(client, call("/after"))).text("status"), "Succeeded");
  EXPECT_EQ(seen("/k"), 1);
}

TEST_F(ServiceCalls, MayNameTheTenantOfThePath) {
  Server server(options(data_.path()));
  auto client = server.client();
  json::object body = call("/t", now() + 1h);
  body["tenantId"] = "acme";
  EXPECT_EQ(submit(client, body).size(), 36U);
  body["tenantId"] = "other";
  const Answer wrong = ask(client, "POST", calls(), json::serialize(body));
  EXPECT_EQ(wrong.status, 422);
  EXPECT_NE(json::serialize(wrong.body).find("'other', but the path is for 'acme'"), std::string::npos)
      << json::serialize(wrong.body);
  EXPECT_EQ(ask(client, "POST", calls() + ":batch", "[" + json::serialize(body) + "]").status, 422);
}

TEST_F(ServiceCalls, TellOfWhichSortAFailureIs) {
  Server server(options(data_.path()));
  auto client = server.client();
  const auto outcome = [&](const json::object& body) {
    const Answer made = ask(client, "POST", calls(), json::serialize(body));
    EXPECT_EQ(made.status, 202) << json::serialize(made.body);
    return kind(ended(client, made.text("serviceCallId")));
  };
  EXPECT_EQ(outcome(call("/bad")), "HttpError");
  json::object refused = call("/x");
  refused["requestSpec"].as_object()["url"] = "http://127.0.0.1:1/";
  EXPECT_EQ(outcome(refused), "NetworkError");
  refused["requestSpec"].as_object()["url"] = "http://169.254.169.254/latest/meta-data";
  EXPECT_EQ(outcome(refused), "EgressDenied");
  delay_ms_ = 2'000;
  json::object slow = call("/slow");
  slow["requestSpec"].as_object()["timeoutMs"] = 100;
  EXPECT_EQ(outcome(slow), "Timeout");
}

TEST_F(ServiceCalls, ThatCannotBeMadeAreRefusedAtOnce) {
  Server server(options(data_.path()));
  auto client = server.client();
  const auto status = [&](const std::string& spec) {
    return ask(client, "POST", calls(), R"({"name":"x","requestSpec":)" + spec + "}").status;
  };
  EXPECT_EQ(status(R"({"url":"ftp://a.example/"})"), 422);
  EXPECT_EQ(status(R"({"url":"http://user:secret@a.example/"})"), 422);
  EXPECT_EQ(status(R"({"url":"http://2130706433/"})"), 422);
  EXPECT_EQ(status(R"({"url":"http://a.example/","method":"CONNECT"})"), 422);
  EXPECT_EQ(status(R"({"url":"http://a.example/","headers":{"X":"a\r\nHost: b"}})"), 422);
  EXPECT_EQ(status(R"({"url":"http://a.example/","headers":{"Host":"b"}})"), 422);
  EXPECT_EQ(status(R"({"url":"http://a.example/","timeout":5})"), 422) << "a field that nobody knows";
  EXPECT_EQ(status(R"({"url":"http://a.example/","probe":{"url":"http://a.example/","method":"POST"}})"),
            422);
  EXPECT_EQ(
      status(R"({"url":"http://a.example/","probe":{"url":"http://a.example/","headers":{"X":"a\r\nb"}}})"),
      422);
  EXPECT_EQ(status(R"({"url":"http://a.example/","bodyBase64":"a"})"), 422);
  EXPECT_EQ(status(R"({})"), 422);
  EXPECT_EQ(
      ask(client, "POST", calls(), R"({"name":"x","dueAt":null,"requestSpec":{"url":"http://a.example/"}})")
          .status,
      422);
  EXPECT_EQ(status(R"("http://a.example/")"), 422);
  EXPECT_EQ(ask(client, "POST", calls(), "[]").status, 422);
  EXPECT_EQ(ask(client, "GET", calls()).body.at("serviceCalls").as_array().size(), 0U);
}

TEST_F(ServiceCalls, AreCancelledRescheduledAndRepeated) {
  Server server(options(data_.path()));
  auto client = server.client();
  const std::string gone = submit(client, call("/gone", now() + 1h)),
                    later = submit(client, call("/later", now() + 1h));
  const Answer cancelled = ask(client, "POST", calls() + "/" + gone + "/cancel", R"({"by":"ada"})");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(kind(cancelled), "Cancelled");
  EXPECT_EQ(ask(client, "POST", calls() + "/" + gone + "/cancel", "{}").status, 409);
  EXPECT_EQ(ask(client, "POST", calls() + "/" + later + "/repeat", "{}").status, 409) << "it has not ended";
  EXPECT_EQ(ask(client, "POST", calls() + "/" + later + "/reschedule",
                R"({"by":"bo","reason":"too late","dueAt":")" + to_iso(now()) + "\"}")
                .status,
            200);
  EXPECT_EQ(ended(client, later).text("status"), "Succeeded");
  EXPECT_EQ(ended(client, later).body.at("timeline").at(2).at("data").at("by").as_string(), "bo");
  const auto repeat = [&] {
    return ask(client, "POST", calls() + "/" + later + "/repeat", "{}", "application/json",
               {{"Idempotency-Key", "r1"}});
  };
  const Answer again = repeat();
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(again.text("repeatOf"), later);
  EXPECT_EQ(repeat().text("serviceCallId"), again.text("serviceCallId")) << "the answer was lost, say";
  EXPECT_EQ(ended(client, again.text("serviceCallId")).text("status"), "Succeeded");
  EXPECT_EQ(
      ask(client, "POST", calls() + "/" + later + "/repeat", R"({"dueat":"2099-01-01T00:00:00Z"})").status,
      422);
  EXPECT_EQ(ask(client, "POST", calls() + "/no-such-call/repeat", "{}").status, 404);
  EXPECT_EQ(ask(client, "GET", "/tenants/other/service-calls/" + later).status, 404);
  EXPECT_EQ(seen("/gone"), 0);
  EXPECT_EQ(seen("/later"), 2);
}

TEST_F(ServiceCalls, WithTheSameKeyAreOne) {
  Server server(options(data_.path()));
  auto client = server.client();
  json::object body = call("/k");
  body["idempotencyKey"] = "k1";
  const std::string first = ask(client, "POST", calls(), json::serialize(body)).text("serviceCallId");
  EXPECT_EQ(ask(client, "POST", calls(), json::serialize(body)).text("serviceCallId"), first);
  body["name"] = "another";
  EXPECT_EQ(ask(client, "POST", calls(), json::serialize(body)).status, 409);
  EXPECT_EQ(ended(client, first).text("status"), "Succeeded");
  EXPECT_EQ(seen("/k"), 1);
}

TEST_F(ServiceCalls, MayDifferInNothingWithTheSameKey) {
  Server server(options(data_.path()));
  auto client = server.client();
  json::object body = call("/k", now() + 1h);
  body["idempotencyKey"] = "k";
  submit(client, body);
  const auto with = [&](std::string_view field, const json::value& value) {
    json::object other = body;
    other["requestSpec"].as_object()[field] = value;
    return ask(client, "POST", calls(), json::serialize(other));
  };
  EXPECT_EQ(with("timeoutMs", 5).text("code"), "idempotency_key_reused");
  EXPECT_EQ(with("redirects", 1).status, 409);
  EXPECT_EQ(with("body", "x").status, 409);
  json::object traced = body;
  traced["correlationId"] = "c";
  EXPECT_EQ(ask(client, "POST", calls(), json::serialize(traced)).status, 409);
  EXPECT_EQ(with("method", "POST").status, 202) << "it is the same";
  const auto with_headers = [&](const std::string& headers) {
    return ask(
        client, "POST", calls(),
        R"({"name":"h","idempotencyKey":"h","dueAt":"2099-01-01T00:00:00Z","requestSpec":{"url":"http://a.example/","headers":)" +
            headers + "}}");
  };
  EXPECT_EQ(with_headers(R"({"A":"1","B":"2"})").text("serviceCallId"),
            with_headers(R"({"B":"2","A":"1"})").text("serviceCallId"));
  // A delay is the same an hour later.
  json::object delayed{{"name", "d"},
                       {"delaySeconds", 3600},
                       {"idempotencyKey", "d"},
                       {"requestSpec", {{"url", sink_.url()}}}};
  EXPECT_EQ(submit(client, delayed), submit(client, delayed));
}

TEST_F(ServiceCalls, ComeManyAtOnce) {
  Server server(options(data_.path()));
  auto client = server.client();
  const std::string one = json::serialize(call("/one")), two = json::serialize(call("/two"));
  const auto made = [&](const std::string& body, std::string_view type = "application/json",
                        const http::Client::Headers& headers = {}) {
    return ask(client, "POST", calls() + ":batch", body, type, headers);
  };
  EXPECT_EQ(made("[" + one + "," + two + "]").body.at("calls").as_array().size(), 2U);
  EXPECT_EQ(made("{\"calls\":[" + one + "]}").body.at("calls").at(0).at("created").as_bool(), true);
  EXPECT_EQ(made(one + "\n\n" + two + "\r\n", "application/x-ndjson").body.at("calls").as_array().size(), 2U);
  const Answer wrong = made(one + "\n{\"name\":1}\nnot json", "application/x-ndjson");
  EXPECT_EQ(wrong.status, 422);
  const std::string errors = json::serialize(wrong.body.at("errors"));
  EXPECT_NE(errors.find("line 2.name"), std::string::npos) << errors;
  EXPECT_NE(errors.find("line 2.requestSpec"), std::string::npos) << errors;
  EXPECT_NE(errors.find("line 3"), std::string::npos) << errors;
  EXPECT_EQ(made("[]").status, 422);
  EXPECT_EQ(made("{\"dueAt\":\"2099-01-01T00:00:00Z\",\"calls\":[" + one + "]}").status, 422);
  EXPECT_EQ(made("[" + one + "]", "application/json", {{"Idempotency-Key", "k"}}).status, 422);
  std::string many = "[" + one;
  for (int i = 0; i < 1'000; ++i) many += "," + one;
  EXPECT_EQ(made(many + "]").status, 422);
  // One that is refused does not keep the others from being made.
  json::object first = call("/x", now() + 1h), other = call("/y", now() + 1h);
  first["idempotencyKey"] = other["idempotencyKey"] = "same";
  const Answer mixed = made("[" + json::serialize(first) + "," + json::serialize(other) + "]");
  EXPECT_EQ(mixed.status, 202);
  EXPECT_EQ(mixed.body.at("calls").at(1).at("code").as_string(), "idempotency_key_reused");
  EXPECT_EQ(ask(client, "GET", calls() + "?limit=200").body.at("serviceCalls").as_array().size(), 6U);
}

TEST_F(ServiceCalls, AreListedPageByPageWhileOthersCome) {
  Server server(options(data_.path()));
  auto client = server.client();
  for (int i = 0; i < 6; ++i) submit(client, call("/c" + std::to_string(i), now() + 1h * (6 - i)));
  const auto names = [&](std::string query) {
    std::string all, cursor;
    for (int page = 0; page < 5; ++page) {
      const Answer answer =
          ask(client, "GET", calls() + "?limit=2&" + query + (cursor.empty() ? "" : "&cursor=" + cursor));
      for (const auto& each : answer.body.at("serviceCalls").as_array())
        all += std::string(each.at("name").as_string()).back();
      cursor = answer.find_text("nextCursor").value_or("");
      if (cursor.empty()) break;
      if (page == 0) submit(client, call("/new", now() + 20h));
    }
    return all;
  };
  std::string all = names("status=Scheduled");  // newest first; those of one millisecond in any order
  std::ranges::sort(all);
  EXPECT_EQ(all, "012345");
  EXPECT_EQ(names("dueFrom=" + to_iso(now()) + "&dueUntil=" + to_iso(now() + 9h)), "543210")
      << "the earliest first";
  EXPECT_EQ(ask(client, "GET", calls() + "?cursor=x").status, 422);
  EXPECT_EQ(ask(client, "GET", calls() + "?name=%ff").status, 422);
  EXPECT_EQ(ask(client, "POST", calls() + "/%ff/cancel", "{}").status, 404);
}

TEST_F(ServiceCalls, ShowNoSecrets) {
  Server server(options(data_.path()));
  auto client = server.client();
  json::object body = call("/a?api_key=s3cret&n=1");
  body["name"] = "secretive";
  body["requestSpec"].as_object()["headers"] = {
      {"Authorization", "Bearer s3cret"}, {"X-Session-Id", "s3cret"}, {"X-A", "b"}};
  body["requestSpec"].as_object()["body"] = "s3cret";
  body["requestSpec"].as_object()["probe"] = {{"url", sink_.url() + "/p?token=s3cret"},
                                              {"headers", {{"Cookie", "s3cret"}}}};
  const Answer made = ask(client, "POST", calls(), json::serialize(body));
  const Answer done = ended(client, made.text("serviceCallId"));
  EXPECT_EQ(done.text("status"), "Succeeded");
  const Answer list = ask(client, "GET", calls());
  for (const Answer* answer : {&made, &done, &list})
    EXPECT_EQ(json::serialize(answer->body).find("s3cret"), std::string::npos)
        << json::serialize(answer->body);
  EXPECT_EQ(seen("/a?api_key=s3cret&n=1"), 1) << "the other side is told";
  const auto& spec = done.body.at("requestSpec");
  EXPECT_EQ(spec.at("url").as_string(), sink_.url() + "/a?api_key=[redacted]&n=1");
  EXPECT_EQ(spec.at("headers").at("X-A").as_string(), "b");
  EXPECT_TRUE(server.process().err().find("s3cret") == std::string::npos);
}

TEST_F(ServiceCalls, AreOfOneTenantEach) {
  const auto token =
      baton({"token", "create", "--role", "operator", "--tenant", "acme", "--data", data_.path(), "--json"});
  const std::string secret(json::parse(token.out).at("token").as_string());
  Server server(options(data_.path()));
  auto client = http::Client(server.url(), secret);
  const std::string id = submit(client, call("/a", now() + 1h));
  EXPECT_EQ(ask(client, "GET", calls("-") + "/" + id).text("tenantId"), "acme") << "- is the token's tenant";
  for (const std::string& path : {std::string(), "/" + id})
    EXPECT_EQ(ask(client, "GET", calls("other") + path).status, 403);
  EXPECT_EQ(ask(client, "POST", calls("other"), json::serialize(call("/b"))).status, 403);
  EXPECT_EQ(ask(client, "POST", calls("other") + "/" + id + "/cancel", "{}").status, 403);
  const Ran listed = baton({"call", "list", "--server", server.url(), "--token", secret});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_NE(listed.out.find(id), std::string::npos) << listed.out;
}

TEST_F(ServiceCalls, HaveACommandForEachThing) {
  Server server(options(data_.path()));
  const auto call_ = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "call");
    arguments.insert(arguments.end(), {"--server", server.url()});
    return baton(std::move(arguments));
  };
  const Ran made = call_({"submit", sink_.url() + "/cli", "-d", "hello", "-H", "X-A: b", "--tag", "t", "--in",
                          "1h", "--key", "k"});
  ASSERT_EQ(made.code, 0) << made.err;
  const std::string id = made.out.substr(0, made.out.find(' '));
  EXPECT_EQ(call_({"submit", sink_.url() + "/cli", "-d", "hello", "-H", "X-A: b", "--tag", "t", "--in", "1h",
                   "--key", "k"})
                .out.substr(0, 36),
            id);
  EXPECT_NE(call_({"list", "--tag", "t"}).out.find(id), std::string::npos);
  EXPECT_EQ(call_({"reschedule", id, "--in", "0"}).code, 0);
  const Ran watched = call_({"watch", id});
  EXPECT_EQ(watched.code, 0) << watched.err;
  EXPECT_NE(watched.out.find("Succeeded"), std::string::npos) << watched.out;
  EXPECT_EQ(seen("/cli"), 1);
  const Ran bad = call_({"submit", sink_.url() + "/bad"});
  EXPECT_EQ(call_({"watch", bad.out.substr(0, 36)}).code, 1) << "it has failed";
  EXPECT_NE(call_({"show", bad.out.substr(0, 36)}).out.find("HttpError"), std::string::npos);
  EXPECT_EQ(json::parse(call_({"watch", id, "--json"}).out).at("status").as_string(), "Succeeded")
      << "once, then it ends";
  EXPECT_EQ(call_({"repeat", id}).code, 0);
  const auto repeat = [&] { return call_({"repeat", id, "--key", "r", "--in", "1h"}).out.substr(0, 36); };
  EXPECT_EQ(repeat(), repeat());
  const Ran later = call_({"submit", sink_.url() + "/never", "--in", "2h"});
  EXPECT_EQ(call_({"cancel", later.out.substr(0, 36), "--reason", "no"}).code, 0);
  EXPECT_EQ(call_({"cancel", later.out.substr(0, 36)}).code, 1);
  const auto file = data_.path() / "calls.ndjson";
  std::string lines;
  for (int i = 0; i < 1'500; ++i) lines += json::serialize(call("/many", now() + 1h)) + "\n";
  std::ofstream(file) << lines;
  const Ran many = call_({"submit-all", file});
  EXPECT_EQ(many.code, 0) << many.err;
  EXPECT_NE(many.out.find("1500 submitted"), std::string::npos) << many.out;
  json::object keyed = call("/keyed", now() + 1h);
  keyed["idempotencyKey"] = "one";
  std::ofstream(file) << json::serialize(json::array{keyed});
  EXPECT_EQ(call_({"submit-all", file}).code, 0);
  keyed["name"] = "another";
  std::ofstream(file) << json::serialize(json::array{keyed});
  const Ran refused = call_({"submit-all", file, "--json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(json::parse(refused.out).at("refused").as_int64(), 1) << refused.out;
  EXPECT_EQ(call_({"submit", "ftp://x"}).code, 1);
  EXPECT_EQ(call_({"submit", sink_.url(), "--in", "soon"}).code, 2);
}

TEST_F(ServiceCalls, CarryAnyBytes) {
  std::string got, head;
  FakeServer sink([&](const FakeServer::Request& request) -> FakeServer::Reply {
    got = request.body, head = request.head;
    return {};
  });
  Server server(options(data_.path()));
  const auto sent = [&](const std::string& bytes) {
    std::ofstream(data_.path() / "bytes", std::ios::binary) << bytes;
    const Ran made = baton({"call", "submit", sink.url(), "-d", "@" + (data_.path() / "bytes").string(), "-H",
                            "X: a", "-H", "x: b", "--server", server.url()});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(baton({"call", "watch", made.out.substr(0, 36), "--server", server.url()}).code, 0);
    std::string body;
    sink.between_requests([&] { body = got; });
    return body;
  };
  using namespace std::string_literals;
  for (const std::string& bytes : {"gr\xc3\xbc\xc3\x9f"s, "\x89PNG\r\n\x1a\n"s, "a\0\xff"s, ""s})
    EXPECT_EQ(sent(bytes), bytes);
  sink.between_requests([&] {
    EXPECT_TRUE(head.starts_with("POST ")) << head;
    EXPECT_NE(head.find("X: a, b"), std::string::npos) << head;
  });
}

TEST_F(ServiceCalls, AreWhatTheirEventsComeTo) {
  {
    Server server(options(data_.path()));
    auto client = server.client();
    for (const char* path : {"/a", "/bad", "/c"}) {
      json::object body = call(path);
      body["tags"] = json::array{"t"};
      ended(client, submit(client, body));
    }
  }
  const auto check = [&] { return baton({"check", "--replay", "--data", data_.path()}); };
  const Ran right = check();
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_NE(right.out.find("3 service calls, 12 events"), std::string::npos) << right.out;
  auto sql = runbook_contract::open_sql(runbook_contract::StoreType::sqlite, (data_.path() / "baton.db").string());
  const auto breaks = [&](const std::string& statement, const std::string& told) {
    sql->exec("BEGIN");
    sql->exec(statement);
    sql->exec("COMMIT");
    const Ran found = check();
    EXPECT_EQ(found.code, 1) << statement;
    EXPECT_NE(found.err.find(told), std::string::npos) << found.err;
  };
  breaks("UPDATE service_calls SET name='other' WHERE name='call /a'", "is not what its events come to");
  breaks("DELETE FROM service_calls WHERE name='other'", "no row");
  breaks(
      "DELETE FROM service_call_requests WHERE service_call_id=(SELECT min(service_call_id) FROM "
      "service_calls)",
      "its request is missing");
  breaks(
      "DELETE FROM service_call_tags WHERE service_call_id=(SELECT max(service_call_id) FROM service_calls)",
      "not found by its tag");
  breaks(
      "DELETE FROM service_call_events WHERE service_call_id=(SELECT max(service_call_id) FROM "
      "service_calls)",
      "no events");
}

}  // namespace
}  // namespace baton::e2e
