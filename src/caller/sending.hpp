// One request from when it is sent to its outcome, and the loop that it is on. All of it happens on the
// loop's thread.
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <thread>
#include <unordered_set>

#include "caller/answer.hpp"
#include "caller/caller.hpp"
#include "caller/connection.hpp"

namespace baton::caller {

// What all loops share; each part is safe for all threads.
struct Common {
  Options options;
  asio::ssl::context tls;
  std::atomic<std::size_t> under_way = 0;
  Lookups lookups{options.resolve, options.lookup_threads};
  std::atomic<std::size_t> connections_open = 0;
  std::atomic<std::uint64_t> connections_opened = 0, connections_reused = 0;
};

class Sending;

class Loop {
 public:
  explicit Loop(Common& common);
  void send(std::shared_ptr<Sending> sending);  // any thread
  void stop();                                  // any thread; join() then waits for the end
  void join();

  void keep(const std::string& origin, std::unique_ptr<Connection> connection);

  Common& common;
  asio::io_context io{1};
  Pool pool;
  std::unordered_set<Sending*> under_way;

 private:
  void prune_later();

  asio::executor_work_guard<asio::io_context::executor_type> work_{io.get_executor()};
  asio::steady_timer pruning_{io};
  bool prunes_ = false, stopping_ = false;
  std::thread thread_;
};

class Sending : public std::enable_shared_from_this<Sending> {
 public:
  Sending(Loop& loop, std::string for_whom, OutgoingRequest request,
          std::function<void(OutgoingResult)> done);

  static asio::awaitable<void> run(std::shared_ptr<Sending> self);
  void stop();  // ends it, because everything ends

 private:
  enum class Phase { looking_up, connecting, shaking_hands, sending, waiting, reading };
  enum class Sent { all, nothing, failed };

  asio::awaitable<void> go();
  asio::awaitable<bool> hop();
  asio::awaitable<bool> open();
  asio::awaitable<bool> find_addresses();
  asio::awaitable<bool> connect();
  asio::awaitable<bool> shake_hands();
  asio::awaitable<Sent> write();
  asio::awaitable<bool> receive();
  asio::awaitable<error_code> read(Parser& parser);
  [[nodiscard]] bool settle(Parser& parser, const error_code& error);
  void keep(const Parser& parser, std::unique_ptr<Connection> connection);
  [[nodiscard]] bool follow(int followed);
  [[nodiscard]] std::string head() const;
  [[nodiscard]] std::string pool_key() const { return for_whom_ + " " + origin_; }

  // What follows must end by then, and never later than the whole; `told` is what people are told of it.
  void limit(Phase phase, Steady::time_point until = Steady::time_point::max(), Duration told = {});
  void close();
  // Says what went wrong; that it was stopped or took too long explains any error.
  bool broken(OutgoingKind kind, std::string message);
  [[nodiscard]] std::string timeout_message() const;
  void finish();

  Loop& loop_;
  const std::string for_whom_;
  OutgoingRequest request_;
  std::function<void(OutgoingResult)> done_;
  OutgoingResult result_;
  const Steady::time_point began_ = Steady::now();
  const Steady::time_point end_;
  Steady::time_point connect_end_;

  Url url_;
  std::string origin_, location_;
  std::vector<IpAddress> addresses_;
  std::optional<Lookups::Found> found_;
  std::unique_ptr<Connection> connection_;
  bool reused_ = false;  // the connection is one that was kept
  bool sent_whole_ = false;

  asio::steady_timer timer_, lookup_;
  Phase phase_{};
  Duration told_{};
  bool timed_out_ = false, stopped_ = false;
};

}  // namespace baton::caller
