// Runbooks at the start and at the end of a server.
#include <signal.h>

#include <condition_variable>
#include <mutex>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/fake_server.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e::runbook_stop_test {
namespace {

using runbook_contract::open_sql;

std::string runbook_yaml(const std::string& type) {
  return R"(
name: waves
data_source: {type: )" + type + R"(, connection: WAVES, interval: 1d, primary_key: Key, batch_time_column: T}
phases:
  - {name: work, offset: T-0, steps: [{name: one, worker_id: pool, function: One, params: {Key: "{{Key}}"}}]}
)";
}

TEST(RunbookStop, DoesNotWaitForADataSourceThatNeverAnswers) {
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false, over = false;
  FakeServer source([&](const FakeServer::Request&) -> FakeServer::Reply {
    std::unique_lock lock(mutex);
    asked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return over; });
    return {};
  });
  const support::TemporaryDirectory data;
  setenv("WAVES", source.url().c_str(), 1);
  Server server({"--data", data.path()});
  unsetenv("WAVES");
  auto client = server.client();
  EXPECT_EQ(ask(client, "POST", "/runbooks", runbook_yaml("http"), "application/yaml").status, 201);
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, 10s, [&] { return asked; }));
  }
  const auto from = std::chrono::steady_clock::now();
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(20s), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - from, 3s);
  EXPECT_EQ(open_sql(runbook_contract::StoreType::sqlite, (data.path() / "baton.db").string())
                ->text("SELECT last_error, last_synced_at FROM runbooks"),
            "null null")
      << "that the server stopped is no fault of the source";
  const std::scoped_lock lock(mutex);
  over = true;
  changed.notify_all();
}

// An import that a crash interrupted is over before anybody is answered, whoever schedules.
void half_imported(const std::string& scheduler) {
  const support::TemporaryDirectory data;
  std::string id;
  {
    Server server({"--data", data.path(), "--scheduler", "off"});
    auto client = server.client();
    EXPECT_EQ(ask(client, "POST", "/runbooks", runbook_yaml("csv"), "application/yaml").status, 201);
    const Answer made = ask(client, "POST", "/runbooks/waves/batches", "Key\na\n", "text/csv");
    ASSERT_EQ(made.status, 201) << json::serialize(made.body);
    id = std::to_string(made.body.at("id").as_int64());
    server.process().signal(SIGTERM);
    ASSERT_EQ(server.process().wait(10s), 0);
  }
  open_sql(runbook_contract::StoreType::sqlite, (data.path() / "baton.db").string())
      ->exec("UPDATE batches SET importing=1, status='detected'");
  Server server({"--data", data.path(), "--scheduler", scheduler});
  auto client = server.client();
  const Answer batch = ask(client, "GET", "/batches/" + id);
  EXPECT_EQ(batch.text("status"), "cancelled") << json::serialize(batch.body);
  EXPECT_FALSE(batch.body.at("importing").as_bool());
}

TEST(RunbookStart, EndsWhatWasHalfImported) { half_imported("on"); }
TEST(RunbookStart, EndsWhatWasHalfImportedAlsoWithoutAScheduler) { half_imported("off"); }

}  // namespace
}  // namespace baton::e2e::runbook_stop_test
