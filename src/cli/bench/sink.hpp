// What service calls are made to in a bench: answers every request with 200 at once, and remembers when which came.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/time.hpp"

namespace baton::cli::bench {

class Sink {
 public:
  explicit Sink(std::size_t calls);  // GET /0 … /calls-1
  ~Sink();
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] std::size_t seen() const { return seen_; }  // requests in all
  // After stop(): how often a call came, and when first, in microseconds of Unix time.
  void stop();
  [[nodiscard]] int times(std::size_t call) const { return counts_[call]; }
  [[nodiscard]] std::int64_t first_micros(std::size_t call) const { return firsts_[call]; }

 private:
  void run();
  void accept_all();
  bool serve(int fd, std::string& pending);
  void note(std::string_view target);

  std::vector<std::uint8_t> counts_;
  std::vector<std::int64_t> firsts_;
  std::string url_;
  int listener_ = -1, poll_ = -1, wake_ = -1;
  std::atomic<std::size_t> seen_ = 0;
  std::thread thread_;
};

}  // namespace baton::cli::bench
