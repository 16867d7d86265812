// The rows of service calls are made from their events: one that is lost or damaged changes nothing.
#include <csignal>
#include <functional>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/service_calls.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e {
namespace {

using runbook_contract::StoreType;

class ServiceCallsRows : public ServiceCallsTest, public testing::WithParamInterface<StoreType> {
 protected:
  void SetUp() override {
    if (GetParam() == StoreType::postgres) postgres_ = std::make_unique<support::PostgresServer>();
    where_ = postgres_ ? postgres_->url() : (data_.path() / "baton.db").string();
    server_ = std::make_unique<Server>(on());
  }
  [[nodiscard]] std::vector<std::string> on() const {
    return {"--store", postgres_ ? where_ : "sqlite:" + where_, "--egress-allow", "127.0.0.1"};
  }
  // The statement names the call as {id}. It is written while the server is away.
  void damage(const std::string& statement, const std::string& id) {
    std::string sql = statement;
    for (auto at = sql.find("{id}"); at != std::string::npos; at = sql.find("{id}"))
      sql.replace(at, 4, "'" + id + "'");
    runbook_contract::open_sql(GetParam(), where_)->exec(sql);
  }
  void stop(int signal = SIGTERM) {
    server_->process().signal(signal);
    EXPECT_TRUE(server_->process().wait(30s));
  }
  void start() { server_ = std::make_unique<Server>(on()); }
  [[nodiscard]] Ran check(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"check", "--replay", "--store", on()[1]};
    all.insert(all.end(), more.begin(), more.end());
    return baton(all);
  }

  static constexpr const char* damages[] = {
      "DELETE FROM service_calls WHERE service_call_id={id}",
      "UPDATE service_calls SET status='Succeeded' WHERE service_call_id={id}",
      "UPDATE service_calls SET status='Banana' WHERE service_call_id={id}",
      "UPDATE service_calls SET version=7 WHERE service_call_id={id}",
      "UPDATE service_calls SET tags='[\"t' WHERE service_call_id={id}",
      "UPDATE service_calls SET due_at='2999-01-01T00:00:00.000Z' WHERE service_call_id={id}",
  };

  std::unique_ptr<support::PostgresServer> postgres_;
  std::string where_;
  std::unique_ptr<Server> server_;
};
INSTANTIATE_TEST_SUITE_P(On, ServiceCallsRows, testing::Values(StoreType::sqlite, StoreType::postgres),
                         [](const auto& each) { return each.param == StoreType::sqlite ? "sqlite" : "postgres"; });

TEST_P(ServiceCallsRows, AreWrittenAnewByWhateverTouchesTheCall) {
  auto client = server_->client();
  for (const char* each : damages) {
    const std::string id = submit(client, call("/x", now() + 1h));
    damage(each, id);
    const Answer shown = ask(client, "GET", calls() + "/" + id);
    EXPECT_EQ(shown.text("status"), "Scheduled") << each << json::serialize(shown.body);
    const Answer put_off =
        ask(client, "POST", calls() + "/" + id + "/reschedule", R"({"delaySeconds":7200})");
    EXPECT_EQ(put_off.status, 200) << each << json::serialize(put_off.body);
    damage(each, id);
    EXPECT_EQ(ask(client, "GET", calls()).status, 200) << each;
    const Answer cancelled = ask(client, "POST", calls() + "/" + id + "/cancel", "{}");
    EXPECT_EQ(kind(cancelled), "Cancelled") << each << json::serialize(cancelled.body);
    const Ran right = check();
    EXPECT_EQ(right.code, 0) << each << right.err;
  }
  EXPECT_EQ(seen("/x"), 0);
}

TEST_P(ServiceCallsRows, AreWrittenAnewAfterAStartAndTheCallsAreMade) {
  std::vector<std::string> ids;
  auto client = server_->client();
  const Time due = now() + 3s;
  for (std::size_t i = 0; i < std::size(damages); ++i)
    ids.push_back(submit(client, call("/" + std::to_string(i), due)));
  stop();
  for (std::size_t i = 0; i < std::size(damages); ++i) damage(damages[i], ids[i]);
  EXPECT_EQ(check().code, 1);
  start();
  client = server_->client();
  for (std::size_t i = 0; i < std::size(damages); ++i) {
    EXPECT_EQ(ended(client, ids[i]).text("status"), "Succeeded") << damages[i];
    EXPECT_EQ(seen("/" + std::to_string(i)), 1) << damages[i];
    EXPECT_GE(first_seen_["/" + std::to_string(i)], due) << damages[i];
  }
  const Ran right = check();
  EXPECT_EQ(right.code, 0) << right.err;
}

TEST_P(ServiceCallsRows, ThatAreLostDoNotMakeACallTwice) {
  auto client = server_->client();
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < std::size(damages); ++i)
    ids.push_back(submit(client, call("/hold" + std::to_string(i))));
  ASSERT_TRUE(wait_for_seen(std::size(damages)));
  stop(SIGKILL);
  let_go();
  for (std::size_t i = 0; i < std::size(damages); ++i) damage(damages[i], ids[i]);
  damage("UPDATE service_calls SET status='Scheduled' WHERE service_call_id={id}", ids[3]);
  start();
  client = server_->client();
  for (std::size_t i = 0; i < std::size(damages); ++i) {
    EXPECT_EQ(kind(ended(client, ids[i])), "OutcomeUnknown") << damages[i];
    EXPECT_EQ(seen("/hold" + std::to_string(i)), 1) << damages[i];
  }
}

TEST_P(ServiceCallsRows, AreWrittenAnewByACheck) {
  auto client = server_->client();
  std::vector<std::string> ids;
  json::object body = call("/x", now() + 1h);
  body["tags"] = json::array{"t", "u"};
  for (std::size_t i = 0; i < std::size(damages) + 2; ++i) ids.push_back(submit(client, body));
  const Ran busy = check({"--rebuild"});
  EXPECT_EQ(busy.code, 1) << busy.out;
  EXPECT_NE(busy.err.find(GetParam() == StoreType::sqlite ? "holds" : "another baton server"), std::string::npos) << busy.err;
  stop();
  for (std::size_t i = 0; i < std::size(damages); ++i) damage(damages[i], ids[i]);
  damage("UPDATE service_calls SET name='other' WHERE service_call_id={id}", ids[std::size(damages)]);
  damage("DELETE FROM service_call_tags WHERE service_call_id={id}", ids[std::size(damages) + 1]);
  EXPECT_EQ(check().code, 1);
  const Ran rebuilt = check({"--rebuild"});
  EXPECT_EQ(rebuilt.code, 0) << rebuilt.err;
  EXPECT_NE(rebuilt.out.find("8 service calls were written anew"), std::string::npos) << rebuilt.out;
  EXPECT_EQ(check().code, 0);
  start();
  client = server_->client();
  EXPECT_EQ(
      ask(client, "GET", calls() + "?tag=u&name=" + "call%20/x").body.at("serviceCalls").as_array().size(),
      std::size(damages) + 2);
}

}  // namespace
}  // namespace baton::e2e
