#include "store/sql_reads.hpp"

#include <algorithm>
#include <array>

#include "core/workflow/definition/definition.hpp"
#include "store/schema.hpp"
#include "store/sql_call_reads.hpp"
#include "store/sql_job_pages.hpp"

namespace baton::store {
namespace {

using namespace workflow;

constexpr std::array statuses = {JobStatus::pending, JobStatus::running, JobStatus::completed,
                                 JobStatus::failed, JobStatus::cancelled};

constexpr std::size_t queues_max = 1'000;  // of a list

// An id is made moments before or in the batch that writes created_at, so a range of created_at is a slightly
// wider range of ids.
constexpr std::chrono::seconds id_slack{30};

// The smallest id of a moment: uuid7 without its random digits, which sorts before all that have them.
std::string first_id(Time time) { return uuid7(std::max(time, Time{}), 0, 0).substr(0, 13); }

// Of the nodes of one job, which are in rows; if there are none, the job may have completed and keep them in its page.
struct NodeStatements {
  NodeStatements(const std::string& where, std::vector<Type> types)
      : rows{select<NodeState>() + where, types},
        packed{"SELECT " + names<NodeState>(Columns::all) + " FROM dag_node_states" + where, std::move(types)} {}
  Statement rows, packed;
};

// How many rows of a table wait in a queue, and in which queues its dead letters are; neither looks at more than so many.
struct CountStatements {
  CountStatements(std::string_view table, std::string_view queue, const std::string& waits, const std::string& is_dead, std::vector<Type> types)
      : waiting{fmt_count(table, waits + " AND " + std::string(queue) + "=?" + std::to_string(types.size() + 1), types.size() + 2), types} {
    waiting.parameters.insert(waiting.parameters.end(), {Type::text, Type::integer});
    const std::string limit = "?" + std::to_string(types.size() + 1);
    dead = {"SELECT queue,count(*) FROM (SELECT " + std::string(queue) + " AS queue FROM " + std::string(table) + " WHERE " + is_dead + " LIMIT " + limit +
                      ") AS t GROUP BY queue",
                  std::move(types)};
    dead.parameters.push_back(Type::integer);
  }
  static std::string fmt_count(std::string_view table, const std::string& where, std::size_t limit) {
    return "SELECT count(*) FROM (SELECT 1 FROM " + std::string(table) + " WHERE " + where + " LIMIT ?" + std::to_string(limit) + ") AS t";
  }
  Statement waiting, dead;
};

struct ReadStatements {
  SqlJobPages pages{Dialect::sqlite};  // reads are the same in both
  Statement job{select<Job>() + " WHERE job_id=?1 AND tenant=?2", {Type::text, Type::text}};
  Statement has_job{"SELECT job_id FROM dag_jobs WHERE job_id=?1 AND tenant=?2", {Type::text, Type::text}};
  NodeStatements nodes{" WHERE job_id=?1 AND item_index=-1 ORDER BY node_id LIMIT ?2", {Type::text, Type::integer}};
  // A fan-out's children have no gaps, so a page is a range of the key.
  NodeStatements items{
      " WHERE job_id=?1 AND item_index>?3 AND item_index<=?3+?4 AND node_id=?2||'_'||item_index ORDER BY item_index",
      {Type::text, Type::text, Type::integer, Type::integer}};
  NodeStatements node{" WHERE job_id=?1 AND item_index=?2 AND node_id=?3", {Type::text, Type::integer, Type::text}};
  Statement logs{select<LogLine>() + " WHERE job_id=?1 AND node_id=?2 AND log_id>?3 ORDER BY log_id LIMIT ?4",
                 {Type::text, Type::text, Type::integer, Type::integer}};
  Statement dead_letters{
      select<NodeState>() +
          " WHERE dead_at IS NOT NULL AND tenant=?1 AND (dead_at,job_id,item_index,node_id)>"
          "(?2,?3,?4,?5) ORDER BY dead_at,job_id,item_index,node_id LIMIT ?6",
      {Type::text, Type::time, Type::text, Type::integer, Type::text, Type::integer}};
  Statement approvals{select<NodeState>() +
                          " WHERE status='DISPATCHED' AND tenant=?1 AND queue='approval' AND task_id IS NULL "
                          "ORDER BY priority "
                          "DESC,dispatched_at,job_id,item_index,node_id LIMIT ?2",
                      {Type::text, Type::integer}};
  Statement next_queue{"SELECT queue FROM dag_node_rows WHERE status='DISPATCHED' AND tenant=?1 AND queue>?2 "
                       "ORDER BY queue LIMIT 1",
                       {Type::text, Type::text}};
  Statement backlog{"SELECT count(*),min(w.dispatched_at) FROM (SELECT dispatched_at FROM dag_node_rows WHERE "
                    "status='DISPATCHED' AND tenant=?1 AND queue=?2 LIMIT " +
                        std::to_string(backlog_max) + ") AS w",
                    {Type::text, Type::text}};
  CountStatements count_nodes{"dag_node_rows", "queue", "status='DISPATCHED' AND tenant=?1", "dead_at IS NOT NULL AND tenant=?1", {Type::text}};
  CountStatements count_steps{"step_executions", "worker_id", "job_state='queued'", "dead_at IS NOT NULL", {}};
  CountStatements count_inits{"init_executions", "worker_id", "job_state='queued'", "dead_at IS NOT NULL", {}};
  CountStatements count_cleanups{"cleanup_executions", "worker_id", "job_state='queued'", "dead_at IS NOT NULL", {}};
  // Which version is the latest is answered by the key alone; only its row is then read.
  Statement workflows{
      "SELECT w.workflow_id,w.version,w.published_at FROM (SELECT workflow_id,max(version) AS version FROM "
      "dag_workflows"
      " WHERE tenant=?1 AND workflow_id>?2 GROUP BY workflow_id ORDER BY workflow_id LIMIT ?3) AS latest"
      " JOIN dag_workflows AS w ON w.tenant=?1 AND w.workflow_id=latest.workflow_id AND "
      "w.version=latest.version"
      " ORDER BY w.workflow_id",
      {Type::text, Type::text, Type::integer}};
  Statement workflow{select<Workflow>() + " WHERE tenant=?1 AND workflow_id=?2 AND version=?3",
                     {Type::text, Type::text, Type::integer}};
  Statement latest_workflow{
      select<Workflow>() + " WHERE tenant=?1 AND workflow_id=?2 ORDER BY version DESC LIMIT 1",
      {Type::text, Type::text}};
  Statement token_by_hash{select<Token>() + " WHERE token_hash=?1", {Type::text}};
  Statement token_by_id{select<Token>() + " WHERE token_id=?1", {Type::text}};
  Statement tokens{select<Token>() + " ORDER BY created_at,token_id", {}};
};

class SqlReads final : public SqlCallReads {
 public:
  using SqlCallReads::SqlCallReads;

