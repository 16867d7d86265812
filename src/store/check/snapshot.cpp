#include "store/check/snapshot.hpp"

#include <limits>

namespace baton::store {

using namespace workflow;

Result<> Snapshot::begin() {
  return connection_->script(dialect_ == Dialect::sqlite ? "BEGIN" : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
}

Result<WriterState> Snapshot::writer_state(Partition partition) {
  const Statement ask{"SELECT term,last_commit,followed FROM writer_state WHERE partition=?1", {Type::integer}};
  WriterState state;
  const auto take = [&](const RowView& row) -> Result<> {
    return state = {row.integer(0), row.integer(1), row.integer(2)}, Result<>{};
  };
  const Query query{&ask, 1, constant({std::int64_t{partition.number}}), take, {}};
  TRY(run({&query, 1}));
  return state;
}

Result<std::map<KeyOf<NodeState>, NodeState>> Snapshot::nodes(const std::set<KeyOf<NodeState>>& keys) {
  std::map<KeyOf<NodeState>, NodeState> found;
  if (keys.empty()) return found;
  const Statement by_key = select_statement<NodeState>(dialect_, Columns::summary);
  const std::vector<KeyOf<NodeState>> asked(keys.begin(), keys.end());
  const auto take = [&](const RowView& view) -> Result<> {
    NodeState row;
    (void)read_into(row, view, Columns::summary);  // what cannot be read is told when all nodes are gone through
    return found.emplace(owned_key(row), std::move(row)), Result<>{};
  };
  const Query query{&by_key, asked.size(), [&](std::size_t i, std::span<Value> out) { fill_key(asked[i], out); }, take, {}};
  TRY(run({&query, 1}));
  return found;
}

Result<std::vector<PackedJob>> Snapshot::packed(const std::set<JobId>& jobs) {
  std::vector<PackedJob> found;
  if (jobs.empty()) return found;
  const std::vector<JobId> asked(jobs.begin(), jobs.end());
  std::vector<std::string> ids;
  const Query is_packed{&pages.is_packed, asked.size(),
                        [&](std::size_t i, std::span<Value> out) { out[0] = encode(asked[i]); },
                        [&](const RowView& row) -> Result<> { return ids.emplace_back(row.text(0)), Result<>{}; },
                        {}};
  TRY(run({&is_packed, 1}));
  for (const std::string& id : ids) {
    const auto take = [&](const RowView& row) -> Result<> {
      if (auto packed = SqlJobPages::read_packed(row)) found.push_back(*std::move(packed));
      return {};
    };
    const Query first{&pages.pages_after, 1,
                      constant({std::string_view(id), std::numeric_limits<std::int64_t>::min(), std::int64_t{1}}), take, {}};
    TRY(run({&first, 1}));
  }
  return found;
}

Result<std::optional<Workflow>> Snapshot::workflow(const WorkflowKey& key) {
  const Statement by_key = select_statement<Workflow>(dialect_);
  std::vector<Workflow> found;
  const Query query{&by_key, 1, constant({encode(key.tenant), encode(key.workflow_id), std::int64_t{key.version}}),
                    collect(found), {}};
  TRY(run({&query, 1}));
  return found.empty() ? std::nullopt : std::optional{std::move(found.front())};
}

}  // namespace baton::store
