// A connection in one transaction that only reads: whatever is asked of it is answered from the same state of the tables.
#pragma once

#include <map>
#include <set>
#include <span>

#include "store/sql_job_pages.hpp"
#include "store/sql_journal.hpp"
#include "store/sql_timers.hpp"
#include "store/statements.hpp"

namespace baton::store {

template <class... Part>
std::tuple<Part...> owned(const std::tuple<const Part&...>& key) {
  return key;
}
template <class Row>
auto owned_key(const Row& row) {
  return owned(store::key_of(row));
}
template <class Row>
using KeyOf = decltype(owned_key(std::declval<const Row&>()));

template <class... Part>
void fill_key(const std::tuple<Part...>& key, std::span<Value> out) {
  std::apply([&](const auto&... part) { std::ranges::copy(std::initializer_list<Value>{encode(part)...}, out.begin()); }, key);
}

class Snapshot {
 public:
  Snapshot(Dialect dialect, std::unique_ptr<Connection> connection)
      : timers(dialect), pages(dialect), dialect_(dialect), connection_(std::move(connection)) {}

  // What is seen is what is there at the first question after this.
  [[nodiscard]] Result<> begin();
  [[nodiscard]] Result<> run(std::span<const Query> queries) { return connection_->run(queries, Mode::read); }
  [[nodiscard]] Dialect dialect() const { return dialect_; }

  // Zeros where nobody has written yet.
  [[nodiscard]] Result<WriterState> writer_state(Partition partition);
  // Which of these rows are in their table.
  template <class Row>
  [[nodiscard]] Result<std::set<KeyOf<Row>>> stored(const std::set<KeyOf<Row>>& keys);
  // Those that are in rows, without their documents.
  [[nodiscard]] Result<std::map<KeyOf<workflow::NodeState>, workflow::NodeState>> nodes(
      const std::set<KeyOf<workflow::NodeState>>& keys);
  // What those of the jobs that keep it there have in their page. A page that cannot be read has nothing.
  [[nodiscard]] Result<std::vector<PackedJob>> packed(const std::set<workflow::JobId>& jobs);
  [[nodiscard]] Result<std::optional<workflow::Workflow>> workflow(const WorkflowKey& key);

  const SqlTimers timers;
  const SqlJobPages pages;

 private:
  const Dialect dialect_;
  const std::unique_ptr<Connection> connection_;
};

template <class Row>
Result<std::set<KeyOf<Row>>> Snapshot::stored(const std::set<KeyOf<Row>>& keys) {
  std::set<KeyOf<Row>> found;
  if (keys.empty()) return found;
  const Statement by_key = select_statement<Row>(dialect_, Columns::keys);
  const std::vector<KeyOf<Row>> asked(keys.begin(), keys.end());
  const auto take = [&](const RowView& view) -> Result<> {
    TRY_ASSIGN(const Row row, read<Row>(view, Columns::keys));
    found.insert(owned_key(row));
    return {};
  };
  const Query query{&by_key, asked.size(), [&](std::size_t i, std::span<Value> out) { fill_key(asked[i], out); }, take, {}};
  TRY(run({&query, 1}));
  return found;
}

}  // namespace baton::store
