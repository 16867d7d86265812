#include "engine/kinds/kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace baton::engine {
namespace {

TEST(Kinds, EverySubjectBelongsToOneOfThemOrToTheNode) {
  using enum Subject::Type;
  const Kinds kinds = make_kinds({}, {});
  for (int i = 1; i <= static_cast<int>(worker); ++i) {
    const auto type = static_cast<Subject::Type>(i);
    const auto owners = std::ranges::count_if(kinds, [&](const auto& kind) { return kind->owns(type); });
    EXPECT_EQ(owners, type == queue || type == worker ? 0 : 1) << name(type);
  }
}

}  // namespace
}  // namespace baton::engine
