// Everything wired together: store, engine, HTTP, built-in worker, from the settings to the last answer.
//
// start() and stop() belong to one owner thread. Whatever goes wrong in start() has been undone when it
// returns.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "server/config.hpp"

namespace baton::server {

class Server {
 public:
  // on_fatal may be called from any thread, once, when the engine must stop for good.
  Server(Config config, std::function<void(const Error&)> on_fatal);
  ~Server();  // stops

  // Code::invalid: the settings or the definitions are wrong, as the message says at length.
  [[nodiscard]] Result<> start();
  // Accepts nothing more, answers everybody, closes the store. Idempotent.
  void stop();

  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string amqp() const;  // HOST:PORT; empty: there is no such endpoint
  [[nodiscard]] std::string amqp_admin() const;  // of its management API, the same

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The whole life of the process: limits, logs, signals, start, wait, stop. Answers the exit code.
[[nodiscard]] int serve(const Config& config);

}  // namespace baton::server
