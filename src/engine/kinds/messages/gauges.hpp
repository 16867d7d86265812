// How many messages each entity has, and since when the oldest waits, for /metrics. The first entities that are used have
// gauges of their own, so many that whoever makes thousands does not make thousands of series.
//
// Owned by the engine's thread.
#pragma once

#include <map>

#include "base/metrics.hpp"
#include "engine/kinds/messages/state.hpp"

namespace baton::engine {

class EntityGauges {
 public:
  static constexpr std::size_t entities_max = 200;

  explicit EntityGauges(metrics::Registry* registry) : registry_(registry) {}

  // After a commit that changed it.
  void show(const Definition& entity, const message::Counters& now);
  void gone(std::int64_t entity_id);
  // Whose oldest message is to be looked for: what waits there has changed, and the last look is a second ago. At most `limit`.
  [[nodiscard]] std::vector<std::int64_t> to_look_at(Time now, std::size_t limit);
  void looked(std::int64_t entity_id, std::optional<Time> oldest);

 private:
  struct Gauges {
    metrics::Gauge *active, *dead, *scheduled, *deferred, *oldest;
    bool is_stale = false;
    Time looked_at{};
  };
  metrics::Registry* const registry_;
  std::map<std::int64_t, Gauges> entities_;
};

}  // namespace baton::engine
