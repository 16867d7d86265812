#include "base/mutant.hpp"
#include "store/journal/message_load.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "store/tables.hpp"

namespace baton::store {
namespace {

using message::Message;
using message::MessageKey;
using Words = MessageBacklog::Messages;

Message copy_of(const Message& row, bool whole) {
  if (whole) return row;
  Message copy;
  for_each_column<Message>([&](const auto& column) {
    if constexpr (!std::is_same_v<std::decay_t<decltype(row.*column.member)>, Bytes>) copy.*column.member = row.*column.member;
  });
  return copy;
}

bool is_of_lane(const MessageKey& key, const MessageKey& other) { return key.entity_id == other.entity_id && key.lane == other.lane; }

// What both backlogs and the tables say of a key.
struct Said {
  MessageKey key;
  Words::Found older, newer;
  bool is_stored = false;

  [[nodiscard]] const Words::Found& last() const { return newer.fate == Fate::none ? older : newer; }
  [[nodiscard]] bool is_gone() const { return last().fate == Fate::gone; }
};

// Goes through a lane from this key on, in order. `stored` are the keys that the tables have, as many as were asked for. Until
// `visit` answers false.
template <class Visit>
void walk_lane(const Words& older, const Words& newer, const MessageKey& from, const std::vector<MessageKey>& stored, Visit&& visit) {
  auto in_older = older.places().lower_bound(from), in_newer = newer.places().lower_bound(from);
  auto in_stored = stored.begin();
  const auto is_in_lane = [&](const auto& at, const Words& words) { return at != words.places().end() && is_of_lane(at->first, from); };
  while (true) {
    const bool has_older = is_in_lane(in_older, older), has_newer = is_in_lane(in_newer, newer), has_stored = in_stored != stored.end();
    if (!has_older && !has_newer && !has_stored) return;
    Said said{.key = {from.entity_id, from.lane, std::numeric_limits<std::int64_t>::max()}, .older = {}, .newer = {}};
    if (has_older) said.key = std::min(said.key, in_older->first);
    if (has_newer) said.key = std::min(said.key, in_newer->first);
    if (has_stored) said.key = std::min(said.key, *in_stored);
    if (has_older && in_older->first == said.key) said.older = older.at((in_older++)->second);
    if (has_newer && in_newer->first == said.key) said.newer = newer.at((in_newer++)->second);
    if (has_stored && *in_stored == said.key) said.is_stored = true, ++in_stored;
    if (!visit(said)) return;
  }
}

template <class Key>
std::vector<Key> once_each(std::vector<Key> keys) {
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  return keys;
}

// The rows of a whole table, as they are by now, in the order of their keys.
template <class Row>
std::vector<Row> all_rows(std::vector<Row> stored, const RowBacklog<std::int64_t, Row>& older, const RowBacklog<std::int64_t, Row>& newer) {
  std::map<std::int64_t, Row> rows;
  for (Row& row : stored) rows.emplace(row.entity_id, std::move(row));
  for (const auto* backlog : {&older, &newer})
    for (const auto& [id, place] : backlog->places()) {
      const auto found = backlog->at(place);
      if (!found.row)
        rows.erase(id);
      else if (is_whole(found.fate))
        rows.insert_or_assign(id, *found.row);
      else if (const auto row = rows.find(id); row != rows.end())
        copy_live(*found.row, row->second);
    }
  std::vector<Row> all;
  for (auto& [id, row] : rows) all.push_back(std::move(row));
  return all;
}

class MessageLoad {
 public:
  MessageLoad(Tables& tables, const MessageBacklog& older, const MessageBacklog& newer, const message::LoadRequest& asked)
      : tables_(tables), older_(older), newer_(newer), asked_(asked) {}

