#include "cli/terminal/batch_frame.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

using namespace std::chrono_literals;
using Lines = std::vector<std::string>;

const Time drawn_at = *from_iso("2026-11-16T19:00:00Z");

std::string phase(const std::string& name, int offset, const std::string& due, const std::string& status,
                  const std::string& counts) {
  return fmt::format(
      R"({{"phase_name":"{}","offset_minutes":{},"due_at":{},"runbook_version":3,"status":"{}","walk":"none","counts":{}}})",
      name, offset, due.empty() ? "null" : "\"" + due + "\"", status, counts);
}

// A batch of 10,000 in the middle of its first phase; `more` are further members, `phases` the phases.
std::string batch(const std::string& phases, const std::string& more = "") {
  return R"({"id":42,"runbook_name":"contoso-mailboxes","runbook_version":3,"status":"active",)"
         R"("batch_start_time":"2026-11-20T22:00:00.000Z","is_manual":false,"importing":false,)"
         R"("members":{"active":9969,"failed":31},"phases":[)" +
         phases + "]" + more + "}";
}

std::string usual_phases() {
  return phase("cut-over", 0, "2026-11-20T22:00:00.000Z", "pending", "{}") + "," +
         phase(
             "prepare", 7200, "2026-11-15T22:00:00.000Z", "dispatched",
             R"({"succeeded":6200,"failed":30,"rolled_back":1,"dispatched":100,"polling":20,"pending":3649})");
}

std::string failures(int number, const std::string& error = "mailbox is full") {
  std::string all;
  for (int i = 0; i < number; ++i)
    all += fmt::format(
        R"({}{{"phase_name":"prepare","step_name":"create-user","member_key":"u{}@contoso.example","error_message":"{}"}})",
        i > 0 ? "," : "", i, error);
  return R"({"failures":[)" + all + "]}";
}

std::string joined(const Lines& lines) { return fmt::format("{}\n", fmt::join(lines, "\n")); }

TEST(FailureLines, SayOfWhichPartAndWhoseTheyAre) {
  const std::string page = R"({"failures":[
    {"type":"cleanup","sequence":"undo-user","phase_name":"prepare","step_name":"remove-user","member_key":"ada","error_message":"gone"},
    {"type":"init","phase_name":"","step_name":"make-group","member_key":"","error_message":"no rights"}]})";
  EXPECT_EQ(failure_lines(page, 5, {}), (Lines{"  undo-user/remove-user  ada  gone", "  init/make-group  no rights"}));
}

