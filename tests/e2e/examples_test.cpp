// Every folder of examples/ that has a workflow.yaml, and every one of examples/runbooks/: it is valid, it
// runs with one command, and it does what it says.
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <ranges>
#include <set>

#include "base/time.hpp"
#include "tests/e2e/agent.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::e2e {
namespace {

namespace fs = std::filesystem;

const fs::path examples = support::source_dir() / "examples";

// "trip" and "trip no-car", as they follow `examples/run`; from the files.
std::set<std::string> all_runs() {
  std::set<std::string> runs;
  for (const auto& folder : fs::directory_iterator(examples)) {
    if (!fs::exists(folder.path() / "workflow.yaml")) continue;
    const std::string name = folder.path().filename();
    for (const auto& file : fs::directory_iterator(folder.path())) {
      const std::string input = file.path().filename();
      if (input == "input.json") runs.insert(name);
      if (input.starts_with("input.") && input.ends_with(".json") && input != "input.json")
        runs.insert(name + " " + input.substr(6, input.size() - 11));
    }
  }
  return runs;
}

// The names of the folders of examples/runbooks.
std::set<std::string> all_runbooks() {
  std::set<std::string> names;
  for (const auto& folder : fs::directory_iterator(examples / "runbooks"))
    names.insert(folder.path().filename().string());
  return names;
}

// `examples/run …` in a temporary directory of its own. Whatever it leaves behind there is ended.
class ExampleRun {
 public:
  explicit ExampleRun(const std::vector<std::string>& arguments, const std::string& binary = BATON_BINARY) {
    std::vector<std::string> command{(examples / "run").string()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    process_ = std::make_unique<support::Process>(
        std::move(command),
        std::vector<std::string>{"BATON=" + binary, "TMPDIR=" + directory_.path().string(),
                                 "PATH=/usr/bin:/bin"});
  }
  ~ExampleRun() {
    process_->signal(SIGTERM);
    (void)process_->wait(15s);
    for (const pid_t id : left_behind()) kill(id, SIGKILL);
  }
  ExampleRun(const ExampleRun&) = delete;
  ExampleRun& operator=(const ExampleRun&) = delete;

  [[nodiscard]] support::Process& process() { return *process_; }
  // The exit code; -1: it still runs after a minute.
  int ended() { return process_->wait(60s).value_or(-1); }
  [[nodiscard]] std::string out() const { return process_->out(); }
  [[nodiscard]] std::string err() const { return process_->err(); }

  // The runner and all that it starts have their working directory there.
  [[nodiscard]] std::vector<pid_t> left_behind() const {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
      const std::string id = entry.path().filename();
      if (!std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; })) continue;
      const std::string where = fs::read_symlink(entry.path() / "cwd", error);
      if (!error && where.starts_with(fs::canonical(directory_.path()).string()))
        found.push_back(std::stoi(id));
    }
    return found;
  }
  // What --keep has kept; empty when there is nothing.
  [[nodiscard]] fs::path kept() const {
    const fs::directory_iterator entries(directory_.path());
    return entries == fs::directory_iterator{} ? fs::path{} : entries->path();
  }

 private:
  support::TemporaryDirectory directory_;
  std::unique_ptr<support::Process> process_;
};

// What a run has left in its database and among its files, looked at by another server.
class Traces {
 public:
  explicit Traces(const fs::path& kept) : kept_(kept), server_({"--data", (kept / "data").string()}) {
    auto client = server_.client();
    const Answer jobs = ask(client, "GET", "/jobs");
    const std::string job_id(jobs.body.at("jobs").as_array().at(0).at("job_id").as_string());
    job_ = ask(client, "GET", "/jobs/" + job_id).body;
    const Answer page = ask(client, "GET", "/jobs/" + job_id + "/timeline?limit=1000");
    events_ = page.body.at("events").as_array();
  }
  [[nodiscard]] std::string status(const std::string& node) const {
    return std::string(job_.at("nodes").at(node).at("status").as_string());
  }
  [[nodiscard]] const json::value& job() const { return job_; }
  [[nodiscard]] const json::value& node(const std::string& name) const { return job_.at("nodes").at(name); }
  [[nodiscard]] const json::array& events() const { return events_; }
  // Those of one type and node, in their order.
  [[nodiscard]] std::vector<json::value> events(const std::string& type, const std::string& node) const {
    std::vector<json::value> found;
    for (const auto& event : events_)
      if (is(event, type, node)) found.push_back(event);
    return found;
  }
  [[nodiscard]] Time time(const std::string& type, const std::string& node) const {
    const auto found = events(type, node);
    if (found.empty()) ADD_FAILURE() << "there is no " << type << " of " << node;
    return found.empty() ? Time{} : from_iso(std::string_view(found[0].at("created_at").as_string())).value();
  }
  [[nodiscard]] std::string text(const std::string& file) const { return read_text(kept_ / "files" / file); }
  [[nodiscard]] fs::path path(const std::string& file) const { return kept_ / "files" / file; }