  Result<message::Loaded> run() {
    request_ = {.entities = asked_.entities, .locked = asked_.locked, .messages = {}, .messages_light = {}, .pages = asked_.pages, .agendas = asked_.agendas,
                .history = {}, .history_oldest = asked_.history_oldest};
    ask_for_keys();
    ask_for_lists();
    if (!request_.empty()) {
      TRY_ASSIGN(stored_, tables_.load(request_));
    }
    take_keys();
    if (asked_.entities) {
      loaded_.entities = all_rows(std::move(stored_.entities), older_.entities(), newer_.entities());
      loaded_.counters = all_rows(std::move(stored_.counters), older_.counters(), newer_.counters());
    }
    if (asked_.locked) take_locked();
    for (std::size_t i = 0; i < asked_.pages.size(); ++i) take_page(i);
    for (std::size_t i = 0; i < asked_.agendas.size(); ++i) take_agenda(i);
    for (std::size_t i = 0; i < asked_.history_oldest.size(); ++i) take_oldest(i);
    TRY(fetch_lacking());
    return std::move(loaded_);
  }

 private:
  // The newest whole row that a backlog has, as it is by now; none: the tables have it, or nobody has.
  [[nodiscard]] const Message* whole_row(const Words::Found& older, const Words::Found& newer) const {
    if (is_whole(newer.fate)) return newer.row;
    return newer.fate != Fate::gone && is_whole(older.fate) ? older.row : nullptr;
  }
  void bring_up_to_date(Message& row) const {
    older_.messages().bring_up_to_date(row.key(), row);
    newer_.messages().bring_up_to_date(row.key(), row);
  }
  [[nodiscard]] Message made_copy(const Message& row, bool whole) const {
    Message copy = copy_of(row, whole);
    newer_.messages().bring_up_to_date(copy.key(), copy);
    return copy;
  }

  // What the backlogs know is answered at once.
  void ask_for_keys() {
    ask_for_keys(asked_.messages, true, loaded_.messages, request_.messages);
    ask_for_keys(asked_.messages_light, false, loaded_.messages_light, request_.messages_light);
    for (message::HistoryKey& key : once_each(asked_.history)) {
      const auto* known = forget_at(key);
      if (!known)
        request_.history.push_back(std::move(key));
      else if (*known)
        loaded_.history.push_back({key.entity_id, std::move(key.message_id), **known});
    }
  }
  void ask_for_keys(const std::vector<MessageKey>& asked, bool whole, std::vector<Message>& known, std::vector<MessageKey>& unknown) const {
    for (const MessageKey& key : once_each(asked)) {
      const auto older = older_.messages().find(key), newer = newer_.messages().find(key);
      if (const Message* row = whole_row(older, newer))
        known.push_back(made_copy(*row, whole));
      else if ((newer.fate == Fate::none ? older : newer).fate != Fate::gone)
        unknown.push_back(key);
    }
  }
  [[nodiscard]] const std::optional<Time>* forget_at(const message::HistoryKey& key) const {
    for (const auto* history : {&newer_.history(), &older_.history()})
      if (const auto found = history->find(key); found != history->end()) return &found->second;
    return nullptr;
  }

  // As many more as the backlogs may hide. A page with much to skip is read without content first.
  void ask_for_lists() {
    for (auto& page : request_.pages) {
      const std::size_t hidden = gone_of(page.entity_id, page.lane);
      if (hidden != 0) page.whole = false;
      page.limit = plus(page.limit, hidden);
    }
    for (auto& agenda : request_.agendas) agenda.limit = plus(agenda.limit, gone_of(agenda.entity_id, agenda.lane));
    for (auto& oldest : request_.history_oldest)
      for (const auto* history : {&older_.history(), &newer_.history()})
        for (auto at = history->lower_bound({oldest.entity_id, ""}); at != history->end() && at->first.entity_id == oldest.entity_id; ++at)
          oldest.limit = plus(oldest.limit, 1);
  }
  [[nodiscard]] std::size_t gone_of(std::int64_t entity_id, message::Lane lane) const {
    return older_.hidden(entity_id, lane).gone + newer_.hidden(entity_id, lane).gone;
  }
  static std::size_t plus(std::size_t limit, std::size_t more) { return limit + std::min(more, std::numeric_limits<std::size_t>::max() - limit); }

  void take_keys() {
    for (const auto& [stored, loaded] : {std::pair(&stored_.messages, &loaded_.messages), {&stored_.messages_light, &loaded_.messages_light}})
      for (Message& row : *stored) {
        bring_up_to_date(row);
        loaded->push_back(std::move(row));
      }
    std::ranges::move(stored_.history, std::back_inserter(loaded_.history));
  }

