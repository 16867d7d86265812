#include "store/sql_store.hpp"

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>

#include "store/background.hpp"
#include "store/commit_log.hpp"
#include "store/data_tables.hpp"
#include "store/schema.hpp"
#include "store/sql_calls.hpp"
#include "store/sql_job_pages.hpp"
#include "store/sql_messages.hpp"
#include "store/sql_runbooks.hpp"
#include "store/sql_timers.hpp"
#include "store/statements.hpp"

namespace baton::store {
namespace {

using namespace workflow;

struct Statements {
  explicit Statements(Dialect d)
      : job_insert(insert_statement<Job>(d)),
        job_update(update_statement<Job>(d)),
        job_select(select_statement<Job>(d, Columns::summary)),
        job_select_whole(select_statement<Job>(d)),
        node_update(update_statement<NodeState>(d)),
        node_select(select_statement<NodeState>(d)),
        result_select(select_statement<TaskResult>(d)),
        workflow_insert(insert_statement<Workflow>(d)),
        workflow_select(select_statement<Workflow>(d)),
        key_insert(insert_statement<IdempotencyKey>(d)),
        key_select(select_statement<IdempotencyKey>(d)),
        tag_insert(insert_statement<JobTag>(d)),
        log_insert(insert_statement<LogLine>(d)) {
    latest_workflow = {
        "SELECT " + names<Workflow>(Columns::all) +
            " FROM dag_workflows WHERE tenant=?1 AND workflow_id=?2 ORDER BY version DESC LIMIT 1",
        {Type::text, Type::text}};
    waiting = {
        "SELECT job_id,item_index,node_id,priority,dispatched_at FROM dag_node_rows WHERE "
        "status='DISPATCHED'"
        " AND tenant=?1 AND queue=?2 ORDER BY priority DESC,dispatched_at,job_id,item_index,node_id LIMIT ?3",
        {Type::text, Type::text, Type::integer}};
    running_builtin = {
        "SELECT job_id,item_index,node_id FROM dag_node_rows WHERE status='RUNNING' AND tenant='' ORDER BY "
        "job_id,item_index,node_id LIMIT ?1",
        {Type::integer}};
    make_partition = {
        "INSERT INTO writer_state(partition,term,last_commit,owner) VALUES(?1,0,0,'') ON CONFLICT DO NOTHING",
        {Type::integer}};
    take_term = {
        "UPDATE writer_state SET term=term+1,owner=?2 WHERE partition=?1 AND (owner=?2 OR ?3=1) RETURNING "
        "term,last_commit,followed,log_id,log_last",
        {Type::integer, Type::text, Type::integer}};
    count_commit = {exactly(d, "UPDATE writer_state SET last_commit=?2,followed=?2,log_last=?4 WHERE partition=?1 AND term=?3", "1"),
                    {Type::integer, Type::integer, Type::integer, Type::integer},
                    false,
                    true};
    set_log_id = {exactly(d, "UPDATE writer_state SET log_id=?2,log_last=0 WHERE partition=?1 AND term=?3", "1"),
                  {Type::integer, Type::text, Type::integer},
                  false,
                  true};
  }
  Statement job_insert, job_update, job_select, job_select_whole;
  Statement node_update, node_select, result_select;
  Statement workflow_insert, workflow_select;
  Statement key_insert, key_select;
  Statement tag_insert, log_insert;
  Statement latest_workflow, waiting, running_builtin, make_partition, take_term, count_commit, set_log_id;
};

// Each key once, in order: an answer holds no row twice, and neighbours are read together.
template <class Key>
std::vector<Key> each_once(std::vector<Key> keys) {
  std::ranges::sort(keys);
  const auto rest = std::ranges::unique(keys);
  keys.erase(rest.begin(), rest.end());
  return keys;
}

using KeyText = std::string_view;
using NodeText = std::tuple<std::string_view, std::int32_t, std::string_view>;
using KeyPair = std::pair<std::string_view, std::string_view>;

template <class Row>
void add_select(std::vector<Query>& queries, const Statement& statement, const std::vector<KeyText>& keys,
                std::vector<Row>& out, Columns columns = Columns::all) {
  if (keys.empty()) return;
  queries.push_back({&statement,
                     keys.size(),
                     [&keys](std::size_t i, std::span<Value> to) { to[0] = keys[i]; },
                     collect(out, columns),
                     {}});
}

template <class Row>
void add_select(std::vector<Query>& queries, const Statement& statement, const std::vector<KeyPair>& keys,
                std::vector<Row>& out) {
  if (keys.empty()) return;
  const auto fill_pair = [&keys](std::size_t i, std::span<Value> to) {
    to[0] = keys[i].first, to[1] = keys[i].second;
  };
  queries.push_back({&statement, keys.size(), fill_pair, collect(out), {}});
}

// The keys of a load request, borrowed from it, each once.
struct Keys {
  explicit Keys(const LoadRequest& request) {
    for (const auto& id : request.jobs_whole) jobs_whole.emplace_back(id.value);
    jobs_whole = each_once(std::move(jobs_whole));
    for (const auto& id : request.jobs)
      if (!std::ranges::binary_search(jobs_whole, KeyText(id.value))) jobs.emplace_back(id.value);
    for (const auto& id : request.task_results) task_results.emplace_back(id);
    for (const auto& key : request.idempotency_keys)
      idempotency_keys.emplace_back(key.tenant.value, key.idempotency_key);
    jobs = each_once(std::move(jobs));
    task_results = each_once(std::move(task_results));
    idempotency_keys = each_once(std::move(idempotency_keys));
    for (const auto& key : request.nodes) nodes.emplace_back(key.job_id.value, key.item_index, key.node_id);
    nodes = each_once(std::move(nodes));
    for (const auto& key : request.workflows) {
      if (key.version == 0)
        latest_workflows.emplace_back(key.tenant.value, key.workflow_id);
      else
        workflows.push_back(key);
    }
    latest_workflows = each_once(std::move(latest_workflows));
    workflows = each_once(std::move(workflows));
  }
  std::vector<KeyText> jobs, jobs_whole, task_results;
  std::vector<NodeText> nodes;
  std::vector<KeyPair> idempotency_keys, latest_workflows;
  std::vector<WorkflowKey> workflows;
};

// The latest version may also have been asked for by its number.
void drop_repeated(std::vector<Workflow>& workflows) {
  const auto key = [](const Workflow& w) { return std::tie(w.tenant, w.workflow_id, w.version); };
  std::ranges::sort(workflows, {}, key);
  const auto rest = std::ranges::unique(workflows, {}, key);
  workflows.erase(rest.begin(), rest.end());
}

constexpr const char* lock_timeout = "SET lock_timeout = '2s'";  // PostgreSQL's

// Of a writer, or of what it writes, among all that ever were.
std::string random_name() {
  std::random_device chance;
  return uuid7(Time{}, chance(), (std::uint64_t{chance()} << 32) | chance());
}

class SqlStore final : public Tables {
 public:
  SqlStore(Dialect dialect, Connect connect, LogFile log, std::chrono::milliseconds idle_max)
      : dialect_(dialect),
        connect_(std::move(connect)),
        idle_max_(idle_max),
        sql_(dialect),
        journal_(dialect, SqlJournal::Where::database),
        timers_(dialect),
        pages_(dialect),
        runbooks_(dialect),
        calls_(dialect),
        messages_(dialect) {
    if (log.connect) log_ = std::make_unique<CommitLog>(std::move(log));
  }

