// The table of timers: one for all kinds of work. All of its columns are its key, so that a timer is one entry of
// one tree, inserted and deleted by its value. A subject is one text: the id of a job alone, because most timers
// are of jobs, and of everything else its type and id, "step 7".
#pragma once

#include "ports/store.hpp"
#include "store/connection.hpp"

namespace baton::store {

struct SqlTimers {
  explicit SqlTimers(Dialect dialect);
  // Appends the queries that write the timers of `writes`, which must outlive their run.
  void add_writes(std::vector<Query>& queries, const WriteSet& writes) const;
  [[nodiscard]] static Timer read(const RowView& row);  // of an answer to `due` or `after`
  // Which of these timers there are. They, and what is found, must outlive the run.
  [[nodiscard]] Query find(const std::vector<Timer>& timers, std::vector<Timer>& found) const;

  Statement insert, remove;
  Statement due;   // until a time, at most so many
  Statement next;  // when the first one is due
  Statement after;  // all, behind this one (as it is stored), at most so many
  Statement by_key;
};

}  // namespace baton::store
