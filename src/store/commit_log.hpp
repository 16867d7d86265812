// With SQLite: a second connection to the database, which is not kept waiting by the one on which the tables follow. It
// reads, and it writes commits to the log (sql_journal.hpp).
//
// A row of the log goes when the tables show it and are durable: what they show before that may be lost in a crash of the
// machine, and is followed again.
#pragma once

#include <atomic>
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

  // The tables show the state after this commit, and it is durable. On any thread.
  void followed(std::int64_t commit_number) { followed_ = commit_number; }

 private:
  [[nodiscard]] Result<> run(std::span<const Query> queries, Mode mode);

  const Connect connect_;
  SqlJournal journal_{Dialect::sqlite, SqlJournal::Where::log};
  std::mutex mutex_;  // taken for each use of the connection
  std::unique_ptr<Connection> connection_;
  std::atomic<std::int64_t> followed_ = 0;
  std::int64_t removed_ = 0;  // up to this commit
};

}  // namespace baton::store