  Result<WriterState> open(Partition partition) override {
    background_.wait();
    connection_.reset();
    second_connection_.reset();
    synced_at_ = {};
    partition_ = partition.number;
    TRY_ASSIGN(auto connection, connect_());
    if (dialect_ == Dialect::postgres) TRY(lock(*connection));
    TRY(migrate(*connection, dialect_));
    WriterState state;
    std::string log_id;
    std::int64_t log_last = 0;
    const bool first = term_ == 0;
    const auto take = [&](const RowView& row) -> Result<> {
      state = {row.integer(0), row.integer(1), row.integer(2)};
      log_id = row.text(3);
      log_last = row.integer(4);
      return {};
    };
    std::vector<Query> queries;
    if (first) queries.push_back({&sql_.make_partition, 1, constant({partition_}), {}, {}});
    queries.push_back(
        {&sql_.take_term, 1, constant({partition_, encode(owner_), std::int64_t{first}}), take, {}});
    if (auto taken = connection->run(queries, Mode::write); !taken) {
      // Whether the term was taken does not matter to a caller who does not have it; a row that is locked for
      // the moment is no other writer.
      const bool passing = taken.error().code == Code::unknown || taken.error().code == Code::conflict;
      return fail(passing ? Code::unavailable : taken.error().code, taken.error().message);
    }
    // A writer that has written before and finds the name of another must not go on with what it believed: the
    // other may have changed it.
    if (state.term == 0) return fail(Code::fenced, "another writer has taken over");
    journal_.set(partition_, state.term);
    if (log_) {
      const auto set_id = [&](const std::string& id) {
        const Query query = log_id_is(id, state.term);
        return again_if_unknown(connection->run({&query, 1}, Mode::write));
      };
      TRY(log_->open(partition_, state.term, {log_id, random_name(), state.followed, log_last, first, set_id}));
    }
    std::int64_t last_commit = 0;
    const Query last = (log_ ? log_->journal() : journal_).last(last_commit);
    TRY(log_ ? log_->read({&last, 1}) : connection->run({&last, 1}, Mode::read));
    state.last_commit = std::max(state.last_commit, last_commit);
    // While a commit waits for a row that another program has locked, nothing else is committed.
    if (dialect_ == Dialect::postgres) TRY(connection->script(lock_timeout));
    term_ = state.term;
    const std::scoped_lock lock_connection(connection_mutex_);
    connection_ = std::move(connection);
    return state;
  }

