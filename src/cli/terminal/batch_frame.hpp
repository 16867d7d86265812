// The picture that `baton batch watch` draws of a batch: JSON in, lines out. Its size does not depend on how
// many members there are. Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/batch_view.hpp"

namespace baton::cli {

struct Screen {
  std::size_t columns = 80, rows = 24;
  bool colour = false;
};

// How fast steps end, over the last ten seconds of what was noted.
class Pace {
 public:
  void note(Time at, std::int64_t ended);
  [[nodiscard]] std::optional<double> per_second() const;  // none until two notes are a second apart

 private:
  struct Note {
    Time at;
    std::int64_t ended;
  };
  std::deque<Note> notes_;
};

// Lines without their ends, none wider than the screen and fewer than it has rows. `failures` are the newest
// ones, as the API tells them.
[[nodiscard]] std::vector<std::string> frame(std::string_view batch_json, std::string_view failures_json,
                                             std::optional<double> steps_per_second, Time now,
                                             const Screen& screen);

// Several batches on one screen, each with what of it runs and what waits for a person.
[[nodiscard]] std::vector<std::string> frame_of_several(const std::vector<std::string>& batches_json, Time now,
                                                        const Screen& screen);

// One line for a file: it changes only when there is something to tell, at most a hundred times a phase while
// all goes well.
[[nodiscard]] std::string status_line(const BatchView& batch);

// The newest failures: "prepare/create-user  ada@contoso.example  mailbox is full".
[[nodiscard]] std::vector<std::string> failure_lines(std::string_view failures_json, std::size_t lines_max,
                                                     const Screen& screen);

}  // namespace baton::cli
