// The tables of workflows and the timers of jobs, each gone through once, with the journal upon them.
#pragma once

#include "store/check/job_check.hpp"
#include "store/check/replay.hpp"

namespace baton::store {

using NodeName = std::pair<workflow::JobId, std::string>;
using NodeNames = std::set<NodeName>;

// Rows that are looked up together.
inline constexpr std::size_t lookup_rows = 500;

[[nodiscard]] inline std::string result_text(const workflow::TaskResult& row) { return "the result of task " + row.task_id; }
[[nodiscard]] inline std::string no_node_text(const workflow::JobId& id, const std::string& node_id) {
  return "there is no node " + node_id + " of job " + id.value;
}

// All of them count into `checked` what they have looked at.
//
// That each timer of a job has its node. Nodes whose timer was put off, because it could not be obeyed, are added to
// `put_off`: their rows still say the time of before.
[[nodiscard]] Result<> check_timers(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked,
                                    NodeNames& put_off);
// The rows of jobs, with their nodes and events, and the timers and results that those need.
[[nodiscard]] Result<> check_jobs(Snapshot& snapshot, const Replayed& replayed, const NodeNames& put_off, const TellFinding& tell,
                                  Checked& checked);
// That each result that is a row of its own has its node.
[[nodiscard]] Result<> check_results(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked);
// That each entity counts the messages that it has.
[[nodiscard]] Result<> check_messages(Snapshot& snapshot, const Replayed& replayed, const TellFinding& tell, Checked& checked);

}  // namespace baton::store