 private:
  static bool is(const json::value& event, const std::string& type, const std::string& node) {
    const auto& id = event.at("node_id");
    return event.at("event_type").as_string() == type &&
           (id.is_string() ? id.as_string() == node : node.empty());
  }
  fs::path kept_;
  Server server_;
  json::value job_;
  json::array events_;
};

// ---- What each of them must have done, beyond its result ----

void etl_has_loaded(const Traces& traces) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open_v2(traces.path("warehouse.db").c_str(), &database, SQLITE_OPEN_READONLY, nullptr),
            SQLITE_OK);
  sqlite3_stmt* count = nullptr;
  sqlite3_prepare_v2(database, "SELECT count(*), sum(cents) FROM orders", -1, &count, nullptr);
  EXPECT_EQ(sqlite3_step(count), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(count, 0), 9);
  EXPECT_EQ(sqlite3_column_int(count, 1), 103'165);
  sqlite3_finalize(count);
  sqlite3_close(database);
  EXPECT_EQ(traces.status("quarantine"), "SKIPPED");
}

void etl_has_refused(const Traces& traces) {
  EXPECT_FALSE(fs::exists(traces.path("warehouse.db")));
  EXPECT_EQ(traces.status("load"), "SKIPPED");
}

void thumbnails_came_two_at_once(const Traces& traces) {
  int running = 0, most = 0, begun = 0;
  for (const auto& event : traces.events()) {
    if (!event.at("node_id").is_string() || !event.at("node_id").as_string().starts_with("each_")) continue;
    const auto& type = event.at("event_type").as_string();
    if (type == "node_started") ++running, ++begun;
    if (type == "node_completed" || type == "node_failed") --running;
    most = std::max(most, running);
  }
  EXPECT_EQ(begun, 6);
  EXPECT_EQ(running, 0);
  EXPECT_EQ(most, 2);
  EXPECT_EQ(traces.text("sheet.ppm").substr(0, 9), "P6\n88 60\n");
  EXPECT_EQ(traces.text("sheet.ppm").size(), 13u + 3 * 88 * 60);
}

void thumbnails_went_on(const Traces& traces) {
  EXPECT_EQ(traces.events("node_failed", "each_1").size(), 1u);
  EXPECT_EQ(traces.status("each"), "COMPLETED");
}

void report_has_waited_twice(const Traces& traces) {
  const Time due = from_iso(std::string_view(traces.job().at("due_at").as_string())).value();
  EXPECT_GE(due - traces.time("job_created", ""), 900ms);  // a second, counted from its arrival
  EXPECT_GE(traces.time("node_ready", "close"), due);
  EXPECT_GE(traces.time("node_completed", "settle") - traces.time("node_started", "settle"), 1s);
}

void expense_was_refused(const Traces& traces) {
  EXPECT_EQ(traces.status("ask"), "COMPLETED");
  EXPECT_EQ(traces.status("pay"), "SKIPPED");
}

void expense_timed_out(const Traces& traces) {
  expense_was_refused(traces);
  EXPECT_EQ(traces.events("node_timeout", "ask").size(), 1u);
}

void expense_was_paid(const Traces& traces) { EXPECT_EQ(traces.status("refuse"), "SKIPPED"); }

void trip_was_undone_in_reverse(const Traces& traces) {
  EXPECT_EQ(traces.status("car"), "FAILED");
  EXPECT_EQ(traces.status("confirm"), "SKIPPED");
  EXPECT_LE(traces.time("node_failed", "car"), traces.time("node_started", "cancel_hotel"));
  EXPECT_LE(traces.time("node_completed", "cancel_hotel"), traces.time("node_started", "cancel_flight"));
  EXPECT_EQ(traces.text("ledger.txt"),
            "booked flight-lisbon\nbooked hotel-lisbon\ncancelled hotel-lisbon\ncancelled flight-lisbon\n");
}

