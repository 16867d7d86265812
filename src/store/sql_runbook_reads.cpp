#include "store/sql_runbook_reads.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "base/text.hpp"
#include "core/runbook/members/members.hpp"
#include "store/execution_views.hpp"
#include "store/migrations.hpp"
#include "store/sql_runbooks.hpp"

namespace baton::store {

using namespace runbook;

namespace {

constexpr auto integer = Type::integer;
constexpr auto text = Type::text;
constexpr std::size_t queues_max = 1'000;
constexpr std::int64_t last_id = std::numeric_limits<std::int64_t>::max();

// The rows of a table as t, with `more` columns behind them.
template <class Row>
std::string select_more(std::string_view more, std::string_view rest) {
  return "SELECT " + names<Row>(Columns::all, "t.") + std::string(more) + " FROM " + table_name<Row>() +
         " AS t " + std::string(rest);
}
template <class Row>
int width() {
  return static_cast<int>(types<Row>(Columns::all).size());
}

std::string batches_where(std::string_view rest) {
  return select_more<Batch>(",r.name,r.version,coalesce((SELECT 1 FROM batch_counts AS c WHERE c.batch_id=t.id AND "
                            "c.lane IN ('member','step','catch_up') AND c.status IN ('failed','poll_timeout','rolled_back')"
                            " AND c.n>0 LIMIT 1),0)",
                            "LEFT JOIN runbooks AS r ON r.id=t.runbook_id " + std::string(rest));
}
Result<BatchSummary> read_batch(const RowView& view) {
  TRY_ASSIGN(auto batch, read<Batch>(view));
  const int more = width<Batch>();
  return BatchSummary{std::move(batch), std::string(view.text(more)),
                      static_cast<std::int32_t>(view.integer(more + 1)), view.integer(more + 2) != 0};
}

// Steps know of which batch they are through their phase.
std::string steps_where(std::string_view rest) {
  return select_more<StepExecution>(
      ",p.batch_id,p.runbook_version",
      "LEFT JOIN phase_executions AS p ON p.id=t.phase_execution_id " + std::string(rest));
}
Result<ExecutionView> read_step(const RowView& view) {
  TRY_ASSIGN(auto row, read<StepExecution>(view));
  const int more = width<StepExecution>();
  return view_of(std::move(row), view.integer(more), static_cast<std::int32_t>(view.integer(more + 1)));
}
Result<ExecutionView> read_init(const RowView& view) {
  TRY_ASSIGN(auto row, read<InitExecution>(view));
  return view_of(std::move(row));
}
Result<ExecutionView> read_cleanup(const RowView& view) {
  TRY_ASSIGN(auto row, read<CleanupExecution>(view));
  return view_of(std::move(row));
}

Result<MatrixCell> read_cell(const RowView& view) {
  MatrixCell cell;
  const bool ok = decode(view, 0, cell.batch_member_id) && decode(view, 1, cell.phase_execution_id) &&
                  decode(view, 2, cell.step_id) && decode(view, 3, cell.step_index) &&
                  decode(view, 4, cell.step_name) && decode(view, 5, cell.status) &&
                  decode(view, 6, cell.retry_count) && decode(view, 7, cell.poll_count) &&
                  decode(view, 8, cell.is_catch_up) && decode(view, 9, cell.dispatched_at) &&
                  decode(view, 10, cell.completed_at) && decode(view, 11, cell.error_message);
  if (!ok) return fail(Code::invalid, "table step_executions holds a row that this version cannot read");
  cell.is_skipped = !view.is_null(12) && is_result_of_skip(view.text(12));
  return cell;
}

// A batch of a runbook, as its members need to know it.
struct KnownBatch {
  std::int64_t id = 0;
  BatchStatus status{};
  std::optional<Time> time;
  bool is_manual = false;
};
Result<KnownBatch> read_known_batch(const RowView& view) {
  KnownBatch batch;
  const bool ok = decode(view, 0, batch.id) && decode(view, 1, batch.status) && decode(view, 2, batch.time) &&
                  decode(view, 3, batch.is_manual);
  if (!ok) return fail(Code::invalid, "table batches holds a row that this version cannot read");
  return batch;
}
KnownMember read_known_member(const RowView& view, const KnownBatch& batch) {
  return {.id = view.integer(0),
          .batch_id = batch.id,
          .member_key = std::string(view.text(1)),
          .status = lower(view.text(2)),  // others write capitals
          .batch_open = !is_terminal(batch.status),
          .batch_manual = batch.is_manual,
          .batch_time = batch.time,
          .data_hash = view.is_null(3) ? 0 : hash_data(view.text(3)),
          .removed_by_hand = !view.is_null(4)};
}

Result<std::int64_t> read_id(const RowView& view) { return view.integer(0); }

// When a phase is due, and when its timer. One with a time that cannot be read counts as not due: it is told when the
// phase itself is asked for.
struct TimedPhase {
  std::int64_t id = 0;
  std::optional<Time> due_at, timer_due;
};
Result<TimedPhase> read_timed_phase(const RowView& view) {
  TimedPhase phase{.id = view.integer(0)};
  if (!decode(view, 1, phase.due_at)) phase.due_at.reset();
  if (!decode(view, 2, phase.timer_due)) phase.due_at.reset();
  return phase;
}

Result<ApprovedRemovals> read_approved(const RowView& view) {
  return ApprovedRemovals{view.integer(0), std::string(view.text(1))};
}

// As the indexes step_executions_failed and cleanup_executions_failed say it. A row of another program may lack
// the time: it is the oldest.
std::string has_failed(Dialect dialect) {
  const std::string status = status_word(dialect, "t.status");
  return "(" + status + "='failed' OR " + status + "='poll_timeout' OR " + status + "='rolled_back')";
}
constexpr std::string_view cleanup_has_failed = "(t.status='failed' OR t.status='poll_timeout')";
std::string failed_before(Dialect dialect, std::string_view owner, std::string_view is_failure) {
  const std::string at = in_dialect("coalesce(t.completed_at,{epoch})", dialect);
  return "LEFT JOIN phase_executions AS p ON p.id=t.phase_execution_id LEFT JOIN batch_members AS m ON "
         "m.id=t.batch_member_id WHERE t." +
         std::string(owner) + "=?1 AND " + std::string(is_failure) + " AND " + at + "<=?2 AND (" + at +
         "<?2 OR t.id<?3) ORDER BY " + at + " DESC,t.id DESC LIMIT ?4";
}

}  // namespace

struct RunbookReadStatements {
  explicit RunbookReadStatements(Dialect dialect)
      : status(status_word(dialect, "status")),
        batch_status(status_word(dialect, "t.status")),
        cells{"SELECT t.batch_member_id,t.phase_execution_id,t.id,t.step_index,t.step_name,t.status,"
              "t.retry_count,t.poll_count,t.is_catch_up,t.dispatched_at,t.completed_at,substr(t.error_message,1,500),"
              "CASE WHEN t.status='succeeded' THEN substr(t.result_json,1," +
                  std::to_string(result_of_skip_bytes) + ") END" + from_steps_of_members(dialect) + " ORDER BY p.id,t.step_index",
              {integer},
              true},
        steps_of_member{"SELECT " + names<StepExecution>(Columns::all, "t.") +
                            ",p.batch_id,p.runbook_version" + from_steps_of_members(dialect) +
                            " ORDER BY p.id,t.step_index,t.id",
                        {integer},
                        true},
        failures{select_more<StepExecution>(",p.batch_id,p.runbook_version,m.member_key,p.phase_name",
                                            failed_before(dialect, "phase_execution_id", has_failed(dialect))),
                 {integer, Type::time, integer, integer}},
        cleanup_failures{select_more<CleanupExecution>(",m.member_key,p.phase_name",
                                                       failed_before(dialect, "batch_id", cleanup_has_failed)),
                         {integer, Type::time, integer, integer}},
        rollbacks_of_steps{cleanups_of_steps(dialect), {integer}, true},
        retrying{"SELECT t.phase_execution_id,count(*),min(t.retry_after) FROM phase_executions AS p CROSS JOIN "
                 "step_executions AS t WHERE p.batch_id=?1 AND t.phase_execution_id=p.id AND t.retry_after IS NOT NULL"
                 " AND " +
                     status_word(dialect, "t.status") + "='pending' GROUP BY t.phase_execution_id",
                 {integer}},
        moved_phases{"SELECT t.id,t.due_at,t.timer_due FROM batches AS b CROSS JOIN phase_executions AS t WHERE " +
                         status_word(dialect, "b.status") +
                         " IN ('detected','init_dispatched','active') AND t.batch_id=b.id AND t.id>?1 AND " +
                         status_word(dialect, "t.status") +
                         "='pending' AND t.waits_for IS NULL AND (t.timer_due IS NULL OR t.timer_due<>t.due_at)"
                         " ORDER BY t.id",
                     {integer}} {}

