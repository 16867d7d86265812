// Queues, topics, subscriptions and rules: made, changed, deleted and looked at.
#include <algorithm>

#include "base/text.hpp"
#include "engine/kinds/messages/transaction.hpp"

namespace baton::engine {

using message::EntityType;
using message::RuleDescription;
using message::Settings;

namespace {

constexpr std::size_t name_max = 260, part_name_max = 50;
constexpr std::size_t subscriptions_max = 500, topic_rules_max = 2'000;  // of a topic

Refused not_found(std::string_view path) {
  return refused(Refusal::entity_not_found, "The messaging entity '" + std::string(path) + "' could not be found.");
}
Refused too_many_rules() {
  return refused(Refusal::quota_exceeded, "the subscriptions of a topic have at most " + std::to_string(topic_rules_max) + " rules together");
}
Refused wrong(std::string why) { return refused(Refusal::invalid_input, std::move(why)); }

RuleDescription default_description(Time now) { return {std::string(message::default_rule_name), message::TrueFilter{}, std::nullopt, now}; }

std::optional<std::string> problem_of_rules(const std::vector<RuleDescription>& rules) {
  if (rules.size() > message::rules_max) return "a subscription has at most " + std::to_string(message::rules_max) + " rules";
  std::set<std::string> names;
  for (const RuleDescription& each : rules) {
    if (!names.insert(lower(each.name)).second) return "two rules are called '" + each.name + "'";
    if (!is_text(each)) return "rule '" + each.name + "': its texts must be UTF-8 without control characters";
    if (auto problem = message::problem_of_rule_name(each.name)) return "rule '" + each.name + "': " + *problem;
    if (const auto rule = message::compile(each); !rule) return "rule '" + each.name + "': " + rule.error();
  }
  return std::nullopt;
}

}  // namespace

std::expected<DefinitionPtr, Refused> MessageTransaction::find(const EntityKey& key) const {
  auto found = state_.find(key.tenant, key.path);
  if (!found) return std::unexpected(not_found(key.path));
  return found;
}

EntityInfo MessageTransaction::info_of(const Definition& entity) {
  const std::int64_t id = entity.row.entity_id;
  return {.entity = entity.row,
          .settings = entity.settings,
          .rules = entity.descriptions,
          .counters = state_.counters(id),
          .subscriptions = state_.subscriptions_of(id).size(),
          .is_reserved = is_reserved(entity.row.path),
          .pool = pool_of(entity)};
}

std::optional<std::string> MessageTransaction::pool_of(const Definition& entity) const {
  const auto names = message::split_subscription_path(entity.row.path);
  return names && equal_ignoring_case(names->topic, kind_.options().jobs_topic) ? message::pool_of(entity.descriptions) : std::nullopt;
}

// ---- baton's own

bool MessageTransaction::is_reserved(std::string_view path) const {
  const MessagesOptions& names = kind_.options();
  const std::string topics[] = {names.events_topic, names.jobs_topic, names.results_topic,
                                message::subscription_path(names.events_topic, names.events_subscription),
                                message::subscription_path(names.results_topic, names.results_subscription)};
  return std::ranges::any_of(topics, [&](const std::string& name) { return equal_ignoring_case(name, path); });
}

// As the site has them: messages live for 14 days, and are dead letters then.
void MessageTransaction::make_reserved(const Tenant& tenant) {
  if (state_.has_reserved(tenant)) return;
  state_.note_reserved(tenant);
  reserved_noted_.push_back(tenant);
  const MessagesOptions& names = kind_.options();
  Settings topic, subscription;
  topic.time_to_live = subscription.time_to_live = std::chrono::days{14};
  topic.detects_duplicates = true;
  subscription.dead_letter_on_expiry = true;
  for (const std::string& name : {names.events_topic, names.jobs_topic, names.results_topic})
    if (!state_.find(tenant, name)) make_entity(tenant, EntityType::topic, name, topic, {});
  for (const auto& [topic_name, own_name] : {std::pair{names.events_topic, names.events_subscription}, {names.results_topic, names.results_subscription}}) {
    const auto parent = state_.find(tenant, topic_name);  // people may have made a queue of that name before
    const std::string path = message::subscription_path(topic_name, own_name);
    if (parent && parent->row.entity_type == EntityType::topic && !state_.find(tenant, path))
      make_entity(tenant, EntityType::subscription, path, subscription, {default_description(turn_.now)});
  }
}

DefinitionPtr MessageTransaction::make_entity(const Tenant& tenant, EntityType type, std::string path, const Settings& settings,
                                              const std::vector<RuleDescription>& rules) {
  const std::int64_t id = ++counters(0).last_sequence_number;
  message::Entity row{.entity_id = id,
                      .tenant_id = tenant,
                      .entity_type = type,
                      .path = std::move(path),
                      .created_at = turn_.now,
                      .updated_at = turn_.now,
                      .settings = to_json(settings),
                      .rules = to_json(rules)};
  DefinitionPtr made = define(std::move(row)).value();  // it was checked
  define_as(id, made);
  counters(id).accessed_at = turn_.now;
  if (const auto at = settings.delete_when_idle ? message::after(turn_.now, *settings.delete_when_idle) : std::nullopt) wake(id, *at);
  return made;
}

// ---- commands

// What is received there are jobs, which are no messages of it: it would be idle while its workers are at work.
std::optional<Refused> MessageTransaction::problem_of_idleness(const ChangeEntity& c) const {
  const auto names = message::split_subscription_path(c.key.path);
  if (!c.settings.delete_when_idle || !names || !equal_ignoring_case(names->topic, kind_.options().jobs_topic)) return std::nullopt;
  return wrong("a subscription of '" + names->topic + "' is the pool of its workers: it is not deleted when idle");
}

Reply MessageTransaction::decide(const FindEntity& c) {
  if (c.is_attach) make_reserved(c.key.tenant);
  const auto found = find(c.key);
  if (!found) return found.error();
  return EntitiesReply{{info_of(**found)}};
}

Reply MessageTransaction::decide(const ListEntities& c) {
  EntitiesReply reply;
  std::size_t skip = c.skip;
  const bool are_subscriptions = c.type == EntityType::subscription;
  const auto topic = are_subscriptions ? state_.find(c.tenant, c.topic) : nullptr;
  if (are_subscriptions && (!topic || topic->row.entity_type != EntityType::topic)) return not_found(c.topic);
  const std::string prefix = are_subscriptions ? lower(message::subscription_path(c.topic, "")) : "";
  state_.for_each(c.tenant, prefix, [&](const DefinitionPtr& each) {
    if (each->row.entity_type != c.type) return true;
    if (skip > 0) return --skip, true;
    if (reply.entities.size() == std::min<std::size_t>(c.max, 1'000)) return false;
    reply.entities.push_back(info_of(*each));
    return true;
  });
  return reply;
}

Reply MessageTransaction::decide(const ChangeEntity& c) {
  make_reserved(c.key.tenant);
  if (c.what == ChangeEntity::What::create) return create(c);
  const auto found = find(c.key);
  if (!found) return found.error();
  if ((*found)->row.entity_type != c.type) return not_found(c.key.path);
  if (is_reserved(c.key.path)) return refused(Refusal::not_possible, "'" + c.key.path + "' is baton's own: it can be neither changed nor deleted");
  if (c.what == ChangeEntity::What::update) return update(**found, c);
  const EntityInfo info = info_of(**found);
  remove_entity(**found);
  return EntitiesReply{{info}};
}

Reply MessageTransaction::create(const ChangeEntity& c) {
  const auto names = message::split_subscription_path(c.key.path);
  if (names.has_value() != (c.type == EntityType::subscription)) return wrong("'" + c.key.path + "' is no name of a " + std::string(name(c.type)));
  if (auto problem = names ? message::problem_of_name(names->subscription, part_name_max) : message::problem_of_name(c.key.path, name_max))
    return wrong(*problem);
  if (auto problem = message::problem_of(c.settings, c.type)) return wrong(*problem);
  if (auto problem = problem_of_idleness(c)) return *std::move(problem);
  if (auto problem = problem_of_rules(c.rules)) return wrong(*problem);
  if (names && rules_of_topic(c.key.path, c.key.tenant) + c.rules.size() > topic_rules_max) return too_many_rules();
  std::string path = c.key.path;
  if (names) {
    const auto topic = state_.find(c.key.tenant, names->topic);
    if (!topic || topic->row.entity_type != EntityType::topic) return not_found(names->topic);
    if (state_.subscriptions_of(topic->row.entity_id).size() >= subscriptions_max)
      return refused(Refusal::quota_exceeded, "a topic has at most " + std::to_string(subscriptions_max) + " subscriptions here");
    path = message::subscription_path(topic->row.path, names->subscription);
  }
  if (state_.find(c.key.tenant, path)) return refused(Refusal::entity_exists, "The messaging entity '" + path + "' already exists.");
  if (state_.entities_of(c.key.tenant) >= kind_.options().entities_max)
    return refused(Refusal::quota_exceeded, "there are at most " + std::to_string(kind_.options().entities_max) + " queues, topics and subscriptions");
  auto rules = c.rules;
  for (RuleDescription& each : rules) each.created_at = turn_.now;
  if (names && rules.empty()) rules.push_back(default_description(turn_.now));
  return EntitiesReply{{info_of(*make_entity(c.key.tenant, c.type, std::move(path), c.settings, rules))}};
}

Reply MessageTransaction::update(const Definition& entity, const ChangeEntity& c) {
  if (auto problem = message::problem_of(c.settings, c.type)) return wrong(*problem);
  if (auto problem = problem_of_idleness(c)) return *std::move(problem);
  if (c.settings.detects_duplicates != entity.settings.detects_duplicates) return wrong("whether duplicates are detected cannot be changed");
  message::Entity row = entity.row;
  row.updated_at = turn_.now;
  row.settings = to_json(c.settings);
  const DefinitionPtr changed = define(std::move(row)).value();
  define_as(entity.row.entity_id, changed);
  counters(entity.row.entity_id).accessed_at = turn_.now;
  if (const auto at = c.settings.delete_when_idle ? message::after(turn_.now, *c.settings.delete_when_idle) : std::nullopt) wake(entity.row.entity_id, *at);
  return EntitiesReply{{info_of(*changed)}};
}

// Its name is free at once; its messages go in chunks.
void MessageTransaction::remove_entity(const Definition& entity) {
  const std::set<std::int64_t> subscriptions = state_.subscriptions_of(entity.row.entity_id);
  for (const std::int64_t id : subscriptions) remove_entity(*state_.find(id));
  message::Entity row = entity.row;
  row.path.clear();
  row.updated_at = turn_.now;
  const std::int64_t id = row.entity_id;
  define_as(id, define(std::move(row)).value());
  wake(id, turn_.now);
}

// ---- rules

std::size_t MessageTransaction::rules_of_topic(std::string_view path, const Tenant& tenant) const {
  const auto names = message::split_subscription_path(path);
  const auto topic = names ? state_.find(tenant, names->topic) : nullptr;
  std::size_t rules = 0;
  if (topic)
    for (const std::int64_t id : state_.subscriptions_of(topic->row.entity_id)) rules += state_.find(id)->rules.size();
  return rules;
}

Reply MessageTransaction::decide(const ChangeRule& c) {
  make_reserved(c.subscription.tenant);
  const auto found = find(c.subscription);
  if (!found) return found.error();
  const Definition& subscription = **found;
  if (subscription.row.entity_type != EntityType::subscription) return not_found(c.subscription.path);
  if (is_reserved(c.subscription.path)) return refused(Refusal::not_possible, "'" + c.subscription.path + "' is baton's own: its rules stay as they are");
  std::vector<RuleDescription> rules = subscription.descriptions;
  const auto rule = std::ranges::find_if(rules, [&](const RuleDescription& each) { return equal_ignoring_case(each.name, c.rule.name); });
  const bool is_there = rule != rules.end();
  if (c.what == ChangeRule::What::add && is_there) return refused(Refusal::entity_exists, "The messaging entity '" + c.rule.name + "' already exists.");
  if (c.what != ChangeRule::What::add && !is_there) return not_found(subscription.row.path + "/Rules/" + c.rule.name);
  if (c.what == ChangeRule::What::remove) {
    rules.erase(rule);
    return replace_rules(subscription, std::move(rules));
  }
  RuleDescription made = c.rule;
  made.created_at = is_there ? rule->created_at : turn_.now;
  if (is_there) *rule = std::move(made);
  else rules.push_back(std::move(made));
  if (auto problem = problem_of_rules(rules)) return wrong(*problem);
  if (!is_there && rules_of_topic(subscription.row.path, subscription.row.tenant_id) >= topic_rules_max) return too_many_rules();
  return replace_rules(subscription, std::move(rules));
}

Reply MessageTransaction::replace_rules(const Definition& subscription, std::vector<RuleDescription> rules) {
  message::Entity row = subscription.row;
  row.updated_at = turn_.now;
  row.rules = to_json(rules);
  const DefinitionPtr changed = define(std::move(row)).value();
  define_as(subscription.row.entity_id, changed);
  return EntitiesReply{{info_of(*changed)}};
}

}  // namespace baton::engine