  // The transaction that takes the id out makes durable all that the tables show, at the latest: what the log holds is
  // in them then.
  Result<> close() override {
    background_.wait();
    if (!log_) return {};
    if (!log_->only_here().empty()) return fail(Code::unavailable, "the tables are behind the log");
    const Query query = log_id_is("", term_);
    TRY(again_if_unknown(run({&query, 1}, Mode::write)));
    {
      const std::scoped_lock lock(connection_mutex_);
      connection_.reset();
    }
    return log_->close();
  }

  Result<Loaded> load(const LoadRequest& request) override {
    const Keys keys(request);
    Loaded loaded;
    std::vector<Query> queries;
    add_select(queries, sql_.job_select, keys.jobs, loaded.jobs, Columns::summary);
    add_select(queries, sql_.job_select_whole, keys.jobs_whole, loaded.jobs);
    if (!keys.nodes.empty()) {
      const auto fill_key = [&](std::size_t i, std::span<Value> to) {
        const auto& [job_id, item_index, node_id] = keys.nodes[i];
        to[0] = job_id, to[1] = std::int64_t{item_index}, to[2] = node_id;
      };
      queries.push_back({&sql_.node_select, keys.nodes.size(), fill_key, collect(loaded.nodes), {}});
    }
    add_select(queries, sql_.result_select, keys.task_results, loaded.task_results);
    add_select(queries, sql_.latest_workflow, keys.latest_workflows, loaded.workflows);
    add_select(queries, sql_.key_select, keys.idempotency_keys, loaded.idempotency_keys);
    if (!keys.workflows.empty()) {
      const auto fill_key = [&](std::size_t i, std::span<Value> to) {
        const WorkflowKey& key = keys.workflows[i];
        to[0] = std::string_view(key.tenant.value), to[1] = std::string_view(key.workflow_id),
        to[2] = std::int64_t{key.version};
      };
      queries.push_back(
          {&sql_.workflow_select, keys.workflows.size(), fill_key, collect(loaded.workflows), {}});
    }
    if (!queries.empty()) TRY(run(queries, Mode::read));
    drop_repeated(loaded.workflows);
    TRY(pages_.load_packed(request, loaded, [this](std::span<const Query> asked) { return run(asked, Mode::read); }));
    return loaded;
  }

