#include "store/commit_log.hpp"

namespace baton::store {

Result<> CommitLog::open(std::int64_t partition, std::int64_t term) {
  const std::scoped_lock lock(mutex_);
  connection_.reset();
  journal_.set(partition, term);
  removable_ = removed_ = 0;
  rows_.clear();
  TRY_ASSIGN(connection_, connect_());
  return {};
}

Result<> CommitLog::append(const JournalRow& row) {
  std::vector<Query> queries;
  const std::int64_t removable = removable_;
  if (removed_ < removable) queries.push_back(journal_.remove(removed_, removable));
  queries.push_back(journal_.append(row));
  TRY(run(queries, Mode::write));
  removed_ = removable;
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
