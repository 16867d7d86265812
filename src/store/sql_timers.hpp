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
  [[nodiscard]] static Timer read(const RowView& row);  // of an answer to `due`

  Statement insert, remove;
  Statement due;   // until a time, at most so many
  Statement next;  // when the first one is due
};

}  // namespace baton::store