  Result<runbook::Loaded> load(const std::vector<runbook::Need>& needs) override {
    RunbookLoad rows(runbooks_, needs);
    DataRowLoad data(dialect_, needs);
    std::vector<Query> queries;
    data.add_catalog_queries(queries);
    if (!queries.empty()) TRY(run(queries, Mode::read));
    queries.clear();
    rows.add_queries(queries);
    data.add_queries(queries);
    if (!queries.empty()) TRY(run(queries, Mode::read));
    queries.clear();
    data.add_queries_any_case(queries);
    if (!queries.empty()) TRY(run(queries, Mode::read));
    auto loaded = rows.finish();
    loaded.data_rows = data.finish();
    return loaded;
  }

  Result<message::Loaded> load(const message::LoadRequest& request) override {
    return messages_.load(request, [this](std::span<const Query> asked) { return run(asked, Mode::read); });
  }

  Result<call::Loaded> load(const call::LoadRequest& request) override {
    CallLoad load(calls_, request);
    std::vector<Query> queries;
    load.add_rows(queries);
    if (!queries.empty()) TRY(run(queries, Mode::read));
    queries.clear();
    load.add_streams(queries);
    if (!queries.empty()) TRY(run(queries, Mode::read));
    return load.finish();
  }

  Result<std::vector<std::int64_t>> reserve_ids(runbook::Table table, std::size_t count) override {
    const auto asked = static_cast<std::int64_t>(count);
    std::vector<std::int64_t> ids;
    const auto take = [&](const RowView& row) -> Result<> {
      const std::int64_t last = row.integer(0);
      if (dialect_ == Dialect::postgres) return ids.push_back(last), Result<>{};
      for (std::int64_t id = last - asked + 1; id <= last; ++id) ids.push_back(id);
      return {};
    };
    std::vector<Query> queries;
    if (dialect_ == Dialect::sqlite) queries.push_back({&runbooks_.begin_sequence(table), 1, {}, {}, {}});
    queries.push_back({&runbooks_.reserve_ids(table), 1, constant({asked}), take, {}});
    TRY(again_if_unknown(run(queries, Mode::write)));  // ids that were perhaps reserved are gaps
    return ids;
  }

  Result<> write_data(const runbook::DataRows& rows) override {
    const std::scoped_lock lock(connection_mutex_);
    if (!connection_) return not_open();
    // Writing the rows once more does no harm, so what is unknown may be tried again.
    return kept(connection_, again_if_unknown(write_data_rows(*connection_, dialect_, rows)));
  }

  Result<std::vector<std::int64_t>> phases_without_timer(std::size_t limit) override {
    std::vector<std::int64_t> found;
    const auto take = [&](const RowView& row) -> Result<> {
      return found.push_back(row.integer(0)), Result<>{};
    };
    const Query query{
        &runbooks_.phases_without_timer(), 1, constant({static_cast<std::int64_t>(limit)}), take, {}};
    TRY(run({&query, 1}, Mode::read));
    return found;
  }

  Result<std::vector<runbook::Ref>> left_by_others(runbook::Ref after, std::size_t limit) override {
    std::vector<runbook::Ref> found;
    for (const runbook::RowType type : {runbook::RowType::step, runbook::RowType::init, runbook::RowType::phase}) {
      if (type < after.type || found.size() >= limit) continue;
      const auto take = [&](const RowView& row) -> Result<> {
        return found.push_back({type, row.integer(0)}), Result<>{};
      };
      const Query query{&runbooks_.left_by_others(type),
                        1,
                        constant({type == after.type ? after.id : std::int64_t{0},
                                  static_cast<std::int64_t>(limit - found.size())}),
                        take,
                        {}};
      TRY(run({&query, 1}, Mode::read));
    }
    return found;
  }