TEST(BatchFrame, ShowsPhasesMembersPaceAndFailures) {
  EXPECT_EQ(joined(frame(batch(usual_phases()), failures(2), 124.3, drawn_at, {})),
            R"(batch 42  contoso-mailboxes version 3  active
T 2026-11-20 22:00 UTC, in 4 d 3 h

prepare   dispatched  2026-11-15 22:00  21 h ago
  [#########x>......]   62 %  6,200 ok  31 failed  120 dispatched  3,649 pending
cut-over  pending     2026-11-20 22:00  in 4 d 3 h

members  9,969 active  31 failed  0 removed
pace     124 steps/s, what has begun ends in about 30 s

latest failures
  prepare/create-user  u0@contoso.example  mailbox is full
  prepare/create-user  u1@contoso.example  mailbox is full
)");
}

TEST(BatchFrame, FitsEightyColumnsWithTenThousandMembersAndLongNames) {
  const std::string name(200, 'n');
  const std::string counts =
      R"({"succeeded":20000,"failed":1231,"cancelled":2462,"dispatched":1000,"pending":25307})";
  const std::string json = batch(
      phase(name, 7200, "2026-11-15T22:00:00.000Z", "dispatched", counts),
      R"(,"error_message":")" + std::string(500, 'e') + R"(","rollbacks":{"succeeded":1200,"failed":31})");
  for (const std::size_t columns : {20U, 40U, 80U, 200U})
    for (const std::string& line :
         frame(json, failures(5, std::string(300, 'x')), 3.2, drawn_at, {columns, 24, false})) {
      EXPECT_LE(columns_of(line), columns) << line;
      EXPECT_EQ(line.find('\x1b'), std::string::npos);
    }
}

TEST(BatchFrame, IsNoTallerForMoreMembers) {
  const std::string few = batch(phase("p", 0, "", "dispatched", R"({"succeeded":1,"pending":1})"));
  const std::string many = batch(phase("p", 0, "", "dispatched", R"({"succeeded":5000,"pending":5000})"));
  EXPECT_EQ(frame(few, failures(0), 0, drawn_at, {}).size(), frame(many, failures(0), 0, drawn_at, {}).size());
}

TEST(BatchFrame, LeavesOutPhasesThatEndedAndThoseToComeRatherThanTheOneThatRuns) {
  std::string phases;
  for (int i = 0; i < 40; ++i)
    phases += (i > 0 ? "," : "") + phase(fmt::format("phase-{}", i), 4000 - i, "2026-11-15T22:00:00.000Z",
                                         i < 20    ? "completed"
                                         : i == 20 ? "dispatched"
                                                   : "pending",
                                         i <= 20 ? R"({"succeeded":10})" : "{}");
  const Lines lines = frame(batch(phases), failures(9), 0, drawn_at, {80, 24, false});
  EXPECT_LT(lines.size(), 24U);
  const std::string text = joined(lines);
  EXPECT_NE(text.find("(20 more that ended)"), std::string::npos) << text;
  EXPECT_NE(text.find("phase-20"), std::string::npos) << text;
  EXPECT_NE(text.find("more to come)"), std::string::npos) << text;
  EXPECT_NE(text.find("latest failures"), std::string::npos) << text;
  EXPECT_EQ(text.find("phase-19"), std::string::npos) << text;
}

TEST(BatchFrame, TellsWhoPausedAndWhatIsHeld) {
  const std::string text = joined(frame(
      batch(usual_phases(), R"(,"paused_at":"2026-11-16T18:57:00.000Z","paused_by":"ada","importing":true,)"
                            R"("held_removals":{"batch_id":42,"leaving":4000,"active":9969})"),
      failures(0), 0, drawn_at, {}));
  EXPECT_NE(text.find("paused by ada, 3 min ago"), std::string::npos) << text;
  EXPECT_NE(text.find("4,000 members would leave: 'baton batch approve-removals 42'"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("no step has ended lately"), std::string::npos) << "of course not: " << text;
}

TEST(BatchFrame, OfAManualBatchSaysHowItGoesOn) {
  const std::string text = joined(frame(
      R"({"id":7,"runbook_name":"r","runbook_version":1,"status":"init_dispatched","batch_start_time":null,)"
      R"("init_steps":[{"status":"succeeded"},{"status":"dispatched"}],"phases":[)" +
          phase("go", 0, "", "pending", "{}") + "]}",
      "{}", 0, drawn_at, {}));
  EXPECT_NE(text.find("no T: phases begin with 'baton batch advance'"), std::string::npos) << text;
  EXPECT_NE(text.find("init  \n  ["), std::string::npos) << text;
  EXPECT_NE(text.find("50 %  1 ok  1 dispatched"), std::string::npos) << text;
  EXPECT_NE(text.find("go    pending     by hand"), std::string::npos) << text;
}

TEST(BatchFrame, GivesInitStepsThatAreDoneOneLine) {
  const Lines lines =
      frame(batch(usual_phases(), R"(,"init_steps":[{"status":"succeeded"}])"), "{}", 0, drawn_at, {});
  EXPECT_EQ(lines[3], "init      1 ok");
}

TEST(BatchFrame, KeepsTheTerminalSafeAndEveryColourEnds) {
  const Lines lines = frame(batch(usual_phases()), failures(1, R"(\u001b[2J)"), 0, drawn_at, {80, 24, true});
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find("\x1b[2J"), std::string::npos) << line;
    const auto last = line.rfind('\x1b');
    EXPECT_TRUE(last == std::string::npos || line.substr(last, 4) == "\x1b[0m") << line;
  }
}

