// How far the tables are. The engine commits to a journal and lets the tables follow a moment later; whoever reads
// for somebody who was answered before wants the tables to show that answer first.
//
// Thread-safe. The engine tells, readers ask and are told when it goes on; nobody looks on a clock, and nothing here blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

namespace baton {

class Followed {
 public:
  // ---- the engine
  // Called, by any thread, when somebody begins to wait.
  void on_wanted(std::function<void()> wake);
  // This commit is durable, and answers that rest on it may leave.
  void committed(std::int64_t commit_number) { committed_ = commit_number; }
  // The tables show it. Nothing is believed of them while they are in doubt. By any thread: whoever waits for this is not to
  // wait for the engine's turn too.
  void followed(std::int64_t commit_number);
  // The store was opened: this was the last commit, and the tables show it. No doubt is left.
  void opened(std::int64_t last_commit);
  [[nodiscard]] bool is_wanted() const { return wanted_ > followed_; }
  // The store is away, and nothing follows until it is back: nobody waits for that.
  void set_away(bool away);
  // Nothing will follow any more.
  void close();

  // ---- readers
  // The commit that the tables must show before they show all that was committed before the call; the engine is told.
  // None: they show it.
  [[nodiscard]] std::optional<std::int64_t> want();
  [[nodiscard]] bool shows(std::int64_t commit_number) const { return followed_ >= commit_number; }
  [[nodiscard]] bool is_away() const { return away_; }
  // Who reads now is refused: the tables do not show what was committed, and nobody waits until they do.
  [[nodiscard]] bool refuses_reads() const { return away_ && followed_ < committed_; }
  // The commit that the tables show, as far as anybody knows.
  [[nodiscard]] std::int64_t shown() const { return followed_; }
  // The tables were found to show this one only. What followed is durable a moment later, and a database that crashed before
  // has lost it; the journal has it. The engine is told, and opens its store again.
  void doubt(std::int64_t commit_number);
  [[nodiscard]] bool is_doubted() const { return doubted_; }
  // Called, by any thread, when the tables show more, or the store goes away or comes back. One listener; with none
  // it returns when no call is under way.
  void on_moved(std::function<void()> moved);

 private:
  void tell();

  std::atomic<std::int64_t> committed_ = 0, followed_ = 0, wanted_ = 0;
  std::atomic<bool> away_ = false, doubted_ = false;
  std::mutex mutex_;
  std::function<void()> wake_;  // under the mutex
  std::mutex moved_mutex_;      // held while the listener is called
  std::function<void()> moved_;
};

}  // namespace baton