  Result<std::vector<WaitingTask>> waiting(const QueueKey& queue, std::size_t limit, Time now) override {
    std::vector<WaitingTask> found;
    if (const auto of_messages = message::parse_queue_name(queue.queue)) {
      const Query query = messages_.waiting(*of_messages, limit, now, found);
      TRY(run({&query, 1}, Mode::read));
      return found;
    }
    const auto take = [&](const RowView& row) -> Result<> {
      Time dispatched_at{};
      (void)decode(row, 4, dispatched_at);  // what is unreadable is found out when it is given
      found.push_back(waiting_task(node_key(row), static_cast<std::int32_t>(row.integer(3)), dispatched_at));
      return {};
    };
    std::vector<Query> queries;
    queries.push_back({&sql_.waiting,
                       1,
                       constant({encode(queue.tenant), encode(queue.queue), static_cast<std::int64_t>(limit)}),
                       take,
                       {}});
    const bool has_runbooks = queue.tenant.value == "default";
    if (has_runbooks) runbooks_.add_waiting(queries, queue.queue, limit, found);
    TRY(run(queries, Mode::read));
    if (has_runbooks) std::ranges::sort(found);
    if (found.size() > limit) found.resize(limit);
    return found;
  }

  Result<std::vector<NodeKey>> running_builtin(std::size_t limit) override {
    std::vector<NodeKey> found;
    const Query query{
        &sql_.running_builtin,
        1,
        constant({static_cast<std::int64_t>(limit)}),
        [&](const RowView& row) -> Result<> { return found.push_back(node_key(row)), Result<>{}; },
        {}};
    TRY(run({&query, 1}, Mode::read));
    return found;
  }

  Result<std::vector<Timer>> timers_due(Time until, std::size_t limit) override {
    std::vector<Timer> found;
    const auto take = [&](const RowView& row) -> Result<> {
      return found.push_back(SqlTimers::read(row)), Result<>{};
    };
    const Query query{
        &timers_.due, 1, constant({to_millis(until), static_cast<std::int64_t>(limit)}), take, {}};
    TRY(run({&query, 1}, Mode::read));
    return found;
  }

  Result<std::optional<Time>> next_timer() override {
    std::optional<Time> next;
    const auto take = [&](const RowView& row) -> Result<> {
      return next = from_millis(row.integer(0)), Result<>{};
    };
    const Query query{&timers_.next, 1, {}, take, {}};
    TRY(run({&query, 1}, Mode::read));
    return next;
  }

  Result<> commit(const WriteSet& writes, std::int64_t commit_number) override {
    std::vector<Query> queries;
    queries.push_back(count_commit(commit_number));
    add_journaled(queries, writes);
    add_beside_journal(queries, writes);
    return run(queries, Mode::write);
  }

  Result<> append(const JournalRow& row, const WriteSet& beside) override {
    if (log_ && beside.is_journaled()) return log_->append(row);
    const std::scoped_lock lock(connection_mutex_);  // what the log alone has stays so
    const std::vector<JournalRow> before = log_ ? log_->only_here() : std::vector<JournalRow>{};
    std::vector<Query> queries;
    for (const JournalRow& each : before) queries.push_back(journal_.append(each));
    queries.push_back(journal_.append(row));
    add_beside_journal(queries, beside);
    TRY(run_locked(queries, Mode::write));
    if (log_) log_->database_has(row.commit_number);
    return {};
  }

  void begin(const Following& following) override {
    background_.begin([this, following] { return follow(following); });
  }
  std::optional<Result<>> end() override { return background_.end(); }
  void wait() override { background_.wait(); }
  void wait_at_most(Duration time) override { background_.wait(time); }
  void discard(std::shared_ptr<const void> spent) override { background_.discard(std::move(spent)); }
  void begin_work(Work work) override { work_.begin(std::move(work)); }
  bool is_working() const override { return work_.is_busy(); }
  Result<> end_work() override {
    work_.wait();
    return work_.end().value();
  }
  void on_ended(std::function<void()> tell) override {
    background_.on_end(tell);
    work_.on_end(std::move(tell));
  }
  void on_followed(std::function<void(std::int64_t)> tell) override { on_followed_ = std::move(tell); }

