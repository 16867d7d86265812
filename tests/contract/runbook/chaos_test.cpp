// Everything at once, in random order, often twice, with the server killed in between: whatever happens, each
// job is handed out once, everything comes to an end, and the rows agree with each other. Each seed replays.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class Chaos : public Contract {
 protected:
  using Answers = std::pair<int, int>;  // out of a hundred: failures, "still polling"

  void setup(const std::string& progression) {
    given(progression + "retry: {max_retries: 1, interval: 1h}\n" +
              phases({phase_of("p1", {doing("s1", "on_failure: undo"), doing("s2")}, "T-2h"),
                      phase_of("p2", {doing("s3", "poll: {interval: 1h, timeout: 8h}")}, "T-1h"),
                      phase_of("p3", {doing("s4"), doing("s5", "on_failure: undo")})}) +
              rollback("undo", {doing("undo1", "retry: {max_retries: 0}"),
                                doing("undo2", "retry: {max_retries: 0}")}) +
              section("on_member_removed", {doing("r1", "retry: {max_retries: 0}")}) +
              section("init", {preparing("i1")}),
          6, "init_dispatched");
    for (const std::string name : {"p1", "p2", "p3"}) phases_.push_back(phase(name));
  }
  bool is_over() {
    const std::string status = text("SELECT status FROM batches WHERE id=" + std::to_string(batch_));
    return status == "completed" || status == "failed";
  }
  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }

  // The scheduler says something, perhaps not for the first time, perhaps too early.
  void say() {
    const Id member = members_[static_cast<std::size_t>(below(static_cast<int>(members_.size())))];
    switch (below(6)) {
      case 0: return tell(batch_init());
      case 1: return tell(phase_due(phases_[static_cast<std::size_t>(below(3))]));
      case 2: return tell(member_added(member));
      case 3:
        if (below(4) == 0 && !is_over()) set_removed(member);
        if (text("SELECT status FROM batch_members WHERE id=" + std::to_string(member)) == "removed")
          tell(member_removed(member));
        return;
      case 4: return wake("polling");
      default: return wake("pending");
    }
  }
  // What waits for a time that does not come in a test: polls and retries.
  void wake(const std::string& status) {
    for (const Row& row : sql().query(
             "SELECT id, step_name, poll_count, retry_count FROM step_executions WHERE status='" + status +
             "' AND phase_execution_id IN (SELECT id FROM phase_executions WHERE "
             "batch_id=" +
             std::to_string(batch_) + ")")) {
      const Id id = std::stoll(*row["id"]);
      const int retries = std::stoi(row["retry_count"].value_or("0"));
      if (status == "polling")
        tell(poll_check(id, *row["step_name"], std::stoi(row["poll_count"].value_or("0")) + 1));
      if (status == "pending" && retries > 0) tell(retry_check(id, retries));
    }
    if (status == "pending")
      for (const Row& row :
           sql().query("SELECT id, retry_count FROM init_executions WHERE status='pending' AND "
                       "retry_count>0 AND batch_id=" +
                       std::to_string(batch_)))
        tell(event("retry-check", {{"initExecutionId", std::stoll(*row["id"])},
                                   {"isInitStep", true},
                                   {"retryCount", std::stoi(*row["retry_count"])}}));
  }
  // The workers take what there is, keep some of it for later, and report some of it twice.
  void work_some(Answers answers) {
    for (const Job& job : poll(0)) {
      EXPECT_TRUE(seen_.insert(job.id()).second) << job.id() << " was handed out twice";
      EXPECT_EQ(job.parameters().find("{{"), std::string::npos) << json::serialize(job.body);
      kept_.push_back(job);
    }
    std::shuffle(kept_.begin(), kept_.end(), random_);
    while (!kept_.empty() && below(4) != 0) {
      const Job job = kept_.back();
      kept_.pop_back();
      const int luck = below(100);
      // The batch must not end with its init, which is tried elsewhere.
      const bool fails = luck < answers.first && !job.id().starts_with("init-");
      const bool waits = job.function() == "Do-s3" && luck < answers.first + answers.second;
      const json::object result = fails ? result_of(job, "Failure", nullptr, "bad luck")
                                        : result_of(job, "Success", json::object{{"complete", !waits}});
      EXPECT_EQ(report(result).status, 200);
      if (below(4) == 0) {  // once more: it changes nothing, whether the step is over or at its next attempt
        const int again = report(result).status;
        EXPECT_TRUE(again == 200 || again == 409) << again;
      }
    }
  }
  std::string open_rows() {
    const std::string phases =
        "(SELECT id FROM phase_executions WHERE batch_id=" + std::to_string(batch_) + ")";
    const std::string open = "status IN ('pending','dispatched','polling')";
    return text("SELECT (SELECT count(*) FROM step_executions WHERE " + open + " AND phase_execution_id IN " +
                phases + ") + (SELECT count(*) FROM cleanup_executions WHERE " + open + " AND batch_id=" +
                std::to_string(batch_) + ") + (SELECT count(*) FROM phase_executions WHERE " + open +
                " AND batch_id=" + std::to_string(batch_) + ")");
  }
  // In the end everything is said, and every worker succeeds.
  void settle() {
    tell(batch_init());
    for (int round = 0; round < 80 && open_rows() != "0"; ++round) {
      if (text("SELECT status FROM batches WHERE id=" + std::to_string(batch_)) == "active")
        for (const Id id : phases_) tell(phase_due(id));
      for (const Id member : members_)
        if (text("SELECT status FROM batch_members WHERE id=" + std::to_string(member)) == "removed")
          tell(member_removed(member));
      wake("polling");
      wake("pending");
      work_some({0, 0});
    }
    EXPECT_EQ(open_rows(), "0") << snapshot();
  }
  // Queries that find nothing, when the rows agree.
  void audit(bool in_lockstep) {
    const std::string steps =
        "SELECT count(*) FROM step_executions s JOIN phase_executions p ON p.id=s.phase_execution_id JOIN "
        "batch_members m ON m.id=s.batch_member_id WHERE p.batch_id=" +
        std::to_string(batch_);
    const auto none = [&](const std::string& condition) {
      EXPECT_EQ(text(steps + " AND " + condition), "0") << condition << "\n" << snapshot();
    };
    // No step twice, none ahead of one that did not succeed.
    none(
        "EXISTS (SELECT 1 FROM step_executions o WHERE o.id<>s.id AND "
        "o.phase_execution_id=s.phase_execution_id AND "
        "o.batch_member_id=s.batch_member_id AND o.step_index=s.step_index)");
    none(
        "s.status='succeeded' AND EXISTS (SELECT 1 FROM step_executions o WHERE "
        "o.batch_member_id=s.batch_member_id "
        "AND o.phase_execution_id=s.phase_execution_id AND o.step_index<s.step_index AND "
        "o.status<>'succeeded')");
    // A rollback ends in rolled_back, and only what has one does.
    none(
        "s.status='rolled_back' AND NOT EXISTS (SELECT 1 FROM cleanup_executions c WHERE "
        "c.caused_by_step_id=s.id)");
    none("s.status='failed' AND EXISTS (SELECT 1 FROM cleanup_executions c WHERE c.caused_by_step_id=s.id)");
    // Isolation.
    if (in_lockstep)
      none("m.status='failed'");
    else
      none("s.status IN ('failed','poll_timeout','rolled_back') AND m.status='active'");
    // A member that stayed was stopped only by its own failure, or by its phase's.
    if (!in_lockstep) none("s.status='cancelled' AND m.status='active'");
    for (const Id id : phases_) {
      const std::string of_phase = "FROM step_executions WHERE phase_execution_id=" + std::to_string(id);
      const std::string whole =
          text("SELECT count(*) FROM (SELECT batch_member_id " + of_phase +
               " GROUP BY batch_member_id HAVING count(*)=sum(CASE WHEN status='succeeded' "
               "THEN 1 ELSE 0 END)) whole");
      const std::string status = text("SELECT status FROM phase_executions WHERE id=" + std::to_string(id));
      EXPECT_FALSE(status == "completed" && whole == "0") << snapshot();
      EXPECT_FALSE(status == "failed" && whole != "0" && !in_lockstep) << snapshot();
    }
    const std::string removed = text(
        "SELECT count(*) FROM batch_members WHERE status='removed' AND batch_id=" + std::to_string(batch_));
    EXPECT_EQ(text("SELECT count(*) FROM cleanup_executions WHERE kind='removal' AND batch_id=" +
                   std::to_string(batch_)),
              removed);
    const std::string completed =
        text("SELECT count(*) FROM phase_executions WHERE status='completed' AND batch_id=" +
             std::to_string(batch_));
    expect_batch(in_lockstep ? (completed == "3" ? "completed" : "failed")
                             : (completed == "0" ? "failed" : "completed"));
  }
  void run(unsigned seed, bool in_lockstep) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    random_.seed(seed);
    phases_.clear();
    kept_.clear();
    seen_.clear();
    name_ += "s";  // a runbook of its own
    setup(in_lockstep ? lockstep : "");
    const int kill_at = below(120);  // half of them live
    for (int i = 0; i < 60; ++i) {
      say();
      work_some({10, 30});
      if (i == kill_at) restart();
    }
    settle();
    audit(in_lockstep);
  }
  // More seeds for those who have time: BATON_CHAOS_SEEDS.
  void run_all(bool in_lockstep) {
    const char* asked = std::getenv("BATON_CHAOS_SEEDS");
    const auto seeds = static_cast<unsigned>(asked ? std::atoi(asked) : 4);
    for (unsigned seed = 1; seed <= seeds && !HasFailure(); ++seed) run(seed, in_lockstep);
  }

  std::mt19937 random_;
  std::vector<Id> phases_;
  std::vector<Job> kept_;
  std::set<std::string> seen_;
};
ON_EACH_STORE(Chaos);

TEST_P(Chaos, OfMembersOnTheirOwnEndsWithRowsThatAgree) { run_all(false); }
TEST_P(Chaos, InLockstepEndsWithRowsThatAgree) { run_all(true); }

}  // namespace
}  // namespace baton::runbook_contract
