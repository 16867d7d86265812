// What a store in memory holds: a value of its own, so that a crash is dropping the store, and a restart is
// making a new one on the same database.
//
// Stores and readers take the mutex; a test that has only one thread may read freely.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <shared_mutex>

#include "store/journal/tables.hpp"
#include "store/memory/call_tables.hpp"
#include "store/memory/message_tables.hpp"
#include "store/memory/runbook_tables.hpp"
#include "store/memory/workflow_tables.hpp"

namespace baton::store::memory {

struct Database : WorkflowTables, CallTables {
  RunbookTables runbooks;
  MessageTables bus;
  std::set<Timer> timers;

  // As writer_state has it.
  struct WriterRow {
    std::int64_t term = 0;
    std::int64_t last_commit = 0;
    std::int64_t followed = 0;
    std::map<std::int64_t, JournalRow> journal;  // by commit number; those that the tables do not show
    int owner = 0;   // the store that took the term
    int holder = 0;  // the store that has the writer's lock, as long as it lives; 0: none
  };
  std::map<Partition, WriterRow> writers;
  int stores = 0;  // that there ever were

  mutable std::shared_mutex mutex;
};

// All of it or nothing: Code::conflict says which row was in the way.
[[nodiscard]] Result<> write(Database& database, const WriteSet& writes);
// The same, of runbooks only.
[[nodiscard]] Result<> write_beside_journal(Database& database, const WriteSet& writes);

}  // namespace baton::store::memory

namespace baton::store {
using MemoryDatabase = memory::Database;
}  // namespace baton::store
