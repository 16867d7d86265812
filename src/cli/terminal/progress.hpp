// The timeline of a job as lines for people, as it happens.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace baton::cli {

struct ProgressEvent {
  std::string type;  // node_completed
  std::string node_id;
  std::string data;  // JSON; may be empty
  Time at{};
};

class Progress {
 public:
  explicit Progress(std::FILE* stream);
  void show(const ProgressEvent& event);

 private:
  std::FILE* stream_;
  bool colour_;
  bool marks_;  // a terminal that most likely shows UTF-8
  std::optional<Time> first_;
};

// One line without its end: "  0.012 s  ✓ echo_handler completed".
[[nodiscard]] std::string progress_line(const ProgressEvent& event, Duration since_start, bool marks,
                                        bool colour);

}  // namespace baton::cli
