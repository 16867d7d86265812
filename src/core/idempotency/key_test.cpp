#include "core/idempotency/key.hpp"

#include <gtest/gtest.h>

namespace baton::idempotency {
namespace {

TEST(IdempotencyKey, ThatNobodyUsedIsFresh) { EXPECT_EQ(judge(nullptr, "a"), Use::fresh); }

TEST(IdempotencyKey, IsForOneRequest) {
  const std::string a = "a", empty;
  EXPECT_EQ(judge(&a, "a"), Use::same);
  EXPECT_EQ(judge(&a, "b"), Use::reused);
  EXPECT_EQ(judge(&empty, "b"), Use::reused) << "an empty hash is one too";
}

}  // namespace
}  // namespace baton::idempotency
