// Service calls with the real binary and a real sink: made once, at their time, whatever happens to the server.
#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "base/time.hpp"
#include "tests/e2e/fake_server.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

Time now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

class ServiceCalls : public testing::Test {
 protected:
  static std::vector<std::string> options(const std::string& data) {
    return {"--data", data, "--egress-allow", "127.0.0.1"};
  }
  static const std::string& calls() {
    static const std::string target = "/tenants/acme/service-calls";
    return target;
  }
  [[nodiscard]] json::object call(const std::string& path, std::optional<Time> due = {}) const {
    json::object body{{"name", "call " + path},
                      {"requestSpec", {{"method", "POST"}, {"url", sink_.url() + path}, {"body", {{"n", 1}}}}}};
    if (due) body["dueAt"] = to_iso(*due);
    return body;
  }
  static Answer ended(http::Client& client, const std::string& id) {
    Answer answer;
    for (int look = 0; look < 400; ++look) {
      answer = ask(client, "GET", calls() + "/" + id);
      if (answer.text("status") == "Succeeded" || answer.text("status") == "Failed") break;
      std::this_thread::sleep_for(25ms);  // another process, which has nothing to wait on; 400 looks at most
    }
    return answer;
  }
  static std::string kind(const Answer& answer) {
    const auto& error = answer.body.at("errorMeta");
    return error.is_object() ? std::string(error.at("kind").as_string()) : "";
  }
  static std::string types(const Answer& answer) {
    std::string all;
    for (const auto& event : answer.body.at("timeline").as_array())
      all += (all.empty() ? "" : " ") + std::string(event.at("type").as_string());
    return all;
  }

  support::TemporaryDirectory data_;
  std::mutex mutex_;
  std::map<std::string, int> seen_;  // requests, by path
  std::map<std::string, Time> first_seen_;
  std::atomic<int> delay_ms_ = 0;
  FakeServer sink_{[this](const FakeServer::Request& request) -> FakeServer::Reply {
    {
      const std::scoped_lock lock(mutex_);
      ++seen_[request.target];
      first_seen_.try_emplace(request.target, now());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{delay_ms_.load()});
    return {request.target.starts_with("/bad") ? 500 : 200, R"({"ok":true})", ""};
  }};
};

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
  const std::scoped_lock lock(mutex_);
  EXPECT_EQ(seen_["/a"], 1);
  EXPECT_GE(first_seen_["/a"], due);
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
  EXPECT_EQ(status(R"({})"), 422);
  EXPECT_EQ(status(R"("http://a.example/")"), 422);
  EXPECT_EQ(ask(client, "POST", calls(), "[]").status, 422);
  EXPECT_EQ(ask(client, "GET", calls()).body.at("serviceCalls").as_array().size(), 0U);
}

TEST_F(ServiceCalls, AreCancelledRescheduledAndRepeated) {
  Server server(options(data_.path()));
  auto client = server.client();
  const auto submit = [&](const std::string& path) {
    return ask(client, "POST", calls(), json::serialize(call(path, now() + 1h))).text("serviceCallId");
  };
  const std::string gone = submit("/gone"), later = submit("/later");
  const Answer cancelled = ask(client, "POST", calls() + "/" + gone + "/cancel", R"({"by":"ada"})");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(kind(cancelled), "Cancelled");
  EXPECT_EQ(ask(client, "POST", calls() + "/" + gone + "/cancel", "{}").status, 409);
  EXPECT_EQ(ask(client, "POST", calls() + "/" + later + "/reschedule", R"({"dueAt":")" + to_iso(now()) + "\"}").status, 200);
  EXPECT_EQ(ended(client, later).text("status"), "Succeeded");
  const Answer again = ask(client, "POST", calls() + "/" + later + "/repeat", "{}");
  EXPECT_EQ(again.status, 202);
  EXPECT_EQ(again.text("repeatOf"), later);
  EXPECT_EQ(ended(client, again.text("serviceCallId")).text("status"), "Succeeded");
  EXPECT_EQ(ask(client, "POST", calls() + "/no-such-call/repeat", "{}").status, 404);
  EXPECT_EQ(ask(client, "GET", "/tenants/other/service-calls/" + later).status, 404);
  const std::scoped_lock lock(mutex_);
  EXPECT_EQ(seen_["/gone"], 0);
  EXPECT_EQ(seen_["/later"], 2);
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
  const std::scoped_lock lock(mutex_);
  EXPECT_EQ(seen_["/k"], 1);
}

// Killed again and again while calls run: each ends once, none is sent twice, and who is in doubt is known.
TEST_F(ServiceCalls, SurviveKills) {
  constexpr int kills = 8, waves = 60;
  delay_ms_ = 5;
  std::vector<std::string> ids;
  std::map<std::string, std::string> paths;
  int n = 0;
  for (int kill = 0; kill <= kills; ++kill) {
    Server server(options(data_.path()));
    auto client = server.client();
    if (kill == kills) {
      int unknown = 0, succeeded = 0;
      for (const std::string& id : ids) {
        const Answer done = ended(client, id);
        const std::string all = types(done);
        EXPECT_EQ(all.find("ExecutionStarted"), all.rfind("ExecutionStarted")) << all;
        succeeded += done.text("status") == "Succeeded";
        unknown += kind(done) == "OutcomeUnknown";
        const std::scoped_lock lock(mutex_);
        EXPECT_LE(seen_[paths[id]], 1) << paths[id];
        if (done.text("status") == "Succeeded") {
          EXPECT_EQ(seen_[paths[id]], 1);
        }
      }
      EXPECT_EQ(succeeded + unknown, static_cast<int>(ids.size()));
      EXPECT_GT(succeeded, 0);
      EXPECT_LE(unknown, kills * 64);  // no more than had a place
      return;
    }
    json::array wanted;
    for (int i = 0; i < waves; ++i) wanted.push_back(call("/w" + std::to_string(++n), now() + Duration{i * 2}));
    const Answer made = ask(client, "POST", calls() + ":batch", json::serialize(json::object{{"calls", wanted}}));
    ASSERT_EQ(made.status, 202) << json::serialize(made.body);
    int first = n - waves;
    for (const auto& each : made.body.at("calls").as_array()) {
      ids.emplace_back(each.at("serviceCallId").as_string());
      paths[ids.back()] = "/w" + std::to_string(++first);
    }
    // Whenever it dies is right: no outcome depends on how far it has come.
    std::this_thread::sleep_for(std::chrono::milliseconds{20 + 15 * kill});
    server.process().signal(SIGKILL);
  }
}

}  // namespace
}  // namespace baton::e2e
