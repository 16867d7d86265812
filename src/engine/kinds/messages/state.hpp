// What the kind remembers of entities and of locked messages: all entities with their counters, and which messages are
// locked. It is what the store has after the last commit, and a transaction changes it as it decides; one that is not
// committed puts back what was there (undo.hpp).
//
// Owned by the engine's thread. Bounded by the number of entities, the messages that receivers have, and recent_bytes_max.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/message/rows.hpp"
#include "core/message/rule_description.hpp"
#include "core/message/settings.hpp"

namespace baton::engine {

// An entity as it is set up; never changed, but replaced.
struct Definition {
  message::Entity row;
  message::Settings settings;
  std::vector<message::RuleDescription> descriptions;
  std::vector<message::Rule> rules;
  [[nodiscard]] bool is_going() const { return row.path.empty(); }  // deleted; its messages are deleted in chunks
};
using DefinitionPtr = std::shared_ptr<const Definition>;

// Of a row; a text that cannot be read is the error.
[[nodiscard]] std::expected<DefinitionPtr, std::string> define(message::Entity row);

struct Locked {
  Time until{};
  std::int32_t number = 0;      // of the lock
  std::int32_t deliveries = 0;  // this one included
  std::int64_t size = 0;
  std::optional<Time> due_at;
  OptionalJson changes;
};

struct HashMessageKey {
  std::size_t operator()(const message::MessageKey& key) const noexcept {
    const auto number = static_cast<std::uint64_t>(key.sequence_number) * 8 + static_cast<std::uint64_t>(key.lane);
    return number * 1'000'003 + static_cast<std::uint64_t>(key.entity_id);
  }
};

class BusState {
 public:
  static constexpr std::size_t recent_bytes_max = 4 << 20;

  [[nodiscard]] bool is_known() const { return is_known_; }
  // Locks that were given before last until then at least.
  // Locks of before the start last for the grace from then on, at most as long as a lock of their entity, so that who has one can say so.
  void know(message::Loaded loaded, Time opened_at, Duration grace);
  void forget();
  [[nodiscard]] std::uint64_t generation() const { return generation_; }  // grows when everything is forgotten
  [[nodiscard]] const std::string& problem() const { return problem_; }

  // ---- entities
  [[nodiscard]] DefinitionPtr find(std::int64_t entity_id) const;
  [[nodiscard]] DefinitionPtr find(const Tenant& tenant, std::string_view path) const;
  // What the id stands for from now on; none: it is gone.
  void set(std::int64_t entity_id, DefinitionPtr definition);
  [[nodiscard]] const std::set<std::int64_t>& subscriptions_of(std::int64_t topic_id) const;
  [[nodiscard]] std::size_t entities_of(const Tenant& tenant) const;
  [[nodiscard]] bool has_reserved(const Tenant& tenant) const { return with_reserved_.contains(tenant); }
  void note_reserved(const Tenant& tenant) { with_reserved_.insert(tenant); }
  void unnote_reserved(const Tenant& tenant) { with_reserved_.erase(tenant); }
  // Those of a tenant in the order of their paths, in lower case, that begin with the prefix.
  template <class Visit>
  void for_each(const Tenant& tenant, std::string_view prefix, Visit&& visit) const {
    for (auto at = by_path_.lower_bound(PathKey{tenant.value, std::string(prefix)});
         at != by_path_.end() && at->first.first == tenant.value && at->first.second.starts_with(prefix); ++at)
      if (!visit(definitions_.at(at->second))) return;
  }
  // Of entity 0 the last number that was given to an entity. There is one for each entity that is defined.
  [[nodiscard]] message::Counters& counters(std::int64_t entity_id) { return counters_[entity_id]; }
  void forget_counters(std::int64_t entity_id) { counters_.erase(entity_id); }

  // ---- locks
  [[nodiscard]] const Locked* lock(const message::MessageKey& key) const;
  void set_lock(const message::MessageKey& key, std::optional<Locked> locked);
  [[nodiscard]] std::optional<Time> first_lock_end(std::int64_t entity_id) const;
  [[nodiscard]] std::size_t locks_of(std::int64_t entity_id) const;
  // At most so many of those whose time is up.
  [[nodiscard]] std::vector<message::MessageKey> locks_ended(std::int64_t entity_id, Time now, std::size_t limit) const;

  // ---- messages that were just sent, so that handing them out need not ask the store
  void remember(const std::shared_ptr<message::Message>& sent);
  [[nodiscard]] std::shared_ptr<message::Message> take_recent(const message::MessageKey& key);

 private:
  using PathKey = std::pair<std::string, std::string>;  // tenant, path in lower case
  [[nodiscard]] static PathKey path_key(const message::Entity& row);

  bool is_known_ = false;
  std::uint64_t generation_ = 0;
  std::string problem_;
  std::unordered_map<std::int64_t, DefinitionPtr> definitions_;
  std::unordered_map<std::int64_t, DefinitionPtr> before_;  // what was forgotten: most of it is read again as it was
  std::map<PathKey, std::int64_t> by_path_;
  std::map<std::int64_t, std::set<std::int64_t>> subscriptions_;
  std::map<Tenant, std::size_t> tenants_;
  std::set<Tenant> with_reserved_;  // those whose reserved entities are known to be there
  std::unordered_map<std::int64_t, message::Counters> counters_;
  std::unordered_map<message::MessageKey, Locked, HashMessageKey> locks_;
  std::set<std::tuple<std::int64_t, Time, message::MessageKey>> lock_ends_;
  std::unordered_map<std::int64_t, std::size_t> lock_counts_;
  std::unordered_map<message::MessageKey, std::shared_ptr<message::Message>, HashMessageKey> recent_;
  std::size_t recent_bytes_ = 0;
};

}  // namespace baton::engine
