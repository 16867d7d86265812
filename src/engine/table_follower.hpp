// Lets the tables that people and other programs read follow the commits: decides when, tells readers how far the tables
// are (Followed), and tries again after a pause when they cannot. Owned by the writer, on its thread.
//
// Invariants:
//  * Followed is told no more than the tables show;
//  * after the tables could not follow, nobody waits for them before the pause is over.
#pragma once

#include <chrono>
#include <optional>

#include "engine/options.hpp"
#include "ports/clock.hpp"
#include "ports/store.hpp"

namespace baton::engine {

class TableFollower {
 public:
  // The options must outlive this.
  TableFollower(Store& store, const Clock& clock, const WriterOptions& options, metrics::Histogram* seconds);

  // The store was opened, which made the tables show everything.
  void opened(std::int64_t last_commit);
  // This commit is durable.
  void committed(std::int64_t number);

  // When the tables are to follow, unless they are at it. None: they show everything.
  [[nodiscard]] std::optional<Time> due() const;
  void begin_when_due();
  // They are at it, beside what else the writer does.
  [[nodiscard]] bool is_under_way() const { return since_.has_value(); }
  // If they were at it and have come to the end: why they could not. None: they could, or are not at the end.
  [[nodiscard]] std::optional<Error> end();
  // Waits until they show everything.
  [[nodiscard]] Result<> follow();

  // By so many times of what they are to follow at once for.
  [[nodiscard]] bool is_far_behind(std::size_t times) const;
  // They are at it, people read, and by now so much was committed that the next following would keep those waiting. Once for
  // each following: it may not come to its end, because another program holds the file.
  [[nodiscard]] bool keeps_readers_waiting() const;
  void wait_for_end();
  // A reader has found that the database lost what the tables showed: the store must be opened again.
  [[nodiscard]] bool is_doubted() const { return options_.followed && options_.followed->is_doubted(); }

 private:
  struct Began {
    Time at;
    std::chrono::steady_clock::time_point steady;
    std::size_t rows = 0;
    bool was_waited_for = false;
  };
  void look_for_readers();
  [[nodiscard]] bool has_readers() const;
  [[nodiscard]] std::size_t rows_at_once() const;
  [[nodiscard]] Time latest_begin() const;
  void show(std::int64_t commit_number, Time as_of);
  void cannot(const Error& error);
  void show_what_store_has(Time as_of);

  Store& store_;
  const Clock& clock_;
  const WriterOptions& options_;
  metrics::Histogram* const seconds_;

  std::int64_t last_commit_ = 0;
  Time last_commit_at_{};
  std::optional<Time> wanted_at_;     // somebody waited for them to follow
  std::optional<Time> behind_since_;  // the tables do not show what was committed then
  std::optional<Began> since_;        // they are at it
  Duration took_{};                   // the last time
  std::optional<Time> retry_at_;      // they could not: not before this time
  Error trouble_;                     // why
};

// Another program lets go of a row or of the file, and on a full disk others go on, as far as there is room.
[[nodiscard]] inline bool is_passing(const Error& error) {
  return error.code == Code::busy || error.code == Code::full;
}

}  // namespace baton::engine
