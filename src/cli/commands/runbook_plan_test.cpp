#include "cli/commands/runbook_plan.hpp"

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

const Time planned_at = *from_iso("2026-11-16T19:00:00Z");

constexpr const char* plan = R"({"name":"contoso","version":0,"member_count":80,"batches":[{
  "batch_start_time":"2026-11-20T22:00:00.000Z","member_count":80,
  "init_steps":[{"step_name":"make-group","worker_id":"pool-1","function_name":"New-Group","params":{"Name":"wave"},"unresolved":[],"from_earlier_steps":[]}],
  "phases":[{"phase_name":"prepare","offset_minutes":7200,"due_at":"2026-11-15T22:00:00.000Z","overdue":true,"step_count":1},
            {"phase_name":"cut-over","offset_minutes":0,"due_at":"2026-11-20T22:00:00.000Z","overdue":false,"step_count":1}],
  "members":[{"member_key":"ada@contoso.example","phases":[
    {"phase_name":"prepare","steps":[{"step_name":"create-user","worker_id":"pool-1","function_name":"New-Mailbox","params":{"Dept":"{{Departmnt}}"},"unresolved":["Departmnt"],"from_earlier_steps":[]}]},
    {"phase_name":"cut-over","steps":[{"step_name":"move","worker_id":"pool-1","function_name":"Start-Move","params":{"Id":"{{TargetId}}"},"unresolved":[],"from_earlier_steps":["TargetId"]}]}]}]}],
  "unresolved":[{"phase_name":"prepare","step_name":"create-user","variable":"Departmnt","count":80,"member_keys":["ada@contoso.example","bob@contoso.example"]}],"warnings":[]})";

TEST(PlanText, TellsWhatHappensWhenAndToWhom) {
  EXPECT_EQ(plan_text(Fields(plan), planned_at, false),
            R"(contoso, not published: 80 members in 1 batch

batch of 80 members, T 2026-11-20 22:00 UTC (in 4 d 3 h)
  init, once for the batch
    make-group  New-Group on pool-1  {"Name":"wave"}
  prepare   T-5d     2026-11-15 22:00  21 h ago  1 step  past due: begins at once
  cut-over  T-0      2026-11-20 22:00  in 4 d 3 h  1 step

  ada@contoso.example
    prepare
      create-user  New-Mailbox on pool-1  {"Dept":"{{Departmnt}}"}
                   ! {{Departmnt}} is unknown: the step would fail
    cut-over
      move  Start-Move on pool-1  {"Id":"{{TargetId}}"}
            {{TargetId}} comes from an earlier step

  79 more members are not shown

Unknown variables, whose steps would fail:
  prepare/create-user: {{Departmnt}}, 80 members: ada@contoso.example, bob@contoso.example, …
)");
}

TEST(PlanText, MakesWhatIsUnknownRed) {
  EXPECT_NE(plan_text(Fields(plan), planned_at, true).find("\x1b[31m! {{Departmnt}} is unknown"), std::string::npos);
}

TEST(PlanText, SaysWhyThereIsNoTime) {
  const Fields by_hand(R"({"name":"contoso","version":3,"member_count":0,"note":"no T","batches":[],"unresolved":[]})");
  EXPECT_EQ(plan_text(by_hand, planned_at, false), "contoso version 3: 0 members in 0 batches\nnote: no T\n");
}

TEST(PlanText, OfNobodyIsShort) {
  EXPECT_EQ(
      plan_text(Fields(R"({"name":"contoso","version":3,"member_count":0,"batches":[],"unresolved":[]})"),
                planned_at, false),
      "contoso version 3: 0 members in 0 batches\n");
}

TEST(PreviewText, IsATableByTime) {
  EXPECT_EQ(preview_text(Fields(R"({"member_count":3,"batches":[
      {"batch_start_time":"2026-11-20T22:00:00.000Z","member_count":2,"members":[
        {"member_key":"ada","data":{"Upn":"ada","Aliases":["a","b"]}},{"member_key":"bob","data":{"Upn":"bob","Aliases":null}}]},
      {"batch_start_time":null,"member_count":1,"members":[]}]})")),
            "T                 MEMBER  Upn  Aliases\n"
            "2026-11-20 22:00  ada     ada  [\"a\",\"b\"]\n"
            "2026-11-20 22:00  bob     bob  null\n"
            "\n"
            "3 members, the first 2 shown\n");
  EXPECT_EQ(preview_text(Fields(R"({"member_count":0,"batches":[]})")), "0 members\n");
}

}  // namespace
}  // namespace baton::cli
