// A store that is open, and messages to put into it.
#pragma once

#include "tests/contract/store/fixture.hpp"

namespace baton::contract {

class MessageFixture : public StoreContract {
 protected:
  using Numbers = std::vector<std::int64_t>;
  static inline const Time locked_until = at(60'000);

  static message::MessageKey key(std::int64_t entity_id, message::Lane lane, std::int64_t sequence_number) {
    return {entity_id, lane, sequence_number};
  }
  static message::Entity entity(std::int64_t id) {
    return {id, {"acme"}, message::EntityType::subscription, "events/Subscriptions/s" + std::to_string(id), at(id), at(id + 1),
            {R"({"deliveries_max":3})"}, {R"([{"name":"all"}])"}};
  }
  static message::Counters counters(std::int64_t id) { return {id, 10, 1, 2, 3, 4, std::int64_t{5} << 33, at(id), at(id + 2)}; }
  static message::Message message(std::int64_t entity_id, message::Lane lane, std::int64_t sequence_number) {
    message::Message row;
    row.entity_id = entity_id, row.lane = lane, row.sequence_number = row.enqueued_sequence_number = sequence_number;
    row.message_id = "m" + std::to_string(sequence_number);
    row.enqueued_at = at(sequence_number);
    row.content = {"content of " + row.message_id};
    return row;
  }
  static message::Message full_message(std::int64_t entity_id, message::Lane lane, std::int64_t sequence_number) {
    message::Message row = message(entity_id, lane, sequence_number);
    row.delivery_count = 4;
    row.locked_until = at(123);
    row.changes = Json{R"({"removed":["b"]})"};
    row.due_at = at(9'999);
    row.time_to_live_ms = 9'000'000'000'000;
    row.enqueued_sequence_number = 77;
    row.dead_letter_source = "orders";
    row.dead_letter_reason = "TTLExpiredException";
    row.dead_letter_description = "";
    row.envelope = Json{R"({"label":"x"})"};
    row.annotations = {std::string("\0annotations", 12)};
    return row;
  }

  Result<> try_commit(const message::Writes& messages) {
    WriteSet writes;
    writes.messages = messages;
    auto done = store->commit(writes, number + 1);
    if (done) ++number;
    return done;
  }
  void commit(const message::Writes& messages) {
    const auto done = try_commit(messages);
    ASSERT_TRUE(done) << done.error().message;
  }
  void commit(const message::Entity& entity, const message::Counters& counters) {
    commit(message::Writes{.entities_new = {entity}, .counters_new = {counters}});
  }
  void send(std::int64_t entity_id, message::Lane lane, const Numbers& numbers) {
    message::Writes w;
    for (const std::int64_t n : numbers) w.messages_new.push_back(message(entity_id, lane, n));
    commit(w);
  }
  void lock(std::int64_t entity_id, message::Lane lane, const Numbers& numbers) { change(entity_id, lane, numbers, 1, locked_until); }
  void unlock(std::int64_t entity_id, message::Lane lane, const Numbers& numbers) { change(entity_id, lane, numbers, 1, std::nullopt); }
  void change(std::int64_t entity_id, message::Lane lane, const Numbers& numbers, std::int32_t deliveries, std::optional<Time> until) {
    message::Writes w;
    for (const std::int64_t n : numbers) {
      auto& row = w.messages_changed.emplace_back();
      row.entity_id = entity_id, row.lane = lane, row.sequence_number = n;
      row.delivery_count = deliveries, row.locked_until = until;
    }
    commit(w);
  }
  void remove(std::int64_t entity_id, message::Lane lane, const Numbers& numbers) {
    message::Writes w;
    for (const std::int64_t n : numbers) w.messages_gone.push_back(key(entity_id, lane, n));
    commit(w);
  }

  void follow() {
    const auto done = store->follow();
    ASSERT_TRUE(done) << done.error().message;
  }

  message::Loaded load(const message::LoadRequest& request) {
    auto loaded = store->load(request);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return loaded ? std::move(*loaded) : message::Loaded{};
  }
  std::vector<message::Message> page(std::int64_t entity_id, message::Lane lane, std::int64_t from = 0, std::size_t limit = 100) {
    auto loaded = load({.pages = {{entity_id, lane, from, limit, true}}});
    return loaded.pages.size() == 1 ? std::move(loaded.pages[0]) : std::vector<message::Message>{};
  }
  std::vector<message::Message> agenda(std::int64_t entity_id, message::Lane lane, std::size_t limit) {
    auto loaded = load({.agendas = {{entity_id, lane, limit}}});
    return loaded.agendas.size() == 1 ? std::move(loaded.agendas[0]) : std::vector<message::Message>{};
  }
  Numbers waiting(std::int64_t entity_id, message::Lane lane, std::size_t limit = 100, Time now = {}) {
    Numbers found;
    const auto tasks = store->waiting({{"default"}, message::queue_name(entity_id, lane)}, limit, now);
    EXPECT_TRUE(tasks) << tasks.error().message;
    for (const WaitingTask& task : tasks.value_or(std::vector<WaitingTask>{})) {
      EXPECT_EQ(task, waiting_task(message::MessageKey{entity_id, lane, task.number}));
      found.push_back(task.number);
    }
    return found;
  }
  static Numbers numbers(const std::vector<message::Message>& rows) {
    Numbers found;
    for (const message::Message& row : rows) found.push_back(row.sequence_number);
    return found;
  }
};

}  // namespace baton::contract