  static std::string cleanups_of_steps(Dialect dialect) {
    if (dialect == Dialect::sqlite) return select_more<CleanupExecution>("", "WHERE t.caused_by_step_id=?1");
    return "SELECT " + names<CleanupExecution>(Columns::all, "t.") +
           " FROM unnest(?1) AS k(id) JOIN cleanup_executions AS t ON t.caused_by_step_id=k.id";
  }

  const std::string status, batch_status;

  // Which version is the newest is answered by the key alone; only its row is then read.
  Statement runbooks{
      "SELECT " + names<Runbook>(Columns::all, "t.") +
          " FROM (SELECT name,max(version) AS version FROM runbooks WHERE name>?1 GROUP BY name ORDER BY name"
          " LIMIT ?2) AS latest JOIN runbooks AS t ON t.name=latest.name AND t.version=latest.version"
          " ORDER BY t.name",
      {text, integer}};
  Statement runbook_version{select<Runbook>() + " WHERE name=?1 AND version=?2", {text, integer}};
  Statement runbook_active{select<Runbook>() +
                               " WHERE id=coalesce((SELECT id FROM runbooks WHERE name=?1 AND is_active=1 "
                               "ORDER BY version DESC LIMIT 1),"
                               "(SELECT id FROM runbooks WHERE name=?1 ORDER BY version DESC LIMIT 1))",
                           {text}};
  Statement versions{select<Runbook>() + " WHERE name=?1 ORDER BY version DESC", {text}};
  Statement active{select<Runbook>() + " WHERE is_active=1 ORDER BY name,version", {}};
  Statement runbook_ids{"SELECT id FROM runbooks WHERE name=?1 ORDER BY version", {text}};

