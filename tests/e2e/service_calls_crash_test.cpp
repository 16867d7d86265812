// Service calls under violence: the server is killed again and again while calls run, the database underneath
// is restarted. Then each call is accounted for.
#include <csignal>
#include <set>

#include "core/call/call.hpp"
#include "store/open.hpp"
#include "tests/e2e/service_calls.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e {
namespace {

class ServiceCallsCrash : public ServiceCallsTest {
 protected:
  static std::vector<std::string> on(const std::string& store, const std::vector<std::string>& more = {}) {
    std::vector<std::string> all{"--store", store, "--egress-allow", "127.0.0.1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::string sqlite() const { return "sqlite:" + (data_.path() / "baton.db").string(); }
  // What is Running in a store that nobody serves: begun, and how it ended is not known. A PostgreSQL backend may be
  // busy with the last commit of a server that was killed; whoever opens the store waits for it.
  static std::set<std::string> running(const std::string& store) {
    EXPECT_TRUE(store::make_store(store).value()->open(Partition{}));
    std::set<std::string> ids;
    auto reads = store::make_reads(store).value();
    const auto found = reads->running_calls({}, 10'000).value();
    for (const call::CallKey& key : found) ids.insert(key.id.value);
    return ids;
  }
  void survive_kills(const std::string& store, int kills);

  struct Made {
    std::string path, tenant;
  };
  std::map<std::string, Made> made_;  // by id
  std::set<std::string> in_doubt_;
  std::map<std::string, int> kinds_;

  void submit_some(http::Client& client, int round);
  void check_one(http::Client& client, const std::string& id);
};

constexpr int places = 32, timeout_ms = 1'500;

// For two tenants, due while the server is about to be killed; every third declares a probe, some are
// cancelled.
void ServiceCallsCrash::submit_some(http::Client& client, int round) {
  for (const std::string tenant : {"acme", "zeta"}) {
    json::array wanted;
    std::vector<std::string> paths;
    for (int i = 0; i < 24; ++i) {
      paths.push_back("/" + tenant + "-" + std::to_string(round) + "-" + std::to_string(i));
      const Time due = now() + Duration{i == 23 ? 60'000 : i * 3};
      wanted.push_back(i % 3 == 0 ? probed(paths.back(), due, timeout_ms) : call(paths.back(), due));
    }
    const Answer made =
        ask(client, "POST", calls(tenant) + ":batch", json::serialize(json::object{{"calls", wanted}}));
    if (made.status != 202) continue;  // it was killed before it answered: nobody was promised anything
    const auto& answers = made.body.at("calls").as_array();
    for (std::size_t i = 0; i < answers.size(); ++i)
      made_[std::string(answers[i].at("serviceCallId").as_string())] = {paths[i], tenant};
    const std::string last(answers.back().at("serviceCallId").as_string());
    if (ask(client, "POST", calls(tenant) + "/" + last + "/cancel", "{}").status == 0)
      made_.erase(last);  // not known
  }
}

void ServiceCallsCrash::check_one(http::Client& client, const std::string& id) {
  const auto& [path, tenant] = made_[id];
  const Answer done = ended(client, id, tenant);
  const std::string all = types(done);
  const auto count = [&](std::string_view word) {
    int n = 0;
    for (auto at = all.find(word); at != std::string::npos; at = all.find(word, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("ExecutionSucceeded") + count("ExecutionFailed"), 1) << path << ": " << all;
  EXPECT_LE(count("ExecutionStarted"), 1) << all;
  EXPECT_LE(seen(path), 1) << path;
  const bool by_probe = json::serialize(done.body).find("settledBy") != std::string::npos;
  const std::string what = done.text("status") == "Succeeded" ? "Succeeded" : kind(done);
  ++kinds_[what + (by_probe ? " by probe" : "")];
  if (what == "Succeeded") {
    EXPECT_EQ(seen(path), 1) << path;
  }
  if (what == "Cancelled" || (what == "NetworkError" && by_probe)) {
    EXPECT_EQ(seen(path), 0) << path;
  }
  if (what == "OutcomeUnknown" || by_probe) {
    EXPECT_TRUE(in_doubt_.contains(id)) << path;
  }
  if (what == "OutcomeUnknown") {
    EXPECT_EQ(json::serialize(done.body.at("requestSpec")).find("probe"), std::string::npos);
  }
  if (!in_doubt_.contains(id)) {
    EXPECT_TRUE(what == "Succeeded" || what == "Cancelled") << path << " " << what;
  }
}

void ServiceCallsCrash::survive_kills(const std::string& store, int kills) {
  delay_ms_ = 5;
  const std::vector<std::string> limits{"--calls-max", std::to_string(places), "--calls-per-origin", "24"};
  for (int round = 0; round < kills; ++round) {
    {
      Server server(on(store, limits));
      auto client = server.client();
      submit_some(client, round);
      // Whenever it dies is right: nothing depends on how far it has come.
      std::this_thread::sleep_for(std::chrono::milliseconds{(round * 7) % 60});
      server.process().signal(SIGKILL);
    }
    std::size_t more = 0;
    for (const std::string& id : running(store)) more += in_doubt_.insert(id).second;
    EXPECT_LE(more, static_cast<std::size_t>(places)) << "more are in doubt than were on the wire";
  }
  Server server(on(store, limits));
  auto client = server.client();
  for (const auto& [id, made] : made_) check_one(client, id);
  std::string account;
  for (const auto& [what, n] : kinds_) account += what + " " + std::to_string(n) + ", ";
  RecordProperty("account", account);
  std::printf("%zu calls: %s%zu were in doubt\n", made_.size(), account.c_str(), in_doubt_.size());
  {  // also of calls whose submission was not answered
    const std::scoped_lock lock(mutex_);
    for (const auto& [path, times] : seen_) EXPECT_EQ(times, 1) << path;
  }
  EXPECT_GT(kinds_["Succeeded"], 0);
  EXPECT_GT(kinds_["Cancelled"], 0);
  EXPECT_GT(in_doubt_.size(), 0U);
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(20s), 0) << server.process().err();
  support::Process check({BATON_BINARY, "check", "--replay", "--store", store});
  EXPECT_EQ(check.wait(60s), 0) << check.err();
}

TEST_F(ServiceCallsCrash, FiftyKills) { survive_kills(sqlite(), 50); }

TEST_F(ServiceCallsCrash, KillsOnPostgres) {
  support::PostgresServer postgres;
  survive_kills(postgres.create_database("calls"), 12);
}

// The sink has a number of requests, half of what an origin may have since there is one tenant, and answers none: just
// those are in doubt, and not one that waited.
TEST_F(ServiceCallsCrash, OnlyWhatIsOnTheWireIsInDoubt) {
  std::vector<std::string> ids;
  {
    Server server(options(data_.path(), {"--calls-per-origin", "14"}));
    auto client = server.client();
    for (int i = 0; i < 20; ++i) ids.push_back(submit(client, call("/hold" + std::to_string(i))));
    ASSERT_TRUE(wait_for_seen(7));
    server.process().signal(SIGKILL);
  }
  EXPECT_EQ(running(sqlite()).size(), 7U);
  let_go();
  Server server(options(data_.path()));
  auto client = server.client();
  std::map<std::string, int> kinds;
  for (const std::string& id : ids) ++kinds[kind(ended(client, id))];
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"", 13}, {"OutcomeUnknown", 7}}));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(seen("/hold" + std::to_string(i)), 1);
}

// More have a probe than have a place: each is asked about, when its turn comes.
TEST_F(ServiceCallsCrash, ProbesTell) {
  std::vector<std::string> ids;
  {
    Server server(options(data_.path()));
    auto client = server.client();
    for (int i = 0; i < 12; ++i)
      ids.push_back(submit(client, probed((i < 3 ? "/hold-vague" : "/hold") + std::to_string(i), {}, 800)));
    ASSERT_TRUE(wait_for_seen(12));
    server.process().signal(SIGKILL);
  }
  {
    const std::scoped_lock lock(mutex_);
    for (int i = 3; i < 6; ++i)
      seen_.erase("/hold" + std::to_string(i));  // these were lost in the other side
  }
  Server server(options(data_.path(), {"--calls-max", "4", "--calls-per-origin", "2"}));
  auto client = server.client();
  for (int i = 0; i < 12; ++i) {
    const Answer done = ended(client, ids[static_cast<std::size_t>(i)]);
    EXPECT_EQ(kind(done), i < 3   ? "OutcomeUnknown"
                          : i < 6 ? "NetworkError"
                                  : "")
        << json::serialize(done.body);
    EXPECT_NE(json::serialize(done.body).find(R"("settledBy":"probe")"), std::string::npos);
  }
  EXPECT_EQ(probes_, 12);
}

TEST_F(ServiceCallsCrash, AStopWaitsForWhatIsUnderWay) {
  delay_ms_ = 1'000;
  Server server(options(data_.path()));
  auto client = server.client();
  const std::string id = submit(client, call("/slow")), later = submit(client, call("/later", now() + 1h));
  ASSERT_TRUE(wait_for_seen(1));
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(20s), 0);
  EXPECT_TRUE(running(sqlite()).empty());
  Server again(options(data_.path()));
  auto other = again.client();
  EXPECT_EQ(ended(other, id).text("status"), "Succeeded");
  EXPECT_EQ(ask(other, "GET", calls() + "/" + later).text("status"), "Scheduled");
}

TEST_F(ServiceCallsCrash, AStopDoesNotWaitForEver) {
  Server server(options(data_.path(), {"--calls-drain-seconds", "1"}));
  auto client = server.client();
  const std::string id = submit(client, call("/hold"));
  ASSERT_TRUE(wait_for_seen(1));
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(20s), 0);
  EXPECT_NE(server.process().err().find("1 service calls are still under way"), std::string::npos)
      << server.process().err();
  let_go();
  Server again(options(data_.path()));
  auto other = again.client();
  EXPECT_EQ(kind(ended(other, id)), "OutcomeUnknown");
}

TEST_F(ServiceCallsCrash, PostgresIsRestartedUnderneath) {
  support::PostgresServer postgres;
  Server server(on(postgres.create_database("calls")));
  auto client = server.client();
  std::vector<std::string> ids;
  const Time begin = now();
  for (int i = 0; i < 200; ++i) {
    const Answer made = ask(client, "POST", calls(),
                            json::serialize(call("/p" + std::to_string(i), begin + Duration{i * 40})));
    if (made.status == 202) ids.push_back(made.text("serviceCallId"));
  }
  EXPECT_EQ(ids.size(), 200U);
  for (int i = 0; i < 3; ++i) {
    i == 1 ? postgres.crash() : postgres.stop();
    postgres.start();
    std::this_thread::sleep_for(
        300ms);  // calls are due all the time; when it comes back again does not matter
  }
  for (const std::string& id : ids) EXPECT_EQ(ended(client, id).text("status"), "Succeeded");
  for (int i = 0; i < 200; ++i) EXPECT_EQ(seen("/p" + std::to_string(i)), 1) << i;
}

}  // namespace
}  // namespace baton::e2e
