#include "tests/contract/runbook/fixture.hpp"

#include <signal.h>

#include <algorithm>
#include <barrier>
#include <optional>
#include <stdexcept>
#include <thread>

#include "tests/support/postgres_server.hpp"

namespace baton::runbook_contract {
namespace {

constexpr auto patience = 10s;      // for what must come
constexpr int quiet_wait_ms = 120;  // for what must not: long for one commit, short for a suite
constexpr auto look_again = 5ms;    // rows cannot be waited for, only read again

support::PostgresServer& postgres() {
  static support::PostgresServer instance;
  return instance;
}

// The server of one kind of store, what it stands on, and the connections to both.
class World {
 public:
  explicit World(StoreType type)
      : type_(type),
        where_(type == StoreType::sqlite ? (data_.path() / "baton.db").string()
                                    : postgres().create_database("runbooks")) {}

  void ensure(const std::vector<std::string>& more = {}) {
    if (server_ && !server_->url().empty() && !server_->process().wait(0ms)) return;
    client_.reset();
    sql_.reset();
    server_.reset();  // it holds the lock of the file, if it lives
    std::vector<std::string> arguments{type_ == StoreType::sqlite ? "--data" : "--store",
                                       type_ == StoreType::sqlite ? data_.path().string() : where_};
    if (std::ranges::find(more, "--scheduler") == more.end())
      arguments.insert(arguments.end(), {"--scheduler", "off"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    server_.emplace(arguments);
    if (server_->url().empty()) throw std::runtime_error("there is no server");
    client_.emplace(server_->url());
  }
  void kill() {
    server_->process().signal(SIGKILL);
    if (server_->process().wait(10s) != 128 + SIGKILL) throw std::runtime_error("the server was not killed");
  }
  Sql& sql() {
    if (!sql_) sql_ = open();
    return *sql_;
  }
  std::unique_ptr<Sql> open() const { return open_sql(type_, where_); }
  http::Client& client() { return *client_; }
  const std::string& url() const { return server_->url(); }

 private:
  StoreType type_;
  support::TemporaryDirectory data_;
  std::string where_;
  std::optional<e2e::Server> server_;
  std::unique_ptr<Sql> sql_;
  std::optional<http::Client> client_;
};

World& world(StoreType type) {
  if (type == StoreType::sqlite) {
    static World sqlite(StoreType::sqlite);
    return sqlite;
  }
  static World instance(StoreType::postgres);
  return instance;
}

Cells with_defaults(Cells cells, const Cells& defaults) {
  cells.insert(defaults.begin(), defaults.end());  // what is there stays
  return cells;
}

json::array ids_of(const std::vector<Id>& ids) { return json::array(ids.begin(), ids.end()); }

}  // namespace

std::string name_of(const testing::TestParamInfo<StoreType>& info) {
  return info.param == StoreType::sqlite ? "Sqlite" : "Postgres";
}

Contract::Contract() {
  static int count = 0;
  const std::string number = std::to_string(++count);
  name_ = "rb-" + number;
  pool_ = "pool-" + number;
  world(GetParam()).ensure();
}

// ---- rows

Id Contract::insert(const std::string& table, const Cells& cells) {
  std::string columns;
  std::string values;
  for (const auto& [column, cell] : cells) {
    columns += (columns.empty() ? "" : ",") + column;
    values += (values.empty() ? "" : ",") + cell.literal;
  }
  // Ids are the database's to issue; a test that needs a certain one has to insist.
  const bool insists = GetParam() == StoreType::postgres && cells.contains("id");
  return number("INSERT INTO " + table + " (" + columns + ")" + (insists ? " OVERRIDING SYSTEM VALUE" : "") +
                " VALUES (" + values + ") RETURNING id");
}

Id Contract::runbook(const std::string& yaml, int version, const Cells& more) {
  const std::string head =
      "name: " + name_ +
      "\ndata_source: {type: csv, connection: WAVES_CSV, interval: 5m, primary_key: Upn, "
      "batch_time_column: MigrationDate}\n";
  version_ = version;
  runbook_ =
      insert("runbooks", with_defaults(more, {{"name", name_},
                                              {"version", version},
                                              {"yaml_content", replaced(head + yaml, "POOL", pool_)},
                                              {"data_table_name", "runbook_" + replaced(name_, "-", "_") +
                                                                      "_v" + std::to_string(version)},
                                              {"is_active", true},
                                              {"overdue_behavior", "rerun"},
                                              {"ignore_overdue_applied", false},
                                              {"rerun_init", false},
                                              {"created_at", timestamp()}}));
  return runbook_;
}

void Contract::given(const std::string& yaml, int members, const std::string& status) {
  batch(runbook(yaml), status);
  for (int i = 1; i <= members; ++i) member("m" + std::to_string(i));
}

Id Contract::given_due(const std::string& yaml, int members, Here here) {
  given(yaml, members);
  const Id due = phase("p1");
  tell(phase_due(due), here);
  return due;
}

Id Contract::batch(Id runbook, const std::string& status, const Cells& more) {
  members_.clear();
  batch_ = insert("batches", with_defaults(more, {{"runbook_id", runbook},
                                                  {"batch_start_time", batch_start},
                                                  {"status", status},
                                                  {"detected_at", timestamp(-60s)}}));
  return batch_;
}

Id Contract::member(const std::string& key, const Cells& more) {
  members_.push_back(
      insert("batch_members", with_defaults(more, {{"batch_id", batch_},
                                                   {"member_key", key},
                                                   {"status", "active"},
                                                   {"added_at", timestamp(-30s)},
                                                   {"data_json", "{\"Upn\":\"" + key + "\"}"}})));
  return members_.back();
}

void Contract::many_members(int count) {
  std::string rows;
  for (int i = 1; i <= count; ++i) {
    const std::string key = "m" + std::to_string(i);
    rows += (rows.empty() ? "('" : ",('") + std::to_string(batch_) + "','" + key + "','active','" +
            timestamp() + "','{\"Upn\":\"" + key + "\"}')";
  }
  sql().exec("INSERT INTO batch_members (batch_id, member_key, status, added_at, data_json) VALUES " + rows);
}

Id Contract::phase(const std::string& name, const std::string& status, const Cells& more) {
  return insert("phase_executions", with_defaults(more, {{"batch_id", batch_},
                                                         {"phase_name", name},
                                                         {"offset_minutes", 0},
                                                         {"due_at", timestamp(-10s)},
                                                         {"runbook_version", version_},
                                                         {"status", status}}));
}

Id Contract::step(Id phase, Id member, int index, const std::string& name, const Cells& more) {
  return insert("step_executions", with_defaults(more, {{"phase_execution_id", phase},
                                                        {"batch_member_id", member},
                                                        {"step_name", name},
                                                        {"step_index", index},
                                                        {"worker_id", pool_},
                                                        {"function_name", "Do-" + name},
                                                        {"params_json", "{}"},
                                                        {"status", "pending"},
                                                        {"is_poll_step", false}}));
}

Id Contract::init_step(int index, const std::string& name, const Cells& more) {
  return insert("init_executions", with_defaults(more, {{"batch_id", batch_},
                                                        {"step_name", name},
                                                        {"step_index", index},
                                                        {"runbook_version", version_},
                                                        {"worker_id", pool_},
                                                        {"function_name", "Do-" + name},
                                                        {"params_json", "{}"},
                                                        {"status", "pending"},
                                                        {"is_poll_step", false}}));
}

// ---- messages

json::object Contract::event(const std::string& type, const json::object& more) const {
  json::object message{
      {"messageType", type}, {"runbookName", name_}, {"runbookVersion", version_}, {"batchId", batch_}};
  for (const auto& [key, value] : more) message[key] = value;
  return message;
}

Answer Contract::send(const json::value& message) {
  return e2e::ask(client(), "POST", "/events", json::serialize(message));
}

void Contract::tell(const json::value& message, Here here) {
  const Answer answer = send(message);
  if (answer.status != 200 && answer.status != 202)
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line()))
        << json::serialize(message) << " was answered " << answer.status << json::serialize(answer.body);
}

json::object Contract::batch_init() const {
  return event("batch-init", {{"batchStartTime", batch_start}, {"memberCount", members_.size()}});
}
json::object Contract::phase_due(Id phase) const { return phase_due(phase, members_); }
json::object Contract::phase_due(Id phase, const std::vector<Id>& members) const {
  const std::string name =
      world(GetParam())
          .sql()
          .text("SELECT phase_name FROM phase_executions WHERE id=" + std::to_string(phase));
  return event("phase-due", {{"phaseExecutionId", phase},
                             {"phaseName", name},
                             {"offsetMinutes", 0},
                             {"dueAt", timestamp(-10s)},
                             {"memberIds", ids_of(members)}});
}
std::string Contract::key_of(Id member) const {
  return world(GetParam())
      .sql()
      .text("SELECT member_key FROM batch_members WHERE id=" + std::to_string(member));
}
json::object Contract::member_added(Id member) const {
  return event("member-added", {{"batchMemberId", member}, {"memberKey", key_of(member)}});
}
json::object Contract::member_removed(Id member) const {
  return event("member-removed", {{"batchMemberId", member}, {"memberKey", key_of(member)}});
}
json::object Contract::poll_check(Id step, const std::string& name, int count) const {
  return event("poll-check", {{"stepExecutionId", step}, {"stepName", name}, {"pollCount", count}});
}
json::object Contract::retry_check(Id step, int count) const {
  return event("retry-check", {{"stepExecutionId", step}, {"isInitStep", false}, {"retryCount", count}});
}
void Contract::set_removed(Id member) {
  sql().exec("UPDATE batch_members SET status='removed', removed_at='" + timestamp() +
             "' WHERE id=" + std::to_string(member));
}

// ---- workers

std::vector<Job> Contract::poll(int wait_ms, const std::string& pool) {
  const json::object body{{"max", 50}, {"wait_ms", wait_ms}, {"worker", "w"}};
  const Answer answer = e2e::ask(client(), "POST", "/workers/" + (pool.empty() ? pool_ : pool) + "/jobs:poll",
                                 json::serialize(body));
  const auto* jobs = found(answer.body, "jobs");
  if (!jobs) throw std::runtime_error("a poll was answered " + std::to_string(answer.status));
  std::vector<Job> taken;
  for (const json::value& job : jobs->as_array()) taken.push_back({job.as_object()});
  return taken;
}

std::vector<Job> Contract::take(std::size_t count, const std::string& pool) {
  std::vector<Job> taken;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (taken.size() < count && std::chrono::steady_clock::now() < deadline)
    for (Job& job : poll(2'000, pool)) taken.push_back(std::move(job));
  if (taken.size() == count) return taken;
  std::string names;
  for (const Job& job : taken) names += " " + job.id() + " " + job.function();
  throw std::runtime_error("expected " + std::to_string(count) + " jobs, got" +
                           (names.empty() ? " none" : names) + "\n" + snapshot());
}

void Contract::quiet() {
  for (const Job& job : poll(quiet_wait_ms))
    ADD_FAILURE() << "nobody asked for " << json::serialize(job.body);
}

Answer Contract::report(const json::value& results) {
  return e2e::ask(client(), "POST", "/callbacks/worker-result", json::serialize(results));
}

namespace {
void expect_accepted(const Answer& answer, const Job& job, Here here) {
  if (!is_accepted(answer))
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line()))
        << "the result of " << job.id() << " was answered " << answer.status << json::serialize(answer.body);
}
}  // namespace

void Contract::succeed(const Job& job, const json::value& result, Here here) {
  expect_accepted(report(result_of(job, "Success", result)), job, here);
}
void Contract::still_polling(const Job& job, Here here) {
  succeed(job, json::object{{"complete", false}}, here);
}
void Contract::fail(const Job& job, const std::string& message, Here here) {
  expect_accepted(report(result_of(job, "Failure", nullptr, json::object{{"message", message}})), job, here);
}

void Contract::work(std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (std::size_t done = 0; done < count;) {
    for (const Job& job : poll(2'000)) succeed(job), ++done;
    if (done < count && std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("only " + std::to_string(done) + " jobs came\n" + snapshot());
  }
}

// ---- reading

void Contract::eventually(const std::string& query, const std::string& expected, Here here) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string actual = text(query);
  while (actual != expected && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(look_again);
    actual = text(query);
  }
  if (actual != expected)
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line()))
        << query << "\n  is       " << actual << "\n  and not  " << expected;
}

namespace {
std::string status_of(const std::string& table, Id id) {
  return "SELECT status FROM " + table + " WHERE id=" + std::to_string(id);
}
}  // namespace

void Contract::expect_batch(const std::string& status, Here here) {
  eventually(status_of("batches", batch_), status, here);
}
void Contract::expect_phase(Id phase, const std::string& status, Here here) {
  eventually(status_of("phase_executions", phase), status, here);
}
void Contract::expect_member(Id member, const std::string& status, Here here) {
  eventually(status_of("batch_members", member), status, here);
}
void Contract::expect_step(Id step, const std::string& status, Here here) {
  eventually(status_of("step_executions", step), status, here);
}
void Contract::expect_steps(Id phase, Id member, const std::string& statuses, Here here) {
  eventually("SELECT status FROM step_executions WHERE phase_execution_id=" + std::to_string(phase) +
                 " AND batch_member_id=" + std::to_string(member) + " ORDER BY step_index, id",
             statuses, here);
}
void Contract::expect_init(const std::string& statuses, Here here) {
  eventually("SELECT status FROM init_executions WHERE batch_id=" + std::to_string(batch_) +
                 " ORDER BY runbook_version, step_index, id",
             statuses, here);
}
void Contract::expect_cleanup(const std::string& statuses, Here here) {
  eventually(
      "SELECT status FROM cleanup_executions WHERE batch_id=" + std::to_string(batch_) + " ORDER BY id",
      statuses, here);
}

Id Contract::step_id(Id phase, Id member, int index) {
  return number("SELECT id FROM step_executions WHERE phase_execution_id=" + std::to_string(phase) +
                " AND batch_member_id=" + std::to_string(member) +
                " AND step_index=" + std::to_string(index));
}

std::string Contract::snapshot() {
  const std::string of_batch = " WHERE batch_id=" + std::to_string(batch_) + " ORDER BY id";
  const std::string run =
      "step_name, step_index, worker_id, function_name, params_json, status, job_id, result_json, "
      "error_message, "
      "dispatched_at, completed_at, poll_started_at, last_polled_at, poll_count, retry_count, retry_after";
  std::string all;
  for (const std::string& query :
       {"SELECT status, init_dispatched_at FROM batches WHERE id=" + std::to_string(batch_),
        "SELECT id, status, removed_at, failed_at, worker_data_json FROM batch_members" + of_batch,
        "SELECT id, phase_name, status, dispatched_at, completed_at FROM phase_executions" + of_batch,
        "SELECT id, phase_execution_id, batch_member_id, " + run +
            " FROM step_executions WHERE phase_execution_id IN (SELECT id FROM phase_executions WHERE "
            "batch_id=" +
            std::to_string(batch_) + ") ORDER BY id",
        "SELECT id, runbook_version, " + run + " FROM init_executions" + of_batch,
        "SELECT id, kind, sequence, batch_member_id, " + run + " FROM cleanup_executions" + of_batch})
    all += replaced(text(query), ",", "\n") + "\n--\n";
  return all;
}

void Contract::changes_nothing(const std::function<void()>& act, Here here) {
  const std::string before = snapshot();
  act();
  quiet();
  if (const std::string after = snapshot(); after != before)
    ADD_FAILURE_AT(here.file_name(), static_cast<int>(here.line())) << "before\n"
                                                                    << before << "after\n"
                                                                    << after;
}

Sql& Contract::sql() { return world(GetParam()).sql(); }
std::unique_ptr<Sql> Contract::another_connection() { return world(GetParam()).open(); }
std::string Contract::url() const { return world(GetParam()).url(); }
http::Client& Contract::client() { return world(GetParam()).client(); }

double Contract::metric(const std::string& name) {
  const auto answer = client().request("GET", "/metrics", "", "", {}, 10s);
  if (!answer) throw std::runtime_error("there are no metrics");
  const auto at = answer->body.find("\n" + name + " ");
  if (at == std::string::npos) throw std::runtime_error("there is no metric " + name);
  return std::stod(answer->body.substr(at + name.size() + 2));
}

void Contract::restart(const std::vector<std::string>& more) {
  world(GetParam()).kill();
  world(GetParam()).ensure(more);
}

void Contract::both_at_once(const std::vector<std::function<void(http::Client&)>>& acts) {
  std::barrier start(static_cast<std::ptrdiff_t>(acts.size()));
  std::vector<std::jthread> threads;
  for (const auto& act : acts)
    threads.emplace_back([&] {
      http::Client own(url());
      start.arrive_and_wait();
      act(own);
    });
}

}  // namespace baton::runbook_contract
