#include "core/runbook/definition/plan.hpp"

#include <gtest/gtest.h>

namespace baton::runbook {
namespace {

Step step(std::string function, std::string params) {
  Step made;
  made.name = "s";
  made.function = std::move(function);
  made.params = Json{std::move(params)};
  return made;
}

const Time batch_start = *from_iso("2026-03-10T08:00:00Z");
const OptionalJson ada = Json{R"({"Upn":"ada","Aliases":["a","b"],"Id":"old"})"};

TEST(Plan, a_step_is_shown_as_its_member_would_get_it) {
  const auto planned = plan_step(
      step("New-{{upn}}", R"({"Upn":"{{Upn}}","Aliases":"{{Aliases}}","At":"{{_batch_start_time}}"})"), ada,
      batch_start, {});
  EXPECT_EQ(planned.function_name, "New-ada");
  EXPECT_EQ(planned.params.text, R"({"Upn":"ada","Aliases":["a","b"],"At":"2026-03-10T08:00:00.000Z"})");
  EXPECT_TRUE(planned.unresolved.empty());
  EXPECT_TRUE(planned.later.empty());
}

TEST(Plan, what_nobody_knows_is_named_and_what_steps_put_out_comes_later) {
  Outputs outputs;
  Step before = step("f", "{}");
  before.output_params = {{"Id", "id"}, {"Box", "box"}};
  add_outputs(outputs, before);
  const auto planned =
      plan_step(step("f", R"({"a":"{{Upn}}/{{id}}","b":"{{Nope}}","c":["{{Box}}"]})"), ada, batch_start, outputs);
  EXPECT_EQ(planned.params.text, R"({"a":"ada/{{id}}","b":"{{Nope}}","c":["{{Box}}"]})");
  EXPECT_EQ(planned.unresolved, std::vector<std::string>{"Nope"});
  EXPECT_EQ(planned.later, (std::vector<std::string>{"id", "Box"}));
}

TEST(Plan, a_batch_has_no_id_yet) {
  const auto planned =
      plan_step(step("f-{{_batch_id}}", R"({"a":"wave {{ _batch_id }}","b":"{{_batch_id}}"})"), {}, batch_start, {});
  EXPECT_EQ(planned.function_name, "f-{{_batch_id}}");
  EXPECT_EQ(planned.params.text, R"({"a":"wave {{_batch_id}}","b":"{{_batch_id}}"})");
  EXPECT_EQ(planned.later, std::vector<std::string>{"_batch_id"});
  EXPECT_TRUE(planned.unresolved.empty());
}

TEST(Plan, a_manual_batch_has_no_start_time) {
  const auto planned = plan_step(step("f", R"({"At":"{{_batch_start_time}}"})"), ada, std::nullopt, {});
  EXPECT_EQ(planned.unresolved, std::vector<std::string>{"_batch_start_time"});
  EXPECT_EQ(planned.params.text, R"({"At":"{{_batch_start_time}}"})");
}

TEST(Plan, phases_come_by_when_they_are_due) {
  Definition definition;
  definition.phases = {{"after", -60, {}}, {"at", 0, {}}, {"before", 1440, {}}};
  std::vector<std::string> names;
  for (const Phase* phase : phases_in_order(definition)) names.push_back(phase->name);
  EXPECT_EQ(names, (std::vector<std::string>{"before", "at", "after"}));
  EXPECT_EQ(to_iso(due_at(definition.phases[2], batch_start)), "2026-03-09T08:00:00.000Z");
  EXPECT_EQ(to_iso(due_at(definition.phases[0], batch_start)), "2026-03-10T09:00:00.000Z");
}

}  // namespace
}  // namespace baton::runbook