  void take_locked() {
    std::map<MessageKey, Message> locked;
    for (Message& row : stored_.locked) locked.emplace(row.key(), std::move(row));
    for (const auto* words : {&older_.messages(), &newer_.messages()})
      for (const auto& [key, place] : words->places()) take_locked(locked, key, words->at(place));
    for (auto& [key, row] : locked) loaded_.locked.push_back(std::move(row));
  }
  void take_locked(std::map<MessageKey, Message>& locked, const MessageKey& key, const Words::Found& found) {
    if (!found.row || !found.row->locked_until) {
      locked.erase(key);
    } else if (is_whole(found.fate)) {
      locked.insert_or_assign(key, copy_of(*found.row, false));
    } else if (const auto row = locked.find(key); row != locked.end()) {
      copy_live(*found.row, row->second);
    } else if (const auto made = older_.messages().find(key); is_whole(made.fate)) {
      locked.emplace(key, made_copy(*made.row, false));
    } else {  // the tables have it, and not as one that is locked
      Message lacking;
      lacking.entity_id = key.entity_id, lacking.lane = key.lane, lacking.sequence_number = key.sequence_number;
      copy_live(*found.row, lacking);
      locked.emplace(key, std::move(lacking));
      lacking_.insert(key);
    }
  }

  void take_page(std::size_t i) {
    const auto& asked = asked_.pages[i];
    std::vector<Message>& stored = stored_.pages[i];
    std::vector<Message>& page = loaded_.pages.emplace_back();
    std::vector<MessageKey> keys;
    keys.reserve(stored.size());
    for (const Message& row : stored) keys.push_back(row.key());
    std::size_t next = 0;
    const auto visit = [&](const Said& said) {
      if (page.size() >= asked.limit) return false;
      Message* const in_tables = said.is_stored ? &stored[next++] : nullptr;
      if (said.is_gone()) return true;
      if (const Message* row = whole_row(said.older, said.newer)) {
        page.push_back(made_copy(*row, asked.whole));
      } else if (in_tables) {
        page.push_back(std::move(*in_tables));
        for (const auto& found : {said.older, said.newer})
          if (found.row) copy_live(*found.row, page.back());
        if (asked.whole && !request_.pages[i].whole) lacking_.insert(said.key);
      }
      return true;
    };
    walk_lane(older_.messages(), newer_.messages(), {asked.entity_id, asked.lane, asked.first}, keys, visit);
  }

  // Those of the tables, and those that were made since, by time.
  void take_agenda(std::size_t i) {
    const auto& [entity_id, lane, limit] = asked_.agendas[i];
    std::vector<const Message*> due;
    for (const Message& row : stored_.agendas[i]) {
      const auto older = older_.messages().find(row.key()), newer = newer_.messages().find(row.key());
      const bool is_gone = (newer.fate == Fate::none ? older : newer).fate == Fate::gone;
      if (!is_gone && !whole_row(older, newer)) due.push_back(&row);
    }
    const auto take_made = [&](const Said& said) {
      const Message* row = whole_row(said.older, said.newer);
      if (row && row->due_at) due.push_back(row);
      return true;
    };
    walk_lane(older_.messages(), newer_.messages(), {entity_id, lane, std::numeric_limits<std::int64_t>::min()}, {}, take_made);
    const auto end = due.begin() + static_cast<std::ptrdiff_t>(std::min(limit, due.size()));
    std::ranges::partial_sort(due, end, {}, [](const Message* row) { return std::pair(*row->due_at, row->sequence_number); });
    std::vector<Message>& agenda = loaded_.agendas.emplace_back();
    for (const Message* row : std::ranges::subrange(due.begin(), end)) {
      agenda.push_back(copy_of(*row, false));
      bring_up_to_date(agenda.back());
    }
  }

