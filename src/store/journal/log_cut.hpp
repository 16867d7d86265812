// Up to where a log beside the database (commit_log.hpp) may be cut. The tables follow lazily: what they show may be lost in a
// crash of the machine until it is synced, and is followed again from the log. So a row goes when the tables show it
// and that is durable, not before.
//
// Thread-safe: one thread follows, another appends.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutant.hpp"

namespace baton::store {

class LogCut {
 public:
  void opened() { removable_ = 0; }
  void followed(std::int64_t commit_number, bool is_durable) {
    if (is_durable || MUTANT(log_cut_before_sync)) removable_ = commit_number;
  }
  [[nodiscard]] std::int64_t removable() const { return removable_; }  // this commit, and those before it

 private:
  std::atomic<std::int64_t> removable_ = 0;
};

}  // namespace baton::store