TEST(BatchStatusLine, ChangesOnlyWithWhatIsWorthALine) {
  const auto line = [](int succeeded) {
    return status_line(read_batch(Fields(
        batch(phase("prepare", 7200, "", "dispatched",
                    fmt::format(R"({{"succeeded":{},"pending":{}}})", succeeded, 10'000 - succeeded))))));
  };
  EXPECT_EQ(line(100), "batch 42 active | prepare dispatched 1 % | members 9,969 active, 31 failed");
  EXPECT_EQ(line(100), line(199));
  EXPECT_NE(line(199), line(200));
}

TEST(BatchStatusLine, TellsWhatWasSkipped) {
  const std::string work = R"({"phase_name":"work","offset_minutes":0,"due_at":null,"runbook_version":3,"status":"completed",)"
                           R"("walk":"none","counts":{"succeeded":5},"skipped":{"step":2,"catch_up":1}})";
  const BatchView view = read_batch(Fields(batch(
      work, R"(,"init_steps":[{"status":"succeeded","skipped":true},{"status":"succeeded","skipped":false}],)"
            R"("catch_up":{"succeeded":1},"skipped":{"catch_up":1,"init":1})")));
  EXPECT_EQ(words(view.phases.at(0).steps), (Lines{"3 ok", "2 skipped"}));
  EXPECT_EQ(words(view.init), (Lines{"1 ok", "1 skipped"}));
  EXPECT_EQ(words(view.catch_up), Lines{"1 skipped"});
  EXPECT_EQ(status_line(view), "batch 42 active | work completed, 2 skipped | members 9,969 active, 31 failed");
}

TEST(Pace, IsThatOfTheLastTenSeconds) {
  Pace pace;
  EXPECT_FALSE(pace.per_second());
  pace.note(drawn_at, 1'000);
  EXPECT_FALSE(pace.per_second());
  for (int i = 1; i <= 20; ++i) pace.note(drawn_at + i * 1s, 1'000 + (i <= 10 ? i * 100 : 1'000));
  EXPECT_EQ(pace.per_second(), 0);
  pace.note(drawn_at + 25s, 2'500);
  EXPECT_NEAR(pace.per_second().value(), 50, 1);
  pace.note(drawn_at + 26s, 2'000);  // some are retried
  EXPECT_FALSE(pace.per_second());
}

const std::string gate_hold =
    R"({"id":"hold-7","kind":"gate","phase":"cut-over","message":"phase 'cut-over' is due and waits for go or no-go",)"
    R"("answers":[{"answer":"go","does":""},{"answer":"skip","does":""}]})";

TEST(BatchFrame, TellsWhatWaitsForAPersonAndHowItIsAnswered) {
  const std::string waiting =
      R"({"phase_name":"cut-over","offset_minutes":0,"due_at":"2026-11-16T18:00:00.000Z","runbook_version":3,"status":"pending","waits_for":"answer","counts":{}})";
  const std::string text = joined(frame(batch(waiting, R"(,"holds":[)" + gate_hold + "]"), failures(0), 0, drawn_at, {}));
  EXPECT_NE(text.find("hold-7: phase 'cut-over' is due and waits for go or no-go\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  baton needs-you answer hold-7 go|skip\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  waits for an answer\n"), std::string::npos) << text;
}

TEST(BatchFrame, EstimatesNoEndWhenNobodyWorksOrNothingMayGoOn) {
  const std::string pace = "what has begun ends in about";
  EXPECT_NE(joined(frame(batch(usual_phases()), failures(0), 9, drawn_at, {})).find(pace), std::string::npos);
  for (const std::string more :
       {R"(,"no_worker":[{"queue":"pool","message":"no worker is on queue 'pool', since 18:00: 28 jobs wait there"}])",
        R"(,"paused_at":"2026-11-16T18:57:00.000Z","paused_by":"ann","paused_reason":"lunch")", R"(,"hold_id":7)"}) {
    const std::string text = joined(frame(batch(usual_phases(), more), failures(0), 9, drawn_at, {}));
    EXPECT_EQ(text.find(pace), std::string::npos) << text;
  }
  const std::string text = joined(frame(
      batch(usual_phases(), R"(,"no_worker":[{"message":"no worker is on queue 'pool'"}],"paused_at":"2026-11-16T18:57:00.000Z","paused_by":"ann","paused_reason":"lunch")"),
      failures(0), 9, drawn_at, {}));
  EXPECT_NE(text.find("no worker is on queue 'pool'"), std::string::npos) << text;
  EXPECT_NE(text.find("paused by ann, 3 min ago: lunch"), std::string::npos) << text;
}

TEST(BatchFrame, TellsVersionsOfAPhaseRetriesAndMembersApart) {
  const std::string counts = R"({"succeeded":10,"pending":20})";
  const std::string old = phase("prepare", 60, "2026-11-15T22:00:00.000Z", "completed", R"({"succeeded":30})");
  const std::string changed =
      R"({"phase_name":"prepare","offset_minutes":60,"due_at":"2026-11-15T22:00:00.000Z","runbook_version":4,"status":"dispatched","walk":"none","counts":)" +
      counts + R"(,"members":{"all":30,"done":10,"failed":0},"retrying":{"count":5,"next_at":null}})";
  const std::string text = joined(frame(batch(old + "," + changed), failures(0), {}, drawn_at, {100, 24, false}));
  EXPECT_NE(text.find("prepare v3"), std::string::npos) << text;
  EXPECT_NE(text.find("prepare v4"), std::string::npos) << text;
  EXPECT_NE(text.find("10 ok  5 retrying  15 pending  10 of 30 members"), std::string::npos) << text;
}

TEST(BatchFrame, ShowsSeveralBatchesOnOneScreen) {
  std::vector<std::string> all(3, batch(usual_phases(), R"(,"holds":[)" + gate_hold + "]"));
  const std::string text = joined(frame_of_several(all, drawn_at, {80, 40, false}));
  std::size_t titles = 0;
  for (auto at = text.find("batch 42  contoso-mailboxes v3  active"); at != text.npos; at = text.find("batch 42  ", at + 1)) ++titles;
  EXPECT_EQ(titles, 3U) << text;
  EXPECT_NE(text.find("baton needs-you answer hold-7 go|skip"), std::string::npos) << text;
  const Lines small = frame_of_several(std::vector<std::string>(30, all[0]), drawn_at, {40, 12, false});
  EXPECT_LE(small.size(), 12U);
  for (const std::string& line : small) EXPECT_LE(columns_of(line), 40U) << line;
}

TEST(StatusLine, SaysWithFailuresAndWhyItWaits) {
  const auto line = [](const std::string& json) { return status_line(read_batch(Fields(json))); };
  const std::string done = R"({"id":42,"status":"completed","outcome":"completed_with_failures","members":{"failed":29,"active":1},"phases":[]})";
  EXPECT_EQ(line(done), "batch 42 completed_with_failures | members 1 active, 29 failed");
  EXPECT_NE(line(batch(usual_phases(), R"(,"holds":[)" + gate_hold + "]")).find("| hold-7: phase 'cut-over' is due"), std::string::npos);
}

}  // namespace
}  // namespace baton::cli