void trip_lost_its_flight_only(const Traces& traces) {
  EXPECT_EQ(traces.status("cancel_hotel"), "SKIPPED");
  EXPECT_EQ(traces.text("ledger.txt"), "booked flight-lisbon\ncancelled flight-lisbon\n");
}

void trip_is_booked(const Traces& traces) {
  EXPECT_EQ(traces.status("cancel_flight"), "SKIPPED");
  EXPECT_EQ(traces.text("ledger.txt"), "booked flight-lisbon\nbooked hotel-lisbon\nbooked car-lisbon\n");
}

void weather_was_tried_again(const Traces& traces) {
  EXPECT_EQ(traces.node("fetch").at("retry_count").as_int64(), 2);
  EXPECT_EQ(traces.node("fetch").at("progress").at("progress").as_int64(), 100);
  const auto retries = traces.events("node_retry", "fetch");
  ASSERT_EQ(retries.size(), 2u);
  EXPECT_EQ(retries[0].at("event_data").at("delay_ms").as_int64(), 200);
  EXPECT_EQ(retries[1].at("event_data").at("delay_ms").as_int64(), 400);
  EXPECT_EQ(traces.events("checkpoint", "fetch").size(), 5u);
  // Each city was answered once: the second and the third attempt went on where the one before was.
  EXPECT_EQ(traces.text("service.log"),
            "200 Oslo\n200 Paris\n503 Quito\n200 Quito\n200 Rome\n503 Seoul\n200 Seoul\n");
}

struct Case {
  std::string run;                                           // as in all_runs()
  std::vector<std::pair<std::string, std::string>> outputs;  // of a node: its JSON
  std::vector<std::string> words;                            // among what is printed
  void (*check)(const Traces&) = nullptr;
};

void PrintTo(const Case& each, std::ostream* out) { *out << each.run; }

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"etl",
       {{"quality", R"({"branch":"true"})"},
        {"load",
         R"({"database":"warehouse.db","loaded":9,"cents_by_country":{"CH":1218,"DE":9990,"GB":42800,"NL":4242,"US":44915}})"}},
       {},
       etl_has_loaded},
      {"etl dirty",
       {{"quality", R"({"branch":"false"})"}, {"quarantine", R"({"report":"quarantine.txt","problems":4})"}},
       {"orders-dirty.csv is in quarantine: 33 % of the rows are good, 80 % are needed",
        "row 6: the order is there twice"},
       etl_has_refused},
      {"thumbnails",
       {{"bytes", R"({"result":6772,"count":6,"failed":0})"},
        {"sheet",
         R"({"sheet":"sheet.ppm","thumbnails":6,"failed":0,"width":88,"height":60,"crc32":"b2de5679"})"}},
       {"6 thumbnails, 6772 bytes, 0 failed", "fjord     24 x 9   at 60,4"},
       thumbnails_came_two_at_once},
      {"thumbnails broken",
       {{"each", R"({"count":3,"failed":1})"},
        {"sheet",
         R"({"sheet":"sheet.ppm","thumbnails":2,"failed":1,"width":88,"height":32,"crc32":"3e1c0043"})"}},
       {"2 thumbnails, 2474 bytes, 1 failed", "torn.ppm is cut off"},
       thumbnails_went_on},
      {"report",
       {{"close", R"({"bookings":5})"},
        {"render", R"({"report":"report.txt","lines":7,"total":800,"late":1})"}},
       {"Sales of 2026-10\n================\nsouth      400  ###############\n", "came late: 1 booking(s)"},
       report_has_waited_twice},
      {"expense",
       {{"amount", R"({"branch":"large"})"}, {"pay", R"({"paid":400.5,"approved_by":"grace"})"}},
       {"Ada Lovelace asks for 400.5 EUR: a journey to Turin",
        "PAID 400.50 EUR to ada lovelace; approved by: grace"},
       expense_was_paid},
      {"expense reject",
       {{"refuse", R"({"paid":0,"refused_by":"grace","reason":"take the night train"})"}},
       {"REFUSED for ada lovelace, by grace: take the night train"},
       expense_was_refused},
      {"expense timeout",
       {{"refuse", R"({"paid":0,"refused_by":null,"reason":"nobody decided within 1 s"})"}},
       {"REFUSED for charles babbage, nobody decided within 1 s"},
       expense_timed_out},
      {"expense small",
       {{"amount", R"({"branch":"small"})"},
        {"pay", R"({"paid":12.25,"approved_by":"nobody, it is a small sum"})"}},
       {"PAID 12.25 EUR"},
       expense_was_paid},
      {"trip",
       {{"confirm", R"({"booked":true,"bookings":["flight-lisbon","hotel-lisbon","car-lisbon"]})"}},
       {"Dear Ada, your trip to Lisbon is booked."},
       trip_is_booked},
      {"trip no-car",
       {{"apologise", R"({"booked":false,"bookings":[]})"}},
       {"Dear Ada, your trip to Lisbon cannot be booked: no car left in Lisbon."},
       trip_was_undone_in_reverse},
      {"trip no-hotel",
       {{"apologise", R"({"booked":false,"bookings":[]})"}},
       {"Dear Ada, your trip to Lisbon cannot be booked: no hotel left in Lisbon."},
       trip_lost_its_flight_only},
      {"weather",
       {{"summary", R"({"warmest":"Rome","coldest":"Oslo","cities":5})"}},
       {"fetch will be tried again: exit code 1: Quito: HTTP Error 503", "Rome     19 °C"},
       weather_was_tried_again},
  };
  return all;
}

