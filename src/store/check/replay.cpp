#include "store/check/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "store/journal/codec.hpp"

namespace baton::store {
namespace {

using namespace workflow;

std::string text_of(const Job& row) { return "job " + row.job_id.value; }
std::string text_of(const NodeState& row) { return "node " + row.node_id + " of job " + row.job_id.value; }
std::string text_of(const TaskResult& row) { return "the result of task " + row.task_id; }
std::string text_of(const JobTag& row) { return "tag '" + row.tag + "' of job " + row.job_id.value; }
std::string text_of(const LogLine& row) {
  return fmt::format("log line {} of node {} of job {}", row.log_id, row.node_id, row.job_id.value);
}
std::string text_of(const IdempotencyKey& row) {
  return "idempotency key '" + row.idempotency_key + "' of tenant " + row.tenant.value;
}

std::string text_of(const call::Call& row) { return "service call " + row.service_call_id.value; }
std::string text_of(const call::EventRow& row) {
  return fmt::format("event {} of service call {}", row.version, row.service_call_id.value);
}
std::string text_of(const call::Request& row) { return "the request of service call " + row.service_call_id.value; }
std::string text_of(const call::IdempotencyKey& row) {
  return "idempotency key '" + row.idempotency_key + "' of service calls of tenant " + row.tenant_id.value;
}

std::string text_of(const message::Message& row) {
  return fmt::format("message {} of lane {} of entity {}", row.sequence_number, name(row.lane), row.entity_id);
}
std::string text_of(const message::Entity& row) { return fmt::format("entity {}", row.entity_id); }
std::string text_of(const message::Counters& row) { return fmt::format("the counters of entity {}", row.entity_id); }

template <class Row>
Row row_of_key(std::int64_t entity_id) {
  Row row;
  row.entity_id = entity_id;
  return row;
}
template <class Row>
Row row_of_key(const message::MessageKey& key) {
  Row row;
  row.entity_id = key.entity_id, row.lane = key.lane, row.sequence_number = key.sequence_number;
  return row;
}

class Replay {
 public:
  Replay(Snapshot& snapshot, const TellFinding& tell) : snapshot_(snapshot), tell_(tell) {}

  Result<> add(const JournalRow& row, const WriteSet& writes) {
    subject_ = subject(row.commit_number);
    TRY(look_into_pages(writes));
    TRY(look_at(writes.jobs_new, writes.jobs_changed));
    TRY(look_at(writes.nodes_new, writes.nodes_changed));
    TRY(look_at(writes.task_results_new));
    TRY(look_at(writes.idempotency_keys_new));
    TRY(look_at(writes.tags_new));
    TRY(look_at(writes.logs_new));
    TRY(look_at(writes.calls.calls_new));  // one that is changed may be gone: somebody looks for lost rows
    TRY(look_at(writes.calls.events_new));
    TRY(look_at(writes.calls.requests_new));
    TRY(look_at(writes.calls.keys_new));
    const message::Writes& messages = writes.messages;
    TRY(look_at(messages.entities_new, messages.entities_changed, messages.entities_gone));
    TRY(look_at(messages.counters_new, messages.counters_changed, messages.entities_gone));
    TRY(look_at(messages.messages_new, messages.messages_changed, messages.messages_gone));
    backlog.add(writes, row.data.size());
    return {};
  }

  static std::string subject(std::int64_t commit_number) { return fmt::format("commit {} of the journal", commit_number); }

  Backlog backlog;

 private:
  template <class Row>
  Result<> look_at(const std::vector<Row>& news, const std::vector<Row>& changes = {}) {
    std::set<KeyOf<Row>> keys;
    for (const auto* rows : {&news, &changes})
      for (const Row& row : *rows) keys.insert(owned_key(row));
    TRY_ASSIGN(auto stored, snapshot_.stored<Row>(keys));
    std::erase_if(stored, [&](const auto& key) { return std::get<Made<Row>>(made_).gone.contains(key); });
    look_at(news, changes, stored);
    return {};
  }
  // Of rows that may go, which they do before others come.
  template <class Row, class Key>
  Result<> look_at(const std::vector<Row>& news, const std::vector<Row>& changes, const std::vector<Key>& gone) {
    auto& [made, went] = std::get<Made<Row>>(made_);
    std::set<KeyOf<Row>> keys;
    for (const Key& key : gone) keys.insert(owned_key(row_of_key<Row>(key)));
    TRY_ASSIGN(const auto stored, snapshot_.stored<Row>(keys));
    for (const Key& key : gone) {
      const Row row = row_of_key<Row>(key);
      const bool is_stored = stored.contains(owned_key(row));
      const bool was_there = made.erase(owned_key(row)) != 0 || (is_stored && !went.contains(owned_key(row)));
      if (!was_there) tell_(subject_, "it deletes " + text_of(row) + ", which is not there");
      if (is_stored) went.insert(owned_key(row));
    }
    return look_at(news, changes);
  }
  template <class Row>
  void look_at(const std::vector<Row>& news, const std::vector<Row>& changes, const std::set<KeyOf<Row>>& stored) {
    auto& made = std::get<Made<Row>>(made_).keys;
    for (const Row& row : news)
      if (!made.insert(owned_key(row)).second || stored.contains(owned_key(row)) || is_in_page(row))
        tell_(subject_, "it makes " + text_of(row) + ", which is there already");
    for (const Row& row : changes)
      if (!made.contains(owned_key(row)) && !stored.contains(owned_key(row)))
        tell_(subject_, "it changes " + text_of(row) + ", which is not there");
  }

