// Each step of a message, as a commit makes it: it follows from what was asked, or from time.
#include <algorithm>

#include "core/message/transitions.hpp"
#include "tests/simulation/message_ledger.hpp"
#include "tests/simulation/message_rules.hpp"

namespace baton::simulation {

using message::EntityType;

namespace {

message::Settings settings_of(const message::Entity& row) { return message::read_settings(row.settings).value(); }

}  // namespace

// The rows of a commit, as they are looked for.
struct MessageLedger::Commit {
  Commit(const message::Writes& w, const store::MemoryDatabase& database) : writes(w) {
    for (const Message& row : w.messages_new) {
      by_place[{row.entity_id, row.sequence_number}] = &row;
      by_content.emplace(row.entity_id, row.content.value);
    }
    for (const message::Entity& row : w.entities_changed) changed[row.entity_id] = &row;
    for (const message::Entity& row : w.entities_new) changed[row.entity_id] = &row;
    for (const Key& key : w.messages_gone)
      if (const Message* row = database.bus.messages.get(key)) gone.emplace(Place{key.entity_id, key.sequence_number}, row);
    for (const auto& [place, row] : gone) left.emplace(place.first, row->content.value);
  }
  // The same message in another lane.
  [[nodiscard]] const Message* moved(const Message& before) const {
    const auto found = by_place.find({before.entity_id, before.sequence_number});
    return found == by_place.end() ? nullptr : found->second;
  }
  const message::Writes& writes;
  std::map<Place, const Message*> by_place;
  std::set<std::pair<std::int64_t, std::string>> by_content;  // new rows, by their entity
  std::set<std::pair<std::int64_t, std::string>> left;        // the same of those that go
  std::map<Place, const Message*> gone;
  std::map<std::int64_t, const message::Entity*> changed;
};

void MessageLedger::before_commit(const message::Writes& writes) {
  look_at_clock();
  for (const message::Entity& row : writes.entities_new) tenants_[row.entity_id] = row.tenant_id;
  first_taken_.clear();
  const Commit commit(writes, database_);
  for (const Key& key : writes.messages_gone) {
    const Message* before = database_.bus.messages.get(key);
    expect(before != nullptr, "what goes was there", key);
    check_gone(commit, *before);
  }
  for (const Message& after : writes.messages_changed) {
    const Message* before = database_.bus.messages.get(after.key());
    expect(before != nullptr, "what is changed is there", after.key());
    check_changed(commit, *before, after);
  }
  for (const Message& row : writes.messages_new) check_new(commit, row);
  for (const Message& row : writes.messages_new) {
    std::int64_t& highest = highest_[row.entity_id];
    highest = std::max(highest, row.sequence_number);
  }
}

// ---- why it may

bool MessageLedger::is_settled(const Message& row, How how) const {
  return row.locked_until && settlements_.contains({{row.key(), row.locks}, how});
}

// What nobody was told of, the engine takes back by itself.
bool MessageLedger::is_returned(const Message& row) const {
  const Grant grant{row.key(), row.locks};
  return row.locked_until && (returned_.contains(grant) || !told_.contains(grant));
}

bool MessageLedger::is_free(const Message& row) const {
  const bool stays = (row.lane == Lane::dead && is_settled(row, How::dead_letter)) ||
                     ((row.lane == Lane::deferred || row.lane == Lane::shelved) && is_settled(row, How::defer));  // it is one already
  return !row.locked_until || *row.locked_until <= latest_ || is_settled(row, How::abandon) || is_settled(row, How::release) || is_returned(row) || stays;
}

bool MessageLedger::has_ended(const Commit&, const Message& row) const {
  const Place place{row.entity_id, row.sequence_number};
  if (is_settled(row, How::complete)) return true;
  const bool is_deferred = row.lane == Lane::deferred || row.lane == Lane::shelved;
  if (deleted_by_number_.contains(place) && ((is_deferred && is_free(row)) || is_settled(row, How::defer))) return true;
  if (!is_free(row)) return false;
  if (deleted_from_.contains({row.entity_id, row.lane})) return true;
  return row.due_at && *row.due_at <= latest_ && !message::is_dead(row.lane) && !settings_of(*entity(row.entity_id)).dead_letter_on_expiry;
}

// ---- steps

void MessageLedger::check_gone(const Commit& commit, const Message& before) {
  const auto changed = commit.changed.find(before.entity_id);
  if (is_going(entity(before.entity_id)) || (changed != commit.changed.end() && is_going(changed->second))) return;
  if (const Message* moved = commit.moved(before)) return check_moved(commit, before, *moved);
  if (before.lane == Lane::scheduled) return check_left_scheduled(commit, before);
  const bool is_sent_again = before.lane == Lane::dead && replayed_.contains(before.entity_id) && is_free(before) &&
                             commit.by_content.contains({before.entity_id, before.content.value});
  if (is_sent_again) return;
  expect(has_ended(commit, before), "a message stays until it is completed, expires, or is received for good", before.key());
  const bool has_expired = before.due_at && *before.due_at <= latest_;
  if (deleted_from_.contains({before.entity_id, before.lane}) && !has_expired) taken(before);
}

void MessageLedger::check_left_scheduled(const Commit& commit, const Message& before) const {
  if (cancelled_.contains({before.entity_id, before.sequence_number})) return;
  expect(*before.due_at <= latest_, "nothing scheduled is enqueued before its time", before.key());
  const bool is_topic = entity(before.entity_id)->entity_type == EntityType::topic;
  const auto is_there = [&](const Message& row) {
    return row.content == before.content && (is_topic ? row.entity_id != before.entity_id : row.entity_id == before.entity_id);
  };
  expect(deleted_from_.contains({before.entity_id, Lane::active}) || std::ranges::any_of(commit.writes.messages_new, is_there),
         "what was scheduled is enqueued when its time comes", before.key());
}

void MessageLedger::check_moved(const Commit& commit, const Message& before, const Message& after) const {
  expect(before.content == after.content && before.message_id == after.message_id, "a message stays what it is", before.key());
  if (after.lane == Lane::deferred || after.lane == Lane::shelved)
    return expect(is_settled(before, How::defer), "only whoever has a message defers it", before.key());
  expect(after.lane == Lane::dead, "a message goes to the dead letters, or is deferred", before.key());
  const message::Settings settings = settings_of(*entity(before.entity_id));
  std::int32_t least = settings.deliveries_max;
  if (const auto changed = commit.changed.find(before.entity_id); changed != commit.changed.end())
    least = std::min(least, settings_of(*changed->second).deliveries_max);
  const std::string& reason = after.dead_letter_reason.value_or("");
  if (reason == "MaxDeliveryCountExceeded")
    expect(before.delivery_count >= least && is_free(before), "a message is tried as often as is allowed", before.key());
  else if (reason == "TTLExpiredException")
    expect(before.due_at && *before.due_at <= latest_ && settings.dead_letter_on_expiry && is_free(before), "a message expires at its time",
           before.key());
  else
    expect(is_settled(before, How::dead_letter) && reason == "poison", "only whoever has a message makes it a dead letter", before.key());
}

void MessageLedger::check_changed(const Commit& commit, const Message& before, const Message& after) {
  const Key key = before.key();
  if (!after.locked_until) {
    expect(is_free(before), "a lock ends with its time, or by whoever has it", key);
    const bool counts = after.delivery_count == before.delivery_count;
    const bool is_given_back = is_settled(before, How::release) || is_returned(before);
    expect(counts || after.delivery_count == before.delivery_count - 1, "a delivery counts once", key);
    const bool may_be_too_many = !commit.changed.contains(key.entity_id) && counts && !is_given_back && before.locked_until;
    if (may_be_too_many)
      expect(!message::is_exhausted(key.lane, after.delivery_count, settings_of(*entity(key.entity_id))),
             "what was tried as often as is allowed is a dead letter", key);
    return;
  }
  if (!before.locked_until) {
    expect(after.delivery_count == before.delivery_count + 1, "a delivery is counted", key);
    taken(before);
    return locked(after);
  }
  if (after.locks == before.locks)
    return expect(renewals_.contains({key, before.locks}) && after.delivery_count == before.delivery_count, "only whoever has a lock renews it", key);
  expect(is_free(before), "nobody is given what another has", key);
  locked(after);
}

void MessageLedger::locked(const Message& row) {
  expect(given_.insert({row.key(), row.locks}).second, "each lock has its own number", row.key());
}

void MessageLedger::taken(const Message& row) {
  if (row.lane != Lane::active || !ever_taken_.insert({row.entity_id, row.sequence_number}).second) return;
  std::int64_t& last = first_taken_[row.entity_id];
  last = std::max(last, row.sequence_number);
}

void MessageLedger::check_new(const Commit& commit, const Message& row) {
  const Place place{row.entity_id, row.sequence_number};
  if (row.locked_until) locked(row), ever_taken_.insert(place);
  if (commit.gone.contains(place)) return;  // it has moved
  expect(row.sequence_number > highest_[row.entity_id] && contents_.emplace(place, row.content.value).second,
         "sequence numbers grow, and none is used again", row.key());
  if (row.lane == Lane::scheduled)
    expect(row.due_at && *row.due_at > row.enqueued_at, "what is scheduled waits for its time", row.key());
  const message::Entity* to = entity(row.entity_id);
  if (!to) to = commit.changed.at(row.entity_id);
  expect(to->tenant_id == tenants_[row.entity_id], "an entity is of one tenant", row.key());
  if (to->entity_type == EntityType::subscription) {
    if (to->path == message::subscription_path(topic_path, audit_name) && row.lane == Lane::active && !commit.left.contains({row.entity_id, row.content.value}))
      check_copies(commit, row);
    return;
  }
  const bool is_sent = !commit.left.contains({row.entity_id, row.content.value});
  if (!is_sent) return;
  expect(--sent_[{to->tenant_id, row.content.value}] >= 0, "there is no more than was sent", row.key());
  if (!settings_of(*to).detects_duplicates) return;
  const auto [earlier, is_first] = accepted_.try_emplace({row.entity_id, row.message_id}, row.enqueued_at);
  expect(is_first || row.enqueued_at >= earlier->second + settings_of(*to).history_time || clock_.set_back > Duration{},
         "what is sent twice is there once", row.key());
  earlier->second = row.enqueued_at;
}

// The subscription that has everything shows what was published; the others have what their rules select.
void MessageLedger::check_copies(const Commit& commit, const Message& audited) {
  const message::Entity& audit = *entity(audited.entity_id);
  const auto topic = entity({audit.tenant_id, std::string(topic_path)});
  if (!topic) return;
  const Place published{topic->entity_id, audited.enqueued_sequence_number};
  expect(published_.insert(published).second, "a message is published once", audited.key());
  for (const auto& [id, row] : database_.bus.entities) {
    if (row.entity_type != EntityType::subscription || row.tenant_id != audit.tenant_id || commit.changed.contains(id)) continue;
    const auto name = message::split_subscription_path(row.path);
    if (!name || name->topic != topic_path) continue;
    const auto is_copy = [&, of = id](const Message& each) {
      return each.entity_id == of && each.enqueued_sequence_number == audited.enqueued_sequence_number &&
             !commit.gone.contains({each.entity_id, each.sequence_number}) && !commit.left.contains({each.entity_id, each.content.value});
    };
    const auto copies = static_cast<std::size_t>(std::ranges::count_if(commit.writes.messages_new, is_copy));
    expect(copies == copies_of(number_in(audited.content.value), message::read_rules(row.rules).value()),
           "a subscription has the copies that its rules select", row.path + " of " + audited.content.value);
  }
}

}  // namespace baton::simulation
