#include "store/check/check.hpp"

#include "store/check/tables_check.hpp"
#include "store/schema.hpp"

namespace baton::store {
namespace {

Result<std::vector<JournalRow>> read_journal(Dialect dialect, SqlJournal::Where where, Partition partition, const auto& run) {
  SqlJournal journal(dialect, where);
  journal.set(partition.number, 0);
  std::vector<JournalRow> rows;
  const Query query = journal.rows(rows);
  TRY(run(query));
  return rows;
}

Result<std::string> first_text(std::string sql, Partition partition, const auto& run) {
  const Statement statement{std::move(sql), {Type::integer}};
  std::string text;
  const auto take = [&](const RowView& row) -> Result<> { return text = row.text(0), Result<>{}; };
  TRY(run(Query{&statement, 1, constant({std::int64_t{partition.number}}), take, {}}));
  return text;
}

// What a server writes to both files as it starts, and takes out of the database as it stops (commit_log.hpp).
Result<std::string> id_in_log(Connection& log, Partition partition) {
  const auto run = [&](const Query& query) { return log.run({&query, 1}, Mode::read); };
  TRY_ASSIGN(const std::string table, first_text("SELECT name FROM log.sqlite_master WHERE name='baton_log' AND ?1=?1", partition, run));
  return table.empty() ? Result<std::string>{} : first_text("SELECT id FROM log.baton_log WHERE partition=?1", partition, run);
}

Result<std::int64_t> last_in_log(Connection& log, Partition partition) {
  SqlJournal journal(Dialect::sqlite, SqlJournal::Where::log);
  journal.set(partition.number, 0);
  std::int64_t commit_number = 0;
  const Query query = journal.last_in_table(commit_number);
  TRY(log.run({&query, 1}, Mode::read));
  return commit_number;
}

}  // namespace

// The log is let go as soon as it has been read, because no server could start as long as it is open. That it is open when
// the snapshot is taken is what makes them one state: until then nobody can have written to either.
Result<Checked> check(Dialect dialect, const Connect& connect, const Connect& connect_log, Partition partition,
                      const TellFinding& tell) {
  Checked checked;
  TRY_ASSIGN(auto connection, connect());
  TRY(check_version(*connection, dialect));
  Snapshot snapshot(dialect, std::move(connection));
  std::unique_ptr<Connection> log;
  std::vector<JournalRow> rows;
  if (connect_log) {
    auto connected = connect_log();
    checked.is_log_in_use = !connected && connected.error().code == Code::busy;
    if (!connected && !checked.is_log_in_use) return std::unexpected(std::move(connected).error());
    if (connected) log = *std::move(connected);
  }
  std::string log_id;
  std::int64_t log_last = 0;
  if (log) {
    TRY(log->script("BEGIN"));
    TRY_ASSIGN(log_id, id_in_log(*log, partition));
    TRY_ASSIGN(log_last, last_in_log(*log, partition));
    TRY_ASSIGN(rows, read_journal(dialect, SqlJournal::Where::log, partition,
                                  [&](const Query& query) { return log->run({&query, 1}, Mode::read); }));
  }
  TRY(snapshot.begin());
  TRY_ASSIGN(const WriterState state, snapshot.writer_state(partition));
  if (!log) {
    TRY_ASSIGN(rows, read_journal(dialect, SqlJournal::Where::database, partition,
                                  [&](const Query& query) { return snapshot.run({&query, 1}); }));
  }
  if (connect_log && !checked.is_log_in_use) {
    const auto run = [&](const Query& query) { return snapshot.run({&query, 1}); };
    TRY_ASSIGN(const std::string id, first_text("SELECT log_id FROM writer_state WHERE partition=?1", partition, run));
    TRY_ASSIGN(const std::string newer, first_text("SELECT log_last FROM writer_state WHERE partition=?1 AND log_last>" +
                                                       std::to_string(log_last), partition, run));
    if (!id.empty() && id != log_id)
      tell("the log", !log || log_id.empty() ? "it is missing, and with it commits may be lost that were acknowledged"
                                             : "it belongs to another database");
    else if (!id.empty() && !newer.empty())
      tell("the log", "it is an older copy: it had commit " + newer + ", and ends with " + std::to_string(log_last));
  }
  log.reset();
  checked.followed = state.followed;
  checked.last_commit = std::max(state.last_commit, rows.empty() ? 0 : rows.back().commit_number);
  TRY_ASSIGN(const auto replayed, replay(snapshot, state, rows, tell));
  rows = {};
  NodeNames put_off;
  TRY(check_timers(snapshot, *replayed, tell, checked, put_off));
  TRY(check_jobs(snapshot, *replayed, put_off, tell, checked));
  TRY(check_results(snapshot, *replayed, tell, checked));
  TRY(check_messages(snapshot, *replayed, tell, checked));
  return checked;
}

}  // namespace baton::store