  std::optional<std::uint64_t> room() override {
    if (log_) return log_->room();
    const std::scoped_lock lock(connection_mutex_);
    return connection_ ? connection_->room() : std::nullopt;
  }

  Result<std::vector<JournalRow>> journal() override {
    std::vector<JournalRow> rows;
    const Query query = (log_ ? log_->journal() : journal_).rows(rows);
    TRY(log_ ? log_->read({&query, 1}) : run({&query, 1}, Mode::read));
    return rows;
  }

 private:
  // In the background. The row of the term comes last, so that a commit does not wait for it.
  Result<> follow(const Following& following) {
    std::vector<Query> queries;
    add_journaled(queries, *following.writes);
    // From where it begins: before it there may be many that were deleted and are still in the index.
    queries.push_back(journal_.remove(following.from, following.to));
    queries.push_back(count_commit(following.to));
    TRY(dialect_ == Dialect::sqlite ? follow_beside_log(queries, following.to) : follow_on_second(queries));
    if (on_followed_) on_followed_(following.to);
    return {};
  }

  // Durable from time to time, so that the log can be cut.
  Result<> follow_beside_log(std::span<const Query> queries, std::int64_t to) {
    const auto now = std::chrono::steady_clock::now();
    const bool is_due = log_ && now - synced_at_ >= std::chrono::seconds{1};
    const std::scoped_lock lock(connection_mutex_);
    TRY(run_locked(queries, is_due ? Mode::write : Mode::write_lazily));
    if (log_) log_->followed(to, is_due);
    if (is_due) synced_at_ = now;
    return {};
  }

  Result<> follow_on_second(std::span<const Query> queries) {
    // A commit holds the row of the term while it waits for rows of others, so this one has more patience.
    // One that has died unnoticed would make the outcome of the following unknown, and the store would be away.
    const bool is_idle = std::chrono::steady_clock::now() - second_used_at_ >= idle_max_;
    if (second_connection_ && is_idle && !second_connection_->script("SELECT 1")) second_connection_.reset();
    if (!second_connection_)
      if (auto second = connect_()) second_connection_ = *std::move(second);
    if (!second_connection_) return run(queries, Mode::write_lazily);  // where one connection is all that there is
    Result<> done = second_connection_->run(queries, Mode::write_lazily);
    second_used_at_ = std::chrono::steady_clock::now();
    const bool passes = done || done.error().code == Code::full || done.error().code == Code::conflict || done.error().code == Code::busy;
    if (!passes) second_connection_.reset();
    return done;
  }

  [[nodiscard]] Query count_commit(std::int64_t number) const {
    return {&sql_.count_commit, 1, constant({partition_, number, term_, log_ ? log_->last() : 0}), {}, SqlJournal::fenced()};
  }

  // `id` must outlive the run.
  [[nodiscard]] Query log_id_is(std::string_view id, std::int64_t term) const {
    return {&sql_.set_log_id, 1, constant({partition_, id, term}), {}, SqlJournal::fenced()};
  }

  // What a journal holds until the tables follow.
  void add_journaled(std::vector<Query>& queries, const WriteSet& writes) {
    add_write(queries, sql_.job_insert, writes.jobs_new, Columns::all);
    add_update(queries, sql_.job_update, writes.jobs_changed);
    add_update(queries, sql_.node_update, writes.nodes_changed);
    pages_.add_writes(queries, writes);
    timers_.add_writes(queries, writes);
    add_write(queries, sql_.workflow_insert, writes.workflows_new, Columns::all);
    add_write(queries, sql_.key_insert, writes.idempotency_keys_new, Columns::all);
    add_write(queries, sql_.tag_insert, writes.tags_new, Columns::all);
    add_write(queries, sql_.log_insert, writes.logs_new, Columns::all);
    calls_.add_writes(queries, writes.calls);
    messages_.add_writes(queries, writes.messages);
  }
  void add_beside_journal(std::vector<Query>& queries, const WriteSet& writes) {
    runbooks_.add_writes(queries, writes.runbooks);
  }

