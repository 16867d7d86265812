#include "store/sql_timers.hpp"

#include <algorithm>

namespace baton::store {
namespace {

struct Entry {
  explicit Entry(const Timer& of) : timer(&of) {
    if (of.subject.type != Subject::Type::job && of.subject.type != Subject::Type::none)
      typed = std::string(name(of.subject.type)) + " " + of.subject.id;
  }
  [[nodiscard]] std::string_view subject() const { return typed.empty() ? timer->subject.id : typed; }
  const Timer* timer;
  std::string typed;  // empty: of a job, or of what nobody knows
};

// What this version does not know has no type, and is written as it was read.
Subject parse_subject(std::string_view text) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return {Subject::Type::job, std::string(text)};
  const auto type = subject_type(text.substr(0, space));
  if (!type || *type == Subject::Type::none || *type == Subject::Type::job)
    return {Subject::Type::none, std::string(text)};
  return {*type, std::string(text.substr(space + 1))};
}

// In the order of their keys: neighbours are written, or looked up, one after the other.
Query with_keys(const Statement& statement, const std::vector<Timer>& timers) {
  std::vector<Entry> order(timers.begin(), timers.end());
  std::ranges::sort(order, {},
                    [](const Entry& entry) { return std::tuple(entry.timer->due, entry.subject()); });
  const auto fill = [order = std::move(order)](std::size_t set, std::span<Value> to) {
    to[0] = to_millis(order[set].timer->due);
    to[1] = order[set].subject();
    to[2] = std::string_view(order[set].timer->what);
  };
  return {&statement, timers.size(), fill, {}, {}};
}

void add_write(std::vector<Query>& queries, const Statement& statement, const std::vector<Timer>& timers) {
  if (!timers.empty()) queries.push_back(with_keys(statement, timers));
}

}  // namespace

SqlTimers::SqlTimers(Dialect dialect) {
  const bool arrays = dialect == Dialect::postgres;
  const std::vector<Type> columns{Type::integer, Type::text, Type::text};
  const std::string into = "INSERT INTO baton_timers(due,subject,what) ",
                    from = "DELETE FROM baton_timers AS t ";
  insert = {into + (arrays ? "SELECT * FROM unnest(?1,?2,?3)" : "VALUES(?1,?2,?3)") + " ON CONFLICT DO NOTHING", columns, true};
  // PostgreSQL looks up key by key, whatever it believes of the table: see select_by in statements.hpp.
  remove = {from + (arrays ? "WHERE t.ctid=ANY(ARRAY(SELECT f.ctid FROM unnest(?1,?2,?3) AS k(due,subject,what) CROSS JOIN LATERAL"
                             " (SELECT i.ctid FROM baton_timers AS i WHERE i.due=k.due AND i.subject=k.subject AND i.what=k.what"
                             " OFFSET 0) AS f))"
                           : "WHERE t.due=?1 AND t.subject=?2 AND t.what=?3"),
            columns, true};
  due = {"SELECT due,subject,what FROM baton_timers WHERE due<=?1 ORDER BY due,subject,what LIMIT ?2",
         {Type::integer, Type::integer}};
  after = {"SELECT due,subject,what FROM baton_timers WHERE (due,subject,what)>(?1,?2,?3) ORDER BY due,subject,what LIMIT ?4",
           {Type::integer, Type::text, Type::text, Type::integer}};
  by_key = {arrays ? "SELECT t.due,t.subject,t.what FROM unnest(?1,?2,?3) AS k(due,subject,what) CROSS JOIN LATERAL"
                     " (SELECT * FROM baton_timers AS i WHERE i.due=k.due AND i.subject=k.subject AND i.what=k.what OFFSET 0) AS t"
                   : "SELECT due,subject,what FROM baton_timers WHERE due=?1 AND subject=?2 AND what=?3",
            columns, true};
  next = {"SELECT due FROM baton_timers ORDER BY due,subject,what LIMIT 1", {}};
}

void SqlTimers::add_writes(std::vector<Query>& queries, const WriteSet& writes) const {
  add_write(queries, remove, writes.timers_gone);
  add_write(queries, insert, writes.timers_new);
}

Query SqlTimers::find(const std::vector<Timer>& timers, std::vector<Timer>& found) const {
  Query query = with_keys(by_key, timers);
  query.row = [&found](const RowView& row) -> Result<> { return found.push_back(read(row)), Result<>{}; };
  return query;
}

Timer SqlTimers::read(const RowView& row) {
  return {from_millis(row.integer(0)), parse_subject(row.text(1)), std::string(row.text(2))};
}

}  // namespace baton::store