  Result<> open() { return reader_.open(); }

  Result<std::optional<Job>> job(const Tenant& tenant, const JobId& id) override {
    return first<Job>(sql_.job, {encode(id), encode(tenant)});
  }

  Result<bool> has_job(const Tenant& tenant, const JobId& id) override {
    bool known = false;
    const auto take = [&](const RowView&) -> Result<> { return known = true, Result<>{}; };
    const Query query{&sql_.has_job, 1, constant({encode(id), encode(tenant)}), take, {}};
    TRY(reader_.run({&query, 1}, [&] { known = false; }));
    return known;
  }

  Result<std::vector<NodeState>> nodes(const JobId& id, std::size_t limit) override {
    return nodes_of_job(sql_.nodes, {encode(id), number(limit)});
  }

  Result<std::vector<NodeState>> items(const JobId& id, const std::string& fan_out, std::int32_t after,
                                       std::size_t limit) override {
    return nodes_of_job(
        sql_.items, {encode(id), encode(fan_out), std::int64_t{std::max(after, no_item)}, number(limit)});
  }

  Result<std::optional<NodeState>> node(const JobId& id, const std::string& node_id) override {
    TRY_ASSIGN(auto found, nodes_of_job(sql_.node, {encode(id), std::int64_t{no_item}, encode(node_id)}));
    const auto name = parse_item_name(node_id);
    if (found.empty() && name) {
      TRY_ASSIGN(found, nodes_of_job(sql_.node, {encode(id), std::int64_t{name->item}, encode(node_id)}));
    }
    return found.empty() ? std::nullopt : std::optional{std::move(found.front())};
  }

