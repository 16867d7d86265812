// `baton check`: the database of a real server is consistent, whatever state its jobs are in; and whatever is damaged is named.
#include <csignal>
#include <filesystem>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/server.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e::check_test {
namespace {

using runbook_contract::open_sql;
using runbook_contract::Sql;
using runbook_contract::StoreType;

const char* const two_yaml = R"(
workflow_id: two
nodes:
  start: {type: start, next: [a]}
  a: {type: task, handler: x, queue: q, next: [b]}
  b: {type: task, handler: x, queue: q, next: [end]}
  end: {type: end}
)";
const char* const split_yaml = R"(
workflow_id: split
inputs: {items: {type: array, required: true}}
nodes:
  start: {type: start, next: split}
  split:
    type: fan_out
    source: "{{ inputs.items }}"
    max_parallel: 3
    task: {handler: x, queue: items, params: {n: "{{ item }}"}}
    next: merge
  merge: {type: fan_in, next: end}
  end: {type: end}
)";
const char* const nap_yaml = R"(
workflow_id: nap
nodes:
  start: {type: start, next: [nap, sure]}
  nap: {type: wait, duration: 1h, next: end}
  sure: {type: approval, message: "Sure?", timeout_seconds: 3600, next: end}
  end: {type: end}
)";

class Check : public testing::TestWithParam<StoreType> {
 protected:
  void SetUp() override {
    if (!is_sqlite()) postgres_ = std::make_unique<support::PostgresServer>();
    where_ = is_sqlite() ? (data_.path() / "baton.db").string() : postgres_->create_database("jobs");
    start();
  }
  [[nodiscard]] static bool is_sqlite() { return GetParam() == StoreType::sqlite; }
  [[nodiscard]] static std::string store(const std::string& where) { return is_sqlite() ? "sqlite:" + where : where; }
  void start() {
    server_ = std::make_unique<Server>(std::vector<std::string>{"--store", store(where_)});
    client_ = std::make_unique<http::Client>(server_->client());
  }
  static Ran check(const std::string& where, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"check", "--store", store(where)};
    all.insert(all.end(), more.begin(), more.end());
    return baton(all);
  }

  std::string submit(const std::string& body) { return ask(*client_, "POST", "/jobs", body).text("job_id"); }
  // So many tasks of the job; those of others that come along are left to their leases.
  json::array take(const std::string& queue, const std::string& job, std::size_t count = 1) {
    json::array tasks;
    const bool all = eventually([&] {
      const Answer polled = ask(*client_, "POST", "/workers/" + queue + "/jobs:poll",
                                R"({"worker":"w1","heartbeat":true,"wait_ms":1000,"max":)" + std::to_string(count - tasks.size()) + "}");
      for (const json::value& task : polled.body.at("jobs").as_array())
        if (task.at("job_id").as_string() == job) tasks.push_back(task);
      return tasks.size() == count;
    });
    EXPECT_TRUE(all) << tasks.size() << " tasks of job " << job;
    return tasks;
  }
  void report(const json::value& task, const std::string& status) {
    json::object body{{"status", status}, {"task_id", task.at("task_id")}, {"lease", task.at("lease")}};
    if (status == "completed")
      body["output"] = json::object{{"ok", true}};
    else
      body["error"] = "no";
    EXPECT_EQ(ask(*client_, "POST", "/callbacks/task-result", json::serialize(body)).status, 200);
  }
  int change(const std::string& id, const std::string& what) { return ask(*client_, "POST", "/jobs/" + id + "/" + what, "{}").status; }

  // The tables cannot follow as long as this lives, because another program holds them.
  [[nodiscard]] std::unique_ptr<Sql> hold_tables() const {
    auto other = open_sql(GetParam(), where_);
    other->exec(is_sqlite() ? "BEGIN IMMEDIATE" : "BEGIN");
    if (!is_sqlite()) other->exec("LOCK TABLE dag_jobs IN SHARE MODE");
    return other;
  }
  void wait_until_followed(std::size_t jobs) {
    EXPECT_TRUE(eventually([&] {
      const Answer list = ask(*client_, "GET", "/jobs");
      return list.status == 200 && list.body.at("jobs").as_array().size() == jobs;
    }));
  }

  // Jobs in as many states as there are.
  void make_jobs() {
    for (const std::string& yaml : {echo_yaml, std::string(two_yaml), std::string(split_yaml), std::string(nap_yaml)}) publish(*client_, yaml);
    {
      const auto held = hold_tables();  // so that they come to the tables whole, as one page
      for (int i = 0; i < 3; ++i)
        echo_ = ask(*client_, "POST", "/jobs?wait_ms=20000", R"({"workflow_id":"echo_test","tags":["t"]})").text("job_id");
    }
    wait_until_followed(3);
    failed_ = submit(R"({"workflow_id":"two"})");
    report(take("q", failed_).at(0), "completed");
    report(take("q", failed_).at(0), "failed");
    const std::string retried = submit(R"({"workflow_id":"two"})");
    report(take("q", retried).at(0), "failed");
    EXPECT_EQ(change(retried, "retry"), 200);
    for (int i = 0; i < 2; ++i) report(take("q", retried).at(0), "completed");
    EXPECT_EQ(change(submit(R"({"workflow_id":"two"})"), "cancel"), 200);
    const std::string paused = submit(R"({"workflow_id":"two"})");
    const json::array begun = take("q", paused);
    EXPECT_EQ(change(paused, "pause"), 200);
    report(begun.at(0), "completed");  // what comes next is READY without a timer
    running_ = submit(R"({"workflow_id":"two"})");
    take("q", running_);
    waiting_ = submit(R"({"workflow_id":"two"})");
    changed_ = submit(R"({"workflow_id":"two"})");
    submit(R"({"workflow_id":"two","delay_seconds":3600})");
    napping_ = submit(R"({"workflow_id":"nap"})");
    make_fan_outs();
    wait_until_followed(17);
  }

  void make_fan_outs() {
    const auto split = [&] { return submit(R"({"workflow_id":"split","input_data":{"items":[1,2,3,4,5]}})"); };
    const std::string whole = split();
    for (int i = 0; i < 5; ++i) report(take("items", whole).at(0), "completed");
    EXPECT_EQ(ask(*client_, "GET", "/jobs/" + whole + "?wait_ms=20000").text("status"), "COMPLETED");
    report(take("items", split()).at(0), "failed");  // its other children are cancelled
    const std::string paused = split();
    const json::array begun = take("items", paused, 3);
    EXPECT_EQ(change(paused, "pause"), 200);
    for (const json::value& task : begun) report(task, "completed");
    EXPECT_EQ(change(split(), "cancel"), 200);
    split_ = split();
    report(take("items", split_).at(0), "completed");
    take("items", split_);
  }

  // Commits that the tables cannot follow; then the server dies.
  void die_with_a_journal() {
    const auto held = hold_tables();
    for (int i = 0; i < 3; ++i)
      submit(R"({"workflow_id":"echo_test","tags":["t"],"idempotency_key":"k)" + std::to_string(i) + "\"}");
    EXPECT_EQ(change(changed_, "pause"), 200);
    submit(R"({"workflow_id":"nap"})");
    server_->process().signal(SIGKILL);
    EXPECT_TRUE(server_->process().wait(30s));
    // What it has sent may still be on its way to the tables.
    if (!is_sqlite())
      held->exec("SELECT pg_terminate_backend(pid,10000) FROM pg_stat_activity WHERE datname=current_database() AND pid<>pg_backend_pid()");
  }

  // A database of its own with the same in it.
  std::string copy() {
    const std::string name = "copy_" + std::to_string(++copies_);
    if (!is_sqlite()) {
      open_sql(GetParam(), postgres_->url())->exec("CREATE DATABASE " + name + " TEMPLATE jobs");
      return postgres_->url(name);
    }
    const std::string to = data_.path() / (name + ".db");
    for (const std::string part : {"", "-wal", "-log", "-log-wal"})
      if (std::filesystem::exists(where_ + part)) std::filesystem::copy_file(where_ + part, to + part);
    return to;
  }

  struct Damage {
    std::string sql, finding;
    bool is_in_journal = false;
  };
  void expect_named(const Damage& damage) {
    const std::string where = copy();
    open_sql(GetParam(), where + (damage.is_in_journal && is_sqlite() ? "-log" : ""))->exec(damage.sql);
    const Ran ran = check(where);
    EXPECT_EQ(ran.code, 1) << damage.sql << ran.out;
    EXPECT_NE(ran.err.find(damage.finding), std::string::npos) << damage.sql << "\n" << damage.finding << "\n" << ran.err;
  }

  support::TemporaryDirectory data_;
  std::unique_ptr<support::PostgresServer> postgres_;
  std::string where_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<http::Client> client_;
  int copies_ = 0;
  std::string echo_, failed_, running_, waiting_, changed_, napping_, split_;  // jobs
};
INSTANTIATE_TEST_SUITE_P(On, Check, testing::Values(StoreType::sqlite, StoreType::postgres),
                         [](const auto& each) { return each.param == StoreType::sqlite ? "sqlite" : "postgres"; });

