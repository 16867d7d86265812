#include "tests/contract/store/fixture.hpp"

#include <unistd.h>

#include "store/journal/journal_store.hpp"
#include "store/open.hpp"
#include "store/postgres/connection.hpp"
#include "store/sqlite/connection.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::contract {
namespace {

// One server for all tests: starting it costs a second.
support::PostgresServer& server() {
  static support::PostgresServer instance;
  return instance;
}

std::filesystem::path make_directory() {
  std::string path = (std::filesystem::temp_directory_path() / "baton-contract-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error("cannot make " + path);
  return path;
}

}  // namespace

std::string name_of(const ::testing::TestParamInfo<StoreType>& info) {
  constexpr const char* names[] = {"Memory", "Sqlite", "Postgres", "MemoryJournal", "SqliteJournal", "PostgresJournal"};
  return names[static_cast<int>(info.param)];
}

Database::Database(StoreType type)
    : type_(static_cast<StoreType>(static_cast<int>(type) % 3)), has_journal_(type >= StoreType::memory_journal), directory_(make_directory()) {
  static int count = 0;
  if (type_ == StoreType::sqlite) url_ = "sqlite:" + path();
  if (type_ == StoreType::postgres) url_ = server().create_database("contract_" + std::to_string(++count));
}

Database::~Database() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::unique_ptr<Store> Database::store() {
  std::unique_ptr<store::Tables> tables;
  if (type_ == StoreType::memory)
    tables = std::make_unique<store::MemoryStore>(memory_);
  else
    tables = store::make_tables(url_).value();
  if (has_journal_) return std::make_unique<store::JournalStore>(std::move(tables));
  return tables;
}

Result<std::unique_ptr<Reads>> Database::reads() {
  if (type_ == StoreType::memory) return std::make_unique<store::MemoryReads>(memory_);
  return store::make_reads(url_);
}

Result<std::unique_ptr<TokenAdmin>> Database::token_admin() {
  if (type_ == StoreType::memory) return std::make_unique<store::MemoryTokenAdmin>(memory_);
  return store::make_token_admin(url_);
}

namespace {

void script(const Result<std::unique_ptr<store::Connection>>& connection, const std::string& sql) {
  ASSERT_TRUE(connection) << connection.error().message;
  const auto done = (*connection)->script(sql);
  ASSERT_TRUE(done) << done.error().message;
}

}  // namespace

void Database::execute(const std::string& sql) const {
  script(type_ == StoreType::sqlite ? store::sqlite::connect(path(), store::sqlite::Access::admin) : store::postgres::connect(url_), sql);
}

std::vector<std::string> Database::ask(const std::string& sql) const {
  auto connection = type_ == StoreType::sqlite ? store::sqlite::connect(path(), store::sqlite::Access::reader) : store::postgres::connect(url_);
  std::vector<std::string> found;
  const store::Statement statement{sql, {}};
  const auto take = [&](const store::RowView& row) -> Result<> {
    return found.emplace_back(row.is_null(0) ? "NULL" : row.text(0)), Result<>{};
  };
  const store::Query query{&statement, 1, {}, take, {}};
  const auto done = (*connection)->run({&query, 1}, store::Mode::read);
  EXPECT_TRUE(done) << sql << ": " << done.error().message;
  return found;
}

void Database::execute_in_log(const std::string& sql) const {
  if (type_ != StoreType::sqlite) return execute(sql);
  script(store::sqlite::connect(store::sqlite::log_path(path()), store::sqlite::Access::admin), sql);
}

void Database::take_term() {
  if (type_ == StoreType::memory)
    ++memory_.writers.at(partition).term, memory_.writers.at(partition).owner = -1;
  else
    execute("UPDATE writer_state SET term=term+1, owner='another'");
}

void Database::lose_rows_of_calls() {
  if (type_ == StoreType::memory)
    memory_.calls.clear();
  else
    execute("DELETE FROM service_calls");
}

Time at(std::int64_t millis) { return from_millis(1'770'000'000'000 + millis); }

workflow::JobId job_id(int n) { return {uuid7(at(n), 0x123, static_cast<std::uint64_t>(n))}; }

Timer node_timer(Time due, int job, const std::string& node_id) {
  return {due, subject_of(job_id(job)), node_id};
}

Timer runbook_timer(Time due, runbook::RowType type, std::int64_t id) {
  return {due, subject_of(runbook::Ref{type, id}), ""};
}

LoadRequest for_jobs(std::vector<workflow::JobId> ids) {
  LoadRequest request;
  request.jobs_whole = std::move(ids);
  return request;
}

workflow::Job job(int n) {
  workflow::Job row;
  row.job_id = job_id(n);
  row.tenant = {"default"};
  row.workflow_id = "order-flow";
  row.workflow_version = 3;
  row.status = workflow::JobStatus::running;
  row.priority = 7;
  row.tags = R"(["eu","nightly"])";
  row.rerun_of = job_id(n + 1000).value;
  row.input_data = {R"({"n": )" + std::to_string(n) + "}"};
  row.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  row.nodes_active = 2;
  row.nodes_failed = 1;
  row.created_at = at(n);
  row.due_at = at(n + 1);
  row.paused_at = at(n + 2);
  row.paused_by = "ann";
  row.started_at = at(n + 3);
  return row;
}

workflow::NodeState node(int n, const std::string& node_id) {
  workflow::NodeState row;
  row.job_id = job_id(n);
  row.node_id = node_id;
  row.status = workflow::NodeStatus::dispatched;
  row.waiting_for = 1;
  row.edges_fired = 4;
  row.retry_count = 2;
  row.retry_base = 1;
  row.delivery_count = 3;
  row.priority = 5;
  row.task_id = "task-" + std::to_string(n) + node_id;
  row.tenant = {"default"};
  row.queue = "worker";
  row.worker_id = "w-1";
  row.lease_until = at(n + 30'000);
  row.timer_due = at(n + 30'001);
  row.items_total = 100;
  row.items_created = 60;
  row.items_done = 40;
  row.items_failed = 20;
  row.sweep_next = 10;
  row.dispatched_at = at(n);
  row.log_bytes = 1234;
  row.progress = Json{"0.5"};
  row.checkpoint = Json{R"({"row":17})"};
  row.params = Json{"{}"};
  return row;
}

workflow::NodeState child(int n, const std::string& fan_out, std::int32_t item) {
  workflow::NodeState row = node(n, fan_out + "_" + std::to_string(item));
  row.item_index = item;
  return row;
}

workflow::TaskResult task_result(int n) {
  workflow::TaskResult row;
  row.task_id = "task-" + std::to_string(n);
  row.job_id = job_id(n);
  row.node_id = "a";
  row.status = "completed";
  row.output = Json{R"({"ok":true})"};
  row.worker_id = "w-1";
  row.lease = "lease";
  row.execution_duration_ms = 123'456'789'012;
  row.processed = true;
  row.received_at = at(n);
  return row;
}

workflow::Event event(int n, std::int64_t event_id) {
  workflow::Event row;
  row.job_id = job_id(n);
  row.event_id = event_id;
  row.event_type = workflow::EventType::node_retry;
  row.node_id = "a";
  row.event_data = Json{R"({"attempt":1})"};
  row.created_at = at(n);
  return row;
}

}  // namespace baton::contract