  Result<std::vector<LogLine>> logs(const JobId& id, const std::string& node_id, std::int64_t after,
                                    std::size_t limit) override {
    return all<LogLine>(sql_.logs, {encode(id), encode(node_id), after, number(limit)});
  }

  Result<std::vector<NodeState>> dead_letters(const Tenant& tenant, const std::optional<NodeCursor>& after,
                                              std::size_t limit) override {
    const NodeCursor from = after.value_or(NodeCursor{.item_index = no_item});
    return all<NodeState>(sql_.dead_letters,
                          {encode(tenant), from.at, encode(from.job_id), std::int64_t{from.item_index},
                           encode(from.node_id), number(limit)});
  }

  Result<std::vector<QueueBacklog>> task_backlogs(const Tenant& tenant) override {
    std::vector<QueueBacklog> found;
    for (std::string after; found.size() < queues_max;) {
      TRY_ASSIGN(const auto next, reader_.rows<std::string>(sql_.next_queue, {encode(tenant), encode(after)},
                                                            [](const RowView& row) -> Result<std::string> {
                                                              return std::string(row.text(0));
                                                            }));
      if (next.empty()) break;
      after = next.front();
      if (after == "approval") continue;
      TRY_ASSIGN(auto some, reader_.rows<QueueBacklog>(sql_.backlog, {encode(tenant), encode(after)},
                                                  [&](const RowView& row) -> Result<QueueBacklog> {
                                                    QueueBacklog backlog{.queue = after, .waiting = row.integer(0)};
                                                    if (!decode(row, 1, backlog.since)) backlog.since.reset();
                                                    return backlog;
                                                  }));
      std::ranges::move(some, std::back_inserter(found));
    }
    return found;
  }
  Result<std::vector<NodeState>> approvals(const Tenant& tenant, std::size_t limit) override {
    return all<NodeState>(sql_.approvals, {encode(tenant), number(limit)});
  }

  Result<std::map<std::string, QueueCounts>> queue_counts(const Tenant& tenant, const std::vector<std::string>& queues, std::size_t limit) override {
    std::map<std::string, QueueCounts> counts;
    for (const std::string& queue : queues) counts[queue];
    TRY(add_counts(sql_.count_nodes, {encode(tenant)}, limit, counts));
    if (tenant.value != "default") return counts;
    for (const CountStatements* each : {&sql_.count_steps, &sql_.count_inits, &sql_.count_cleanups}) TRY(add_counts(*each, {}, limit, counts));
    return counts;
  }

  Result<JobPage> jobs(const JobFilter& filter, const std::optional<JobId>& before,
                       std::size_t limit) override {
    const Statement statement = jobs_statement(filter, before.has_value());
    const std::string from = filter.created_from ? first_id(*filter.created_from - id_slack) : "";
    const std::string until = filter.created_until ? first_id(*filter.created_until + id_slack) : "";
    const std::span<const JobStatus> asked =
        filter.status ? std::span(&*filter.status, 1) : std::span(statuses);
    const auto fill_range = [&](std::size_t set, std::span<Value> out) {
      std::vector<Value> values = {encode(filter.tenant), encode(asked[set]), number(limit + 1)};
      if (filter.workflow_id) values.push_back(encode(*filter.workflow_id));
      if (filter.tag) values.push_back(encode(*filter.tag));
      if (before) values.push_back(encode(*before));
      if (filter.created_from) values.insert(values.end(), {encode(*filter.created_from), encode(from)});
      if (filter.created_until) values.insert(values.end(), {encode(*filter.created_until), encode(until)});
      std::ranges::copy(values, out.begin());
    };
    JobPage page;
    const Query query{&statement, asked.size(), fill_range, collect(page.jobs, Columns::summary), {}};
    TRY(reader_.run({&query, 1}, [&] { page.jobs.clear(); }));
    std::ranges::sort(page.jobs, std::greater{}, &Job::job_id);
    if (page.jobs.size() > limit) {
      page.jobs.resize(limit);
      if (limit > 0) page.next_before = page.jobs.back().job_id;
    }
    return page;
  }

