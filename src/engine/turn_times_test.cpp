// The line that says where the time of a slow turn went.
#include "engine/turn_times.hpp"

#include <gtest/gtest.h>

namespace baton::engine {
namespace {

using namespace std::chrono_literals;

std::string text_after(std::chrono::milliseconds took, const auto& what) {
  TurnTimes times;
  times.decided(TurnTimes::Clock::now() - took, what);
  return times.text();
}

Item item(Command command) { return {std::move(command), nullptr, {}}; }

TEST(TurnTimes, SaysHowMuchThereWasAndWhatTookHowLong) {
  TurnTimes times;
  times.messages = 3;
  times.timers = 2;
  times.load = 10ms;
  times.decide = 20ms;
  times.hand_out = 3ms;
  times.commit = 1'500ms;
  EXPECT_EQ(times.text(), "3 messages, 2 timers; load 10 ms, decide 20 ms, hand out 3 ms, commit 1500 ms");
}

TEST(TurnTimes, NamesTheLongestDecisionWithItsTenantAndItsJob) {
  TurnTimes times;
  const auto now = TurnTimes::Clock::now();
  times.decided(now - 300ms, item(AwaitJob{.tenant = {"acme"}, .job_id = {"short"}}));
  times.decided(now - 900ms, item(AwaitJob{.tenant = {"acme"}, .job_id = {"long"}}));
  times.decided(now - 200ms, Timer{{}, {Subject::Type::job, "shorter"}, "a"});
  const std::string text = times.text();
  EXPECT_NE(text.find("longest decision 9"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(": AwaitJob of tenant 'acme', job long")) << text;
}

TEST(TurnTimes, NamesATimerByItsSubject) {
  const std::string text = text_after(400ms, Timer{{}, {Subject::Type::job, "j"}, "resize"});
  EXPECT_TRUE(text.ends_with(": timer of job j, 'resize'")) << text;
  EXPECT_TRUE(text_after(400ms, Timer{{}, {Subject::Type::phase, "7"}, ""}).ends_with(": timer of phase 7"));
}

TEST(TurnTimes, SaysNothingOfDecisionsThatWereQuick) {
  EXPECT_EQ(text_after(5ms, Timer{{}, {Subject::Type::job, "j"}, ""}).find("longest"), std::string::npos);
}

// The names stand in the order of the variant: one that is left out would give all behind it the wrong name.
TEST(TurnTimes, KnowsTheNamesOfCommandsOfAllKinds) {
  const auto named = [](Command command, const std::string& name) {
    EXPECT_NE(text_after(400ms, item(std::move(command))).find(": " + name), std::string::npos) << name;
  };
  named(SubmitJob{}, "SubmitJob");
  named(ReturnTasks{}, "ReturnTasks");
  named(NoteSync{}, "NoteSync");
  named(AdoptJobs{}, "AdoptJobs");
  named(SubmitCalls{}, "SubmitCalls");
  named(RebuildCalls{}, "RebuildCalls");
}

}  // namespace
}  // namespace baton::engine
