// What somebody stumbles over who runs a runbook for the first time: files, times, types, ids, and what is said of them.
#include <sqlite3.h>

#include <csignal>
#include <fstream>

#include "tests/e2e/server.hpp"

namespace baton::e2e::runbook_edges_test {
namespace {

const std::string move_yaml = R"(
name: move
data_source: {type: csv, connection: WAVES_CSV, interval: 7d, primary_key: Key, batch_time_column: T}
phases:
  - {name: prepare, offset: T-1d, steps: [{name: make, worker_id: pool, function: Make, params: {Key: "{{Key}}"}}]}
  - {name: cut-over, offset: T-0, steps: [{name: move, worker_id: pool, function: Move}]}
)";

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

void execute(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  sqlite3_busy_timeout(db, 10'000);
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

class RunbookEdges : public testing::Test {
 protected:
  explicit RunbookEdges(std::vector<std::string> environment = {}) : environment_(std::move(environment)) {
    environment_.insert(environment_.begin(), "env");
    start();
  }
  void start() {
    server_ = std::make_unique<Server>(std::vector<std::string>{"--data", (directory_.path() / "data").string()}, environment_);
  }
  Ran baton(std::vector<std::string> arguments) {
    return e2e::baton(std::move(arguments), {"BATON_SERVER=" + server_->url()});
  }
  std::string file(const std::string& name, std::string_view text) const {
    write(directory_.path() / name, text);
    return directory_.path() / name;
  }
  Answer send(std::string_view method, const std::string& target, const std::string& body = {},
              const std::string& type = "application/json") {
    auto client = server_->client();
    return ask(client, method, target, body, type);
  }
  void publish(const std::string& yaml) { ASSERT_EQ(send("POST", "/runbooks", yaml, "application/yaml").status, 201); }
  json::object take_job() {
    const Answer answer = send("POST", "/workers/pool/jobs:poll", R"({"worker":"w","wait_ms":10000})");
    EXPECT_EQ(answer.body.at("jobs").as_array().size(), 1U) << json::serialize(answer.body);
    return answer.body.at("jobs").as_array().empty() ? json::object{} : answer.body.at("jobs").at(0).as_object();
  }
  std::string batch_by_hand(const std::string& keys) {
    const Ran made = baton({"batch", "create", "move", "--csv", file("members.csv", "Key\n" + keys)});
    EXPECT_EQ(made.code, 0) << made.err;
    return made.out.substr(0, made.out.find('\n'));
  }

  support::TemporaryDirectory directory_;
  std::vector<std::string> environment_;
  std::unique_ptr<Server> server_;
};

TEST_F(RunbookEdges, APlanOfACsvReadsItsTimes) {
  const std::string yaml = file("move.yaml", move_yaml);
  const std::string csv = file("waves.csv", "Key;T\nada;2096-11-17 02:00\nbob;2096-11-16\ncyd;2096-11-17 02:00\n");
  const Ran plan = baton({"runbook", "plan", yaml, "--csv", csv});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_NE(plan.out.find("3 members in 2 batches"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("batch of 1 member, T 2096-11-16 00:00 UTC"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("batch of 2 members, T 2096-11-17 02:00 UTC"), std::string::npos) << plan.out;
  EXPECT_NE(plan.out.find("prepare   T-1d     2096-11-16 02:00"), std::string::npos) << plan.out;

  const Ran given = baton({"runbook", "plan", yaml, "--csv", csv, "--start", "2096-12-01 22:30"});
  EXPECT_NE(given.out.find("batch of 3 members, T 2096-12-01 22:30 UTC"), std::string::npos) << given.out << given.err;
  const Ran wrong = baton({"runbook", "plan", yaml, "--csv", csv, "--start", "01.12.2096"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("2026-11-17 02:00"), std::string::npos) << wrong.err;
  const Ran by_hand = baton({"runbook", "plan", yaml, "--csv", file("pilot.csv", "Key\nada\n")});
  EXPECT_NE(by_hand.out.find("note: the CSV has no column 'T'"), std::string::npos) << by_hand.out;
}

TEST_F(RunbookEdges, AnotherEncodingIsToldOnce) {
  publish(move_yaml);
  std::string latin = "Key,Name\n";
  for (int i = 0; i < 150; ++i) latin += std::to_string(i) + ",M\xFCller\n";
  const Ran created = baton({"batch", "create", "move", "--csv", file("latin.csv", latin)});
  EXPECT_EQ(created.code, 1);
  EXPECT_EQ(std::ranges::count(created.err, '\n'), 2) << created.err;
  EXPECT_NE(created.err.find("line 2, column 'Name': not UTF-8"), std::string::npos) << created.err;
  const Ran planned = baton({"runbook", "plan", "move", "--csv", file("latin.csv", latin)});
  EXPECT_EQ(planned.code, 2);
  EXPECT_NE(planned.err.find("latin.csv is not UTF-8, see line 2; save it as UTF-8"), std::string::npos) << planned.err;

  using namespace std::string_literals;
  const std::string wide = file("wide.csv", "\xFF\xFEK\0e\0y\0\n\0a\0\n\0"s);
  const Ran from_excel = baton({"batch", "create", "move", "--csv", wide});
  EXPECT_NE(from_excel.err.find("the file is UTF-16; save it as UTF-8"), std::string::npos) << from_excel.err;
  EXPECT_EQ(std::ranges::count(from_excel.err, '\n'), 2) << from_excel.err;
  EXPECT_NE(baton({"runbook", "plan", "move", "--csv", wide}).err.find("wide.csv is UTF-16; save it as UTF-8"),
            std::string::npos);
}

TEST_F(RunbookEdges, AWrongRowIsNamedByItsLine) {
  publish(move_yaml);
  const Ran twice =
      baton({"batch", "create", "move", "--csv", file("twice.csv", "Key,Note\n\nada,\"two\nlines\"\nbob,\nada,\n")});
  EXPECT_NE(twice.err.find("line 6 ('ada'), column 'Key': the key is that of line 3 already"), std::string::npos) << twice.err;
}

TEST_F(RunbookEdges, AConnectionThatIsSetForTheCommandLineOnlyIsToldToBelongToTheServer) {
  const Ran plan = e2e::baton({"runbook", "plan", file("move.yaml", move_yaml)},
                              {"BATON_SERVER=" + server_->url(), "WAVES_CSV=/tmp/waves.csv"});
  EXPECT_NE(plan.code, 0);
  EXPECT_NE(plan.err.find("connection 'WAVES_CSV'"), std::string::npos) << plan.err;
  EXPECT_NE(plan.err.find("where 'baton serve' is started, not where the command line runs"), std::string::npos) << plan.err;
}

TEST_F(RunbookEdges, IdsOfBatchesAndMembersDoNotJumpAfterARestart) {
  publish(move_yaml);
  const std::string first = batch_by_hand("ada\nbob\n");
  server_->process().signal(SIGKILL);
  ASSERT_TRUE(server_->process().wait(20s));
  start();
  const std::string second = batch_by_hand("cyd\n");
  EXPECT_EQ(std::stoi(second), std::stoi(first) + 1);
  const Answer of_first = send("GET", "/batches/" + first + "/members");
  const Answer of_second = send("GET", "/batches/" + second + "/members");
  EXPECT_EQ(of_second.body.at("members").at(0).at("id").as_int64(), of_first.body.at("members").at(1).at("id").as_int64() + 1);
}

TEST_F(RunbookEdges, WhoIsLeftOutOfARetryIsToldWithTheReason) {
  publish(move_yaml);
  const std::string batch = batch_by_hand("ada\nbob\n");
  const Ran none = baton({"member", "retry", batch, "--all"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "Retried 0 members: no member of batch " + batch + " has failed.\n");
  const Ran named = baton({"member", "retry", batch, "bob", "ada"});
  EXPECT_EQ(named.code, 1);
  EXPECT_EQ(named.out, "Retried 0 members; 2 were left out:\n  not failed (2): bob, ada\n");
  const Ran again = baton({"member", "add", batch, "--csv", file("again.csv", "Key\nada\ncyd\n")});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, "Added 1 member; 1 was left out:\n  in the batch already (1): ada\n");
  EXPECT_EQ(baton({"member", "add", batch, "--csv", file("again.csv", "Key\nada\n")}).code, 1);
  EXPECT_EQ(baton({"member", "remove", batch, "ada"}).code, 0);
  const Ran removed = baton({"member", "remove", batch, "ada"});
  EXPECT_EQ(removed.code, 1);
  EXPECT_EQ(removed.out, "Removed 0 members; 1 was left out:\n  removed already (1): ada\n");
  const Ran nobody = baton({"member", "remove", batch, "bob", "eve"});
  EXPECT_EQ(nobody.code, 1);
  EXPECT_NE(nobody.err.find("has no member 'eve'; nothing was done"), std::string::npos) << nobody.err;
}

TEST_F(RunbookEdges, AStepThatIsSkippedIsShownAsSkipped) {
  publish(move_yaml);
  const std::string batch = batch_by_hand("ada\nbob\n");
  ASSERT_EQ(baton({"batch", "advance", batch}).code, 0);
  const json::object job = take_job();
  const std::string id(job.at("jobId").as_string());
  const Ran skipped = baton({"step", "skip", id, "--by", "eve"});
  EXPECT_EQ(skipped.out, "Skipped " + id + "; it counts as succeeded.\n") << skipped.err;
  const Ran refused = baton({"step", "retry", id});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("is succeeded and cannot be retried"), std::string::npos) << refused.err;

  EXPECT_NE(baton({"step", "show", id}).out.find("skipped by eve; stored as succeeded"), std::string::npos);
  EXPECT_NE(baton({"member", "show", batch, "ada"}).out.find("make  skipped"), std::string::npos)
      << baton({"member", "show", batch, "ada"}).out;
  EXPECT_NE(baton({"batch", "show", batch}).out.find("1 skipped"), std::string::npos) << baton({"batch", "show", batch}).out;
  const Answer matrix = send("GET", "/batches/" + batch + "/matrix");
  const auto& cell = matrix.body.at("members").at(0).at("cells").at(0);
  EXPECT_EQ(cell.at("status").as_string(), "succeeded");
  EXPECT_TRUE(cell.at("skipped").as_bool());
  EXPECT_FALSE(matrix.body.at("members").at(1).at("cells").at(0).at("skipped").as_bool());
  EXPECT_EQ(matrix.body.at("phases").at(0).at("steps").at(0).at("skipped").at("step").as_int64(), 1);
}

// ---- a source that has types

class TypedSource : public RunbookEdges {
 protected:
  TypedSource() : RunbookEdges({"SITES=/dev/null"}) {}  // another file below: its path is known only then
};

TEST_F(TypedSource, NumbersKeepTheirTypeAndWhatWasStoredAsTextIsCorrected) {
  const auto sites = directory_.path() / "sites.db";
  execute(sites, "CREATE TABLE sites (Key TEXT, Seats INTEGER, Price REAL, Code TEXT);"
                 "INSERT INTO sites VALUES ('ada', 7, 10.5, '007')");
  server_->process().signal(SIGTERM);
  ASSERT_TRUE(server_->process().wait(20s));
  environment_ = {"env", "SITES=" + sites.string()};
  start();
  publish(R"(
name: sites
data_source: {type: sqlite, connection: SITES, query: SELECT * FROM sites, interval: 7d, primary_key: Key, batch_time: immediate}
phases:
  - name: work
    offset: T-0
    steps:
      - name: one
        worker_id: pool
        function: "Make-{{Seats}}"
        params: {Seats: "{{Seats}}", Price: "{{Price}}", Code: "{{Code}}", Text: "{{Seats}} seats at {{Price}}", Key: "{{Key}}"}
      - {name: two, worker_id: pool, function: Two, params: {Seats: "{{Seats}}"}}
)");
  const json::object job = take_job();
  EXPECT_EQ(job.at("parameters"),
            json::parse(R"({"Seats":7,"Price":10.5,"Code":"007","Text":"7 seats at 10.5","Key":"ada"})"));
  EXPECT_EQ(job.at("functionName").as_string(), "Make-7");
  const auto data = [&] { return send("GET", "/batches/1/members?full=true").body.at("members").at(0).at("data_json"); };
  const json::value typed = json::parse(R"({"Key":"ada","Seats":7,"Price":10.5,"Code":"007"})");
  EXPECT_EQ(data(), typed);

  // As an earlier version stored it. The next look corrects the member, and not what has been dispatched.
  const auto database = directory_.path() / "data" / "baton.db";
  const std::string old = R"({"Key":"ada","Seats":"7","Price":"10.5","Code":"007"})";
  execute(database, "UPDATE batch_members SET data_json='" + old + "'");
  execute(database, R"(UPDATE step_executions SET params_json='{"Seats":"7"}' WHERE step_name='one')");
  ASSERT_EQ(data(), json::parse(old));
  EXPECT_EQ(send("POST", "/runbooks/sites/automation", R"({"enabled":false})").status, 200);
  EXPECT_EQ(send("POST", "/runbooks/sites/automation", R"({"enabled":true})").status, 200);
  EXPECT_TRUE(eventually([&] { return data() == typed; })) << data();
  const Answer step = send("GET", "/steps/1");
  EXPECT_EQ(step.body.at("status").as_string(), "dispatched");
  EXPECT_EQ(json::serialize(step.body.at("params_json")), R"({"Seats":"7"})");
  const json::object done{{"jobId", job.at("jobId")}, {"status", "Success"}, {"result", json::object{}}, {"lease", job.at("lease")}};
  ASSERT_EQ(send("POST", "/callbacks/worker-result", json::serialize(done)).status, 200);
  EXPECT_EQ(json::serialize(take_job().at("parameters")), R"({"Seats":7})");

  // The data table has texts, as the contract wants it.
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(database.c_str(), &db), SQLITE_OK);
  std::string types;
  const auto collect = [](void* to, int, char** cells, char**) {
    *static_cast<std::string*>(to) += cells[0];
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(db, "SELECT typeof(Seats)||'='||Seats||' '||typeof(Price)||'='||Price FROM runbook_sites_v1", collect,
                         &types, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
  EXPECT_EQ(types, "text=7 text=10.5");
}

}  // namespace
}  // namespace baton::e2e::runbook_edges_test
