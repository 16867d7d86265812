#include "core/message/transitions.hpp"

#include <algorithm>

namespace baton::message {
namespace {

constexpr std::size_t reason_bytes_max = 4'096;

Message in_lane(Message message, Lane lane) {
  message.lane = lane;
  message.locked_until.reset();
  return message;
}

}  // namespace

Message enqueued(Message message, std::int64_t entity_id, std::int64_t sequence_number, Time now, const Settings& settings) {
  message = in_lane(std::move(message), Lane::active);
  message.entity_id = entity_id;
  message.sequence_number = sequence_number;
  message.enqueued_at = now;
  message.delivery_count = 0;
  message.envelope.reset();
  const auto& most = settings.time_to_live;
  if (most) message.time_to_live_ms = std::min(message.time_to_live_ms.value_or(most->count()), most->count());
  message.due_at = message.time_to_live_ms ? after(now, Duration{*message.time_to_live_ms}) : std::nullopt;
  return message;
}

Message dead_lettered(Message message, const DeadLetter& why, std::string_view path) {
  message = in_lane(std::move(message), Lane::dead);
  message.due_at.reset();
  message.dead_letter_source = path;
  message.dead_letter_reason = clean_text(why.reason, reason_bytes_max);
  message.dead_letter_description = clean_text(why.description, reason_bytes_max);
  return message;
}

Message deferred(Message message) {
  const Lane to = is_dead(message.lane) ? Lane::shelved : Lane::deferred;
  return in_lane(std::move(message), to);
}

Message replayed(Message message, std::int64_t sequence_number, Time now, const Settings& settings) {
  const std::int64_t entity_id = message.entity_id;
  message = enqueued(std::move(message), entity_id, sequence_number, now, settings);
  message.dead_letter_source.reset();
  message.dead_letter_reason.reset();
  message.dead_letter_description.reset();
  return message;
}

OptionalJson with_changes(const OptionalJson& before, const Changes& more) {
  if (more.empty()) return before;
  Changes all;
  if (before)
    if (auto read = read_changes(*before)) all = *std::move(read);
  all.add(more);
  return to_json(all);
}

DeadLetter too_many_deliveries(std::int32_t delivery_count) {
  return {"MaxDeliveryCountExceeded", "Message could not be consumed after " + std::to_string(delivery_count) + " delivery attempts."};
}

DeadLetter expired() { return {"TTLExpiredException", "The message expired and was dead lettered."}; }

DeadLetter filter_failed(const Failure& failure) {
  return {"FilterEvaluationException", "rule '" + failure.rule + "': " + failure.problem.message};
}

}  // namespace baton::message