class Examples : public testing::TestWithParam<Case> {};

TEST_P(Examples, DoWhatTheySay) {
  const Case& expected = GetParam();
  std::vector<std::string> arguments{"--keep"};
  for (const auto word : std::views::split(expected.run, ' '))
    arguments.emplace_back(std::string_view(word.begin(), word.end()));
  ExampleRun run(arguments);
  ASSERT_EQ(run.ended(), 0) << run.out() << run.err();
  EXPECT_TRUE(run.left_behind().empty());
  const std::string out = run.out();
  const json::value result = json::parse(out.substr(0, out.find('\n')));
  for (const auto& [node, output] : expected.outputs) {
    ASSERT_TRUE(result.as_object().contains(node)) << out;
    EXPECT_EQ(json::serialize(result.at(node)), json::serialize(json::parse(output))) << node;
  }
  const std::string said = out + run.err();
  for (const std::string& words : expected.words)
    EXPECT_NE(said.find(words), std::string::npos) << words << "\n" << said;
  ASSERT_FALSE(run.kept().empty());
  expected.check(Traces(run.kept()));
}

INSTANTIATE_TEST_SUITE_P(Of, Examples, testing::ValuesIn(cases()), [](const auto& each) {
  std::string name = each.param.run;
  std::erase_if(name, [](char c) { return c == ' ' || c == '-'; });
  return name;
});

// ---- runbooks ----

// What a run of a runbook has left, looked at by another server.
class BatchTraces {
 public:
  explicit BatchTraces(const fs::path& kept)
      : kept_(kept),
        server_({"--data", (kept / "data").string(), "--scheduler", "off"}),
        client_(server_.client()) {}

  [[nodiscard]] json::value get(const std::string& target) {
    const Answer answer = ask(client_, "GET", target);
    EXPECT_EQ(answer.status, 200) << target << json::serialize(answer.body);
    return answer.body;
  }
  [[nodiscard]] json::array list(const std::string& target, const std::string& key) {
    return get(target).at(key).as_array();
  }
  // The steps and cleanups of a member: "move rolled_back".
  [[nodiscard]] json::value member(std::int64_t batch_id, const std::string& key) {
    const std::string members = "/batches/" + std::to_string(batch_id) + "/members";
    for (const auto& each : list(members, "members"))
      if (each.at("member_key").as_string() == key)
        return get(members + "/" + std::to_string(each.at("id").as_int64()));
    ADD_FAILURE() << "batch " << batch_id << " has no member " << key;
    return {};
  }
  static std::vector<std::string> words(const json::value& member, const std::string& key) {
    std::vector<std::string> found;
    for (const auto& step : member.at(key).as_array())
      found.push_back(std::string(step.at("step_name").as_string()) + " " +
                      std::string(step.at("status").as_string()));
    return found;
  }
  [[nodiscard]] std::string text(const std::string& file) const { return read_text(kept_ / "files" / file); }

