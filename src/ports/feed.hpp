// What changed, told after each commit: the engine publishes one record for a commit that changed something, and
// whoever waits for changes (streams, long waits) reads records instead of looking at the database.
//
// Invariants:
//  * a record is published after its commit is durable, once, in the order of commit numbers;
//  * the feed keeps the newest records up to a limit of bytes and of records; who asks for older ones is told that
//    they are gone;
//  * it begins empty with each start of the server: a position is good for one start only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "ports/subject.hpp"

namespace baton {

// One thing that changed: the few fields that tell a reader whether to look, and what at. Views into the record
// that holds it.
struct Change {
  Subject::Type subject{};
  std::string_view tenant;
  std::string_view id;           // of the job, the call, the batch; the name of the queue, runbook or workflow
  std::string_view what;         // the type of an event, or "changed"
  std::string_view status;       // after the commit; empty: see an earlier change
  std::string_view node;         // of the job
  std::string_view workflow_id;  // of the job, with its status
  std::int64_t version = 0;      // of the job's workflow, of the runbook or workflow, of the call
  std::int64_t runbook_id = 0;   // of the runbook, or the one that the batch is of
  friend bool operator==(const Change&, const Change&) = default;
};

// Changes in the order in which they were added, in about forty bytes each.
class Changes {
 public:
  void add(const Change& change);
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return data_.size(); }
  // In memory, which is up to twice as much while changes are added.
  [[nodiscard]] std::size_t bytes_held() const { return data_.capacity(); }
  void trim() { data_.shrink_to_fit(); }

  // Reads one after the other; what it gives is good as long as these changes live.
  class Reader {
   public:
    explicit Reader(const Changes& changes) : rest_(changes.data_) {}
    [[nodiscard]] bool next(Change& change);
    [[nodiscard]] std::size_t bytes_left() const { return rest_.size(); }

   private:
    std::string_view rest_;
    Change last_;
  };

 private:
  struct Range {
    std::size_t begin = 0, size = 0;
  };
  [[nodiscard]] Range put(std::string_view text);
  [[nodiscard]] bool is(Range range, std::string_view text) const {
    return std::string_view(data_).substr(range.begin, range.size) == text;
  }

  std::string data_;
  std::size_t count_ = 0;
  Subject::Type subject_{};  // of the last one, which the next one is often about too
  Range tenant_, id_;
};

struct CommitRecord {
  std::int64_t number = 0;  // of the commit
  Time at{};
  Changes changes;
  // Of these tenants too much changed to tell: they have to look for themselves. Of their changes only those of
  // runbooks are here.
  std::set<std::string, std::less<>> untold;
};
using Record = std::shared_ptr<const CommitRecord>;

// Thread-safe.
class Feed {
 public:
  struct Limits {
    std::size_t bytes_max = std::size_t{16} << 20;  // of the records that are kept
    std::size_t records_max = 10'000;
    std::size_t record_bytes_max = std::size_t{4} << 20;  // beyond it the tenants with the most changes are untold
  };
  // start: names this start of the server.
  explicit Feed(std::string start = "0") : Feed(std::move(start), Limits()) {}
  Feed(std::string start, Limits limits) : start_(std::move(start)), limits_(limits) {}

  void publish(CommitRecord record);  // of the engine

  [[nodiscard]] const std::string& start() const { return start_; }
  [[nodiscard]] std::int64_t last() const;  // number of the newest record; 0: there was none
  // All records after this number are kept.
  [[nodiscard]] bool reaches(std::int64_t number) const;
  // The records after this number, oldest first; none: some of them are gone.
  [[nodiscard]] std::optional<std::vector<Record>> after(std::int64_t number) const;

  // `wake` is called after each record, on the thread that publishes, until the subscription is gone. It must be
  // quick and must not call the feed.
  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    friend class Feed;
    Subscription(Feed& feed, std::list<std::function<void()>>::iterator place) : feed_(feed), place_(place) {}
    Feed& feed_;
    std::list<std::function<void()>>::iterator place_;
  };
  [[nodiscard]] std::unique_ptr<Subscription> subscribe(std::function<void()> wake);
  [[nodiscard]] std::size_t subscriptions() const;

 private:
  const std::string start_;
  const Limits limits_;
  mutable std::mutex mutex_;
  std::deque<Record> records_;  // under the mutex, as is everything below
  std::size_t bytes_ = 0;
  std::int64_t gone_ = 0;  // number of the newest record that is not kept any more
  std::int64_t last_ = 0;
  std::list<std::function<void()>> wakes_;
};

}  // namespace baton