  Result<std::vector<Event>> timeline(const JobId& id, std::int64_t after, std::size_t limit) override {
    TRY_ASSIGN(auto events, all<Event>(sql_.pages.event_rows, {encode(id), after, number(limit)}));
    const std::size_t pages_at_once = std::min<std::size_t>(8, limit / 256 + 1);
    for (std::size_t pages = pages_at_once; pages == pages_at_once && events.size() < limit;) {
      const std::int64_t last = events.empty() ? after : events.back().event_id;
      const std::size_t known = events.size();
      pages = 0;
      const auto take = [&](const RowView& row) { return ++pages, SqlJobPages::read_events(row, id, last, events); };
      const Query query{&sql_.pages.pages, 1, constant({encode(id), last, number(pages_at_once)}), take, {}};
      TRY(reader_.run({&query, 1}, [&] { events.resize(known), pages = 0; }));
    }
    if (events.size() > limit) events.resize(limit);
    return events;
  }

  Result<std::vector<WorkflowSummary>> workflows(const Tenant& tenant, const std::string& after,
                                                 std::size_t limit) override {
    std::vector<WorkflowSummary> found;
    const auto take = [&](const RowView& row) -> Result<> {
      WorkflowSummary summary;
      if (!(decode(row, 0, summary.workflow_id) && decode(row, 1, summary.version) &&
            decode(row, 2, summary.published_at))) {
        return fail(Code::invalid, "table dag_workflows holds a row that this version cannot read");
      }
      found.push_back(std::move(summary));
      return {};
    };
    const Query query{&sql_.workflows, 1, constant({encode(tenant), encode(after), number(limit)}), take, {}};
    TRY(reader_.run({&query, 1}, [&] { found.clear(); }));
    return found;
  }

  Result<std::optional<Workflow>> workflow(const Tenant& tenant, const std::string& workflow_id,
                                           std::int32_t version) override {
    if (version == 0) return first<Workflow>(sql_.latest_workflow, {encode(tenant), encode(workflow_id)});
    return first<Workflow>(sql_.workflow, {encode(tenant), encode(workflow_id), encode(version)});
  }

  Result<std::optional<Token>> token_by_hash(const std::string& token_hash) override {
    return first<Token>(sql_.token_by_hash, {encode(token_hash)});
  }

  Result<std::optional<Token>> token_by_id(const std::string& token_id) override {
    return first<Token>(sql_.token_by_id, {encode(token_id)});
  }

  Result<std::vector<Token>> tokens() override { return all<Token>(sql_.tokens, {}); }

 private:
  // The values are those before the queue and the limit.
  Result<> add_counts(const CountStatements& sql, const std::vector<Value>& values, std::size_t limit, std::map<std::string, QueueCounts>& counts) {
    const auto with = [&](std::initializer_list<Value> more) {
      std::vector<Value> all = values;
      all.insert(all.end(), more);
      return all;
    };
    const auto most = static_cast<std::int64_t>(limit);
    for (auto& [queue, of] : counts) {
      TRY_ASSIGN(const auto rows, (reader_.rows<std::int64_t>(sql.waiting, with({std::string_view(queue), most}), [](const RowView& row) { return Result<std::int64_t>(row.integer(0)); })));
      of.waiting += rows.front();
      of.is_at_least |= rows.front() == most;
    }
    using InQueue = std::pair<std::string, std::int64_t>;
    const auto read = [](const RowView& row) { return Result<InQueue>(std::in_place, row.is_null(0) ? "" : std::string(row.text(0)), row.integer(1)); };
    TRY_ASSIGN(const auto dead, reader_.rows<InQueue>(sql.dead, with({most}), read));
    std::int64_t looked_at = 0;
    for (const auto& [queue, n] : dead) {
      looked_at += n;
      if (const auto found = counts.find(queue); found != counts.end()) found->second.dead += n;
    }
    if (looked_at == most)
      for (auto& [queue, of] : counts) of.is_at_least = true;
    return {};
  }

