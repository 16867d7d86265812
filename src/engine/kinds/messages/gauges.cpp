#include "engine/kinds/messages/gauges.hpp"

namespace baton::engine {

void EntityGauges::show(const Definition& entity, const message::Counters& now) {
  if (!registry_) return;
  auto found = entities_.find(now.entity_id);
  if (found == entities_.end()) {
    if (entities_.size() >= entities_max) return;
    const std::string of = "tenant=\"" + entity.row.tenant_id.value + "\",entity=\"" + entity.row.path + "\"";
    const auto in_state = [&](const char* state) {
      return &registry_->gauge("baton_bus_messages", "Messages of a queue or a subscription, by state.", of + ",state=\"" + state + "\"");
    };
    found = entities_.emplace(now.entity_id, Gauges{in_state("active"), in_state("dead"), in_state("scheduled"), in_state("deferred"),
                                                    &registry_->gauge("baton_bus_oldest_timestamp_seconds",
                                                                      "When the oldest message that waits was enqueued; 0: none waits.", of)}).first;
  }
  Gauges& gauges = found->second;
  gauges.active->set(now.active);
  gauges.dead->set(now.dead);
  gauges.scheduled->set(now.scheduled);
  gauges.deferred->set(now.deferred);
  gauges.is_stale = now.active > 0;
  if (now.active == 0) gauges.oldest->set(0);
}

void EntityGauges::gone(std::int64_t entity_id) {
  const auto found = entities_.find(entity_id);
  if (found == entities_.end()) return;
  for (metrics::Gauge* each : {found->second.active, found->second.dead, found->second.scheduled, found->second.deferred, found->second.oldest}) registry_->remove(*each);
  entities_.erase(found);
}

std::vector<std::int64_t> EntityGauges::to_look_at(Time now, std::size_t limit) {
  std::vector<std::int64_t> found;
  for (auto& [id, gauges] : entities_) {
    if (found.size() == limit) break;
    if (!gauges.is_stale || now - gauges.looked_at < std::chrono::seconds{1}) continue;
    gauges.looked_at = now;
    found.push_back(id);
  }
  return found;
}

void EntityGauges::looked(std::int64_t entity_id, std::optional<Time> oldest) {
  const auto found = entities_.find(entity_id);
  if (found == entities_.end()) return;
  found->second.is_stale = false;
  found->second.oldest->set(oldest ? to_millis(*oldest) / 1'000 : 0);
}

}  // namespace baton::engine
