// Runs many programs at once: reads what they write, bounds it, ends them when told to, and reaps them. One
// event loop without a thread of its own: all calls but wake() belong to the thread that calls turn().
//
// A program is a process group. When its leader ends, whatever is left of the group is killed, and what has
// been written until then is its output; nobody waits for a grandchild that holds a pipe open.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/process.hpp"
#include "worker/lines.hpp"

namespace baton::worker {

using Ticket = std::uint64_t;  // one run of one program; never used twice

inline constexpr int report_fd = 3;  // where a program may write its progress

struct Program {
  std::vector<std::string> command;    // the first word is a path, or a name to look for in PATH
  std::vector<std::string> variables;  // "NAME=value", beside those that all programs get and of other names
  std::string input;                   // all that it can read from its standard input
};

struct RunOptions {
  std::size_t output_bytes = 8 * 1024 * 1024;  // of standard output; more ends the program
  std::size_t tail_bytes = 4 * 1024;           // the end of standard error that is kept
  std::size_t line_bytes = 8 * 1024;           // of a line of standard error; the rest of it is dropped
  std::size_t report_bytes = 1024 * 1024;      // of a line of the report descriptor
  std::chrono::milliseconds grace{5'000};      // between SIGTERM and SIGKILL
  Isolation isolation = needed_isolation();
};

struct Ending {
  int exit_code = 0;
  int signal = 0;  // what ended it; 0: it exited by itself
  bool too_much_output = false;
  std::string output;
  std::string error_tail;
  std::chrono::milliseconds took{0};
};

// Called from turn(). They may call back into the runner.
class RunListener {
 public:
  virtual ~RunListener() = default;
  virtual void on_log(Ticket ticket, std::string_view line) = 0;     // of standard error
  virtual void on_report(Ticket ticket, std::string_view line) = 0;  // of the report descriptor
  virtual void on_end(Ticket ticket, Ending ending) = 0;             // once, and last
};

class Runner {
 public:
  Runner(RunListener& listener, std::vector<std::string> environment, RunOptions options);
  ~Runner();  // kills what is left and reaps it
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  [[nodiscard]] Result<Ticket> start(const Program& program);
  void terminate(Ticket ticket);  // SIGTERM to the group, SIGKILL after the grace; more than once is harmless
  void kill_all();
  [[nodiscard]] std::size_t running() const { return runs_.size(); }

  // For a process that inherits orphans, such as the first one of a container: reaps what is not ours.
  void reap_orphans();

  // Waits for events at most that long, handles them, and returns.
  void turn(std::chrono::milliseconds wait_max);
  // Ends the wait of turn(), from any thread and from a signal handler.
  void wake() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Run {
    Process process;
    Fd output, error, report;  // what it writes; they do not block
    Clock::time_point started;
    Ending ending;
    Lines log_lines, report_lines;
    bool terminating = false;
  };

  [[nodiscard]] Result<Run> launch(const Program& program) const;
  void watch(const Fd& fd, Ticket ticket, std::uint64_t channel);
  void handle(std::uint64_t event);
  // Both read once and answer whether there may be more now. At the end of a stream they close it.
  bool read_output(Ticket ticket, Run& run);
  bool read_lines(Ticket ticket, Run& run, std::uint64_t channel);
  void finish(Ticket ticket);
  void kill_overdue();
  [[nodiscard]] std::chrono::milliseconds until_next_kill(std::chrono::milliseconds wait_max) const;

  RunListener& listener_;
  std::vector<std::string> environment_;
  RunOptions options_;
  Fd epoll_, wake_;
  Ticket last_ = 0;
  std::unordered_map<Ticket, Run> runs_;
  std::multimap<Clock::time_point, Ticket> kills_;  // whose grace ends when
  std::vector<char> buffer_;
};

}  // namespace baton::worker