  Statement batches{batches_where("WHERE t.id<?1 ORDER BY t.id DESC LIMIT ?2"), {integer, integer}};
  Statement batches_by_status{batches_where("WHERE " + batch_status + "=?1 AND t.id<?2 ORDER BY t.id DESC LIMIT ?3"),
                              {text, integer, integer}};
  Statement batches_by_runbook{
      batches_where("WHERE t.runbook_id=?1 AND " + batch_status + "=?2 AND t.id<?3 ORDER BY t.id DESC LIMIT ?4"),
      {integer, text, integer, integer}};
  Statement batch{batches_where("WHERE t.id=?1"), {integer}};
  Statement importing{batches_where("WHERE t.importing=1 ORDER BY t.id"), {}};
  Statement approved{
      "SELECT b.id,b.removals_approved FROM runbooks AS r CROSS JOIN batches AS b WHERE r.name=?1"
      " AND b.runbook_id=r.id AND b.removals_approved IS NOT NULL ORDER BY b.id",
      {text}};
  Statement phase{select<PhaseExecution>() + " WHERE id=?1", {integer}};
  Statement phases{select<PhaseExecution>() + " WHERE batch_id=?1 ORDER BY id", {integer}};
  Statement counts{select<Count>() + " WHERE batch_id=?1 ORDER BY phase_execution_id,lane,step_index,status",
                   {integer}};
  Statement inits{select<InitExecution>() + " WHERE batch_id=?1 ORDER BY runbook_version,step_index,id",
                  {integer}};
  Statement events{select<BatchEvent>() + " WHERE batch_id=?1 AND event_id>?2 ORDER BY event_id LIMIT ?3",
                   {integer, integer, integer}};

  Statement members{select<Member>() + " WHERE batch_id=?1 AND id>?2 ORDER BY id LIMIT ?3",
                    {integer, integer, integer}};
  Statement members_active{
      select<Member>() + " WHERE batch_id=?1 AND " + status + "='active' AND id>?2 ORDER BY id LIMIT ?3",
      {integer, integer, integer}};
  Statement members_left{
      select<Member>() +
          " WHERE batch_id=?1 AND " + status + "=?4 AND " + status + "<>'active' AND id>?2 ORDER BY id LIMIT ?3",
      {integer, integer, integer, text}};
  Statement member{select<Member>() + " WHERE id=?1", {integer}};
  Statement member_by_key{
      select<Member>() + " WHERE batch_id=?1 AND member_key=?2 ORDER BY " + status + "='active' DESC,id DESC LIMIT 1",
      {integer, text}};

