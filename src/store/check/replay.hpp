// The journal, replayed upon the tables of a snapshot: whether each commit can be read, comes right behind the one before,
// and can be written to the tables when they follow.
#pragma once

#include "store/check/check.hpp"
#include "store/check/snapshot.hpp"
#include "store/journal/backlog.hpp"

namespace baton::store {

template <class Row>
struct Change {
  const Row* row = nullptr;
  bool is_new = false;  // else the tables have a row of it, and the live columns are what has changed
};
template <class Row>
using Changes = std::map<KeyOf<Row>, Change<Row>>;

// What the commits that could be replayed come to.
class Replayed {
 public:
  explicit Replayed(Backlog backlog);
  Replayed(const Replayed&) = delete;
  Replayed& operator=(const Replayed&) = delete;

  template <class Row>
  [[nodiscard]] const Changes<Row>& changes() const {
    return std::get<Changes<Row>>(changes_);
  }
  // Of each job, by their ids.
  [[nodiscard]] const std::map<workflow::JobId, std::vector<const workflow::Event*>>& events() const { return events_; }
  [[nodiscard]] const std::set<Timer>& timers_new() const { return backlog_.timers_new(); }
  [[nodiscard]] const std::set<Timer>& timers_gone() const { return backlog_.timers_gone(); }
  [[nodiscard]] const MessageBacklog& messages() const { return backlog_.messages(); }

 private:
  Backlog backlog_;
  std::tuple<Changes<workflow::Job>, Changes<workflow::NodeState>, Changes<workflow::TaskResult>> changes_;
  std::map<workflow::JobId, std::vector<const workflow::Event*>> events_;
};

// `rows` are those behind what the tables show. What comes behind a gap, or a row that cannot be read, is not replayed.
[[nodiscard]] Result<std::unique_ptr<Replayed>> replay(Snapshot& snapshot, const WriterState& state,
                                                       const std::vector<JournalRow>& rows, const TellFinding& tell);

}  // namespace baton::store
