// What a crash of the machine leaves. The tables follow the commits lazily, so that what they showed since they were synced
// is lost; the log, whose every row is synced, has it still, as far as it was not cut.
#pragma once

#include <map>
#include <vector>

#include "store/memory/database.hpp"

namespace baton::simulation {

class Disk {
 public:
  // The tables took these rows, and show this commit.
  void follow(const WriteSet& writes, std::int64_t commit_number);
  void sync();
  // The row is durable, and those up to `removable` are gone.
  void append(const store::JournalRow& row, std::int64_t removable);
  // Makes the tables, and the journal that is to be followed, what they are after a crash.
  void restore(store::MemoryDatabase& tables);

 private:
  store::MemoryDatabase tables_;  // as they were synced last
  std::vector<WriteSet> unsynced_;
  std::int64_t synced_ = 0, shown_ = 0;  // commits
  std::map<std::int64_t, store::JournalRow> log_;
};

}  // namespace baton::simulation