 private:
  fs::path kept_;
  Server server_;
  http::Client client_;
};

using Words = std::vector<std::string>;

std::ptrdiff_t lines_with(const std::string& text, const std::string& word) {
  return std::ranges::count_if(std::views::split(text, '\n'), [&](const auto& line) {
    return std::string_view(line.begin(), line.end()).find(word) != std::string_view::npos;
  });
}

Time time_in(const json::value& row, const std::string& key) {
  return from_iso(std::string_view(row.at(key).as_string())).value();
}

TEST(RunbookExamples, MailboxMigrationDoesWhatItSays) {
  ExampleRun run({"runbooks/mailbox-migration", "--keep"});
  ASSERT_EQ(run.ended(), 0) << run.out() << run.err();
  EXPECT_TRUE(run.left_behind().empty());
  for (const std::string words : {"Ivan leaves", "Began phase 'verify' of batch"})
    EXPECT_NE(run.err().find(words), std::string::npos) << words << "\n" << run.err();
  ASSERT_FALSE(run.kept().empty());
  BatchTraces traces(run.kept());

  const json::array batches = traces.list("/batches?runbook=mailbox-migration", "batches");
  ASSERT_EQ(batches.size(), 2u);
  const std::int64_t second = batches[0].at("id").as_int64();  // the newest comes first
  const std::int64_t first = batches[1].at("id").as_int64();
  for (const auto& listed : batches) {
    const json::value batch = traces.get("/batches/" + std::to_string(listed.at("id").as_int64()));
    EXPECT_EQ(batch.at("status").as_string(), "completed");
    const Time cut_over = time_in(batch, "batch_start_time");
    Words phases;
    for (const auto& phase : batch.at("phases").as_array()) {
      phases.push_back(std::string(phase.at("phase_name").as_string()) + " " +
                       std::string(phase.at("status").as_string()));
      const bool before = phase.at("phase_name").as_string() == "prepare";
      EXPECT_EQ(time_in(phase, "dispatched_at") < cut_over, before) << phases.back();  // T is exact
    }
    EXPECT_EQ(phases, (Words{"prepare completed", "cut-over completed", "verify completed"}));
  }
  EXPECT_EQ(json::serialize(traces.get("/batches/" + std::to_string(first)).at("members")),
            R"({"active":5,"failed":1})");
  EXPECT_EQ(json::serialize(traces.get("/batches/" + std::to_string(second)).at("members")),
            R"({"active":5,"removed":1})");

  // The first request for an E5 is turned away; a move is asked for twice more.
  const json::value ada = traces.member(first, "ada@contoso.example");
  EXPECT_EQ(BatchTraces::words(ada, "steps"),
            (Words{"create-mailbox succeeded", "set-licence succeeded", "move succeeded",
                   "switch-mail succeeded", "check succeeded"}));
  EXPECT_EQ(ada.at("steps").at(1).at("retry_count").as_int64(), 1);
  EXPECT_EQ(ada.at("steps").at(2).at("poll_count").as_int64(), 2);
  EXPECT_EQ(ada.at("worker_data_json").at("MovedItems").as_int64(), 14'400);

  const json::array failures = traces.list("/batches/" + std::to_string(first) + "/failures", "failures");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures[0].at("member_key").as_string(), "heidi@contoso.example");
  EXPECT_EQ(failures[0].at("error_message").as_string(),
            "exit code 1: heidi@contoso.example has 140000 MB, the target takes 100000");
  const json::value heidi = traces.member(first, "heidi@contoso.example");
  EXPECT_EQ(heidi.at("status").as_string(), "failed");
  EXPECT_EQ(BatchTraces::words(heidi, "steps"), (Words{"create-mailbox succeeded", "set-licence succeeded",
                                                       "move rolled_back", "switch-mail cancelled"}));
  EXPECT_EQ(BatchTraces::words(heidi, "cleanups"),
            (Words{"stop-move succeeded", "remove-mailbox succeeded"}));

  const json::value ivan = traces.member(second, "ivan@contoso.example");
  EXPECT_EQ(ivan.at("status").as_string(), "removed");
  EXPECT_EQ(BatchTraces::words(ivan, "cleanups"), Words{"disable succeeded"});

  const std::string ledger = traces.text("tenant/ledger.txt");
  EXPECT_EQ(lines_with(ledger, "made the group"), 2);
  EXPECT_EQ(lines_with(ledger, "created "), 12) << ledger;
  EXPECT_EQ(lines_with(ledger, "checked "), 10) << ledger;
  EXPECT_EQ(traces.text("what-was-undone.txt").substr(0, 15), "created user ma");
  EXPECT_EQ(lines_with(ledger, "disabled the mailbox ivan@"), 1);
  EXPECT_LT(ledger.find("stopped the move of heidi@"), ledger.find("removed the mailbox heidi@"));
}

