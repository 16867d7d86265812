// With SQLite: a second connection to the database, which is not kept waiting by the one on which the tables follow. It
// reads, and it writes commits to the log (sql_journal.hpp).
//
// A row of the log goes when the tables show it and are durable: what they show before that may be lost in a crash of the
// machine, and is followed again.
//
// The database is whole without the log, only older, so that a copy of it is a backup: before a commit is written to it,
// it gets those before that one too.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "store/sql_journal.hpp"

namespace baton::store {

class CommitLog {
 public:
  explicit CommitLog(Connect connect) : connect_(std::move(connect)) {}

  // Also again after trouble.
  [[nodiscard]] Result<> open(std::int64_t partition, std::int64_t term);
  // The journal in both files.
  [[nodiscard]] const SqlJournal& journal() const { return journal_; }

  [[nodiscard]] Result<> append(const JournalRow& row);
  [[nodiscard]] Result<> read(std::span<const Query> queries) { return run(queries, Mode::read); }
  [[nodiscard]] std::optional<std::uint64_t> room();

  // Those that neither the tables nor the journal of the database have; the latter gets them now, if that commit succeeds.
  [[nodiscard]] std::vector<JournalRow> only_here() const;
  // The database has all commits up to this one, in its tables or in its journal. On any thread.
  void database_has(std::int64_t commit_number);
  // The tables show this commit, and that is durable. On any thread.
  void may_remove(std::int64_t commit_number) { removable_ = commit_number; }

 private:
  [[nodiscard]] Result<> run(std::span<const Query> queries, Mode mode);

  const Connect connect_;
  SqlJournal journal_{Dialect::sqlite, SqlJournal::Where::log};
  std::mutex mutex_;  // taken for each use of the connection
  std::unique_ptr<Connection> connection_;
  mutable std::mutex rows_mutex_;
  std::deque<JournalRow> rows_;  // that the database does not have
  std::atomic<std::int64_t> removable_ = 0;
  std::int64_t removed_ = 0;  // up to this commit
};

}  // namespace baton::store
