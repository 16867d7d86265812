// The real binary, as a process of its own, on a port that the system chose.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/wire/client.hpp"
#include "tests/support/process.hpp"

namespace baton::e2e {

using namespace std::chrono_literals;
namespace json = boost::json;

struct Answer {
  int status = 0;  // 0: no answer
  json::value body;
  [[nodiscard]] std::optional<std::string> find_text(std::string_view key) const {
    const auto* object = body.if_object();
    const auto* value = object ? object->if_contains(key) : nullptr;
    if (!value || !value->is_string()) return std::nullopt;
    return std::string(value->as_string());
  }
  // Fails the test when there is none: two answers that lack it would be equal.
  [[nodiscard]] std::string text(std::string_view key) const {
    const auto found = find_text(key);
    if (!found)
      ADD_FAILURE() << "an answer with status " << status << " has no text '" << key
                    << "': " << json::serialize(body).substr(0, 1'000);
    return found.value_or("");
  }
};

// Looks again until it is so. False: it was not so in that time.
template <class Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds within = 20s) {
  const auto give_up = std::chrono::steady_clock::now() + within;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

inline Answer ask(http::Client& client, std::string_view method, const std::string& target,
                  const std::string& body = {}, std::string_view type = "application/json",
                  const http::Client::Headers& headers = {}) {
  const auto response = client.request(method, "/api/v1" + target, body, type, headers, 60s);
  if (!response) return {};
  boost::system::error_code error;
  json::value parsed = json::parse(response->body, error);
  return {response->status, std::move(parsed)};
}

class Server {
 public:
  // Options follow `serve`; a wrapper such as {"unshare", …} may precede the binary.
  explicit Server(std::vector<std::string> options, std::vector<std::string> wrapper = {}) {
    std::vector<std::string> command = std::move(wrapper);
    command.insert(command.end(), {BATON_BINARY, "serve", "--listen", "127.0.0.1:0"});
    command.insert(command.end(), options.begin(), options.end());
    process_ = std::make_unique<support::Process>(std::move(command));
    url_ = process_->first_line(30s).value_or("");
    if (url_.empty()) ADD_FAILURE() << "the server did not start: " << process_->err();
  }

  [[nodiscard]] support::Process& process() { return *process_; }
  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] http::Client client() const { return http::Client(url_); }

 private:
  std::unique_ptr<support::Process> process_;
  std::string url_;
};

// The binary as a person runs it, to its end.
struct Ran {
  int code = -1;
  std::string out, err;
};

inline Ran baton(std::vector<std::string> arguments, std::vector<std::string> variables = {}) {
  arguments.insert(arguments.begin(), BATON_BINARY);
  support::Process process(std::move(arguments), std::move(variables));
  const auto code = process.wait(60s);
  return {code.value_or(-1), process.out(), process.err()};
}

inline const std::string echo_yaml = R"(
workflow_id: echo_test
nodes:
  start: {type: start, next: [echo_handler]}
  echo_handler: {type: task, handler: echo, next: [end]}
  end: {type: end}
)";

// The same on a queue that only HTTP workers serve.
inline const std::string queued_yaml = R"(
workflow_id: queued
nodes:
  start: {type: start, next: [work]}
  work: {type: task, handler: resize, queue: images, next: [end]}
  end: {type: end}
)";

inline void publish(http::Client& client, const std::string& yaml) {
  const Answer answer = ask(client, "POST", "/workflows", yaml, "application/yaml");
  ASSERT_TRUE(answer.status == 201 || answer.status == 200) << answer.status << json::serialize(answer.body);
}

inline std::vector<std::string> timeline(http::Client& client, const std::string& job_id) {
  std::vector<std::string> events;
  const Answer answer = ask(client, "GET", "/jobs/" + job_id + "/timeline");
  for (const auto& event : answer.body.at("events").as_array()) {
    std::string line(event.at("event_type").as_string());
    if (event.at("node_id").is_string()) line += " " + std::string(event.at("node_id").as_string());
    events.push_back(std::move(line));
  }
  return events;
}

}  // namespace baton::e2e
