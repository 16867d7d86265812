// With SQLite: a second connection to the database, which is not kept waiting by the one on which the tables follow. It
// reads, and it writes commits to the log (sql_journal.hpp).
//
// A row of the log goes when the tables show it and are durable (journal/log_cut.hpp).
//
// The database is whole without the log, only older, so that a copy of it is a backup: before a commit is written to it,
// it gets those before that one too.
//
// A log that is missing, or is another's, must be noticed: it may hold commits that were acknowledged, and those of
// another database must not be followed. So the two files have an id in common, for each partition, in
// writer_state.log_id and in the table baton_log. Invariants:
//  * the database has an id as long as commits may be in the log alone: from open() until close(). Only a database
//    without one goes on without its log;
//  * a new id is durable in the log first, then in the database, and then the log knows that (`is_known`). So where the
//    database has none, the log has another's, or its own of before close(), if it is known: then the tables show all
//    its commits; and if it is not known, or there is none, a crash came in between or the log is of a version without ids;
//  * whatever the database gets durably says which commit was the last that the log had then (`writer_state.log_last`). Rows
//    of the log go only with a newer one, so a log that ends before it is an older copy.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "store/journal/log_cut.hpp"
#include "store/sql_journal.hpp"

namespace baton::store {

struct LogFile {
  std::string database;  // the path of the database to which it belongs
  Connect connect;       // makes the log if there is none
  bool may_be_missing = false;  // also if the database has an id
};

class CommitLog {
 public:
  explicit CommitLog(LogFile file) : file_(std::move(file)) {}

  // What the database says of its log.
  struct Database {
    std::string id, new_id;  // that it has, and that it may get: one that nothing has
    std::int64_t followed = 0;
    std::int64_t log_last = 0;  // the last commit that it knows to be in the log
    bool is_first = true;  // open() of this process
    std::function<Result<>(const std::string& id)> set_id;  // durably
  };
  // Also again after trouble. Code::corrupt: the log is missing, or is another's.
  [[nodiscard]] Result<> open(std::int64_t partition, std::int64_t term, const Database& database);
  // The tables show all its commits durably, and the database has no id any more.
  [[nodiscard]] Result<> close();
  // The journal in both files.
  [[nodiscard]] const SqlJournal& journal() const { return journal_; }

  [[nodiscard]] Result<> append(const JournalRow& row);
  [[nodiscard]] Result<> read(std::span<const Query> queries) { return run(queries, Mode::read); }
  [[nodiscard]] std::optional<std::uint64_t> room();

  // Those that neither the tables nor the journal of the database have; the latter gets them now, if that commit succeeds.
  [[nodiscard]] std::vector<JournalRow> only_here() const;
  // The database has all commits up to this one, in its tables or in its journal. On any thread.
  void database_has(std::int64_t commit_number);
  // Its tables show this commit; `is_durable`: also after a crash of the machine. On any thread.
  void followed(std::int64_t commit_number, bool is_durable);
  // The last commit that it has; 0: it has none. On any thread.
  [[nodiscard]] std::int64_t last() const { return last_; }

 private:
  [[nodiscard]] Result<> run(std::span<const Query> queries, Mode mode);

  const LogFile file_;
  SqlJournal journal_{Dialect::sqlite, SqlJournal::Where::log};
  std::mutex mutex_;  // taken for each use of the connection
  std::unique_ptr<Connection> connection_;
  mutable std::mutex rows_mutex_;
  std::deque<JournalRow> rows_;  // that the database does not have
  LogCut cut_;
  std::atomic<std::int64_t> last_ = 0;
  std::int64_t removed_ = 0;  // up to this commit
};

}  // namespace baton::store
