// A connection that only reads. One that is lost is made anew once per question: reading twice does no harm.
#pragma once

#include "store/schema.hpp"
#include "store/statements.hpp"

namespace baton::store {

template <class Row>
std::string select(Columns columns = Columns::all) {
  return "SELECT " + names<Row>(columns) + " FROM " + table_name<Row>();
}

inline Value number(std::size_t value) { return static_cast<std::int64_t>(value); }

class Reader {
 public:
  Reader(Dialect dialect, Connect connect) : dialect_(dialect), connect_(std::move(connect)) {}

  Result<> open() {
    TRY_ASSIGN(auto connection, connect_());
    TRY(check_version(*connection, dialect_));
    connection_ = std::move(connection);
    return {};
  }

  // `restart` forgets what a first try has collected.
  template <class Restart>
  Result<> run(std::span<const Query> queries, Restart&& restart) {
    if (connection_ && !connection_->broken()) {
      auto outcome = connection_->run(queries, Mode::read);
      if (outcome || !connection_->broken()) return outcome;
    }
    connection_.reset();
    TRY(open());
    restart();
    return connection_->run(queries, Mode::read);
  }

  // `take`: RowView -> Result<T>, for each row of the answers to all parameter sets.
  template <class T, class Take>
  Result<std::vector<T>> rows(Query query, Take&& take) {
    std::vector<T> found;
    query.row = [&](const RowView& view) -> Result<> {
      TRY_ASSIGN(auto row, take(view));
      found.push_back(std::move(row));
      return {};
    };
    TRY(run({&query, 1}, [&] { found.clear(); }));
    return found;
  }
  template <class T, class Take>
  Result<std::vector<T>> rows(const Statement& statement, std::vector<Value> values, Take&& take) {
    return rows<T>(Query{&statement, 1, constant(std::move(values)), {}, {}}, std::forward<Take>(take));
  }

  template <class Row>
  Result<std::vector<Row>> all(const Statement& statement, std::vector<Value> values) {
    return rows<Row>(statement, std::move(values), [](const RowView& view) { return read<Row>(view); });
  }

  template <class Row>
  Result<std::optional<Row>> first(const Statement& statement, std::vector<Value> values) {
    TRY_ASSIGN(auto found, all<Row>(statement, std::move(values)));
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  }

 private:
  Dialect dialect_;
  Connect connect_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace baton::store
