// What the runbook contract runs on: the real binary with its own scheduler off, and around it the three
// parties of the contract, played by the test: an external scheduler (SQL rows and messages), external
// workers (jobs and results), and whoever reads the tables.
//
// One server and one database serve all tests of a process, because starting them costs more than most tests.
// A test has a runbook, a batch and a worker pool of its own, so that it sees nothing of the others; a server
// that died is started again for the next test.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "tests/contract/runbook/shapes.hpp"
#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/server.hpp"

namespace baton::runbook_contract {

using namespace std::chrono_literals;
using Here = std::source_location;

using Cells = std::map<std::string, Cell>;

[[nodiscard]] std::string name_of(const testing::TestParamInfo<StoreType>& info);

#define ON_EACH_STORE(suite) \
  INSTANTIATE_TEST_SUITE_P(On, suite, testing::Values(StoreType::sqlite, StoreType::postgres), name_of)

// SQL for 'set' or 'unset', where the value itself is not known to the test.
[[nodiscard]] inline std::string is_set(const std::string& column) {
  return "CASE WHEN " + column + " IS NULL THEN 'unset' ELSE 'set' END";
}

class Contract : public testing::TestWithParam<StoreType> {
 protected:
  Contract();

  // The scheduler's rows. `given` makes a runbook, a batch of it and members m1, m2, … that have {"Upn":
  // "m1"}.
  Id runbook(const std::string& yaml, int version = 1, const Cells& more = {});
  void given(const std::string& yaml, int members = 1, const std::string& status = "active");
  // The same, and tells that phase p1 is due.
  Id given_due(const std::string& yaml, int members = 1, Here here = Here::current());
  Id batch(Id runbook, const std::string& status = "active", const Cells& more = {});
  Id member(const std::string& key, const Cells& more = {});
  void many_members(int count);  // named as those of `given`, but not in members_
  Id phase(const std::string& name, const std::string& status = "pending", const Cells& more = {});
  Id step(Id phase, Id member, int index, const std::string& name, const Cells& more = {});
  Id init_step(int index, const std::string& name, const Cells& more = {});
  Id insert(const std::string& table, const Cells& cells);

  // The scheduler's messages. What it `tells` must be taken in.
  [[nodiscard]] json::object event(const std::string& type, const json::object& more = {}) const;
  Answer send(const json::value& message);
  void tell(const json::value& message, Here here = Here::current());
  [[nodiscard]] json::object batch_init() const;
  [[nodiscard]] json::object phase_due(Id phase) const;  // for all members
  [[nodiscard]] json::object phase_due(Id phase, const std::vector<Id>& members) const;
  [[nodiscard]] std::string key_of(Id member) const;
  [[nodiscard]] json::object member_added(Id member) const;
  [[nodiscard]] json::object member_removed(Id member) const;
  [[nodiscard]] json::object poll_check(Id step, const std::string& name, int count) const;
  [[nodiscard]] json::object retry_check(Id step, int count) const;
  void set_removed(Id member);  // what the scheduler writes before it tells

  // The workers.
  std::vector<Job> poll(int wait_ms, const std::string& pool = "");
  std::vector<Job> take(std::size_t count,
                        const std::string& pool = "");  // throws if there are fewer or more
  Job one(const std::string& pool = "") { return take(1, pool).front(); }
  void quiet();  // no job comes
  Answer report(const json::value& results);
  void succeed(const Job& job, const json::value& result = json::object{{"ok", true}},
               Here here = Here::current());
  void still_polling(const Job& job, Here here = Here::current());
  void fail(const Job& job, const std::string& message = "boom", Here here = Here::current());
  // Takes jobs and answers with success until that many are done.
  void work(std::size_t count);

  // The reader.
  std::string text(const std::string& query) { return sql().text(query); }
  Id number(const std::string& query) { return std::stoll(text(query)); }
  void eventually(const std::string& query, const std::string& expected, Here here = Here::current());
  void expect_batch(const std::string& status, Here here = Here::current());
  void expect_phase(Id phase, const std::string& status, Here here = Here::current());
  void expect_member(Id member, const std::string& status, Here here = Here::current());
  // All their statuses, in the order of the steps: "succeeded,pending".
  void expect_steps(Id phase, Id member, const std::string& statuses, Here here = Here::current());
  void expect_step(Id step, const std::string& status, Here here = Here::current());
  void expect_init(const std::string& statuses, Here here = Here::current());
  void expect_cleanup(const std::string& statuses, Here here = Here::current());
  [[nodiscard]] Id step_id(Id phase, Id member, int index);
  // Every column of the seeds in every row of the batch.
  [[nodiscard]] std::string snapshot();
  void changes_nothing(const std::function<void()>& act, Here here = Here::current());

  [[nodiscard]] Sql& sql();
  [[nodiscard]] std::unique_ptr<Sql> another_connection();
  [[nodiscard]] std::string url() const;
  [[nodiscard]] http::Client& client();
  [[nodiscard]] double metric(const std::string& name);  // throws when there is none of that name
  void restart(const std::vector<std::string>& more = {});  // kill -9, and up again, with more arguments
  void both_at_once(const std::vector<std::function<void(http::Client&)>>& acts);

  std::string name_;  // of the runbook
  std::string pool_;
  int version_ = 1;
  Id runbook_ = 0;
  Id batch_ = 0;
  std::vector<Id> members_;
};

}  // namespace baton::runbook_contract
