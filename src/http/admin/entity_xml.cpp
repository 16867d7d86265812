#include "http/admin/entity_xml.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/iso_duration.hpp"
#include "base/text.hpp"
#include "http/admin/rule_xml.hpp"

namespace baton::http::admin {
namespace {

using message::EntityType;
using message::Settings;

constexpr const char* for_ever_text = "P10675199DT2H48M5.4775807S";  // the longest TimeSpan of .NET
constexpr Duration for_ever = std::chrono::days{10'675'199};

std::string to_text(const std::optional<Duration>& duration) { return duration ? to_iso_duration(*duration) : for_ever_text; }

// Takes what is said, and keeps the first thing that is wrong.
class DescriptionReader {
 public:
  explicit DescriptionReader(pugi::xml_node described) : described_(described) {}

  void take(const char* name, Duration& into) {
    if (const auto duration = duration_of(name)) into = *duration;
  }
  void take(const char* name, std::optional<Duration>& into) {
    if (const auto duration = duration_of(name)) into = *duration >= for_ever ? std::nullopt : duration;
  }
  void take(const char* name, bool& into) {
    const auto text = given(name);
    if (!text) return;
    const std::string word = lower(*text);
    if (word != "true" && word != "false") return wrong(name, "true or false", *text);
    into = word == "true";
  }
  template <std::signed_integral Number>
  void take(const char* name, Number& into) {
    const auto text = given(name);
    if (!text) return;
    Number number{};
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    if (error != std::errc{} || end != text->data() + text->size()) return wrong(name, "a number", *text);
    into = number;
  }
  void take(const char* name, message::Availability& into) {
    const auto text = given(name);
    if (!text) return;
    const auto known = message::availability(*text);
    if (!known) return wrong(name, "Active, Disabled, SendDisabled or ReceiveDisabled", *text);
    into = *known;
  }
  void take(const char* name, std::string& into) {
    if (const pugi::xml_node element = find(described_, name)) into = text_of(element);
  }

  // A switch that can only be off.
  void refuse_switch(const char* name, std::string_view why) {
    bool is_on = false;
    take(name, is_on);
    if (is_on) refuse(fmt::format("{} cannot be true: {}", name, why));
  }
  void refuse_any(const char* name, std::string_view why) {
    if (is_given(find(described_, name))) refuse(fmt::format("{} cannot be set: {}", name, why));
  }
  void refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  std::optional<std::string> given(const char* name) {
    const pugi::xml_node element = find(described_, name);
    if (!is_given(element)) return std::nullopt;
    return std::string(trimmed(text_of(element)));
  }
  std::optional<Duration> duration_of(const char* name) {
    const auto text = given(name);
    if (!text) return std::nullopt;
    const auto duration = from_iso_duration(*text);
    if (!duration) wrong(name, "a duration such as PT1M or P14D", *text);
    return duration;
  }
  void wrong(const char* name, std::string_view expected, std::string_view text) { refuse(fmt::format("{} must be {}, not '{}'", name, expected, text)); }

