// The agent: takes tasks from the server's queues, runs the program that each of them names, and reports how
// it ended. One thread (run()) decides everything; programs are the Runner's, connections have threads of
// their own that only carry.
//
// A delivery (task and lease) is held from the poll's answer until its result is settled, and heartbeated all
// that time. A slot is a running program: a result that waits for the server does not take one.
#pragma once

#include <fmt/format.h>

#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/agent/line.hpp"
#include "cli/agent/notes.hpp"
#include "cli/agent/results.hpp"
#include "cli/agent/task.hpp"
#include "worker/functions.hpp"
#include "worker/runner.hpp"

namespace baton::cli::agent {

struct AgentOptions {
  ServerAccess server;
  std::vector<std::string> queues;
  std::filesystem::path functions;
  std::string name;
  std::size_t concurrency = 1;
  std::vector<std::string> environment;  // of all programs
  worker::RunOptions limits;
  std::size_t log_bytes_max = 256 * 1024;
  std::chrono::milliseconds beat_every{10'000};  // a third of the lease
  std::chrono::seconds drain_time{30};
  std::optional<std::chrono::seconds> idle_exit;
  bool is_quiet = false;
};

class Agent : private worker::RunListener {
 public:
  explicit Agent(AgentOptions options);
  ~Agent() override;

  // Until a signal, the idle time, or a refusal at the start. The exit code.
  [[nodiscard]] int run();

 private:
  enum class Stop { no, timed_out, cancelled };
  struct Held {
    Task task;
    worker::Ticket ticket = 0;  // 0: not running (yet, or any more)
    Stop stop = Stop::no;
    bool is_reported = false;  // its result is on its way
    bool is_settled = false;   // and has arrived; only the program is still being ended
    Clock::time_point begun{};
    std::optional<Timers::Id> deadline, last_word;
    std::filesystem::path checkpoint;
  };
  struct Queue {
    std::string name;
    std::unique_ptr<Line> line;
    bool is_polling = false;  // or waiting to poll again
    Pauses pauses;
  };

  // Asking.
  void poll_all();
  void poll(Queue& queue);
  void on_polled(Queue& queue, const Answered& answer);
  void take(Task task);
  void beat();
  void on_beat(const std::vector<std::string>& keys, const Answered& answer);

  // Doing.
  void start_waiting();
  void start(Held& held);
  void on_deadline(const std::string& key);
  void cancel(const std::string& key);
  void report(Held& held, const Outcome& outcome);
  void settle(const std::string& key);
  void forget(const std::string& key);
  [[nodiscard]] Result<std::string> write_checkpoint(Held& held);

  // From the runner.
  void on_log(worker::Ticket ticket, std::string_view line) override;
  void on_report(worker::Ticket ticket, std::string_view line) override;
  void on_end(worker::Ticket ticket, worker::Ending ending) override;
  void reap_orphans();  // again and again

  // Ending.
  void watch_signals();
  void on_signals(int count);
  void drain();
  void give_up();
  void check_end();
  void end(int exit_code);

  [[nodiscard]] Held* find(const std::string& key);
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args);  // not when quiet
  void warn(std::string_view message);

  AgentOptions options_;
  worker::Functions functions_;
  worker::Runner runner_;
  Mailbox mailbox_;
  Timers timers_;
  std::unordered_map<std::string, Held> held_;               // by key
  std::unordered_map<worker::Ticket, std::string> running_;  // their keys
  std::deque<std::string> waiting_;                          // for a slot
  std::filesystem::path scratch_;                            // for checkpoints; made when first needed
  std::uint64_t checkpoints_ = 0;
  Clock::time_point last_busy_ = Clock::now();
  std::size_t beats_out_ = 0;
  bool beat_failed_ = false;
  bool was_answered_ = false;  // the server has let us in once
  bool is_draining_ = false;
  bool has_given_up_ = false;  // the drain took too long
  int signals_seen_ = 0;
  std::optional<int> exit_code_;
  Notes notes_;
  Results results_;
  Line beats_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace baton::cli::agent
