#include "store/journal/backlog.hpp"

#include <algorithm>
#include <iterator>

#include "base/mutant.hpp"
#include "store/tables.hpp"

namespace baton::store {
namespace {

using namespace workflow;

template <class Row>
void append(std::vector<Row>& to, std::vector<Row>& from) {
  std::ranges::move(from, std::back_inserter(to));
}

// A row that was changed replaces the one that is here; columns that no update writes stay.
template <class Row, class Key>
void add_rows(auto& places, std::vector<Row>& news, std::vector<Row>& changes, std::vector<Row>& added_new,
              std::vector<Row>& added_changed, Key&& key_of) {
  for (Row& row : added_new) {
    places[key_of(row)] = {true, news.size()};
    news.push_back(std::move(row));
  }
  for (Row& row : added_changed) {
    const auto [place, is_first] = places.try_emplace(key_of(row), false, changes.size());
    if (is_first)
      changes.push_back(std::move(row));
    else if (!MUTANT(backlog_keeps_new) || !place->second.is_new)
      move_live(row, (place->second.is_new ? news : changes)[place->second.at]);
  }
}

Job without_documents(Job job) {
  job.input_data = {};
  job.result_data.reset();
  return job;
}

}  // namespace

void Backlog::add(WriteSet w, std::size_t bytes) {
  bytes_ += bytes;
  rows_ += w.rows();
  add(std::move(w.calls));
  messages_.add(std::move(w.messages));
  add_rows(jobs_, writes_->jobs_new, writes_->jobs_changed, w.jobs_new, w.jobs_changed,
           [](const Job& row) { return row.job_id; });
  add_rows(nodes_, writes_->nodes_new, writes_->nodes_changed, w.nodes_new, w.nodes_changed,
           [](const NodeState& row) { return key_of(row); });
  for (TaskResult& row : w.task_results_new) {
    results_.emplace(row.task_id, writes_->task_results_new.size());
    writes_->task_results_new.push_back(std::move(row));
  }
  append(writes_->events_new, w.events_new);
  append(writes_->tags_new, w.tags_new);
  append(writes_->logs_new, w.logs_new);
  for (IdempotencyKey& row : w.idempotency_keys_new) {
    keys_.emplace(std::pair{row.tenant, row.idempotency_key}, writes_->idempotency_keys_new.size());
    writes_->idempotency_keys_new.push_back(std::move(row));
  }
  // Whether the tables have a timer is not known here: one may be set again, and one that is not there may go. So the
  // last word counts, and tables take out before they put in.
  for (Timer& timer : w.timers_gone) {
    if (!MUTANT(backlog_keeps_timer)) timers_new_.erase(timer);
    timers_gone_.insert(std::move(timer));
  }
  timers_new_.insert(std::make_move_iterator(w.timers_new.begin()), std::make_move_iterator(w.timers_new.end()));
}

// Rows that are written anew are never here: who writes them waits for the tables (journal_store.cpp).
void Backlog::add(call::Writes w) {
  call::Writes& calls = writes_->calls;
  add_rows(calls_, calls.calls_new, calls.calls_changed, w.calls_new, w.calls_changed,
           [](const call::Call& row) { return row.key(); });
  append(calls.events_new, w.events_new);
  append(calls.tags_new, w.tags_new);
  for (call::Request& row : w.requests_new) {
    requests_.emplace(call::CallKey{row.tenant_id, row.service_call_id}, calls.requests_new.size());
    calls.requests_new.push_back(std::move(row));
  }
  for (call::IdempotencyKey& row : w.keys_new) {
    call_keys_.emplace(std::pair{row.tenant_id, row.idempotency_key}, calls.keys_new.size());
    calls.keys_new.push_back(std::move(row));
  }
}

bool Backlog::has_key_of(const WriteSet& w) const {
  const auto any = [](const auto& rows, auto&& is_here) { return std::ranges::any_of(rows, is_here); };
  return (!jobs_.empty() && any(w.jobs_new, [&](const Job& row) { return jobs_.contains(row.job_id); })) ||
         (!results_.empty() && any(w.task_results_new, [&](const TaskResult& row) { return results_.contains(row.task_id); })) ||
         (!keys_.empty() && any(w.idempotency_keys_new,
                                [&](const IdempotencyKey& row) { return keys_.contains({row.tenant, row.idempotency_key}); })) ||
         (!calls_.empty() && any(w.calls.calls_new, [&](const call::Call& row) { return calls_.contains(row.key()); })) ||
         (!call_keys_.empty() && any(w.calls.keys_new, [&](const call::IdempotencyKey& row) {
            return call_keys_.contains({row.tenant_id, row.idempotency_key});
          }));
}

void Backlog::clear() { *this = {}; }

const WriteSet& Backlog::writes() {
  writes_->timers_new.assign(timers_new_.begin(), timers_new_.end());
  writes_->timers_gone.assign(timers_gone_.begin(), timers_gone_.end());
  messages_.finish_rows();
  return *writes_;
}

const Job* Backlog::job(const JobId& id) const {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return nullptr;
  return &(found->second.is_new ? writes_->jobs_new : writes_->jobs_changed)[found->second.at];
}

const call::Call& Backlog::call_in(const Place& place) const {
  return (place.is_new ? writes_->calls.calls_new : writes_->calls.calls_changed)[place.at];
}

std::optional<std::int64_t> Backlog::version_of(const call::CallKey& key) const {
  const auto found = calls_.find(key);
  return found == calls_.end() ? std::nullopt : std::optional{call_in(found->second).version};
}

const NodeState* Backlog::node(const NodeKey& key) const {
  const auto found = nodes_.find(key);
  if (found == nodes_.end()) return nullptr;
  return &(found->second.is_new ? writes_->nodes_new : writes_->nodes_changed)[found->second.at];
}

Loaded Backlog::load(LoadRequest& request) const {
  Loaded loaded;
  if (rows_ == 0) return loaded;
  std::set<JobId> whole;
  std::erase_if(request.jobs_whole, [&](const JobId& id) {
    const Job* found = job(id);
    if (!found || !jobs_.at(id).is_new) return false;
    if (whole.insert(id).second) loaded.jobs.push_back(*found);
    return true;
  });
  const std::set<JobId> asked_whole(request.jobs_whole.begin(), request.jobs_whole.end());
  std::set<JobId> seen;
  std::erase_if(request.jobs, [&](const JobId& id) {
    if (whole.contains(id) || asked_whole.contains(id)) return true;
    const Job* found = job(id);
    if (found && seen.insert(id).second) loaded.jobs.push_back(without_documents(*found));
    return found != nullptr;
  });
  std::set<NodeKey> nodes;
  std::erase_if(request.nodes, [&](const NodeKey& key) {
    const NodeState* found = node(key);
    if (found && nodes.insert(key).second) loaded.nodes.push_back(*found);
    return found != nullptr;
  });
  std::set<std::string> results;
  std::erase_if(request.task_results, [&](const std::string& id) {
    const auto found = results_.find(id);
    if (found == results_.end()) return false;
    if (results.insert(id).second) loaded.task_results.push_back(writes_->task_results_new[found->second]);
    return true;
  });
  std::set<std::size_t> keys;
  std::erase_if(request.idempotency_keys, [&](const IdempotencyKey& asked) {
    const auto found = keys_.find({asked.tenant, asked.idempotency_key});
    if (found == keys_.end()) return false;
    if (keys.insert(found->second).second) loaded.idempotency_keys.push_back(writes_->idempotency_keys_new[found->second]);
    return true;
  });
  return loaded;
}

void Backlog::settle(Loaded& loaded) const {
  for (Job& row : loaded.jobs)
    if (const Job* newer = job(row.job_id)) copy_live(*newer, row);
}

call::Loaded Backlog::load(call::LoadRequest& request) const {
  call::Loaded loaded;
  if (rows_ == 0) return loaded;
  const auto take = [](auto& asked, const auto& places, auto& found, auto&& row_at) {
    std::set<std::decay_t<decltype(asked.front())>> seen;
    std::erase_if(asked, [&](const auto& key) {
      const auto place = places.find(key);
      if (place == places.end()) return false;
      if (seen.insert(key).second) found.push_back(row_at(place->second));
      return true;
    });
  };
  const call::Writes& rows = writes_->calls;
  const auto call_at = [&](const Place& place) { return call_in(place); };
  take(request.calls, calls_, loaded.calls, call_at);
  take(request.streams, calls_, loaded.calls, call_at);
  take(request.requests, requests_, loaded.requests, [&](std::size_t at) { return rows.requests_new[at]; });
  take(request.idempotency_keys, call_keys_, loaded.idempotency_keys, [&](std::size_t at) { return rows.keys_new[at]; });
  return loaded;
}

std::size_t Backlog::settle(std::vector<WaitingTask>& found, const QueueKey& queue) const {
  const std::size_t left_out = std::erase_if(found, [&](const WaitingTask& task) {
    return ref_of(task).type == runbook::RowType::none && nodes_.contains(node_of(task));
  });
  for (const auto* rows : {&writes_->nodes_new, &writes_->nodes_changed})
    for (const NodeState& node : *rows)
      if (node.status == NodeStatus::dispatched && node.queue == queue.queue && node.tenant == queue.tenant)
        found.push_back(waiting_task(baton::key_of(node), node.priority, node.dispatched_at.value_or(Time{})));
  return left_out;
}

}  // namespace baton::store
