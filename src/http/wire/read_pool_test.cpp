// The threads that read for the API, and the reads that wait until the tables show what was committed.
#include "http/wire/read_pool.hpp"

#include <gtest/gtest.h>

#include <future>

#include "store/memory/reads.hpp"

namespace baton::http {
namespace {

using namespace std::chrono_literals;

class ReadPoolTest : public testing::Test {
 protected:
  // One thread: whoever occupies it stops everybody else.
  std::unique_ptr<ReadPool> make_pool() {
    return std::make_unique<ReadPool>(
        [this]() -> Result<std::unique_ptr<Reads>> { return std::make_unique<store::MemoryReads>(database_); }, 1,
        &followed_, 4);
  }
  static std::future<Result<int>> read(ReadPool& pool, ReadPool::Of of = ReadPool::Of::commits) {
    auto done = std::make_shared<std::promise<Result<int>>>();
    auto answer = done->get_future();
    pool.run([](Reads&) -> Result<int> { return 1; }, [done](Result<int> value) { done->set_value(std::move(value)); },
             of);
    return answer;
  }
  static bool is_there(std::future<Result<int>>& answer, std::chrono::milliseconds within) {
    return answer.wait_for(within) == std::future_status::ready;
  }

  store::MemoryDatabase database_;
  Followed followed_;
  bool is_repaired_ = false;  // of the pool's thread
};

TEST_F(ReadPoolTest, ReadsThatWaitForTheTablesKeepNoThread) {
  const auto pool = make_pool();
  followed_.committed(2);
  auto first = read(*pool), second = read(*pool);
  auto token = read(*pool, ReadPool::Of::others);
  EXPECT_TRUE(is_there(token, 3s));
  std::promise<void> computed;
  pool->compute([&] { computed.set_value(); });
  EXPECT_EQ(computed.get_future().wait_for(3s), std::future_status::ready);
  EXPECT_FALSE(is_there(first, 0ms) || is_there(second, 0ms));
  followed_.followed(1);
  EXPECT_FALSE(is_there(first, 20ms));
  followed_.followed(2);
  EXPECT_TRUE(first.get() && second.get());
}

TEST_F(ReadPoolTest, AReadDoesNotWaitForWhatIsCommittedAfterIt) {
  const auto pool = make_pool();
  followed_.committed(1);
  auto before = read(*pool);
  followed_.committed(2);
  auto after = read(*pool);
  followed_.followed(1);
  EXPECT_TRUE(before.get());
  EXPECT_FALSE(is_there(after, 20ms));
  followed_.followed(2);
  EXPECT_TRUE(after.get());
}

TEST_F(ReadPoolTest, AReadWaitsNoLongerThanItsTime) {
  const auto pool = make_pool();
  followed_.committed(1);
  auto answer = read(*pool);
  EXPECT_FALSE(is_there(answer, 4s));
  ASSERT_TRUE(is_there(answer, 6s));
  EXPECT_EQ(answer.get().error().code, Code::unavailable);
}

TEST_F(ReadPoolTest, NobodyWaitsForAStoreThatIsAway) {
  const auto pool = make_pool();
  followed_.committed(1);
  auto before = read(*pool);
  followed_.set_away(true);
  ASSERT_TRUE(is_there(before, 3s));
  EXPECT_EQ(before.get().error().code, Code::unavailable);
  auto meanwhile = read(*pool);
  ASSERT_TRUE(is_there(meanwhile, 3s));
  EXPECT_FALSE(meanwhile.get());
  followed_.followed(1);
  EXPECT_TRUE(read(*pool).get()) << "what is shown can be read, whoever is away";
}

TEST_F(ReadPoolTest, AReadThatFindsTheTablesInDoubtWaitsUntilTheyAreNot) {
  followed_.opened(3);
  ReadPool pool(
      [this]() -> Result<std::unique_ptr<Reads>> {
        if (!std::exchange(is_repaired_, true)) followed_.doubt(2);
        if (followed_.is_doubted()) return fail(Code::unavailable, "the tables have lost something");
        return std::make_unique<store::MemoryReads>(database_);
      },
      1, &followed_, 4);
  auto answer = read(pool);
  EXPECT_FALSE(is_there(answer, 50ms));
  EXPECT_TRUE(followed_.is_doubted());
  auto token = read(pool, ReadPool::Of::others);
  EXPECT_FALSE(is_there(token, 20ms)) << "it needs a connection too";
  followed_.opened(3);
  EXPECT_TRUE(answer.get() && token.get());
}

TEST_F(ReadPoolTest, ReadsThatAreParkedCountAsWaiting) {
  auto pool = make_pool();
  followed_.committed(1);
  std::vector<std::future<Result<int>>> parked;
  for (int i = 0; i < 4; ++i) parked.push_back(read(*pool));
  auto refused = read(*pool);
  ASSERT_TRUE(is_there(refused, 0ms));
  EXPECT_FALSE(refused.get());
  pool.reset();
  for (auto& each : parked) EXPECT_FALSE(each.get()) << "whoever waits is answered when the pool goes";
}

}  // namespace
}  // namespace baton::http
