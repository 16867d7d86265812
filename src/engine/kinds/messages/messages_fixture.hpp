// For tests: queues, topics and their messages through the real writer, on a store in memory and a clock that the test moves.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/kinds/kinds.hpp"
#include "engine/writer.hpp"
#include "store/memory/store.hpp"
#include "tests/support/clocks.hpp"
#include "tests/support/kept_reply.hpp"

namespace baton::engine::messages_test {

using namespace std::chrono_literals;
using message::EntityType;
using message::Lane;
using How = Settlement::How;

// What it was asked for whole.
class CountingStore final : public store::MemoryStore {
 public:
  using MemoryStore::MemoryStore, MemoryStore::load;
  Result<message::Loaded> load(const message::LoadRequest& request) override {
    auto loaded = MemoryStore::load(request);
    if (!loaded) return loaded;
    for (const message::Message& each : loaded->messages) bytes += each.content.value.size();
    return loaded;
  }
  std::size_t bytes = 0;
};

class MessageTurn : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(writer_->open()); }

  Reply ask(Command command) {
    const auto answer = std::make_shared<support::KeptReply>();
    std::vector<Item> items;
    items.push_back({std::move(command), answer});
    writer_->run(std::move(items));
    EXPECT_TRUE(answer->reply.has_value());
    return answer->reply.value_or(Refused{});
  }
  template <class T>
  T ask_for(Command command) {
    Reply reply = ask(std::move(command));
    if (const auto* refused = std::get_if<Refused>(&reply)) ADD_FAILURE() << refused->message;
    return std::holds_alternative<T>(reply) ? std::get<T>(std::move(reply)) : T{};
  }
  Refusal refusal(Command command) {
    const Reply reply = ask(std::move(command));
    EXPECT_TRUE(std::holds_alternative<Refused>(reply));
    return std::holds_alternative<Refused>(reply) ? std::get<Refused>(reply).refusal : Refusal{};
  }
  // What is due, and what follows from it.
  void pass(Duration time) {
    clock_.time += time;
    for (int i = 0; i < 20; ++i) writer_->run({});
  }
  void restart() {
    writer_.reset();
    store_.emplace(database_);
    writer_ = std::make_unique<Writer>(*store_, clock_, make_kinds());
    ASSERT_TRUE(writer_->open());
  }

  static EntityKey key(std::string path, std::string tenant = "default") { return {{std::move(tenant)}, std::move(path)}; }
  EntityInfo make(EntityType type, const std::string& path, message::Settings settings = {}, std::vector<message::RuleDescription> rules = {}) {
    auto made = ask_for<EntitiesReply>(ChangeEntity{ChangeEntity::What::create, key(path), type, std::move(settings), std::move(rules)});
    return made.entities.empty() ? EntityInfo{} : made.entities.front();
  }
  message::Counters counters(const std::string& path) { return ask_for<EntitiesReply>(FindEntity{key(path)}).entities.at(0).counters; }
  static NewMessage message(const std::string& id, const std::string& content = "body") {
    return {.message_id = id, .content = {content}};
  }
  std::int64_t send(const std::string& path, NewMessage sent) {
    auto reply = ask_for<SentReply>(SendMessages{key(path), {{std::move(sent)}}});
    EXPECT_TRUE(reply.transfers.at(0).has_value()) << reply.transfers.at(0).error().message;
    return reply.transfers.at(0) ? reply.transfers.at(0)->at(0) : -1;
  }
  std::vector<Handout> receive(const EntityInfo& from, std::uint32_t max = 10, Lane lane = Lane::active, bool deletes = false) {
    const Poll poll{.tenant = from.entity.tenant_id, .queue = message::queue_name(from.entity.entity_id, lane), .worker = "r", .max = max,
                    .heartbeats = !deletes, .wait_until = clock_.time, .is_listed = false};
    return ask_for<PollReply>(poll).jobs;
  }
  static MessageLock lock_of(const Handout& given) { return {given.message->key(), given.message->locks}; }
  std::optional<Refused> settle(const Handout& given, How how, std::string reason = "") {
    auto reply = ask_for<SettledReply>(SettleMessages{Tenant{"default"}, {{.lock = lock_of(given), .how = how, .reason = std::move(reason)}}});
    return reply.settled.empty() ? Refused{} : reply.settled.at(0);
  }

  support::ManualClock clock_;
  store::MemoryDatabase database_;
  std::optional<CountingStore> store_{std::in_place, database_};
  std::unique_ptr<Writer> writer_ = std::make_unique<Writer>(*store_, clock_, make_kinds());
};

}  // namespace baton::engine::messages_test
