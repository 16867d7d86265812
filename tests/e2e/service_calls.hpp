// Service calls with the real binary and a real sink, which remembers what it has seen.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "base/time.hpp"
#include "tests/e2e/fake_server.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e {

inline Time now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

class ServiceCallsTest : public testing::Test {
 protected:
  ~ServiceCallsTest() override { let_go(); }

  static std::vector<std::string> options(const std::string& data,
                                          const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"--data", data, "--egress-allow", "127.0.0.1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string calls(const std::string& tenant = "acme") {
    return "/tenants/" + tenant + "/service-calls";
  }

  [[nodiscard]] json::object call(const std::string& path, std::optional<Time> due = {}) const {
    json::object body{
        {"name", "call " + path},
        {"requestSpec", {{"method", "POST"}, {"url", sink_.url() + path}, {"body", {{"n", 1}}}}}};
    if (due) body["dueAt"] = to_iso(*due);
    return body;
  }
  [[nodiscard]] json::object probed(const std::string& path, std::optional<Time> due, int timeout_ms) const {
    json::object body = call(path, due);
    json::object& spec = body["requestSpec"].as_object();
    spec["timeoutMs"] = timeout_ms;
    spec["probe"] = {{"url", sink_.url() + "/probe" + path}};
    return body;
  }
  static std::string submit(http::Client& client, const json::object& body,
                            const std::string& tenant = "acme") {
    const Answer made = ask(client, "POST", calls(tenant), json::serialize(body));
    EXPECT_EQ(made.status, 202) << json::serialize(made.body);
    return made.text("serviceCallId");
  }
  static Answer ended(http::Client& client, const std::string& id, const std::string& tenant = "acme") {
    Answer answer;
    const auto is_over = [&] {
      answer = ask(client, "GET", calls(tenant) + "/" + id);
      const auto status = answer.find_text("status");  // none: the database is away
      return status == "Succeeded" || status == "Failed";
    };
    EXPECT_TRUE(eventually(is_over, 60s)) << "call " << id << " has not ended: " << json::serialize(answer.body);
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

  // --- the sink: /hold… is answered when all is let go, /bad… with 500, /probe/x by whether /x was seen
  [[nodiscard]] int seen(const std::string& path) {
    const std::scoped_lock lock(mutex_);
    const auto it = seen_.find(path);
    return it == seen_.end() ? 0 : it->second;
  }
  bool wait_for_seen(std::size_t paths) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return seen_.size() >= paths; });
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    holds_ = false;
    changed_.notify_all();
  }
  FakeServer::Reply take(const std::string& target) {
    std::unique_lock lock(mutex_);
    if (target.starts_with("/probe")) {
      ++probes_;
      const std::string of = target.substr(6);
      return {of.starts_with("/hold-vague") ? 500 : seen_.contains(of) ? 200 : 404, "{}", ""};
    }
    ++seen_[target];
    first_seen_.try_emplace(target, now());
    changed_.notify_all();
    if (target.starts_with("/hold")) changed_.wait(lock, [&] { return !holds_; });
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds{delay_ms_.load()});  // it is at work
    return {target.starts_with("/bad") ? 500 : 200, R"({"ok":true})", ""};
  }

  support::TemporaryDirectory data_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_ = true;
  std::map<std::string, int> seen_;  // requests, by path
  std::map<std::string, Time> first_seen_;
  std::atomic<int> delay_ms_ = 0, probes_ = 0;
  FakeServer sink_{[this](const FakeServer::Request& request) { return take(request.target); },
                   FakeServer::Handling::all_at_once};
};

}  // namespace baton::e2e
