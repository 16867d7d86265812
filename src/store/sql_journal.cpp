#include "store/sql_journal.hpp"

namespace baton::store {

SqlJournal::SqlJournal(Dialect dialect, Where where) {
  const std::string table = where == Where::log ? "log.baton_journal" : "baton_journal";
  const std::string columns = "SELECT id,format,data FROM ";
  // A commit may be in both.
  const std::string all = where == Where::log ? "(" + columns + "main.baton_journal UNION ALL " + columns +
                                                    "log.baton_journal WHERE id NOT IN (SELECT id FROM main.baton_journal)) AS j"
                                              : "baton_journal AS j";
  // The row of the term is held until the commit is over: whoever takes the term sees this commit or prevents it. With
  // SQLite nobody can take it from a writer that lives (sqlite/writer_lock.hpp).
  append_ = {exactly(dialect,
                     "INSERT INTO " + table + "(id,format,data) SELECT ?2,?3,?4 FROM writer_state WHERE partition=?1 AND term=?5" +
                         (dialect == Dialect::postgres ? " FOR UPDATE" : ""),
                     "1"),
             {Type::integer, Type::integer, Type::integer, Type::bytes, Type::integer},
             false,
             true};
  remove_ = {"DELETE FROM " + table + " WHERE id>?1 AND id<=?2", {Type::integer, Type::integer}};
  const std::string is_last = " WHERE id>?1 AND id<?2 ORDER BY id DESC LIMIT 1";
  last_ = {"SELECT id FROM " + all + is_last, {Type::integer, Type::integer}};
  last_in_table_ = {"SELECT id FROM " + table + is_last, {Type::integer, Type::integer}};
  rows_ = {"SELECT id,format,data FROM " + all +
               " WHERE id>?1+(SELECT followed FROM writer_state WHERE partition=?3) AND id<?2 ORDER BY id",
           {Type::integer, Type::integer, Type::integer}};
}

void SqlJournal::set(std::int64_t partition, std::int64_t term) {
  partition_ = partition;
  term_ = term;
}

Query SqlJournal::append(const JournalRow& row) const {
  return {&append_, 1,
          constant({partition_, first() + row.commit_number, std::int64_t{row.format}, std::string_view(row.data), term_}),
          {}, fenced()};
}

Query SqlJournal::remove(std::int64_t from, std::int64_t to) const {
  return {&remove_, 1, constant({first() + from, first() + to}), {}, {}};
}

Query SqlJournal::last(const Statement& statement, std::int64_t& commit_number) const {
  const auto take = [this, &commit_number](const RowView& row) -> Result<> {
    return commit_number = row.integer(0) - first(), Result<>{};
  };
  return {&statement, 1, constant({first(), end()}), take, {}};
}

Query SqlJournal::rows(std::vector<JournalRow>& found) const {
  const auto take = [this, &found](const RowView& row) -> Result<> {
    found.push_back({row.integer(0) - first(), static_cast<std::int32_t>(row.integer(1)), row.bytes(2)});
    return {};
  };
  return {&rows_, 1, constant({first(), end(), partition_}), take, {}};
}

}  // namespace baton::store