  Result<std::vector<NodeState>> nodes_of_job(const NodeStatements& ask, const std::vector<Value>& values) {
    TRY_ASSIGN(auto found, all<NodeState>(ask.rows, values));
    return found.empty() ? all<NodeState>(ask.packed, values) : std::move(found);
  }
  template <class Row>
  Result<std::vector<Row>> all(const Statement& statement, std::vector<Value> values) {
    return reader_.all<Row>(statement, std::move(values));
  }
  template <class Row>
  Result<std::optional<Row>> first(const Statement& statement, std::vector<Value> values) {
    return reader_.first<Row>(statement, std::move(values));
  }

  ReadStatements sql_;
};

class SqlTokenAdmin final : public TokenAdmin {
 public:
  SqlTokenAdmin(Dialect dialect, Connect connect)
      : dialect_(dialect), connect_(std::move(connect)), insert_(insert_statement<Token>(dialect)) {}

  Result<> open() {
    if (connection_ && !connection_->broken()) return {};
    connection_.reset();
    TRY_ASSIGN(auto connection, connect_());
    TRY(migrate_if_empty(*connection, dialect_));
    connection_ = std::move(connection);
    return {};
  }

  Result<> add(const Token& token) override {
    TRY(open());
    const Query query{
        &insert_, 1, [&](std::size_t, std::span<Value> out) { fill(token, Columns::all, out); }, {}, {}};
    return connection_->run({&query, 1}, Mode::write);
  }

  Result<bool> revoke(const std::string& token_id, Time now) override {
    TRY(open());
    bool hit = false;
    const Query query{&revoke_,
                      1,
                      constant({encode(token_id), now}),
                      [&](const RowView&) -> Result<> { return hit = true, Result<>{}; },
                      {}};
    TRY(connection_->run({&query, 1}, Mode::write));
    return hit;
  }

 private:
  Dialect dialect_;
  Connect connect_;
  Statement insert_;
  Statement revoke_{
      "UPDATE access_tokens SET revoked_at=?2 WHERE token_id=?1 AND revoked_at IS NULL RETURNING token_id",
      {Type::text, Type::time}};
  std::unique_ptr<Connection> connection_;
};

}  // namespace

// Each status is a range of its own in an index that ends in the order of the page, so a page costs the rows
// that it shows.
Statement jobs_statement(const JobFilter& filter, bool has_before) {
  Statement s{select<Job>(Columns::summary) + " WHERE tenant=?1 AND status=?2",
              {Type::text, Type::text, Type::integer}};
  const auto add = [&](std::string_view condition, Type type) {
    s.parameters.push_back(type);
    s.sql.append(" AND ").append(condition).append("?").append(std::to_string(s.parameters.size()));
  };
  if (filter.workflow_id) add("workflow_id=", Type::text);
  if (filter.tag) {
    s.parameters.push_back(Type::text);
    s.sql += " AND job_id IN (SELECT job_id FROM dag_job_tags WHERE tenant=?1 AND tag=?" +
             std::to_string(s.parameters.size()) + ")";
  }
  if (has_before) add("job_id<", Type::text);
  if (filter.created_from) add("created_at>=", Type::time), add("job_id>=", Type::text);
  if (filter.created_until) add("created_at<", Type::time), add("job_id<", Type::text);
  s.sql += " ORDER BY job_id DESC LIMIT ?3";
  return s;
}

Result<std::unique_ptr<Reads>> make_sql_reads(Dialect dialect, Connect connect) {
  auto reads = std::make_unique<SqlReads>(dialect, std::move(connect));
  TRY(reads->open());
  return reads;
}

Result<std::unique_ptr<TokenAdmin>> make_sql_token_admin(Dialect dialect, Connect connect) {
  auto admin = std::make_unique<SqlTokenAdmin>(dialect, std::move(connect));
  TRY(admin->open());
  return admin;
}

}  // namespace baton::store
