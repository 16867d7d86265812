// What the store does for queues, topics and their messages; see sql_store.cpp.
#pragma once

#include <functional>
#include <span>

#include "ports/store.hpp"
#include "store/statements.hpp"

namespace baton::store {

class SqlMessages {
 public:
  explicit SqlMessages(Dialect dialect);

  // What goes before what comes. The rows must outlive the run of the queries.
  void add_writes(std::vector<Query>& queries, const message::Writes& writes) const;

  using Run = std::function<Result<>(std::span<const Query>)>;
  [[nodiscard]] Result<message::Loaded> load(const message::LoadRequest& request, const Run& run) const;
  // Those of a lane that nobody has locked, and that have not expired by now.
  [[nodiscard]] Query waiting(const message::QueueOfMessages& queue, std::size_t limit, Time now, std::vector<WaitingTask>& found) const;

  // Those that must not read a table from end to end (tests/contract/store/plans_test.cpp).
  [[nodiscard]] std::vector<Statement> statements() const;

 private:
  Statement entity_insert_, entity_update_, entity_delete_, entity_select_;
  Statement counters_insert_, counters_update_, counters_delete_, counters_select_;
  Statement insert_, update_, delete_, select_, select_light_, locked_, page_, page_without_bytes_, agenda_, waiting_;
  Statement history_upsert_, history_delete_, history_select_, history_oldest_;
};

}  // namespace baton::store