  // PostgreSQL keeps the lock as long as the connection lives. The term, checked in each commit, is for the
  // time between the death of a connection and its owner's noticing.
  Result<> lock(Connection& connection) {
    // This number and those behind it, one for each partition, are ours alone.
    const Statement try_lock{"SELECT pg_try_advisory_lock(7021952+?1)::int", {Type::integer}};
    const Statement whose{"SELECT owner FROM writer_state WHERE partition=?1", {Type::integer}};
    bool taken = false;
    const Query query{&try_lock,
                      1,
                      constant({partition_}),
                      [&](const RowView& row) -> Result<> { return taken = row.integer(0) == 1, Result<>{}; },
                      {}};
    // The backend of a server that was killed may still be busy, and lets go when it notices.
    constexpr int looks = 50;
    for (int look = 0; look < looks; ++look) {
      TRY(connection.run({&query, 1}, Mode::read));
      if (taken) return {};
      if (term_ != 0) break;  // a writer that comes back is asked again by its owner
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    // One's own old connection may hold it for a while yet; another's name says that it is over.
    std::string owner;
    const Query ask{&whose,
                   1,
                   constant({partition_}),
                   [&](const RowView& row) -> Result<> { return owner = row.text(0), Result<>{}; },
                   {}};
    if (term_ != 0) TRY(connection.run({&ask, 1}, Mode::read));
    if (term_ != 0 && owner != owner_) return fail(Code::fenced, "another writer has taken over");
    return fail(Code::conflict, "another baton server is writing to this PostgreSQL database");
  }

  static NodeKey node_key(const RowView& row) {
    return {JobId{std::string(row.text(0))}, static_cast<std::int32_t>(row.integer(1)),
            std::string(row.text(2))};
  }

  static std::unexpected<Error> not_open() { return fail(Code::unavailable, "the store is not open"); }

  static Result<> again_if_unknown(Result<> outcome) {
    if (!outcome && outcome.error().code == Code::unknown) outcome.error().code = Code::unavailable;
    return outcome;
  }

  // What is asked while the tables follow does not wait for them. Otherwise this connection is the better one: what it has
  // cached stays good, because nobody else writes.
  Result<> run(std::span<const Query> queries, Mode mode) {
    std::unique_lock lock(connection_mutex_, std::defer_lock);
    if (log_ && mode == Mode::read && !lock.try_lock()) return log_->read(queries);
    if (!lock) lock.lock();
    return run_locked(queries, mode);
  }
  Result<> run_locked(std::span<const Query> queries, Mode mode) {
    if (!connection_) return not_open();
    return kept(connection_, connection_->run(queries, mode));
  }

  Dialect dialect_;
  Connect connect_;
  const std::chrono::milliseconds idle_max_;
  Statements sql_;
  SqlJournal journal_;
  SqlTimers timers_;
  SqlJobPages pages_;
  SqlRunbooks runbooks_;
  SqlCalls calls_;
  SqlMessages messages_;
  std::mutex connection_mutex_;             // taken for each use of the connection
  std::unique_ptr<Connection> connection_;  // none: open() is needed
  std::unique_ptr<Connection> second_connection_;  // of what is done in the background, as is its time
  std::chrono::steady_clock::time_point second_used_at_;
  std::unique_ptr<CommitLog> log_;                   // SQLite's
  std::chrono::steady_clock::time_point synced_at_;  // the tables; of what is done in the background
  std::function<void(std::int64_t)> on_followed_;  // called in the background
  const std::string owner_ = random_name();
  std::int64_t partition_ = 0;
  std::int64_t term_ = 0;
  Background background_;  // ends before what it uses
  Background work_;        // the same
};

}  // namespace

std::unique_ptr<Tables> make_sql_store(Dialect dialect, Connect connect, LogFile log, std::chrono::milliseconds idle_max) {
  return std::make_unique<SqlStore>(dialect, std::move(connect), std::move(log), idle_max);
}

}  // namespace baton::store
