// Updates of rows that other programs write too: each writes the columns that were changed, and no others.
//
// Rows that change the same columns are one query of one statement, which is made when that set of columns is
// first seen. A decision changes its columns together, so there are few sets: some dozens for steps.
#pragma once

#include <memory>
#include <tuple>
#include <unordered_map>

#include "core/runbook/machine/store_needs.hpp"
#include "store/statements.hpp"

namespace baton::store {

template <class Row>
class ChangeStatements {
 public:
  explicit ChangeStatements(Dialect dialect) : dialect_(dialect) {}

  // Appends the queries that write `rows`, which must outlive their run.
  void add(std::vector<Query>& queries, const std::vector<runbook::Update<Row>>& rows) {
    const auto changes = std::make_shared<std::vector<Change>>();
    for (const runbook::Update<Row>& row : rows)
      if (const ColumnSet set = differing_columns(row.before, row.row)) changes->push_back({set, &row});
    std::ranges::sort(*changes, {}, [](const Change& c) { return std::tuple(c.set, key_of(c.row->row)); });
    for (std::size_t first = 0, end = 0; first < changes->size(); first = end) {
      const ColumnSet set = (*changes)[first].set;
      while (end < changes->size() && (*changes)[end].set == set) ++end;
      const auto fill_change = [changes, first](std::size_t i, std::span<Value> out) {
        const Change& change = (*changes)[first + i];
        fill(change.row->row, change.set, out);
        if constexpr (guard == Guard::status) out.back() = encode(change.row->before.status);
      };
      queries.push_back({&statement(set), end - first, fill_change, {}, missed<Row>(guard)});
    }
  }

  const Statement& statement(ColumnSet set) {
    const auto [at, is_new] = statements_.try_emplace(set);
    if (is_new) at->second = update_statement<Row>(dialect_, set, guard);
    return at->second;
  }

 private:
  struct Change {
    ColumnSet set = 0;
    const runbook::Update<Row>* row = nullptr;
  };
  static constexpr Guard guard = requires(Row row) { row.status; } ? Guard::status : Guard::exists;

  Dialect dialect_;
  std::unordered_map<ColumnSet, Statement> statements_;  // queries point to them: they stay where they are
};

}  // namespace baton::store
