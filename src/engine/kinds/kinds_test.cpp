#include "engine/kinds/kinds.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace baton::engine {
namespace {

TEST(Kinds, EverySubjectBelongsToOneOfThemOrToTheNode) {
  using enum Subject::Type;
  const Kinds kinds = make_kinds();
  for (int i = 1; i <= static_cast<int>(worker); ++i) {
    const auto type = static_cast<Subject::Type>(i);
    const auto owners = std::ranges::count_if(kinds, [&](const auto& kind) { return kind->owns(type); });
    EXPECT_EQ(owners, type == queue || type == worker ? 0 : 1) << name(type);
  }
}

TEST(Kinds, EachRegistersWhatItCounts) {
  metrics::Registry registry;
  const Kinds kinds = make_kinds({}, &registry);
  const std::string text = registry.render();
  for (const std::string name : {"baton_jobs_created_total", "baton_jobs_ended_total", "baton_runbook_steps_ended_total",
                                 "baton_runbook_batches_ended_total"})
    EXPECT_TRUE(text.contains("\n" + name + " 0\n")) << name << " is not in\n" << text;
}

}  // namespace
}  // namespace baton::engine
