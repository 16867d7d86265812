#include "engine/kinds/messages/state.hpp"

#include "base/text.hpp"

namespace baton::engine {

using message::MessageKey;

std::expected<DefinitionPtr, std::string> define(message::Entity row) {
  auto made = std::make_shared<Definition>();
  auto settings = message::read_settings(row.settings);
  if (!settings) return std::unexpected("entity '" + row.path + "': " + settings.error());
  made->settings = *std::move(settings);
  auto descriptions = message::read_rules(row.rules);
  if (!descriptions) return std::unexpected("entity '" + row.path + "': " + descriptions.error());
  made->descriptions = *std::move(descriptions);
  for (const message::RuleDescription& each : made->descriptions) {
    auto rule = message::compile(each);
    if (!rule) return std::unexpected("entity '" + row.path + "', rule '" + each.name + "': " + rule.error());
    made->rules.push_back(*std::move(rule));
  }
  made->row = std::move(row);
  return made;
}

BusState::PathKey BusState::path_key(const message::Entity& row) { return {row.tenant_id.value, lower(row.path)}; }

void BusState::know(message::Loaded loaded, Time opened_at, Duration grace) {
  forget();
  for (message::Counters& each : loaded.counters) counters_[each.entity_id] = std::move(each);
  for (message::Entity& row : loaded.entities) {
    const std::int64_t id = row.entity_id;
    const auto known = before_.find(id);
    auto definition = known != before_.end() && known->second->row == row ? known->second : define(std::move(row));
    if (definition) set(id, *std::move(definition));
    else problem_ = definition.error();
  }
  before_.clear();
  // Subscriptions may have come before their topics.
  subscriptions_.clear();
  for (const auto& [id, definition] : definitions_)
    if (const auto name = message::split_subscription_path(definition->row.path))
      if (const auto topic = find(definition->row.tenant_id, name->topic)) subscriptions_[topic->row.entity_id].insert(id);
  for (const message::Message& row : loaded.locked) {
    const auto of = find(row.entity_id);
    const Time until = opened_at + (of ? std::min(grace, of->settings.lock_time) : grace);
    set_lock(row.key(), Locked{std::max(row.locked_until.value_or(Time{}), until), row.locks, row.delivery_count, row.size(), row.due_at, row.changes});
  }
  is_known_ = true;
}

void BusState::forget() {
  const std::uint64_t next = generation_ + 1;
  auto known = definitions_.empty() ? std::move(before_) : std::move(definitions_);
  *this = {};
  generation_ = next;
  before_ = std::move(known);
}

DefinitionPtr BusState::find(std::int64_t entity_id) const {
  const auto found = definitions_.find(entity_id);
  return found == definitions_.end() ? nullptr : found->second;
}

DefinitionPtr BusState::find(const Tenant& tenant, std::string_view path) const {
  const auto found = by_path_.find(PathKey{tenant.value, lower(path)});
  return found == by_path_.end() ? nullptr : definitions_.at(found->second);
}

void BusState::set(std::int64_t entity_id, DefinitionPtr definition) {
  const auto topic_of = [&](const Definition& of) -> std::optional<std::int64_t> {
    const auto name = message::split_subscription_path(of.row.path);
    const auto topic = name ? find(of.row.tenant_id, name->topic) : nullptr;
    return topic ? std::optional{topic->row.entity_id} : std::nullopt;
  };
  if (const auto before = find(entity_id); before && !before->is_going()) {
    const auto of_topic = subscriptions_.find(topic_of(*before).value_or(0));
    if (of_topic != subscriptions_.end() && of_topic->second.erase(entity_id) > 0 && of_topic->second.empty()) subscriptions_.erase(of_topic);
    by_path_.erase(path_key(before->row));
    if (const auto of_tenant = tenants_.find(before->row.tenant_id); --of_tenant->second == 0) tenants_.erase(of_tenant);
  }
  if (!definition) return void(definitions_.erase(entity_id));
  definitions_[entity_id] = definition;
  if (definition->is_going()) return;
  by_path_[path_key(definition->row)] = entity_id;
  ++tenants_[definition->row.tenant_id];
  if (const auto topic = topic_of(*definition)) subscriptions_[*topic].insert(entity_id);
}

const std::set<std::int64_t>& BusState::subscriptions_of(std::int64_t topic_id) const {
  static const std::set<std::int64_t> none;
  const auto found = subscriptions_.find(topic_id);
  return found == subscriptions_.end() ? none : found->second;
}

std::size_t BusState::entities_of(const Tenant& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 0 : found->second;
}

const Locked* BusState::lock(const MessageKey& key) const {
  const auto found = locks_.find(key);
  return found == locks_.end() ? nullptr : &found->second;
}

void BusState::set_lock(const MessageKey& key, std::optional<Locked> locked) {
  if (const auto before = locks_.find(key); before != locks_.end()) {
    lock_ends_.erase({key.entity_id, before->second.until, key});
    if (const auto count = lock_counts_.find(key.entity_id); --count->second == 0) lock_counts_.erase(count);
    locks_.erase(before);
  }
  if (!locked) return;
  lock_ends_.insert({key.entity_id, locked->until, key});
  ++lock_counts_[key.entity_id];
  locks_.emplace(key, *std::move(locked));
}

std::optional<Time> BusState::first_lock_end(std::int64_t entity_id) const {
  const auto first = lock_ends_.lower_bound({entity_id, Time::min(), {}});
  if (first == lock_ends_.end() || std::get<0>(*first) != entity_id) return std::nullopt;
  return std::get<Time>(*first);
}

std::size_t BusState::locks_of(std::int64_t entity_id) const {
  const auto found = lock_counts_.find(entity_id);
  return found == lock_counts_.end() ? 0 : found->second;
}

std::vector<MessageKey> BusState::locks_ended(std::int64_t entity_id, Time now, std::size_t limit) const {
  std::vector<MessageKey> ended;
  for (auto at = lock_ends_.lower_bound({entity_id, Time::min(), {}}); at != lock_ends_.end() && ended.size() < limit; ++at) {
    const auto& [entity, until, key] = *at;
    if (entity != entity_id || until > now) break;
    ended.push_back(key);
  }
  return ended;
}

void BusState::remember(const std::shared_ptr<message::Message>& sent) {
  const std::size_t bytes = static_cast<std::size_t>(sent->size()) + sizeof(message::Message);
  if (recent_bytes_ + bytes > recent_bytes_max) return;
  if (recent_.emplace(sent->key(), sent).second) recent_bytes_ += bytes;
}

std::shared_ptr<message::Message> BusState::take_recent(const MessageKey& key) {
  const auto found = recent_.find(key);
  if (found == recent_.end()) return nullptr;
  auto taken = std::move(found->second);
  recent_bytes_ -= static_cast<std::size_t>(taken->size()) + sizeof(message::Message);
  recent_.erase(found);
  return taken;
}

}  // namespace baton::engine
