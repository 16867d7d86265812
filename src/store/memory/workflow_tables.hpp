// The tables of workflows and of the server itself, in memory, with the indexes of the databases
// (migrations.cpp).
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "ports/reads.hpp"
#include "ports/store.hpp"
#include "store/memory/indexed_table.hpp"

namespace baton::store::memory {

template <>
struct PrimaryKey<workflow::Job> {
  static workflow::JobId of(const workflow::Job& row) { return row.job_id; }
};
template <>
struct PrimaryKey<workflow::NodeState> {
  static NodeKey of(const workflow::NodeState& row) { return baton::key_of(row); }
};
template <>
struct PrimaryKey<workflow::TaskResult> {
  static std::string of(const workflow::TaskResult& row) { return row.task_id; }
};
template <>
struct PrimaryKey<workflow::Event> {
  static std::pair<workflow::JobId, std::int64_t> of(const workflow::Event& row) {
    return {row.job_id, row.event_id};
  }
};
template <>
struct PrimaryKey<workflow::LogLine> {
  static std::tuple<workflow::JobId, std::string, std::int64_t> of(const workflow::LogLine& row) {
    return {row.job_id, row.node_id, row.log_id};
  }
};
template <>
struct PrimaryKey<workflow::JobTag> {
  static std::tuple<Tenant, std::string, workflow::JobId> of(const workflow::JobTag& row) {
    return {row.tenant, row.tag, row.job_id};
  }
};
template <>
struct PrimaryKey<workflow::Workflow> {
  static std::tuple<Tenant, std::string, std::int32_t> of(const workflow::Workflow& row) {
    return {row.tenant, row.workflow_id, row.version};
  }
};
template <>
struct PrimaryKey<workflow::IdempotencyKey> {
  static std::pair<Tenant, std::string> of(const workflow::IdempotencyKey& row) {
    return {row.tenant, row.idempotency_key};
  }
};
template <>
struct PrimaryKey<Token> {
  static std::string of(const Token& row) { return row.token_id; }
};

struct JobsByStatus {
  static auto key(const workflow::Job& job) { return std::tie(job.tenant, job.status, job.job_id); }
};
struct JobsByWorkflow {
  static auto key(const workflow::Job& job) {
    return std::tie(job.tenant, job.workflow_id, job.status, job.job_id);
  }
};

// In the order in which they are handed out.
struct NodesWaiting {
  static bool has(const workflow::NodeState& node) {
    return node.status == workflow::NodeStatus::dispatched && node.queue && node.dispatched_at;
  }
  static auto key(const workflow::NodeState& node) {
    using Key = std::tuple<const Tenant&, const std::string&, std::int32_t, Time, const workflow::JobId&,
                           std::int32_t, const std::string&>;
    return Key{node.tenant, *node.queue,     -node.priority, *node.dispatched_at,
               node.job_id, node.item_index, node.node_id};
  }
};
// Only the built-in queue has no tenant.
struct NodesRunningBuiltin {
  static bool has(const workflow::NodeState& node) {
    return node.status == workflow::NodeStatus::running && node.tenant.empty();
  }
  static auto key(const workflow::NodeState& node) {
    return std::tie(node.job_id, node.item_index, node.node_id);
  }
};
struct NodesDead {
  static bool has(const workflow::NodeState& node) { return node.dead_at.has_value(); }
  static auto key(const workflow::NodeState& node) {
    return std::tie(node.tenant, *node.dead_at, node.job_id, node.item_index, node.node_id);
  }
};

struct TokensByHash {
  static auto key(const Token& token) { return std::tie(token.token_hash); }
};

struct WorkflowTables {
  IndexedTable<workflow::Job, JobsByStatus, JobsByWorkflow> jobs;
  IndexedTable<workflow::NodeState, NodesWaiting, NodesRunningBuiltin, NodesDead> nodes;
  IndexedTable<workflow::TaskResult> task_results;
  IndexedTable<workflow::Event> events;
  IndexedTable<workflow::LogLine> logs;
  IndexedTable<workflow::JobTag> tags;
  IndexedTable<workflow::Workflow> workflows;
  IndexedTable<workflow::IdempotencyKey> idempotency_keys;
  IndexedTable<Token, TokensByHash> tokens;

  // The newest version of a workflow; nullptr: there is none.
  [[nodiscard]] const workflow::Workflow* latest_workflow(const Tenant& tenant,
                                                          const std::string& workflow_id) const;
};

}  // namespace baton::store::memory