TEST_P(Check, FindsNothingBesideAServerNorAfterItsDeathAndTheServerGoesOn) {
  make_jobs();
  const Ran beside = check(where_);
  EXPECT_EQ(beside.code, 0) << beside.err;
  EXPECT_EQ(beside.out.find("the log is in use by a server and was not looked at\n") != std::string::npos, is_sqlite()) << beside.out;
  EXPECT_NE(beside.out.find(": they agree\n"), std::string::npos) << beside.out;
  EXPECT_NE(beside.out.find("17 jobs, "), std::string::npos) << beside.out;
  die_with_a_journal();
  const Ran after = check(where_, {"--json"});
  EXPECT_EQ(after.code, 0) << after.out << after.err;
  const json::value found = json::parse(after.out);
  EXPECT_TRUE(found.at("consistent").as_bool());
  EXPECT_FALSE(found.at("log_in_use").as_bool());
  EXPECT_GE(found.at("last_commit").as_int64(), found.at("followed").as_int64() + 5) << after.out;
  EXPECT_EQ(found.at("jobs").as_int64(), 21) << after.out;
  EXPECT_EQ(found.at("findings").as_array().size(), 0u);
  start();
  const Ran again = check(where_);
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(eventually([&] { return ask(*client_, "GET", "/jobs?workflow_id=echo_test&status=COMPLETED").body.at("jobs").as_array().size() == 6; }));
}

