// The part of a backlog (backlog.hpp) that is about queues, topics and their messages. Most messages come, are locked and go
// before the tables follow, and cost them nothing then.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "core/message/rows.hpp"
#include "store/journal/row_backlog.hpp"

namespace baton::store {

class MessageBacklog {
 public:
  using Messages = RowBacklog<message::MessageKey, message::Message>;
  using Entities = RowBacklog<std::int64_t, message::Entity>;
  using CountersById = RowBacklog<std::int64_t, message::Counters>;
  using History = std::map<message::HistoryKey, std::optional<Time>>;  // when it is forgotten; none: it is gone

  // Where its rows are kept: it must outlive this object, and stay where it is.
  explicit MessageBacklog(message::Writes& rows)
      : rows_(&rows),
        messages_(rows.messages_new, rows.messages_changed),
        entities_(rows.entities_new, rows.entities_changed),
        counters_(rows.counters_new, rows.counters_changed) {}

  void add(message::Writes writes);
  // Makes the lists of what goes, and of the history: then the rows are what brings the tables to the state of by now.
  void finish_rows();

  [[nodiscard]] bool empty() const {
    return messages_.places().empty() && entities_.places().empty() && counters_.places().empty() && history_.empty();
  }
  [[nodiscard]] const Messages& messages() const { return messages_; }
  [[nodiscard]] const Entities& entities() const { return entities_; }
  [[nodiscard]] const CountersById& counters() const { return counters_; }
  [[nodiscard]] const History& history() const { return history_; }

  // How many messages of a lane the tables may have that are there no more, or are changed.
  struct Hidden {
    std::size_t gone = 0, changed = 0;
  };
  [[nodiscard]] Hidden hidden(std::int64_t entity_id, message::Lane lane) const;

 private:
  void count(const message::MessageKey& key, FateChange change);

  message::Writes* rows_;
  Messages messages_;
  Entities entities_;
  CountersById counters_;
  History history_;
  std::map<std::pair<std::int64_t, message::Lane>, Hidden> hidden_;
};

// These rows do not fit what two backlogs, one after the other, have made of the tables: what is new is there already, or what is
// changed was deleted. Of rows that no backlog has nothing is known here.
[[nodiscard]] bool is_in_the_way(const MessageBacklog& older, const MessageBacklog& newer, const message::Writes& writes);

}  // namespace baton::store
