// The JSON of what the API shows, written straight as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_write.hpp"
#include "ports/commands.hpp"
#include "ports/reads.hpp"
#include "ports/task_messages.hpp"

namespace baton::http {

// Without the closing brace when more members follow.
enum class ObjectEnd { closed, open };

// How much of a job's or a node's documents is shown. brief: those that are large are left out, and their
// size is told instead, so that a view of a job with a huge result is still quick.
enum class Documents { none, brief, all };

void append_job(std::string& out, const workflow::Job& job, Documents documents,
                ObjectEnd ending = ObjectEnd::closed);
void append_node(std::string& out, const workflow::NodeState& node, Documents documents,
                 ObjectEnd ending = ObjectEnd::closed);
void append_nodes(std::string& out, const std::vector<workflow::NodeState>& nodes, std::size_t nodes_max,
                  Documents documents);
void append_log_line(std::string& out, const workflow::LogLine& line);
void append_explanation(std::string& out, const ExplainReply& reply);
void append_worker(std::string& out, const WorkerInfo& worker);
void append_event(std::string& out, const workflow::Event& event);
// What became of a result: "accepted":…,"duplicate":…, and why it was ignored. `code` is there for workers
// that send what is neither accepted nor refused for ever.
void append_outcome(std::string& out, const ResultReply& reply);
// "results":[…]: one for each that was handed in, under the name by which it came.
void append_outcomes(std::string& out, std::string_view key, const std::vector<std::string>& ids,
                     const std::vector<std::optional<Reply>>& replies);
// "code":…,"message":…; none: the server is stopping.
void append_refusal(std::string& out, const Refused* refused);

}  // namespace baton::http