TEST_P(Check, NamesWhatIsDamaged) {
  make_jobs();
  die_with_a_journal();
  const auto node = [](const std::string& job, const std::string& id) { return "node " + id + " of job " + job + ": "; };
  const auto of = [](const std::string& job, const std::string& id) { return " WHERE job_id='" + job + "' AND node_id='" + id + "'"; };
  const auto job = [](const std::string& id) { return " WHERE job_id='" + id + "'"; };
  const std::string stray = "0190a0b0-1111-7111-8111-111111111111";
  const std::vector<Damage> damages{
      {"DELETE FROM dag_node_rows" + of(waiting_, "b"), node(waiting_, "b") + "it is missing"},
      {"UPDATE dag_jobs SET nodes_active=7" + job(waiting_), "job " + waiting_ + ": nodes_active is 7, and 1 of its nodes are active"},
      {"UPDATE dag_jobs SET nodes_failed=0" + job(failed_), "job " + failed_ + ": nodes_failed is 0, and 1 of its nodes have failed for good"},
      {"UPDATE dag_jobs SET status='COMPLETED'" + job(waiting_), node(waiting_, "a") + "it is DISPATCHED, and its job is COMPLETED"},
      {"UPDATE dag_jobs SET status='FAILED'" + job(echo_), "job " + echo_ + ": it is FAILED, and no node of it has failed for good"},
      {"UPDATE dag_jobs SET status='Banana'" + job(waiting_), "job " + waiting_ + ": its row cannot be read by this version"},
      {"DELETE FROM dag_jobs" + job(waiting_), "job " + waiting_ + ": it has nodes or events, but no row"},
      {"UPDATE dag_node_rows SET status='Banana'" + of(waiting_, "a"), node(waiting_, "a") + "its row cannot be read by this version"},
      {"UPDATE dag_node_rows SET timer_due=NULL" + of(running_, "a"), node(running_, "a") + "it is running without a lease and a timer"},
      {"UPDATE dag_node_rows SET timer_due=NULL" + of(napping_, "nap"), node(napping_, "nap") + "it is ready, and neither a timer nor"},
      {"DELETE FROM baton_timers WHERE subject='" + napping_ + "' AND what='nap'", node(napping_, "nap") + "its timer, due at "},
      {"DELETE FROM baton_timers WHERE subject='" + running_ + "'", node(running_, "a") + "its timer, due at "},
      {"INSERT INTO baton_timers(due,subject,what) VALUES(1,'" + stray + "','x')",
       "the timer that is due at 1970-01-01T00:00:00.001Z: there is no node x of job " + stray},
      {"DELETE FROM dag_node_rows" + of(split_, "split_1"), node(split_, "split") + "its children have a gap"},
      {"UPDATE dag_node_rows SET items_done=0" + of(split_, "split"), node(split_, "split") + "items_done is 0, and there are 1"},
      {"DELETE FROM dag_task_result_rows" + of(failed_, "a"),
       node(failed_, "a") + "it is completed, and the result of task " + failed_ + "_a_0 is missing"},
      {"UPDATE dag_task_result_rows SET node_id='c'" + of(failed_, "b"),
       "the result of task " + failed_ + "_b_0: there is no node c of job " + failed_},
      {"DELETE FROM dag_workflows WHERE workflow_id='two'", "job " + waiting_ + ": version 1 of its workflow two is missing"},
      {"DELETE FROM dag_job_pages" + job(echo_), node(echo_, "echo_handler") + "it is missing"},
      {"DELETE FROM dag_job_pages" + job(waiting_), "job " + waiting_ + ": it has no events"},
      {"UPDATE dag_job_pages SET events='[[1,'" + job(echo_), " of job " + echo_ + ": its events cannot be read"},
      {"UPDATE dag_job_pages SET nodes='[[-1,\"start\"]]'" + job(echo_), " of job " + echo_ + ": its nodes and results cannot be read"},
      {"UPDATE dag_job_pages SET results='[]'" + job(echo_), node(echo_, "echo_handler") + "it is completed, and the result of task "},
      {"UPDATE dag_job_pages SET events='[[0,\"job_created\",null,0],[0,\"job_started\",null,0]]'" + job(waiting_), "job " + waiting_ + ": event "},
      {"UPDATE dag_job_pages SET events='[[0,\"job_started\",null,0]]'" + job(echo_), "job " + echo_ + ": its first event is job_started"},
      {"DELETE FROM dag_jobs" + job(changed_), " of the journal: it changes job " + changed_ + ", which is not there"},
  };
  for (const Damage& damage : damages) expect_named(damage);
}

