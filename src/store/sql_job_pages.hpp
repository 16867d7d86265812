// What jobs leave behind, many things in one row.
//
// Events are most of what is written for a job and are read only one after the other, so those that come to the tables
// together are one page: a JSON array of [how far its id is before that of the last, type, node or null, milliseconds after
// the time `since`, data], the last one only if there is some. Versions 9 and 10 wrote ids and times themselves, and no
// `since`. What versions before 9 have written, a row each, is in dag_job_event_rows, and is older than any page.
//
// A job that began and completed since the tables followed last never changes again. Its nodes and results are in its page
// too, as arrays of their columns in the order of tables.hpp, without the id of the job: a task id without it in front, a
// time in milliseconds after `since`, a document as text. Such a job has no row in dag_node_rows and
// dag_task_result_rows; one with a node that died, or with much in it, has.
//
// People and other programs see rows, in the views dag_job_events, dag_node_states and dag_task_results.
#pragma once

#include <functional>
#include <span>

#include "ports/store.hpp"
#include "store/connection.hpp"

namespace baton::store {

// What a job that has completed keeps in its page; nothing of one that does not.
struct PackedJob {
  std::vector<workflow::NodeState> nodes;
  std::vector<workflow::TaskResult> results;
};

struct SqlJobPages {
  explicit SqlJobPages(Dialect dialect);
  // Appends the queries that write new events, nodes and results, which must outlive their run.
  void add_writes(std::vector<Query>& queries, const WriteSet& writes) const;
  // Brings what the rows did not have and the page of a job that has completed has.
  using Run = std::function<Result<>(std::span<const Query>)>;
  [[nodiscard]] Result<> load_packed(const LoadRequest& request, Loaded& loaded, const Run& run) const;
  // Appends the events of an answer to `pages` that come behind `after`.
  [[nodiscard]] static Result<> read_events(const RowView& row, const workflow::JobId& job_id, std::int64_t after,
                                            std::vector<workflow::Event>& out);
  // Of an answer to `pages_after`.
  [[nodiscard]] static workflow::JobId job_of(const RowView& row) { return {std::string(row.text(3))}; }
  [[nodiscard]] static std::int64_t last_event(const RowView& row) { return row.integer(1); }
  [[nodiscard]] static Result<PackedJob> read_packed(const RowView& row);

  Statement insert, node_insert, result_insert;
  Statement pages;       // of a job, with events behind this one, at most so many
  Statement pages_after;  // of all jobs, behind this one (job, last event), at most so many; with what they have packed
  Statement event_rows;  // of a job, as `pages`: those of before, as Table<Event> has their columns
  Statement is_packed;  // job ids -> those whose nodes and results are in their page
  Statement nodes_of_job, results_of_job;  // wherever they are
};

}  // namespace baton::store
