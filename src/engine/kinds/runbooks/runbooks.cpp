#include "engine/kinds/runbooks/runbooks.hpp"

#include <algorithm>

#include "engine/kinds/runbooks/transaction.hpp"

namespace baton::engine {

Runbooks::Runbooks(const RunbooksOptions& options, metrics::Registry* metrics)
    : policy_(options.policy),
      chunk_members_max_(options.policy.chunk_members),
      walks_max_(options.walks_max),
      ids_block_(options.ids_block),
      adopt_jobs_(options.adopt_jobs),
      changed_(options.changed),
      steps_ended_(counter_in(metrics, "baton_runbook_steps_ended_total", "Steps of runbooks that have ended.")),
      batches_ended_(counter_in(metrics, "baton_runbook_batches_ended_total", "Batches of runbooks that have ended.")) {}

bool Runbooks::owns(Subject::Type type) const {
  return type >= Subject::Type::runbook && type <= Subject::Type::cleanup;
}

std::unique_ptr<Transaction> Runbooks::begin(Turn turn) {
  return std::make_unique<RunbookTransaction>(*this, turn);
}

Result<std::vector<Command>> Runbooks::at_start(Store& store, std::span<const TaskLease>, Effects&) {
  constexpr std::size_t at_once = 500;
  std::vector<Command> commands;
  if (policy_.scheduler) {
    TRY_ASSIGN(auto ids, store.phases_without_timer(at_once));
    if (ids != adopted_)  // those that are left again cannot be had now
      for (const std::int64_t id : ids) commands.emplace_back(AdoptPhases{{id}});
    adopted_ = std::move(ids);
  }
  if (!commands.empty() || !adopt_jobs_) return commands;
  TRY_ASSIGN(const auto jobs, store.left_by_others(last_adopted_, at_once));
  for (const runbook::Ref ref : jobs) commands.emplace_back(AdoptJobs{{ref}});
  if (!jobs.empty()) last_adopted_ = jobs.back();
  return commands;
}

std::shared_ptr<const runbook::Definition> Runbooks::definition(const runbook::Runbook& row) {
  constexpr std::size_t known_max = 500;
  const std::size_t hash = std::hash<std::string>{}(row.yaml_content);
  if (definitions_.size() > known_max) definitions_.clear();
  KnownDefinition& known = definitions_[row.id];
  if (known.text_hash != hash || !known.definition)
    known = {hash, runbook::parse(row.yaml_content, runbook::Strictness::stored).definition};
  return known.definition;
}

// A restart forgets ids that were not used, and people see the gap. Of runbooks and batches few are made, and how many
// members come is known before: of those no more are reserved than are asked for. Of the others a block is as large as
// all before it, so that a gap is no larger than what was used, and soon there are enough for thousands of rows. As many
// as were not enough at least, so that a batch that makes many rows is not decided again for each block of them.
Result<> Runbooks::reserve_ids(Store& store, runbook::Table table, std::size_t at_least) {
  using runbook::Table;
  constexpr std::size_t least = 10;
  const bool is_seen = table == Table::runbooks || table == Table::batches || table == Table::batch_members;
  std::size_t& reserved = ids_reserved_[table];
  const std::size_t block = is_seen ? 1 : std::clamp(reserved, std::min(least, ids_block_), ids_block_);
  TRY_ASSIGN(auto fresh, store.reserve_ids(table, std::max(block, at_least)));
  reserved += fresh.size();
  std::ranges::sort(fresh, std::greater{});
  auto& pool = ids_[table];
  pool.insert(pool.begin(), fresh.begin(), fresh.end());
  return {};
}

Warn cannot_go_on(runbook::Ref ref, const std::string& why) {
  return {subject_of(ref), std::string(name(ref.type)) + " " + std::to_string(ref.id) + " cannot go on: " + why};
}

}  // namespace baton::engine
