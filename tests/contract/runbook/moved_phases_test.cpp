// Another program writes when a phase is due, in SQL and without a word, while our own scheduler is on.
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class MovedPhases : public Contract {
 protected:
  void given_due(std::chrono::seconds from_now) {
    given(one_step);
    p1_ = phase("p1", "pending", {{"due_at", timestamp(from_now)}});
    restart({"--scheduler", "on"});
    eventually(row(is_set("timer_due")), "set");
  }
  void TearDown() override { restart(); }

  void move_to(std::chrono::seconds from_now) {
    sql().exec("UPDATE phase_executions SET due_at='" + timestamp(from_now) + "' WHERE id=" + std::to_string(p1_));
    look();
  }
  // The scheduler looks every half minute, and when a runbook changes.
  void look() {
    const Answer answer = e2e::ask(client(), "POST", "/runbooks/" + name_ + "/automation",
                                   is_on_ ? R"({"enabled":false})" : R"({"enabled":true})");
    EXPECT_EQ(answer.status, 200) << json::serialize(answer.body);
    is_on_ = !is_on_;
  }
  std::string row(const std::string& columns) {
    return "SELECT " + columns + " FROM phase_executions WHERE id=" + std::to_string(p1_);
  }
  // Both to the minute, whatever the spelling.
  std::string times_agree() {
    const auto minute = [](const std::string& column) { return "substr(replace(CAST(" + column + " AS text),'T',' '),1,16)"; };
    return row("CASE WHEN " + minute("timer_due") + "=" + minute("due_at") + " THEN 'same' ELSE 'other' END");
  }

  Id p1_ = 0;
  bool is_on_ = true;
};
ON_EACH_STORE(MovedPhases);

TEST_P(MovedPhases, ToThePastBeginAtOnce) {
  given_due(3600s);
  move_to(-1s);
  EXPECT_EQ(one().function(), "Do-s1");
  expect_phase(p1_, "dispatched");
}

// Another program adds a batch with its phases, and says nothing.
TEST_P(MovedPhases, ThatAreAddedBeginWhenTheyAreDue) {
  restart({"--scheduler", "on"});
  given(one_step);
  p1_ = phase("p1", "pending", {{"due_at", timestamp(-1s)}});
  look();
  EXPECT_EQ(one().function(), "Do-s1");
  expect_phase(p1_, "dispatched");
}

// More than the scheduler takes at one look.
TEST_P(MovedPhases, AreAllTimedSoonHoweverManyThereAre) {
  restart({"--scheduler", "on"});
  given(one_step);
  std::string rows;
  for (int i = 0; i < 700; ++i)
    rows += (rows.empty() ? "(" : ",(") + std::to_string(batch_) + ",'q" + std::to_string(i) + "',0,1,'" +
            timestamp(3600s) + "')";
  sql().exec("INSERT INTO phase_executions(batch_id,phase_name,offset_minutes,runbook_version,due_at) VALUES " + rows);
  look();
  eventually("SELECT count(*) FROM phase_executions WHERE timer_due IS NULL AND batch_id=" + std::to_string(batch_), "0");
}

TEST_P(MovedPhases, AreTimedAnewInBothDirections) {
  given_due(3600s);
  for (const auto from_now : {1800s, 7200s}) {
    move_to(from_now);
    eventually(times_agree(), "same");
    quiet();
    expect_phase(p1_, "pending");
  }
}

}  // namespace
}  // namespace baton::runbook_contract