TEST(RunbookExamples, AreAllTestedListedAndExplained) {
  EXPECT_EQ(all_runbooks(), std::set<std::string>{"mailbox-migration"});
  ExampleRun list({"--list"});
  ASSERT_EQ(list.ended(), 0);
  const std::string readme = read_text(examples / "README.md");
  for (const std::string& name : all_runbooks()) {
    EXPECT_NE(list.out().find(name + " "), std::string::npos) << list.out();
    EXPECT_NE(readme.find("[" + name + "](runbooks/" + name + "/README.md)"), std::string::npos) << name;
    EXPECT_NE(read_text(examples / "runbooks" / name / "README.md").find("examples/run " + name),
              std::string::npos);
  }
}

TEST(ExampleFolders, AreAllTestedListedAndExplained) {
  std::set<std::string> tested;
  for (const Case& each : cases()) tested.insert(each.run);
  EXPECT_EQ(tested, all_runs());
  ExampleRun list({"--list"});
  ASSERT_EQ(list.ended(), 0);
  const std::string readme = read_text(examples / "README.md");
  for (const std::string& run : tested) {
    const auto space = run.find(' ');
    const std::string name = run.substr(0, space);
    EXPECT_NE(list.out().find(space == std::string::npos ? name + " " : run.substr(space)), std::string::npos)
        << run << "\n"
        << list.out();
    EXPECT_NE(readme.find("[" + name + "](" + name + "/README.md)"), std::string::npos) << name;
    EXPECT_NE(read_text(examples / name / "README.md").find("examples/run " + run), std::string::npos) << run;
  }
}

TEST(ExampleFolders, AreValidWithoutAWarning) {
  std::vector<std::string> command{BATON_BINARY, "validate", "--json"};
  for (const std::string& run : all_runs())
    if (run.find(' ') == std::string::npos) command.push_back((examples / run / "workflow.yaml").string());
  for (const std::string& name : all_runbooks())
    command.push_back((examples / "runbooks" / name / "runbook.yaml").string());
  ASSERT_GE(command.size(), 3u + 7);
  support::Process validate(command);
  ASSERT_EQ(validate.wait(20s), 0) << validate.out();
  const json::value answer = json::parse(validate.out());
  for (const auto& file : answer.at("files").as_array())
    EXPECT_EQ(json::serialize(file.at("diagnostics")), "[]") << file.at("file");
}

TEST(ExampleRunner, EndsWhatItStartedWhenItIsEnded) {
  ExampleRun run({"weather"});
  ASSERT_TRUE(eventually([&] { return run.err().find("fetch started") != std::string::npos; })) << run.err();
  EXPECT_GE(run.left_behind().size(), 4u);  // itself, the service, the server and the worker
  run.process().signal(SIGTERM);
  EXPECT_EQ(run.ended(), 128 + SIGTERM) << run.err();
  EXPECT_TRUE(run.left_behind().empty());
  EXPECT_TRUE(run.kept().empty());
}

TEST(ExampleRunner, SaysWhatIsWrong) {
  const auto refused = [](const std::vector<std::string>& arguments, int code, const std::string& words,
                          const std::string& binary = BATON_BINARY) {
    ExampleRun run(arguments, binary);
    EXPECT_EQ(run.ended(), code) << run.err();
    EXPECT_NE(run.err().find(words), std::string::npos) << run.err();
    EXPECT_TRUE(run.kept().empty());
  };
  refused({"trap"}, 2, "there is no example 'trap'");
  refused({"trip", "no-train"}, 2, "'trip' has no variant 'no-train'");
  refused({}, 2, "examples/run NAME");
  refused({"trip"}, 1, "is not a program", "/no/such/baton");
  refused({"trip"}, 1, "the server did not start", "/bin/false");
}

}  // namespace
}  // namespace baton::e2e
