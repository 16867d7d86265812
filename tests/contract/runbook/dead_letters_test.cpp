// Jobs whose workers went silent time and again: they are listed with the other dead letters, and can be replayed.
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

class DeadLetters : public Contract {
 protected:
  // As it is after the last delivery, without waiting for ten leases to run out.
  Id given_dead(const std::string& at) {
    const Id id = step(p1_, member("d" + std::to_string(members_.size())), 0, "s1",
                       {{"status", "failed"}, {"completed_at", at}, {"dispatched_at", at}, {"dead_at", at},
                        {"delivery_count", 10}, {"leased_by", "w9"}, {"error_message", "given up"}});
    sql().exec("UPDATE step_executions SET job_id='step-" + std::to_string(id) + "' WHERE id=" + std::to_string(id));
    return id;
  }
  // Of this test's batch, page by page.
  std::vector<json::object> listed(int limit) {
    std::vector<json::object> found;
    std::string cursor;
    for (int page = 0; page < 50; ++page) {
      const Answer answer = e2e::ask(client(), "GET",
                                     "/dead-letters?limit=" + std::to_string(limit) +
                                         (cursor.empty() ? "" : "&cursor=" + cursor), "");
      EXPECT_EQ(answer.status, 200) << json::serialize(answer.body);
      for (const json::value& letter : answer.body.at("dead_letters").as_array())
        if (const auto* batch = found_in(letter, "batch_id"); batch && *batch == json::value(batch_))
          found.push_back(letter.as_object());
      if (answer.body.at("next_cursor").is_null()) return found;
      cursor = std::string(answer.body.at("next_cursor").as_string());
    }
    ADD_FAILURE() << "there is no last page";
    return found;
  }
  static const json::value* found_in(const json::value& body, std::string_view key) {
    return runbook_contract::found(body, key);
  }
  Id p1_ = 0;
};
ON_EACH_STORE(DeadLetters);

TEST_P(DeadLetters, AreListedOldestFirstPageByPage) {
  given(one_step, 0);
  p1_ = phase("p1", "dispatched");
  std::vector<std::string> expected;
  for (const std::string at : {"2020-01-01T00:00:00.000Z", "2020-01-01T00:00:00.000Z", "2020-01-02T00:00:00.000Z"})
    expected.push_back("step-" + std::to_string(given_dead(at)));
  const Id init = init_step(0, "i1", {{"status", "failed"}, {"dead_at", "2020-01-01T00:00:00.000Z"}, {"delivery_count", 10}});
  sql().exec("UPDATE init_executions SET job_id='init-" + std::to_string(init) + "' WHERE id=" + std::to_string(init));
  expected.insert(expected.begin() + 2, "init-" + std::to_string(init));
  for (const int limit : {1, 2, 3, 200}) {
    std::vector<std::string> ids;
    for (const json::object& letter : listed(limit)) ids.emplace_back(letter.at("task_id").as_string());
    EXPECT_EQ(ids, expected) << limit;
  }
  const json::object letter = listed(200).front();
  EXPECT_EQ(letter.at("deliveries"), json::value(10));
  EXPECT_EQ(letter.at("queue"), json::value(pool_));
  EXPECT_EQ(letter.at("worker_id"), json::value("w9"));
  EXPECT_EQ(letter.at("type"), json::value("step"));
  EXPECT_EQ(letter.at("step_name"), json::value("s1"));
}

TEST_P(DeadLetters, AreReplayed) {
  given(one_step, 0);
  p1_ = phase("p1", "dispatched");
  const std::string job = "step-" + std::to_string(given_dead("2020-01-01T00:00:00.000Z"));
  const std::string replay = "/dead-letters/" + job + "/replay";
  const Answer answer = e2e::ask(client(), "POST", replay, R"({"by":"ada"})");
  EXPECT_EQ(answer.status, 200) << json::serialize(answer.body);
  EXPECT_EQ(answer.body.at("status"), json::value("dispatched"));
  const Job again = one();
  EXPECT_EQ(again.id(), job + "-retry-1");
  EXPECT_TRUE(listed(200).empty());
  EXPECT_EQ(e2e::ask(client(), "POST", replay, "{}").status, 409);  // it is none any more
  succeed(again);
  expect_steps(p1_, members_[0], "succeeded");
}

TEST_P(DeadLetters, AreNoneAnyMoreWhenTheirMemberIsRemoved) {
  given(one_step, 0);
  p1_ = phase("p1", "dispatched");
  const Id gone = given_dead("2020-01-01T00:00:00.000Z"), kept = given_dead("2020-01-02T00:00:00.000Z");
  const Id member = number("SELECT batch_member_id FROM step_executions WHERE id=" + std::to_string(gone));
  set_removed(member);
  tell(member_removed(member));
  const auto letters = listed(200);
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters.front().at("id"), json::value(kept));
  const Answer answer = e2e::ask(client(), "POST", "/dead-letters/step-" + std::to_string(gone) + "/replay", "{}");
  EXPECT_EQ(answer.body.at("code"), json::value("not_dead"));
}

TEST_P(DeadLetters, AreNotWhatOnlyFailed) {
  p1_ = given_due(one_step);
  const Job job = one();
  fail(job);
  expect_steps(p1_, members_[0], "failed");
  EXPECT_TRUE(listed(200).empty());
  const Answer answer = e2e::ask(client(), "POST", "/dead-letters/" + job.id() + "/replay", "{}");
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.body.at("code"), json::value("not_dead"));
  EXPECT_EQ(e2e::ask(client(), "POST", "/dead-letters/step-99999999/replay", "{}").status, 404);
}

}  // namespace
}  // namespace baton::runbook_contract
