// The batch alone, with a kind of work that does what the test says.
#include "engine/batch.hpp"

#include <gtest/gtest.h>

#include "store/memory/store.hpp"

namespace baton::engine {
namespace {

// Of the first round it takes three commands, and then something is missing; of the second, one.
class Narrow final : public Transaction {
 public:
  Result<> load(std::span<const Item>, std::span<const Timer>) override { return {}; }
  void decide(std::size_t, const Item&) override { ++decided_; }
  [[nodiscard]] bool is_full() const override { return decided_ >= (round_ == 0 ? 3 : 1); }
  [[nodiscard]] bool is_incomplete() const override { return round_ == 0; }
  Result<> restart() override {
    ++round_;
    decided_ = 0;
    return {};
  }
  void write(WriteSet&, std::int64_t) override {}

 private:
  int round_ = 0;
  int decided_ = 0;
};

class NarrowKind final : public Kind {
 public:
  [[nodiscard]] bool owns(Subject::Type type) const override { return type == Subject::Type::job; }
  [[nodiscard]] std::unique_ptr<Transaction> begin(Turn) override { return std::make_unique<Narrow>(); }
  void tell(const WriteSet&, Changes&) const override {}
};

struct Nothing final : Waiter {
  void deliver(Reply) override {}
};

TEST(BatchTest, what_a_batch_has_no_room_for_keeps_its_order) {
  store::MemoryDatabase database;
  store::MemoryStore store(database);
  Kinds kinds;
  kinds.push_back(std::make_unique<NarrowKind>());
  Matching matching(10);
  BatchServices services{.store = store, .kinds = kinds, .matching = matching, .limits = {}};
  std::vector<Item> items;
  for (const char* id : {"a", "b", "c", "d", "e"})
    items.push_back({AwaitJob{.tenant = {"default"}, .job_id = {id}}, std::make_shared<Nothing>()});
  Batch batch(services, from_millis(1), std::nullopt, std::move(items));
  ASSERT_TRUE(batch.decide());
  EXPECT_EQ(batch.items_count(), 1u);
  std::string deferred;
  for (const Item& item : batch.take_deferred()) deferred += std::get<AwaitJob>(item.command).job_id.value;
  EXPECT_EQ(deferred, "bcde");
}

}  // namespace
}  // namespace baton::engine
