// The events of jobs, many in one row. They are most of what is written for a job and are read only one after the
// other, so those that come to the tables together are one page: a JSON array of [how far its id is before that of the
// last, type, node or null, milliseconds after the time `since`, data], the last one only if there is some. People and
// other programs see rows, in the view dag_job_events. Versions 9 and 10 wrote ids and times themselves, and no `since`. What
// versions before 9 have written, a row each, is in dag_job_event_rows, and is older than any page.
#pragma once

#include "core/workflow/machine/rows.hpp"
#include "store/connection.hpp"

namespace baton::store {

struct SqlEvents {
  explicit SqlEvents(Dialect dialect);
  // Appends the query that writes the events, which must outlive its run.
  void add_write(std::vector<Query>& queries, const std::vector<workflow::Event>& events) const;
  // Appends the events of an answer to `pages` that come behind `after`.
  [[nodiscard]] static Result<> read_page(const RowView& row, const workflow::JobId& job_id, std::int64_t after,
                                          std::vector<workflow::Event>& out);

  Statement insert;
  Statement pages;  // of a job, with events behind this one, at most so many
  Statement rows;   // the same of those of before, as Table<Event> has their columns
};

}  // namespace baton::store
