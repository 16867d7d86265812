// A large batch under violence: the server is killed again and again while workers go through it, or the
// database underneath is restarted. Then every step is accounted for.
#include <signal.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/server.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e::runbook_crash_test {
namespace {

using runbook_contract::open_sql;
using runbook_contract::Sql;

const std::string runbook_yaml = R"(
name: storm
data_source: {type: csv, connection: STORM_CSV, interval: 1d, primary_key: Key, batch_time_column: T}
retry: {max_retries: 3, interval: 1s}
init:
  - {name: open, worker_id: pool, function: Open, params: {Batch: "{{_batch_id}}"}}
phases:
  - name: work
    offset: T-0
    steps:
      - {name: one, worker_id: pool, function: One, params: {Key: "{{Key}}"}, output_params: {Token: token}}
      - {name: two, worker_id: pool, function: Two, params: {Key: "{{Key}}", Token: "{{Token}}"}, on_failure: undo}
      - {name: three, worker_id: pool, function: Three, params: {Key: "{{Key}}"}, poll: {interval: 1s, timeout: 10m}}
      - {name: four, worker_id: pool, function: Four, params: {Key: "{{Key}}"}}
      - {name: five, worker_id: pool, function: Five, params: {Key: "{{Key}}"}}
rollbacks:
  undo:
    - {name: undo-two, worker_id: pool, function: Undo, params: {Key: "{{Key}}"}, retry: {max_retries: 0}}
)";

// Workers over a server that comes and goes. Every fortieth member fails for good in step two; every seventh
// fails once there; every ninth is polled twice in step three.
class Workers {
 public:
  void start(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this, i] { run("w" + std::to_string(i)); });
  }
  void set_url(const std::string& url) {
    const std::scoped_lock lock(mutex_);
    url_ = url;
  }
  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  ~Workers() { stop(); }
  // How often each job's result was accepted, as far as the worker heard.
  std::map<std::string, int> accepted() {
    const std::scoped_lock lock(mutex_);
    return accepted_;
  }
  // Jobs whose result was answered. More than were heard to be accepted: a server that dies may have accepted one
  // and not said so, and then ignores it when it comes again.
  std::size_t count() {
    const std::scoped_lock lock(mutex_);
    return answered_.size();
  }

 private:
  std::string url() {
    const std::scoped_lock lock(mutex_);
    return url_;
  }

  static json::object result_of(const json::object& job) {
    const std::string function(job.at("functionName").as_string());
    const std::string id(job.at("jobId").as_string());
    json::object result{{"jobId", id}, {"status", "Success"}, {"lease", job.at("lease")}};
    const auto* key = job.at("parameters").as_object().if_contains("Key");
    const long number = key ? std::stol(std::string(key->as_string()).substr(1)) : 0;
    result["result"] = json::object{{"token", "t" + std::to_string(number)}};
    const bool first = id.find("-retry-") == std::string::npos;
    if (function == "Two" && (number % 40 == 0 || (number % 7 == 0 && first))) {
      result["status"] = "Failure";
      result["error"] = json::object{{"message", "no luck"}};
    }
    if (function == "Two" && job.at("parameters").at("Token") != json::value("t" + std::to_string(number)))
      result["error"] = "the token of step one is not " + std::to_string(number), result["status"] = "Failure";
    if (function == "Three") {
      const bool done = number % 9 != 0 || id.ends_with("-poll-2");
      result["result"] = json::object{{"complete", done}};
    }
    return result;
  }

  void run(const std::string& name) {
    while (!stopping_) {
      http::Client client(url());
      const Answer polled = ask(client, "POST", "/workers/pool/jobs:poll",
                                R"({"max":100,"wait_ms":500,"heartbeat":true,"worker":")" + name + "\"}");
      if (polled.status != 200) {
        std::this_thread::sleep_for(10ms);  // the server is away
        continue;
      }
      json::array results;
      for (const auto& job : polled.body.at("jobs").as_array()) results.push_back(result_of(job.as_object()));
      if (!results.empty()) report(results);
    }
  }

  // Until it is answered: what is repeated must change nothing.
  void report(const json::array& results) {
    while (!stopping_) {
      http::Client client(url());
      const Answer answer = ask(client, "POST", "/callbacks/worker-result", json::serialize(results));
      if (answer.status != 200) {
        std::this_thread::sleep_for(10ms);
        continue;
      }
      const auto& said = answer.body.at("results").as_array();
      const std::scoped_lock lock(mutex_);
      for (std::size_t i = 0; i < said.size(); ++i) {
        const std::string job(results[i].as_object().at("jobId").as_string());
        answered_.insert(job);
        if (said[i].at("accepted").as_bool()) ++accepted_[job];
      }
      return;
    }
  }

  std::mutex mutex_;
  std::string url_;
  std::map<std::string, int> accepted_;
  std::set<std::string> answered_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_ = false;
};

constexpr int members = 2'000;

std::string begin_batch(Server& server) {
  auto client = server.client();
  EXPECT_EQ(ask(client, "POST", "/runbooks", runbook_yaml, "application/yaml").status, 201);
  std::string csv = "Key\n";
  for (int i = 1; i <= members; ++i) csv += "m" + std::to_string(i) + "\n";
  const Answer made = ask(client, "POST", "/runbooks/storm/batches", csv, "text/csv");
  EXPECT_EQ(made.status, 201) << json::serialize(made.body);
  const auto* batch = made.body.as_object().if_contains("batch");
  const std::string id = std::to_string((batch ? *batch : made.body).at("id").as_int64());
  EXPECT_EQ(ask(client, "POST", "/batches/" + id + "/advance").status, 200);
  return id;
}

