// What the API reads, on connections of its own that never wait for the writer. One object per connection,
// one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "core/workflow/machine/rows.hpp"
#include "ports/call_reads.hpp"
#include "ports/runbook_reads.hpp"

namespace baton {

struct JobFilter {
  workflow::Tenant tenant;
  std::optional<workflow::JobStatus> status;
  std::optional<std::string> workflow_id;
  std::optional<std::string> tag;
  std::optional<Time> created_from;   // inclusive
  std::optional<Time> created_until;  // exclusive
};

// Newest first. Job ids sort by time, so the cursor is the last job id of the page before.
struct JobPage {
  std::vector<workflow::Job> jobs;             // without input_data and result_data
  std::optional<workflow::JobId> next_before;  // none: this is the last page
};

struct JobView {
  workflow::Job job;
  std::vector<workflow::NodeState> nodes;  // at most node_limit of them, by node id
};

// Where a page of waiting or dead nodes goes on: after this one.
struct NodeCursor {
  Time at{};
  workflow::JobId job_id;
  std::int32_t item_index = 0;
  std::string node_id;
};

// Of a queue in which workers find tasks of workflows and jobs of runbooks.
struct QueueCounts {
  std::int64_t waiting = 0;  // without those that a worker has
  std::int64_t dead = 0;     // given up after too many deliveries, or by a worker
  bool is_at_least = false;  // there may be more: counting has ended before
};

struct WorkflowSummary {
  std::string workflow_id;
  std::int32_t version = 0;  // the latest
  Time published_at{};
};

enum class Role { admin, operator_, viewer, worker };
[[nodiscard]] std::string_view name(Role role);
[[nodiscard]] std::optional<Role> role(std::string_view name);

// access_tokens: only the SHA-256 of a token is ever stored.
struct Token {
  std::string token_id;    // public, short
  std::string token_hash;  // hex
  std::string label;
  Role role = Role::viewer;
  std::optional<workflow::Tenant> tenant;  // none: all tenants
  Time created_at{};
  std::optional<Time> revoked_at;
  // What signs shared access signatures for the bus, if it may be used there. Who checks a signature must know the key.
  std::optional<std::string> bus_key;
};

class Reads : public RunbookReads, public CallReads {
 public:
  [[nodiscard]] virtual Result<std::optional<workflow::Job>> job(const workflow::Tenant&,
                                                                 const workflow::JobId&) = 0;
  [[nodiscard]] virtual Result<bool> has_job(const workflow::Tenant&, const workflow::JobId&) = 0;
  // The nodes of the definition, without the children of fan-outs; those are by their index, which has no gaps.
  [[nodiscard]] virtual Result<std::vector<workflow::NodeState>> nodes(const workflow::JobId&,
                                                                       std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::vector<workflow::NodeState>> items(const workflow::JobId&,
                                                                       const std::string& fan_out,
                                                                       std::int32_t after,
                                                                       std::size_t limit) = 0;
  // A node or a child by its name.
  [[nodiscard]] virtual Result<std::optional<workflow::NodeState>> node(const workflow::JobId&,
                                                                        const std::string& node_id) = 0;
  [[nodiscard]] virtual Result<std::vector<workflow::LogLine>> logs(const workflow::JobId&,
                                                                    const std::string& node_id,
                                                                    std::int64_t after,
                                                                    std::size_t limit) = 0;
  // What was given up after too many deliveries, oldest first.
  [[nodiscard]] virtual Result<std::vector<workflow::NodeState>> dead_letters(
      const workflow::Tenant&, const std::optional<NodeCursor>& after, std::size_t limit) = 0;
  // Of each of these queues, looking at no more than so many rows that wait in one, and that are dead in all.
  [[nodiscard]] virtual Result<std::map<std::string, QueueCounts>> queue_counts(const workflow::Tenant&, const std::vector<std::string>& queues,
                                                                                std::size_t limit) = 0;
  // Approvals that wait for a person, oldest first (within a priority).
  [[nodiscard]] virtual Result<std::vector<workflow::NodeState>> approvals(const workflow::Tenant&,
                                                                           std::size_t limit) = 0;
  // The queues of a tenant in which tasks wait, by name; not the one of approvals.
  [[nodiscard]] virtual Result<std::vector<QueueBacklog>> task_backlogs(const workflow::Tenant&) = 0;
  [[nodiscard]] virtual Result<JobPage> jobs(const JobFilter&, const std::optional<workflow::JobId>& before,
                                             std::size_t limit) = 0;
  // Events after `after`, oldest first.
  [[nodiscard]] virtual Result<std::vector<workflow::Event>> timeline(const workflow::JobId&,
                                                                      std::int64_t after,
                                                                      std::size_t limit) = 0;
  [[nodiscard]] virtual Result<std::vector<WorkflowSummary>> workflows(const workflow::Tenant&,
                                                                       const std::string& after,
                                                                       std::size_t limit) = 0;
  // version 0: the latest
  [[nodiscard]] virtual Result<std::optional<workflow::Workflow>> workflow(const workflow::Tenant&,
                                                                           const std::string& workflow_id,
                                                                           std::int32_t version) = 0;
  [[nodiscard]] virtual Result<std::optional<Token>> token_by_hash(const std::string& token_hash) = 0;
  [[nodiscard]] virtual Result<std::optional<Token>> token_by_id(const std::string& token_id) = 0;
  [[nodiscard]] virtual Result<std::vector<Token>> tokens() = 0;
};

// Access tokens are administered beside a running server, in transactions of their own.
class TokenAdmin {
 public:
  virtual ~TokenAdmin() = default;
  [[nodiscard]] virtual Result<> add(const Token& token) = 0;
  [[nodiscard]] virtual Result<bool> revoke(const std::string& token_id,
                                            Time now) = 0;  // false: no such live token
};

}  // namespace baton