  Statement cells, steps_of_member, failures, cleanup_failures, rollbacks_of_steps, retrying, moved_phases;
  Statement steps_of_phase{
      steps_where("WHERE t.phase_execution_id=?1 AND (t.batch_member_id,t.step_index,t.id)>(?2,?3,?4)"
                  " ORDER BY t.batch_member_id,t.step_index,t.id LIMIT ?5"),
      {integer, integer, integer, integer, integer}};
  static constexpr std::string_view dead_after =
      "WHERE t.dead_at IS NOT NULL AND (t.dead_at,t.id)>(?1,?2) ORDER BY t.dead_at,t.id LIMIT ?3";
  Statement dead_steps{steps_where(dead_after), {Type::time, integer, integer}};
  Statement dead_inits{select_more<InitExecution>("", dead_after), {Type::time, integer, integer}};
  Statement dead_cleanups{select_more<CleanupExecution>("", dead_after), {Type::time, integer, integer}};
  Statement step{steps_where("WHERE t.id=?1"), {integer}};
  Statement init{select<InitExecution>() + " WHERE id=?1", {integer}};
  Statement cleanup{select<CleanupExecution>() + " WHERE id=?1", {integer}};
  Statement cleanups{select<CleanupExecution>() + " WHERE batch_id=?1 AND id>?2 ORDER BY id LIMIT ?3",
                     {integer, integer, integer}};
  Statement open_cleanups{
      select<CleanupExecution>() +
          " WHERE batch_id=?1 AND status IN ('pending','dispatched','polling') ORDER BY id LIMIT ?2",
      {integer, integer}};
  Statement removals{select<CleanupExecution>() + " WHERE batch_member_id=?1 AND kind='removal' ORDER BY id", {integer}};

  Statement open_holds{select<Hold>() + " WHERE status='open' AND id>?1 ORDER BY id LIMIT ?2", {integer, integer}};
  Statement holds{select<Hold>() + " WHERE batch_id=?1 ORDER BY id", {integer}};
  Statement hold{select<Hold>() + " WHERE id=?1", {integer}};

  // The first queue behind this one in which a job waits, and how many do.
  static Statement next_queue(std::string_view table) {
    return {"SELECT worker_id FROM " + std::string(table) +
                " WHERE job_state='queued' AND worker_id>?1 ORDER BY worker_id LIMIT 1",
            {text}};
  }
  static Statement backlog(std::string_view table, std::string_view more = "") {
    return {"SELECT count(*),min(w.queued_at) FROM (SELECT t.queued_at FROM " + std::string(table) +
                " AS t WHERE t.job_state='queued' AND t.worker_id=?1" + std::string(more) + " LIMIT " +
                std::to_string(backlog_max) + ") AS w",
            more.empty() ? std::vector{text} : std::vector{text, integer}};
  }
  std::array<Statement, 3> next_queues{next_queue("step_executions"), next_queue("init_executions"),
                                       next_queue("cleanup_executions")};
  std::array<Statement, 3> backlogs{backlog("step_executions"), backlog("init_executions"),
                                    backlog("cleanup_executions")};
  std::array<Statement, 3> backlogs_of_batch{
      backlog("step_executions",
              " AND (SELECT p.batch_id FROM phase_executions AS p WHERE p.id=t.phase_execution_id)=?2"),
      backlog("init_executions", " AND t.batch_id=?2"), backlog("cleanup_executions", " AND t.batch_id=?2")};

