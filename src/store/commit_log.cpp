#include "store/commit_log.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "store/sqlite/connection.hpp"

namespace baton::store {
namespace {

// What the log says of itself.
struct Log {
  std::string path;
  std::string id;         // empty: none
  bool is_known = false;  // the database has it, or had it
  std::int64_t last_commit = 0;
  [[nodiscard]] bool is_nobodys() const { return !is_known && last_commit == 0; }
};

// Whatever links lead to the database, as SQLite has it.
std::string path_of_log(const std::string& database) {
  std::error_code none;
  const auto real = std::filesystem::weakly_canonical(database, none);
  return sqlite::log_path(real.empty() ? database : real.string());
}

std::unexpected<Error> is_missing(const std::string& path) {
  return fail(Code::corrupt,
              fmt::format("the log {} is missing, and with it commits may be lost that were acknowledged: put it back, or, if it is "
                          "lost or the database is a copy that was made while a server ran, go on without it once with `baton serve "
                          "--without-log`", path));
}

std::unexpected<Error> is_empty(const std::string& path) {
  return fail(Code::corrupt,
              fmt::format("the log {0} is there and holds nothing, and with it commits may be lost that were acknowledged: put back {0}-wal, in which "
                          "its last commits are, or, if that is lost, go on without it once with `baton serve --without-log`", path));
}

std::unexpected<Error> is_older(const Log& log, std::int64_t last) {
  return fail(Code::corrupt,
              fmt::format("the log {0} ends with commit {1}, but had commit {2} when the database was written last: it is an older copy, or {0}-wal is "
                          "not the one that belongs to it, and commits may be lost that were acknowledged. Put the right files in their place, or move "
                          "these away and go on without any once with `baton serve --without-log`", log.path, log.last_commit, last));
}

// True: both are to get a new id.
Result<bool> needs_new_id(const CommitLog::Database& database, const Log& log, bool may_be_missing) {
  if (database.id.empty()) {
    if (!log.is_known || log.last_commit <= database.followed) return true;
    return fail(Code::corrupt, fmt::format("the log {} has commits of another database, which would be done again here: move it away; "
                                           "this database was stopped in order, or is new, and needs no log", log.path));
  }
  if (log.id == database.id) return log.last_commit < database.log_last ? is_older(log, database.log_last) : Result<bool>(false);
  if (log.is_nobodys()) return may_be_missing ? Result<bool>(true) : is_empty(log.path);
  if (may_be_missing)
    return fail(Code::corrupt, fmt::format("--without-log was said, but the log {} is there, and belongs to another database or to "
                                           "another time of this one: move it away first", log.path));
  return fail(Code::corrupt,
              fmt::format("the log {} belongs to another database or to another time of this one, and without the right one commits may "
                          "be lost that were acknowledged: put that one in its place, or move this one away and go on without any once "
                          "with `baton serve --without-log`", log.path));
}

}  // namespace

Result<> CommitLog::open(std::int64_t partition, std::int64_t term, const Database& database) {
  const std::scoped_lock lock(mutex_);
  connection_.reset();
  journal_.set(partition, term);
  cut_.opened();
  removed_ = 0;
  rows_.clear();
  Log log{.path = path_of_log(file_.database)};
  const bool may_be_missing = file_.may_be_missing && database.is_first;
  std::error_code failure;
  const bool is_there = std::filesystem::exists(log.path, failure);
  if (failure) return fail(Code::unavailable, "its log " + log.path + ": " + failure.message());
  if (!database.id.empty() && !may_be_missing && !is_there) return is_missing(log.path);
  TRY_ASSIGN(auto connection, file_.connect());

  const Statement ask{"SELECT id,is_known FROM log.baton_log WHERE partition=?1", {Type::integer}};
  const auto take = [&](const RowView& row) -> Result<> {
    return log.id = row.text(0), log.is_known = row.integer(1) != 0, Result<>{};
  };
  const Query asked[] = {{&ask, 1, constant({partition}), take, {}}, journal_.last_in_table(log.last_commit)};
  TRY(connection->run(asked, Mode::read));
  TRY_ASSIGN(const bool is_new, needs_new_id(database, log, may_be_missing));
  const std::string id = is_new ? database.new_id : database.id;
  const Statement set{"INSERT OR REPLACE INTO log.baton_log(partition,id,is_known) VALUES(?1,?2,?3)",
                      {Type::integer, Type::text, Type::integer}};
  const auto set_id = [&](bool is_known) {
    const Query query{&set, 1, constant({partition, std::string_view(id), std::int64_t{is_known}}), {}, {}};
    return connection->run({&query, 1}, Mode::write);
  };
  if (is_new) {
    TRY(set_id(false));
    TRY(database.set_id(id));
  }
  if (is_new || !log.is_known) TRY(set_id(true));
  last_ = log.last_commit;
  connection_ = std::move(connection);
  return {};
}

Result<> CommitLog::close() {
  const Statement forget_id{"DELETE FROM log.baton_log WHERE partition=?1", {Type::integer}};
  const Query queries[] = {journal_.remove_all(), {&forget_id, 1, constant({journal_.partition()}), {}, {}}};
  const Result<> done = run(queries, Mode::write);
  const std::scoped_lock lock(mutex_);
  connection_.reset();
  return done;
}

Result<> CommitLog::append(const JournalRow& row) {
  std::vector<Query> queries;
  const std::int64_t removable = cut_.removable();
  if (removed_ < removable) queries.push_back(journal_.remove(removed_, removable));
  queries.push_back(journal_.append(row));
  TRY(run(queries, Mode::write));
  removed_ = removable;
  last_ = row.commit_number;
  const std::scoped_lock lock(rows_mutex_);
  rows_.push_back(row);
  return {};
}

std::vector<JournalRow> CommitLog::only_here() const {
  const std::scoped_lock lock(rows_mutex_);
  return {rows_.begin(), rows_.end()};
}

void CommitLog::database_has(std::int64_t commit_number) {
  const std::scoped_lock lock(rows_mutex_);
  while (!rows_.empty() && rows_.front().commit_number <= commit_number) rows_.pop_front();
}

void CommitLog::followed(std::int64_t commit_number, bool is_durable) {
  database_has(commit_number);
  cut_.followed(commit_number, is_durable);
}

std::optional<std::uint64_t> CommitLog::room() {
  const std::scoped_lock lock(mutex_);
  return connection_ ? connection_->room() : std::nullopt;
}

Result<> CommitLog::run(std::span<const Query> queries, Mode mode) {
  const std::scoped_lock lock(mutex_);
  if (!connection_) return fail(Code::unavailable, "the store is not open");
  return kept(connection_, connection_->run(queries, mode));
}

}  // namespace baton::store