TEST_P(Check, LetsTimersBeThatWerePutOffOrAreStray) {
  make_jobs();
  die_with_a_journal();
  const auto sql = open_sql(GetParam(), where_);
  sql->exec("UPDATE baton_timers SET due=due+600000 WHERE subject='" + napping_ + "' AND what='nap'");
  sql->exec("INSERT INTO baton_timers(due,subject,what) VALUES(1,'" + waiting_ + "','a')");
  sql->exec("INSERT INTO baton_timers(due,subject,what) VALUES(1,'" + echo_ + "','echo_handler')");
  sql->exec("INSERT INTO baton_timers(due,subject,what) VALUES(1,'phase 7','')");
  const Ran ran = check(where_);
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST_P(Check, NamesWhatIsWrongWithTheJournal) {
  make_jobs();
  die_with_a_journal();
  const json::value found = json::parse(check(where_, {"--json"}).out);
  const auto commit = [&](std::int64_t n) { return std::to_string(n); };
  const std::int64_t first = found.at("followed").as_int64() + 1, last = found.at("last_commit").as_int64();
  const auto finding = [&](std::int64_t n, const std::string& problem) { return "commit " + commit(n) + " of the journal: " + problem; };
  const std::string again = "INSERT INTO baton_journal(id,format,data) SELECT " + commit(last + 1) + ",format,data FROM baton_journal WHERE id=" + commit(first);
  expect_named({"DELETE FROM baton_journal WHERE id=" + commit(first + 1), finding(first + 1, "it is missing"), true});
  expect_named({"DELETE FROM baton_journal WHERE id IN (" + commit(first) + "," + commit(first + 1) + ")",
                finding(first, "it and those up to " + commit(first + 1) + " are missing"), true});
  expect_named({"UPDATE baton_journal SET format=99 WHERE id=" + commit(last),
                finding(last, "commit " + commit(last) + " of the journal, of format 99, cannot be read"), true});
  expect_named({"UPDATE baton_journal SET data=" + std::string(is_sqlite() ? "x'01ff'" : "'\\x01ff'::bytea") + " WHERE id=" + commit(first),
                finding(first, "commit " + commit(first) + " of the journal, of format "), true});
  expect_named({again, finding(last + 1, "it makes idempotency key 'k0' of tenant default, which is there already"), true});
  const Ran whole = check(where_);
  EXPECT_EQ(whole.code, 0) << whole.err;
}

}  // namespace
}  // namespace baton::e2e::check_test
