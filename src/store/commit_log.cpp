#include "store/commit_log.hpp"

namespace baton::store {

Result<> CommitLog::open(std::int64_t partition, std::int64_t term) {
  const std::scoped_lock lock(mutex_);
  connection_.reset();
  journal_.set(partition, term);
  followed_ = removed_ = 0;
  TRY_ASSIGN(connection_, connect_());
  return {};
}

Result<> CommitLog::append(const JournalRow& row) {
  std::vector<Query> queries;
  const std::int64_t followed = followed_;
  if (removed_ < followed) queries.push_back(journal_.remove(removed_, followed));
  queries.push_back(journal_.append(row));
  TRY(run(queries, Mode::write));
  removed_ = followed;
  return {};
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
