// The journal (journal/journal_store.hpp) in SQL: the table baton_journal. A row goes by its partition and its commit number,
// in one number that grows with each commit.
//
// SQLite has one writer at a time for a file. So that a commit need not wait while the tables follow, one that consists of
// its row alone is written to another file, the log, which is attached to a connection of its own (commit_log.hpp).
#pragma once

#include "store/journal/tables.hpp"
#include "store/statements.hpp"

namespace baton::store {

class SqlJournal {
 public:
  enum class Where { database, log };  // which table is written; both are read
  SqlJournal(Dialect dialect, Where where);

  void set(std::int64_t partition, std::int64_t term);
  [[nodiscard]] std::int64_t partition() const { return partition_; }

  // The commit is this row, which must outlive the run. Fails with Code::fenced if another writer has the term.
  [[nodiscard]] Query append(const JournalRow& row) const;
  // Those after `from` up to `to`.
  [[nodiscard]] Query remove(std::int64_t from, std::int64_t to) const;
  [[nodiscard]] Query remove_all() const { return remove(0, end() - first() - 1); }
  // The last commit that there is, if there is one; or of those in the table that is written.
  [[nodiscard]] Query last(std::int64_t& commit_number) const { return last(last_, commit_number); }
  [[nodiscard]] Query last_in_table(std::int64_t& commit_number) const { return last(last_in_table_, commit_number); }
  // Those that the tables do not show.
  [[nodiscard]] Query rows(std::vector<JournalRow>& found) const;

  [[nodiscard]] static Error fenced() { return {Code::fenced, "another writer has taken over"}; }

 private:
  [[nodiscard]] std::int64_t first() const { return partition_ << 48; }
  [[nodiscard]] std::int64_t end() const { return (partition_ + 1) << 48; }

  [[nodiscard]] Query last(const Statement& statement, std::int64_t& commit_number) const;

  std::int64_t partition_ = 0, term_ = 0;
  Statement append_, remove_, last_, last_in_table_, rows_;
};

}  // namespace baton::store