  pugi::xml_node described_;
  std::string problem_;
};

std::optional<EntityType> type_called(std::string_view root) {
  if (root == "QueueDescription") return EntityType::queue;
  if (root == "TopicDescription") return EntityType::topic;
  if (root == "SubscriptionDescription") return EntityType::subscription;
  return std::nullopt;
}

void take_settings(DescriptionReader& reader, Settings& settings) {
  reader.take("LockDuration", settings.lock_time);
  reader.take("MaxDeliveryCount", settings.deliveries_max);
  reader.take("DefaultMessageTimeToLive", settings.time_to_live);
  reader.take("DeadLetteringOnMessageExpiration", settings.dead_letter_on_expiry);
  reader.take("DeadLetteringOnFilterEvaluationExceptions", settings.dead_letter_on_filter_error);
  reader.take("RequiresDuplicateDetection", settings.detects_duplicates);
  reader.take("DuplicateDetectionHistoryTimeWindow", settings.history_time);
  reader.take("MaxSizeInMegabytes", settings.size_max_mb);
  reader.take("AutoDeleteOnIdle", settings.delete_when_idle);
  reader.take("Status", settings.availability);
  reader.take("UserMetadata", settings.user_metadata);
}

void refuse_what_is_not_there(DescriptionReader& reader) {
  reader.refuse_switch("RequiresSession", "there are no sessions here");
  reader.refuse_switch("EnablePartitioning", "nothing is partitioned here");
  reader.refuse_switch("EnableSubscriptionPartitioning", "nothing is partitioned here");
  reader.refuse_switch("IsClientAffine", "a subscription belongs to no single client here");
  reader.refuse_any("ForwardTo", "messages are not forwarded here");
  reader.refuse_any("ForwardDeadLetteredMessagesTo", "dead letters are not forwarded here");
  reader.refuse_any("AuthorizationRules", "keys are made by `baton token create --bus`, for all entities of a tenant");
  std::int64_t kilobytes = 0;
  reader.take("MaxMessageSizeInKilobytes", kilobytes);
  if (kilobytes > message_kilobytes_max) reader.refuse(fmt::format("MaxMessageSizeInKilobytes is at most {}", message_kilobytes_max));
}

// --- writing

void add_queue_settings(pugi::xml_node to, const Settings& settings) {
  add(to, "LockDuration", to_iso_duration(settings.lock_time));
  add(to, "MaxSizeInMegabytes", settings.size_max_mb);
  add(to, "RequiresDuplicateDetection", settings.detects_duplicates);
  add(to, "RequiresSession", false);
  add(to, "DefaultMessageTimeToLive", to_text(settings.time_to_live));
  add(to, "DeadLetteringOnMessageExpiration", settings.dead_letter_on_expiry);
  add(to, "DuplicateDetectionHistoryTimeWindow", to_iso_duration(settings.history_time));
  add(to, "MaxDeliveryCount", settings.deliveries_max);
  add(to, "EnableBatchedOperations", true);
}

void add_topic_settings(pugi::xml_node to, const Settings& settings) {
  add(to, "DefaultMessageTimeToLive", to_text(settings.time_to_live));
  add(to, "MaxSizeInMegabytes", settings.size_max_mb);
  add(to, "RequiresDuplicateDetection", settings.detects_duplicates);
  add(to, "DuplicateDetectionHistoryTimeWindow", to_iso_duration(settings.history_time));
  add(to, "EnableBatchedOperations", true);
}

void add_subscription_settings(pugi::xml_node to, const Settings& settings) {
  add(to, "LockDuration", to_iso_duration(settings.lock_time));
  add(to, "RequiresSession", false);
  add(to, "DefaultMessageTimeToLive", to_text(settings.time_to_live));
  add(to, "DeadLetteringOnMessageExpiration", settings.dead_letter_on_expiry);
  add(to, "DeadLetteringOnFilterEvaluationExceptions", settings.dead_letter_on_filter_error);
  add(to, "MaxDeliveryCount", settings.deliveries_max);
  add(to, "EnableBatchedOperations", true);
}

void add_counts(pugi::xml_node to, const message::Counters& counters) {
  const pugi::xml_node details = add(to, "CountDetails");
  set(details, "xmlns:d2p1", "http://schemas.microsoft.com/netservices/2011/06/servicebus");
  add(details, "d2p1:ActiveMessageCount", counters.active);
  add(details, "d2p1:DeadLetterMessageCount", counters.dead);
  add(details, "d2p1:ScheduledMessageCount", counters.scheduled);
  add(details, "d2p1:TransferMessageCount", 0);
  add(details, "d2p1:TransferDeadLetterMessageCount", 0);
}

// What all three have, in the order of Service Bus.
void add_rest(pugi::xml_node to, const EntityInfo& info) {
  const auto& [entity, settings, rules, counters, subscriptions, is_reserved, pool, counts_are_at_least] = info;
  const bool is_topic = entity.entity_type == EntityType::topic;
  if (entity.entity_type != EntityType::subscription) add(to, "SizeInBytes", counters.bytes);
  if (!is_topic) add(to, "MessageCount", counters.active + counters.dead + counters.scheduled + counters.deferred);
  add(to, "Status", std::string(message::name(settings.availability)));
  if (!settings.user_metadata.empty()) add(to, "UserMetadata", settings.user_metadata);
  add(to, "CreatedAt", to_iso(entity.created_at));
  add(to, "UpdatedAt", to_iso(entity.updated_at));
  add(to, "AccessedAt", to_iso(counters.accessed_at));
  // By this element the SDK for JavaScript tells a topic from a queue.
  if (is_topic) add(to, "SupportOrdering", true);
  add_counts(to, counters);
  if (is_topic) add(to, "SubscriptionCount", subscriptions);
  add(to, "AutoDeleteOnIdle", to_text(settings.delete_when_idle));
  add(to, "EntityAvailabilityStatus", "Available");
  if (entity.entity_type == EntityType::subscription) return;
  add(to, "EnablePartitioning", false);
  add(to, "EnableExpress", false);
  add(to, "MaxMessageSizeInKilobytes", message_kilobytes_max);
}

}  // namespace

std::expected<Description, std::string> read_description(pugi::xml_node described, const message::Settings& before) {
  const std::string_view root = local_name(described.name());
  const auto type = type_called(root);
  if (!type) return std::unexpected(fmt::format("<{}> describes neither a queue nor a topic nor a subscription", root));
  Description description{*type, before, {}};
  DescriptionReader reader(described);
  take_settings(reader, description.settings);
  refuse_what_is_not_there(reader);
  if (const pugi::xml_node first = find(described, "DefaultRuleDescription"); is_given(first) && *type == EntityType::subscription) {
    auto rule = read_rule(first);
    if (!rule) return std::unexpected(std::move(rule.error()));
    if (rule->name.empty()) rule->name = message::default_rule_name;
    description.rules.push_back(*std::move(rule));
  }
  if (!reader.problem().empty()) return std::unexpected(reader.problem());
  return description;
}

void add_description(pugi::xml_node content, const EntityInfo& info) {
  const EntityType type = info.entity.entity_type;
  const char* root = type == EntityType::queue ? "QueueDescription" : type == EntityType::topic ? "TopicDescription" : "SubscriptionDescription";
  const pugi::xml_node description = add(content, root);
  set(description, "xmlns", bus_namespace);
  set(description, "xmlns:i", instance_namespace);
  if (type == EntityType::queue) add_queue_settings(description, info.settings);
  if (type == EntityType::topic) add_topic_settings(description, info.settings);
  if (type == EntityType::subscription) add_subscription_settings(description, info.settings);
  add_rest(description, info);
}

}  // namespace baton::http::admin