  // Nodes and results that the tables keep in pages. A job that began in the journal has none.
  Result<> look_into_pages(const WriteSet& writes) {
    std::set<JobId> jobs;
    for (const Job& row : writes.jobs_new) begun_.insert(row.job_id);
    for (const NodeState& row : writes.nodes_new)
      if (!begun_.contains(row.job_id)) jobs.insert(row.job_id);
    for (const TaskResult& row : writes.task_results_new)
      if (!begun_.contains(row.job_id)) jobs.insert(row.job_id);
    TRY_ASSIGN(const auto packed, snapshot_.packed(jobs));
    nodes_in_pages_.clear();
    results_in_pages_.clear();
    for (const PackedJob& job : packed) {
      for (const NodeState& row : job.nodes) nodes_in_pages_.insert(owned_key(row));
      for (const TaskResult& row : job.results) results_in_pages_.insert(owned_key(row));
    }
    return {};
  }
  template <class Row>
  [[nodiscard]] bool is_in_page(const Row&) const {
    return false;
  }
  [[nodiscard]] bool is_in_page(const NodeState& row) const { return nodes_in_pages_.contains(owned_key(row)); }
  [[nodiscard]] bool is_in_page(const TaskResult& row) const { return results_in_pages_.contains(owned_key(row)); }

  Snapshot& snapshot_;
  const TellFinding& tell_;
  std::string subject_;
  template <class Row>
  struct Made {
    std::set<KeyOf<Row>> keys;
    std::set<KeyOf<Row>> gone;  // that the tables have
  };
  std::tuple<Made<Job>, Made<NodeState>, Made<TaskResult>, Made<IdempotencyKey>, Made<JobTag>, Made<LogLine>, Made<call::Call>,
             Made<call::EventRow>, Made<call::Request>, Made<call::IdempotencyKey>, Made<message::Entity>, Made<message::Counters>,
             Made<message::Message>>
      made_;  // by the commits so far
  std::set<JobId> begun_;
  std::set<KeyOf<NodeState>> nodes_in_pages_;      // of the jobs of this commit
  std::set<KeyOf<TaskResult>> results_in_pages_;
};

template <class Row>
void add_changes(Changes<Row>& to, const std::vector<Row>& rows, bool is_new) {
  for (const Row& row : rows) to.insert_or_assign(owned_key(row), Change<Row>{&row, is_new});
}

}  // namespace

Replayed::Replayed(Backlog backlog) : backlog_(std::move(backlog)) {
  const WriteSet& writes = backlog_.writes();
  add_changes(std::get<Changes<Job>>(changes_), writes.jobs_changed, false);
  add_changes(std::get<Changes<Job>>(changes_), writes.jobs_new, true);
  add_changes(std::get<Changes<NodeState>>(changes_), writes.nodes_changed, false);
  add_changes(std::get<Changes<NodeState>>(changes_), writes.nodes_new, true);
  add_changes(std::get<Changes<TaskResult>>(changes_), writes.task_results_new, true);
  for (const Event& event : writes.events_new) events_[event.job_id].push_back(&event);
  for (auto& [job_id, events] : events_) std::ranges::stable_sort(events, {}, &Event::event_id);
}

Result<std::unique_ptr<Replayed>> replay(Snapshot& snapshot, const WriterState& state, const std::vector<JournalRow>& rows,
                                         const TellFinding& tell) {
  Replay replay(snapshot, tell);
  std::int64_t expected = state.followed;
  bool goes_on = true;
  for (const JournalRow& row : rows) {
    if (row.commit_number != ++expected) {
      tell(Replay::subject(expected), row.commit_number == expected + 1
                                          ? std::string("it is missing")
                                          : fmt::format("it and those up to {} are missing", row.commit_number - 1));
      expected = row.commit_number;
      goes_on = false;
    }
    const auto decoded = decode_journal(row);
    if (!decoded) tell(Replay::subject(row.commit_number), decoded.error().message);
    goes_on = goes_on && decoded;
    if (goes_on) TRY(replay.add(row, decoded->writes));  // documents that stay as they are are not looked at
  }
  if (expected < state.last_commit)
    tell(Replay::subject(state.last_commit), fmt::format("it is missing: the journal ends with {}", expected));
  return std::make_unique<Replayed>(std::move(replay.backlog));
}

}  // namespace baton::store