  Statement known_batches{
      "SELECT b.id,b.status,b.batch_start_time,b.is_manual FROM runbooks AS r CROSS JOIN batches AS b"
      " WHERE r.name=?1 AND b.runbook_id=r.id ORDER BY b.id",
      {text}};
  Statement batch_of_member{"SELECT batch_id FROM batch_members WHERE id=?1", {integer}};
  Statement known_members{
      "SELECT id,member_key,status,data_json,removed_by FROM batch_members WHERE batch_id=?1 AND id>?2 ORDER BY id "
      "LIMIT ?3",
      {integer, integer, integer}};
};

SqlRunbookReads::SqlRunbookReads(Dialect dialect, Connect connect)
    : reader_(dialect, std::move(connect)), sql_(std::make_unique<RunbookReadStatements>(dialect)) {}
SqlRunbookReads::~SqlRunbookReads() = default;

// --- runbooks

Result<std::vector<Runbook>> SqlRunbookReads::runbooks(const std::string& after, std::size_t limit) {
  return reader_.all<Runbook>(sql_->runbooks, {encode(after), number(limit)});
}

Result<std::optional<Runbook>> SqlRunbookReads::runbook(const std::string& name, std::int32_t version) {
  if (version == 0) return reader_.first<Runbook>(sql_->runbook_active, {encode(name)});
  return reader_.first<Runbook>(sql_->runbook_version, {encode(name), encode(version)});
}

Result<std::vector<Runbook>> SqlRunbookReads::versions(const std::string& name) {
  return reader_.all<Runbook>(sql_->versions, {encode(name)});
}

Result<std::vector<Runbook>> SqlRunbookReads::active_runbooks() {
  return reader_.all<Runbook>(sql_->active, {});
}

// --- batches

Result<std::vector<BatchSummary>> SqlRunbookReads::batches(const BatchFilter& filter, std::int64_t before,
                                                           std::size_t limit) {
  const std::int64_t below = before == 0 ? last_id : before;
  if (filter.runbook_name) return batches_of(*filter.runbook_name, filter.status, below, limit);
  if (filter.status)
    return reader_.rows<BatchSummary>(sql_->batches_by_status, {encode(*filter.status), below, number(limit)},
                                      read_batch);
  return reader_.rows<BatchSummary>(sql_->batches, {below, number(limit)}, read_batch);
}

// Each version and status is a range of its own, in the order of the page; the page is their merge.
Result<std::vector<BatchSummary>> SqlRunbookReads::batches_of(const std::string& name,
                                                              std::optional<BatchStatus> status,
                                                              std::int64_t before, std::size_t limit) {
  constexpr std::array all = {BatchStatus::detected,  BatchStatus::init_dispatched, BatchStatus::active,
                              BatchStatus::completed, BatchStatus::failed,          BatchStatus::cancelled};
  const std::span<const BatchStatus> statuses =
      status ? std::span<const BatchStatus>(&*status, 1) : std::span<const BatchStatus>(all);
  TRY_ASSIGN(const auto runbook_ids, reader_.rows<std::int64_t>(sql_->runbook_ids, {encode(name)}, read_id));
  if (runbook_ids.empty()) return std::vector<BatchSummary>{};
  const auto fill_range = [&](std::size_t set, std::span<Value> out) {
    out[0] = runbook_ids[set / statuses.size()];
    out[1] = encode(statuses[set % statuses.size()]);
    out[2] = before, out[3] = number(limit);
  };
  const Query query{&sql_->batches_by_runbook, runbook_ids.size() * statuses.size(), fill_range, {}, {}};
  TRY_ASSIGN(auto found, reader_.rows<BatchSummary>(query, read_batch));
  std::ranges::sort(found, std::greater{}, [](const BatchSummary& summary) { return summary.batch.id; });
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<std::optional<BatchSummary>> SqlRunbookReads::batch(std::int64_t id) {
  TRY_ASSIGN(auto found, reader_.rows<BatchSummary>(sql_->batch, {id}, read_batch));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Result<std::vector<PhaseExecution>> SqlRunbookReads::phases(std::int64_t batch_id) {
  return reader_.all<PhaseExecution>(sql_->phases, {batch_id});
}

Result<std::optional<PhaseExecution>> SqlRunbookReads::phase(std::int64_t id) {
  return reader_.first<PhaseExecution>(sql_->phase, {id});
}

Result<std::vector<Count>> SqlRunbookReads::counts(std::int64_t batch_id) {
  return reader_.all<Count>(sql_->counts, {batch_id});
}

Result<std::vector<ExecutionView>> SqlRunbookReads::inits(std::int64_t batch_id) {
  return reader_.rows<ExecutionView>(sql_->inits, {batch_id}, read_init);
}

Result<std::vector<BatchEvent>> SqlRunbookReads::batch_events(std::int64_t batch_id, std::int64_t after,
                                                              std::size_t limit) {
  return reader_.all<BatchEvent>(sql_->events, {batch_id, after, number(limit)});
}

Result<std::vector<ApprovedRemovals>> SqlRunbookReads::approved_removals(const std::string& runbook_name) {
  return reader_.rows<ApprovedRemovals>(sql_->approved, {encode(runbook_name)}, read_approved);
}

// Others write times with other separators and offsets: as text they differ, though it is the same time.
Result<std::vector<std::int64_t>> SqlRunbookReads::moved_phases(std::int64_t after, std::size_t limit) {
  TRY_ASSIGN(const auto phases, reader_.rows<TimedPhase>(sql_->moved_phases, {after}, read_timed_phase));
  std::vector<std::int64_t> ids;
  for (const TimedPhase& phase : phases)
    if (ids.size() < limit && phase.due_at && phase.due_at != phase.timer_due) ids.push_back(phase.id);
  return ids;
}

Result<std::vector<Hold>> SqlRunbookReads::open_holds(std::int64_t after, std::size_t limit) {
  return reader_.all<Hold>(sql_->open_holds, {after, number(limit)});
}

Result<std::vector<Hold>> SqlRunbookReads::holds(std::int64_t batch_id) {
  return reader_.all<Hold>(sql_->holds, {batch_id});
}

Result<std::optional<Hold>> SqlRunbookReads::hold(std::int64_t id) {
  return reader_.first<Hold>(sql_->hold, {id});
}

namespace {

Result<QueueBacklog> read_backlog(const RowView& view) {
  QueueBacklog backlog{.waiting = view.integer(0)};
  if (!decode(view, 1, backlog.since)) backlog.since.reset();
  return backlog;
}

void add(QueueBacklog& to, const QueueBacklog& more) {
  to.waiting = std::min(to.waiting + more.waiting, backlog_max);
  if (more.since) to.since = std::min(to.since.value_or(*more.since), *more.since);
}

}  // namespace

// From one queue to the next, so that it does not matter how much waits in them.
Result<std::vector<QueueBacklog>> SqlRunbookReads::job_backlogs() {
  std::map<std::string, QueueBacklog> found;
  const auto read_name = [](const RowView& view) -> Result<std::string> { return std::string(view.text(0)); };
  for (std::size_t table = 0; table < sql_->next_queues.size(); ++table) {
    for (std::string after; found.size() < queues_max;) {
      TRY_ASSIGN(const auto next, reader_.rows<std::string>(sql_->next_queues[table], {encode(after)}, read_name));
      if (next.empty()) break;
      after = next.front();
      TRY_ASSIGN(const auto some, reader_.rows<QueueBacklog>(sql_->backlogs[table], {encode(after)}, read_backlog));
      QueueBacklog& backlog = found[after];
      backlog.queue = after;
      for (const QueueBacklog& each : some) add(backlog, each);
    }
  }
  std::vector<QueueBacklog> all;
  for (auto& [name, backlog] : found) all.push_back(std::move(backlog));
  return all;
}

Result<QueueBacklog> SqlRunbookReads::backlog_of_batch(std::int64_t batch_id, const std::string& queue) {
  QueueBacklog backlog{.queue = queue};
  for (const Statement& statement : sql_->backlogs_of_batch) {
    TRY_ASSIGN(const auto some, reader_.rows<QueueBacklog>(statement, {encode(queue), batch_id}, read_backlog));
    for (const QueueBacklog& each : some) add(backlog, each);
  }
  return backlog;
}

Result<std::vector<Retrying>> SqlRunbookReads::retrying(std::int64_t batch_id) {
  return reader_.rows<Retrying>(sql_->retrying, {batch_id}, [](const RowView& view) -> Result<Retrying> {
    Retrying retrying{.phase_execution_id = view.integer(0), .n = view.integer(1)};
    if (!decode(view, 2, retrying.next)) retrying.next.reset();
    return retrying;
  });
}

Result<std::vector<BatchSummary>> SqlRunbookReads::importing() {
  return reader_.rows<BatchSummary>(sql_->importing, {}, read_batch);
}

// --- members

Result<std::vector<Member>> SqlRunbookReads::members(std::int64_t batch_id,
                                                     std::optional<MemberStatus> status, std::int64_t after,
                                                     std::size_t limit) {
  std::vector<Value> page = {batch_id, after, number(limit)};
  if (!status) return reader_.all<Member>(sql_->members, std::move(page));
  if (*status == MemberStatus::active) return reader_.all<Member>(sql_->members_active, std::move(page));
  page.push_back(encode(*status));
  return reader_.all<Member>(sql_->members_left, std::move(page));
}

Result<std::optional<Member>> SqlRunbookReads::member(std::int64_t id) {
  return reader_.first<Member>(sql_->member, {id});
}

Result<std::optional<Member>> SqlRunbookReads::member_by_key(std::int64_t batch_id, const std::string& key) {
  return reader_.first<Member>(sql_->member_by_key, {batch_id, encode(key)});
}

// Batch by batch: the members of one are a range, those of many are not.
Result<std::vector<KnownMember>> SqlRunbookReads::known_members(const std::string& runbook_name,
                                                                std::int64_t after, std::size_t limit) {
  TRY_ASSIGN(const auto of_runbook,
             reader_.rows<KnownBatch>(sql_->known_batches, {encode(runbook_name)}, read_known_batch));
  TRY_ASSIGN(const auto at, reader_.rows<std::int64_t>(sql_->batch_of_member, {after}, read_id));
  const std::int64_t current = at.empty() ? 0 : at.front();
  std::vector<KnownMember> found;
  for (const KnownBatch& batch : of_runbook) {
    if (batch.id < current) continue;
    if (found.size() >= limit) break;
    TRY_ASSIGN(
        auto more,
        reader_.rows<KnownMember>(
            sql_->known_members, {batch.id, batch.id == current ? after : 0, number(limit - found.size())},
            [&](const RowView& view) -> Result<KnownMember> { return read_known_member(view, batch); }));
    std::ranges::move(more, std::back_inserter(found));
  }
  return found;
}

// --- steps and their kind

Result<std::vector<MatrixCell>> SqlRunbookReads::cells(const std::vector<std::int64_t>& member_ids) {
  if (member_ids.empty()) return std::vector<MatrixCell>{};
  const auto fill_id = [&](std::size_t set, std::span<Value> out) { out[0] = member_ids[set]; };
  return reader_.rows<MatrixCell>(Query{&sql_->cells, member_ids.size(), fill_id, {}, {}}, read_cell);
}

Result<std::vector<ExecutionView>> SqlRunbookReads::steps_of_member(std::int64_t member_id) {
  return reader_.rows<ExecutionView>(sql_->steps_of_member, {member_id}, read_step);
}

Result<std::vector<Failure>> SqlRunbookReads::failures(std::int64_t phase_execution_id, const FailedBefore& before,
                                                       std::size_t limit) {
  return reader_.rows<Failure>(
      sql_->failures, {phase_execution_id, before.at, before.id, number(limit)},
      [](const RowView& view) -> Result<Failure> {
        TRY_ASSIGN(auto step, read_step(view));
        const int more = width<StepExecution>() + 2;
        return Failure{std::move(step), std::string(view.text(more)), std::string(view.text(more + 1))};
      });
}

Result<std::vector<Failure>> SqlRunbookReads::cleanup_failures(std::int64_t batch_id, const FailedBefore& before,
                                                               std::size_t limit) {
  return reader_.rows<Failure>(
      sql_->cleanup_failures, {batch_id, before.at, before.id, number(limit)},
      [](const RowView& view) -> Result<Failure> {
        TRY_ASSIGN(auto cleanup, read_cleanup(view));
        const int more = width<CleanupExecution>();
        return Failure{std::move(cleanup), std::string(view.text(more)), std::string(view.text(more + 1))};
      });
}

// Each table is a range of its own, in the order of the page; the page is their merge.
Result<std::vector<ExecutionView>> SqlRunbookReads::dead_jobs(const DeadJobCursor& after, std::size_t limit) {
  std::vector<ExecutionView> found;
  const auto add = [&](runbook::RowType type, const Statement& statement, auto read_one) -> Result<> {
    const std::int64_t id = type < after.ref.type ? last_id : type == after.ref.type ? after.ref.id : 0;
    TRY_ASSIGN(auto more, reader_.rows<ExecutionView>(statement, {after.at, id, number(limit)}, read_one));
    std::ranges::move(more, std::back_inserter(found));
    return {};
  };
  TRY(add(runbook::RowType::step, sql_->dead_steps, read_step));
  TRY(add(runbook::RowType::init, sql_->dead_inits, read_init));
  TRY(add(runbook::RowType::cleanup, sql_->dead_cleanups, read_cleanup));
  std::ranges::sort(found, {}, [](const ExecutionView& job) { return std::pair(job.execution.dead_at, job.ref); });
  if (found.size() > limit) found.resize(limit);
  return found;
}

Result<std::vector<ExecutionView>> SqlRunbookReads::steps_of_phase(std::int64_t phase_execution_id,
                                                                   std::int64_t after, std::size_t limit) {
  std::vector<Value> page = {phase_execution_id, std::int64_t{0}, std::int64_t{-1}, std::int64_t{0},
                             number(limit)};
  if (after != 0) {
    TRY_ASSIGN(const auto last, reader_.rows<ExecutionView>(sql_->step, {after}, read_step));
    if (last.empty()) return std::vector<ExecutionView>{};
    page[1] = *last.front().batch_member_id;
    page[2] = std::int64_t{last.front().execution.step_index};
    page[3] = after;
  }
  return reader_.rows<ExecutionView>(sql_->steps_of_phase, std::move(page), read_step);
}

Result<std::optional<ExecutionView>> SqlRunbookReads::execution(Ref ref) {
  std::vector<ExecutionView> found;
  if (ref.type == runbook::RowType::step) {
    TRY_ASSIGN(found, reader_.rows<ExecutionView>(sql_->step, {ref.id}, read_step));
  } else if (ref.type == runbook::RowType::init) {
    TRY_ASSIGN(found, reader_.rows<ExecutionView>(sql_->init, {ref.id}, read_init));
  } else if (ref.type == runbook::RowType::cleanup) {
    TRY_ASSIGN(found, reader_.rows<ExecutionView>(sql_->cleanup, {ref.id}, read_cleanup));
  }
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

Result<std::vector<ExecutionView>> SqlRunbookReads::cleanups(std::int64_t batch_id, std::int64_t after,
                                                             std::size_t limit) {
  return reader_.rows<ExecutionView>(sql_->cleanups, {batch_id, after, number(limit)}, read_cleanup);
}

Result<std::vector<ExecutionView>> SqlRunbookReads::open_cleanups(std::int64_t batch_id, std::size_t limit) {
  return reader_.rows<ExecutionView>(sql_->open_cleanups, {batch_id, number(limit)}, read_cleanup);
}

Result<std::vector<ExecutionView>> SqlRunbookReads::cleanups_of_member(std::int64_t member_id,
                                                                       const std::vector<std::int64_t>& step_ids) {
  TRY_ASSIGN(auto found, reader_.rows<ExecutionView>(sql_->removals, {member_id}, read_cleanup));
  if (!step_ids.empty()) {
    const auto fill_id = [&](std::size_t set, std::span<Value> out) { out[0] = step_ids[set]; };
    const Query query{&sql_->rollbacks_of_steps, step_ids.size(), fill_id, {}, {}};
    TRY_ASSIGN(auto rollbacks, reader_.rows<ExecutionView>(query, read_cleanup));
    std::ranges::move(rollbacks, std::back_inserter(found));
  }
  std::ranges::sort(found, {}, [](const ExecutionView& row) { return row.ref.id; });
  const auto rest = std::ranges::unique(found, {}, [](const ExecutionView& row) { return row.ref.id; });
  found.erase(rest.begin(), rest.end());
  return found;
}

std::vector<Statement> runbook_list_statements(Dialect dialect) {
  const RunbookReadStatements sql(dialect);
  return {sql.next_queues[0],
          sql.next_queues[1],
          sql.next_queues[2],
          sql.backlogs[0],
          sql.backlogs[1],
          sql.backlogs[2],
          sql.backlogs_of_batch[0],
          sql.backlogs_of_batch[1],
          sql.backlogs_of_batch[2],
          sql.retrying,
          sql.runbooks,
          sql.runbook_version,
          sql.runbook_active,
          sql.versions,
          sql.active,
          sql.batches,
          sql.batches_by_status,
          sql.batches_by_runbook,
          sql.batch,
          sql.importing,
          sql.approved,
          sql.moved_phases,
          sql.phases,
          sql.counts,
          sql.inits,
          sql.events,
          sql.members,
          sql.members_active,
          sql.members_left,
          sql.member_by_key,
          sql.cells,
          sql.failures,
          sql.cleanup_failures,
          sql.rollbacks_of_steps,
          sql.dead_steps,
          sql.dead_inits,
          sql.dead_cleanups,
          sql.open_cleanups,
          sql.removals,
          sql.steps_of_phase,
          sql.steps_of_member,
          sql.cleanups,
          sql.open_holds,
          sql.holds,
          sql.hold,
          sql.known_batches,
          sql.batch_of_member,
          sql.known_members};
}

}  // namespace baton::store