void wait_for_end(Server& server, const std::string& batch) {
  auto client = server.client();
  const auto until = std::chrono::steady_clock::now() + 120s;
  Answer view;
  do {
    view = ask(client, "GET", "/batches/" + batch);
    if (view.status == 200 && view.text("status") != "active") break;  // the database may be away
    std::this_thread::sleep_for(100ms);
  } while (std::chrono::steady_clock::now() < until);
  EXPECT_EQ(view.text("status"), "completed") << json::serialize(view.body).substr(0, 4'000);
}

// Every step has one outcome, the expected one; the counters are what counting gives; nothing is left over.
void audit(Sql& sql, const std::map<std::string, int>& accepted) {
  for (const auto& [job, times] : accepted) EXPECT_EQ(times, 1) << job << " was accepted again";
  const int lost = members / 40;
  const auto steps = [&](const std::string& name, const std::string& status) {
    return std::stol(sql.text("SELECT count(*) FROM step_executions WHERE step_name='" + name + "' AND status='" + status + "'"));
  };
  EXPECT_EQ(steps("one", "succeeded"), members);
  EXPECT_EQ(steps("two", "rolled_back"), lost);
  for (const std::string name : {"two", "three", "four", "five"}) EXPECT_EQ(steps(name, "succeeded"), members - lost) << name;
  for (const std::string name : {"three", "four", "five"}) EXPECT_EQ(steps(name, "cancelled"), lost) << name;
  EXPECT_EQ(sql.text("SELECT count(*) FROM step_executions"), std::to_string(members * 5)) << "no step was made twice";
  EXPECT_EQ(sql.text("SELECT status, count(*) FROM cleanup_executions GROUP BY status"), "succeeded " + std::to_string(lost));
  EXPECT_EQ(sql.text("SELECT status FROM init_executions"), "succeeded");
  EXPECT_EQ(sql.text("SELECT status, count(*) FROM batch_members GROUP BY status ORDER BY status"),
            "active " + std::to_string(members - lost) + ",failed " + std::to_string(lost));
  EXPECT_EQ(sql.text("SELECT count(*) FROM baton_timers"), "0");
  EXPECT_EQ(sql.text("SELECT count(*) FROM step_executions WHERE job_state IS NOT NULL"), "0");
  EXPECT_EQ(sql.text("SELECT step_index, status, n FROM batch_counts WHERE lane='step' AND n<>0 ORDER BY step_index, status"),
            sql.text("SELECT step_index, status, count(*) FROM step_executions GROUP BY step_index, status ORDER BY step_index, status"));
}

void kill_again_and_again(const std::vector<std::string>& options, int times, const std::function<std::unique_ptr<Sql>()>& open) {
  auto server = std::make_unique<Server>(options);
  Workers workers;
  workers.set_url(server->url());
  const std::string batch = begin_batch(*server);
  workers.start(3);
  for (int i = 0; i < times; ++i) {
    // The blows fall all over the batch, beginning with the walk that starts it.
    const std::size_t enough = static_cast<std::size_t>(i) * (members * 5 * 8 / 10) / static_cast<std::size_t>(times);
    ASSERT_TRUE(eventually([&] { return workers.count() >= enough; }, 60s)) << workers.count() << " of " << enough;
    server->process().signal(SIGKILL);
    ASSERT_EQ(server->process().wait(10s), 128 + SIGKILL);
    server = std::make_unique<Server>(options);
    workers.set_url(server->url());
  }
  wait_for_end(*server, batch);
  workers.stop();
  audit(*open(), workers.accepted());
}

TEST(RunbookCrash, TwentyKillsOfTheServerLoseNothingAndDoubleNothingOnSqlite) {
  const support::TemporaryDirectory data;
  kill_again_and_again({"--data", data.path(), "--lease-seconds", "1"}, 20, [&] {
    return open_sql(runbook_contract::StoreType::sqlite, (data.path() / "baton.db").string());
  });
}

TEST(RunbookCrash, KillsOfTheServerLoseNothingAndDoubleNothingOnPostgres) {
  support::PostgresServer postgres;
  kill_again_and_again({"--store", postgres.url(), "--lease-seconds", "1"}, 20,
                       [&] { return open_sql(runbook_contract::StoreType::postgres, postgres.url()); });
}

TEST(RunbookCrash, RestartsOfTheDatabaseLoseNothingAndDoubleNothing) {
  support::PostgresServer postgres;
  Server server({"--store", postgres.url(), "--lease-seconds", "1"});
  Workers workers;
  workers.set_url(server.url());
  const std::string batch = begin_batch(server);
  workers.start(3);
  for (std::size_t i = 1; i <= 4; ++i) {
    ASSERT_TRUE(eventually([&] { return workers.count() >= i * members; }, 60s)) << workers.count();
    if (i % 2 == 0)
      postgres.crash(), postgres.start();
    else
      postgres.restart();
  }
  wait_for_end(server, batch);
  workers.stop();
  audit(*open_sql(runbook_contract::StoreType::postgres, postgres.url()), workers.accepted());
}

}  // namespace
}  // namespace baton::e2e::runbook_crash_test
