// What is committed and not in the tables yet: the rows of all those commits, each once, in the state that it has
// after the last of them. A job that began and ended meanwhile costs its final rows only. Versions of workflows are not
// in it (journal_store.hpp).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "ports/store.hpp"
#include "store/journal/message_backlog.hpp"

namespace baton::store {

struct HashNode {
  std::size_t operator()(const NodeKey& key) const noexcept {
    return std::hash<std::string>{}(key.job_id.value) ^ std::hash<std::string>{}(key.node_id) * 31;
  }
};

class Backlog {
 public:
  void add(WriteSet writes, std::size_t bytes);  // as many as they have in the journal
  void clear();
  // Of a job, a result or an idempotency key that is new in them: it can be so only once.
  [[nodiscard]] bool has_key_of(const WriteSet& writes) const;

  // Not in it: nullptr.
  [[nodiscard]] const workflow::NodeState* node(const NodeKey& key) const;

  // What brings the tables to the state after the last commit that was added.
  [[nodiscard]] const WriteSet& writes();

  // Answers what it can, and takes out of the request what need not be asked of the tables any more. A changed job
  // whose documents are asked for stays in it: the tables have them, see settle().
  [[nodiscard]] Loaded load(LoadRequest& request) const;
  // What the tables answered, in the state that it has by now.
  void settle(Loaded& loaded) const;
  // The same of service calls, whose rows are here whole. A stream is asked for because its row may be wrong in the tables:
  // of one that is here it is not known yet, and whoever looks again finds out.
  [[nodiscard]] call::Loaded load(call::LoadRequest& request) const;

  // The tasks that were found to wait in a queue, as it is by now, in no order. Answers how many of them are not there any more,
  // or are in another place.
  [[nodiscard]] std::size_t settle(std::vector<WaitingTask>& found, const QueueKey& queue) const;
  // Of a service call that is here.
  [[nodiscard]] std::optional<std::int64_t> version_of(const call::CallKey& key) const;

  [[nodiscard]] const std::set<Timer>& timers_new() const { return timers_new_; }
  [[nodiscard]] const std::set<Timer>& timers_gone() const { return timers_gone_; }  // the tables may have them still

  [[nodiscard]] const MessageBacklog& messages() const { return messages_; }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Place {
    bool is_new = false;
    std::size_t at = 0;
  };
  struct HashCall {
    std::size_t operator()(const call::CallKey& key) const noexcept {
      return std::hash<std::string>{}(key.id.value) ^ std::hash<std::string>{}(key.tenant.value) * 31;
    }
  };
  void add(call::Writes writes);
  [[nodiscard]] const workflow::Job* job(const workflow::JobId& id) const;
  [[nodiscard]] const call::Call& call_in(const Place& place) const;

  std::unique_ptr<WriteSet> writes_ = std::make_unique<WriteSet>();  // without timers, which are below; stays where it is
  MessageBacklog messages_{writes_->messages};
  std::unordered_map<workflow::JobId, Place> jobs_;
  std::unordered_map<NodeKey, Place, HashNode> nodes_;
  std::unordered_map<std::string, std::size_t> results_;
  std::map<std::pair<workflow::Tenant, std::string>, std::size_t> keys_;
  std::unordered_map<call::CallKey, Place, HashCall> calls_;
  std::unordered_map<call::CallKey, std::size_t, HashCall> requests_;
  std::map<std::pair<Tenant, std::string>, std::size_t> call_keys_;
  std::set<Timer> timers_new_, timers_gone_;
  std::size_t rows_ = 0, bytes_ = 0;  // of all commits, not each once
};

}  // namespace baton::store
