// What the feed of one life of the engine may say: each durable commit that changed something, once, in order, not
// before it is durable, with the statuses that were written, and under the tenant of the row.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ports/feed.hpp"
#include "ports/store.hpp"

namespace baton::simulation {

class FeedWatch {
 public:
  FeedWatch();
  [[nodiscard]] Feed& feed() { return feed_; }
  // The store has made this commit durable, whatever it answers.
  void durable(const WriteSet& writes, std::int64_t number);
  // When no commit is in doubt; throws Violation.
  void check();

 private:
  struct Commit {
    std::set<std::string> subjects;               // "job 7": those that changed
    std::map<std::string, std::string> statuses;  // of those whose row was written
    std::size_t events = 0;                       // of jobs and calls
  };
  using Owned = std::pair<std::string, std::string>;  // a subject and its tenant
  static std::set<Owned> owned_rows(const WriteSet& writes);
  [[nodiscard]] Commit read(const CommitRecord& record) const;
  void check(const CommitRecord& record, std::int64_t durable_then);

  Feed feed_;
  std::map<std::int64_t, Commit> untold_;
  std::map<std::int64_t, std::set<Owned>> owned_;  // what was written, by commit
  std::int64_t last_durable_ = 0;
  std::int64_t last_told_ = 0;
  std::vector<std::int64_t> durable_when_told_;
  std::unique_ptr<Feed::Subscription> subscription_;
};

}  // namespace baton::simulation
