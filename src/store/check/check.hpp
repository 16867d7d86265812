// Whether a database is consistent: its journal goes on from what the tables show, the rows of workflows are what they
// say of each other, and entities count the messages that they have. It only reads, in one snapshot, in pages: memory is bounded
// by a page, by the journal and by the number of entities.
//
// What is looked at is the state after the last commit that can be replayed, as a start would make it: the tables, and
// upon them the journal. Rules are those that hold after every commit; tests/simulation/invariants.cpp has them all.
#pragma once

#include <functional>
#include <string>

#include "ports/subject.hpp"
#include "store/connection.hpp"

namespace baton::store {

// Something that is wrong: of which row, and what.
using TellFinding = std::function<void(const std::string& subject, const std::string& problem)>;

struct Checked {
  std::int64_t followed = 0;     // the tables show the state after this commit
  std::int64_t last_commit = 0;  // the last one that was found
  bool is_log_in_use = false;    // a server has the log of a SQLite database, and it was not looked at
  std::size_t jobs = 0, nodes = 0, events = 0, task_results = 0, timers = 0;
  std::size_t entities = 0, messages = 0;
};

// `connect_log` connects to a SQLite database and its log, and to read both: null where there is no log, Code::busy where a
// server has it. Empty for PostgreSQL.
[[nodiscard]] Result<Checked> check(Dialect dialect, const Connect& connect, const Connect& connect_log, Partition partition,
                                    const TellFinding& tell);

}  // namespace baton::store
