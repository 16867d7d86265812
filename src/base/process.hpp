// The one way to start a program: for the agent, the bench and the tests. No thread of its own; an object
// belongs to one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace baton {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] explicit operator bool() const { return fd_ >= 0; }
  void reset();

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd reads, writes;  // neither is for children
};
[[nodiscard]] Result<Pipe> make_pipe();

// A process group of its own is what we need to end a program with its children. A session besides keeps it
// away from our terminal. It has its price: Linux schedules sessions as groups (sched_autogroup), and a child
// that has just become one waits for its turn before it gets to exec, while we wait for the exec. On a busy
// machine that made a third of the programs a second. So it is done only where there is a terminal.
enum class Isolation { none, group, session };
[[nodiscard]] Isolation needed_isolation();  // group or session

struct Launch {
  std::vector<std::string> command;      // the first word is a path, or a name to look for in PATH
  std::vector<std::string> environment;  // all of it, "NAME=value"
  std::vector<int> fds;                  // what its descriptors 0, 1, 2, … are; it has no others
  Isolation isolation = Isolation::none;
  bool ends_with_us = false;  // the system kills it when the thread that starts it ends, however that happens
};

struct Exit {
  int code = 0;
  int signal = 0;  // what ended it; 0: it exited by itself
};

// A program that runs. Its signal dispositions are the default ones.
class Process {
 public:
  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();  // kills it, with its group if it has one, and reaps it

  [[nodiscard]] static Result<Process> start(const Launch& launch);
  [[nodiscard]] pid_t id() const { return id_; }
  [[nodiscard]] const Fd& ended() const { return ended_; }  // becomes readable when it ends
  void signal(int number) const;  // to its group if it has one; nothing once it was waited for
  // How it ended; none while it runs after that time.
  [[nodiscard]] std::optional<Exit> wait(std::chrono::milliseconds within);
  Exit wait();

 private:
  pid_t id_ = -1;
  bool has_group_ = false;
  Fd ended_;
  std::optional<Exit> exit_;
};

// What this process has.
[[nodiscard]] std::vector<std::string> own_environment();

// Makes sure that no descriptor of ours ever gets a number that a child's own need. Once, before the first
// start.
void reserve_fds(int count);

}  // namespace baton
