// Starts one program in a process group of its own, with pipes to it. No thread of its own, no waiting.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace baton::worker {

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

inline constexpr int report_fd = 3;  // where a program may write its progress

struct Program {
  std::vector<std::string> command;    // the first word is a path, or a name to look for in PATH
  std::vector<std::string> variables;  // "NAME=value", beside those that all programs get
  std::string input;                   // all that it can read from its standard input
};

struct Child {
  pid_t id = -1;
  Fd process;                // becomes readable when it ends; it is ours to reap
  Fd output, error, report;  // what it writes; they do not block
};

// A process group of its own is what we need to end a program with its children. A session besides keeps it
// away from our terminal. It has its price: Linux schedules sessions as groups (sched_autogroup), and a child
// that has just become one waits for its turn before it gets to exec, while we wait for the exec. On a busy
// machine that made a third of the programs a second. So it is done only where there is a terminal.
enum class Isolation { group, session };
[[nodiscard]] Isolation needed_isolation();

// The child leads a process group, has default signal dispositions and no file descriptors but 0 to 3.
// `environment` is for all programs and must not name what `variables` names.
[[nodiscard]] Result<Child> spawn(const Program& program, const std::vector<std::string>& environment,
                                  Isolation isolation);

// Makes sure that no pipe of ours ever gets a number that a child's own descriptors need. Once, before spawn.
void reserve_standard_fds();

}  // namespace baton::worker
