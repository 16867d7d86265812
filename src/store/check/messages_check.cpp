// Entities and what they count.
#include <fmt/format.h>

#include "store/check/tables_check.hpp"

namespace baton::store {
namespace {

using CountsByLane = std::map<std::pair<std::int64_t, message::Lane>, std::int64_t>;

// As they are after the journal.
Result<CountsByLane> count_messages(Snapshot& snapshot, const MessageBacklog& journal) {
  const Statement ask{"SELECT entity_id,lane,count(*) FROM bus_messages GROUP BY entity_id,lane ORDER BY entity_id,lane", {}};
  CountsByLane counts;
  const auto take = [&](const RowView& row) -> Result<> {
    message::Lane lane{};
    if (!decode(row, 1, lane)) return fail(Code::invalid, "table bus_messages has a lane that this version does not know");
    counts[{row.integer(0), lane}] = row.integer(2);
    return {};
  };
  const Query query{&ask, 1, {}, take, {}};
  TRY(snapshot.run({&query, 1}));
  for (const auto& [key, place] : journal.messages().places()) {
    if (place.fate == Fate::made) ++counts[{key.entity_id, key.lane}];
    if (place.fate == Fate::gone) --counts[{key.entity_id, key.lane}];
  }
  return counts;
}

template <class Row>
Result<std::map<std::int64_t, Row>> rows_by_id(Snapshot& snapshot, const RowBacklog<std::int64_t, Row>& journal) {
  const Statement ask{"SELECT " + names<Row>(Columns::summary) + " FROM " + table_name<Row>(), {}};
  std::map<std::int64_t, Row> rows;
  const auto take = [&](const RowView& view) -> Result<> {
    TRY_ASSIGN(Row row, read<Row>(view, Columns::summary));
    rows.emplace(row.entity_id, std::move(row));
    return {};
  };
  const Query query{&ask, 1, {}, take, {}};
  TRY(snapshot.run({&query, 1}));
  for (const auto& [id, place] : journal.places()) {
    const auto found = journal.at(place);
    if (!found.row)
      rows.erase(id);
    else if (is_whole(found.fate))
      rows.insert_or_assign(id, *found.row);
    else if (const auto row = rows.find(id); row != rows.end())
      copy_live(*found.row, row->second);
  }
  return rows;
}

}  // namespace

Result<> check_messages(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked) {
  using message::Lane;
  TRY_ASSIGN(const auto entities, rows_by_id(snapshot, replayed.messages().entities()));
  TRY_ASSIGN(const auto counters, rows_by_id(snapshot, replayed.messages().counters()));
  TRY_ASSIGN(const CountsByLane counts, count_messages(snapshot, replayed.messages()));
  const auto text = [](std::int64_t id) { return fmt::format("entity {}", id); };
  const auto count = [&](std::int64_t id, Lane lane) {
    const auto found = counts.find({id, lane});
    return found == counts.end() ? 0 : found->second;
  };
  for (const auto& [id, entity] : entities)
    if (!counters.contains(id)) tell(text(id), "it has no counters");
  for (const auto& [id, row] : counters) {
    if (id != 0 && !entities.contains(id)) tell(text(id), "it has counters, but no row");  // 0 counts the entities themselves
    const auto look_at = [&](const char* name, std::int64_t counted, std::int64_t there) {
      if (counted != there) tell(text(id), fmt::format("{} is {}, and there are {}", name, counted, there));
    };
    look_at("active", row.active, count(id, Lane::active));
    look_at("dead", row.dead, count(id, Lane::dead) + count(id, Lane::shelved));
    look_at("scheduled", row.scheduled, count(id, Lane::scheduled));
    look_at("deferred", row.deferred, count(id, Lane::deferred));
  }
  for (const auto& [where, n] : counts) {
    checked.messages += static_cast<std::size_t>(std::max<std::int64_t>(n, 0));
    if (n != 0 && !counters.contains(where.first)) tell(text(where.first), fmt::format("it has {} messages, but no counters", n));
  }
  checked.entities += entities.size();
  return {};
}

}  // namespace baton::store