  void take_oldest(std::size_t i) {
    const auto& [entity_id, limit] = asked_.history_oldest[i];
    std::map<std::string, Time> entries;
    for (message::HistoryEntry& row : stored_.history_oldest[i]) entries.emplace(std::move(row.message_id), row.forget_at);
    for (const auto* history : {&older_.history(), &newer_.history()})
      for (auto at = history->lower_bound({entity_id, ""}); at != history->end() && at->first.entity_id == entity_id; ++at) {
        if (at->second)
          entries.insert_or_assign(at->first.message_id, *at->second);
        else
          entries.erase(at->first.message_id);
      }
    std::vector<message::HistoryEntry>& oldest = loaded_.history_oldest.emplace_back();
    for (auto& [message_id, forget_at] : entries) oldest.push_back({entity_id, message_id, forget_at});
    std::ranges::stable_sort(oldest, {}, &message::HistoryEntry::forget_at);
    if (oldest.size() > limit) oldest.resize(limit);
  }

  // What was found without the rest of it. The tables have it, whether they have followed meanwhile or not.
  Result<> fetch_lacking() {
    if (lacking_.empty()) return {};
    TRY_ASSIGN(message::Loaded rest, tables_.load(message::LoadRequest{.messages = {lacking_.begin(), lacking_.end()}}));
    std::map<MessageKey, Message*> rows;
    for (Message& row : rest.messages) {
      bring_up_to_date(row);
      rows.emplace(row.key(), &row);
    }
    const auto complete = [&](Message& row, bool whole) {
      const auto found = lacking_.contains(row.key()) ? rows.find(row.key()) : rows.end();
      if (found != rows.end()) row = copy_of(*found->second, whole);
    };
    for (Message& row : loaded_.locked) complete(row, false);
    for (std::size_t i = 0; i < asked_.pages.size(); ++i)
      if (asked_.pages[i].whole)
        for (Message& row : loaded_.pages[i]) complete(row, true);
    return {};
  }

  Tables& tables_;
  const MessageBacklog& older_;
  const MessageBacklog& newer_;
  const message::LoadRequest& asked_;
  message::LoadRequest request_;  // of the tables
  message::Loaded stored_, loaded_;
  std::set<MessageKey> lacking_;
};

}  // namespace

Result<message::Loaded> load_messages(Tables& tables, const MessageBacklog& older, const MessageBacklog& newer,
                                      const message::LoadRequest& asked) {
  if ((older.empty() && newer.empty()) || MUTANT(backlog_hides_message)) return tables.load(asked);
  return MessageLoad(tables, older, newer, asked).run();
}

// One that a backlog locked or gave back is not in the tables as it is, so each that was changed may hide one of those.
Result<std::vector<WaitingTask>> waiting_messages(Tables& tables, const MessageBacklog& older, const MessageBacklog& newer,
                                                  const QueueKey& queue, std::size_t limit, Time now) {
  const auto of = message::parse_queue_name(queue.queue).value();
  std::size_t hidden = 0;
  for (const auto* backlog : {&older, &newer}) {
    const auto [gone, changed] = backlog->hidden(of.entity_id, of.lane);
    hidden += gone + changed;
  }
  TRY_ASSIGN(std::vector<WaitingTask> stored, tables.waiting(queue, limit + hidden, now));
  if (older.empty() && newer.empty()) return stored;
  std::vector<MessageKey> keys;
  keys.reserve(stored.size());
  for (const WaitingTask& task : stored) keys.push_back({of.entity_id, of.lane, task.number});
  std::vector<WaitingTask> found;
  walk_lane(older.messages(), newer.messages(), {of.entity_id, of.lane, std::numeric_limits<std::int64_t>::min()}, keys,
            [&](const Said& said) {
              if (found.size() >= limit) return false;
              const auto& last = said.last();
              const bool waits = last.fate == Fate::none ? said.is_stored : last.row && !last.row->locked_until;
              const Message* made = is_whole(said.newer.fate) ? said.newer.row : is_whole(said.older.fate) ? said.older.row : nullptr;
              const bool has_expired = made && made->due_at && *made->due_at <= now;  // of what the tables have they know
              if (waits && !has_expired) found.push_back(waiting_task(said.key));
              return true;
            });
  return found;
}

}  // namespace baton::store
