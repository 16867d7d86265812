// What the built-in scheduler has found out, and whether it still counts.
#include <boost/json.hpp>

#include "base/json.hpp"
#include "core/runbook/machine/machine.hpp"

namespace baton::runbook {

Outcome still_active(std::int64_t runbook_id, Ledger& ledger) {
  if (runbook_id == 0) return {};
  const auto* book = ledger.runbook(runbook_id);
  if (!book) return {Outcome::Problem::runbook_not_found, "there is no such runbook"};
  if (book->row.is_active) return {};
  return {Outcome::Problem::not_possible, "version " + std::to_string(book->row.version) + " of runbook '" +
                                              book->row.name + "' is not active any more"};
}

namespace {

std::vector<std::string> columns_of(const DataRow& row) {
  std::vector<std::string> columns;
  boost::system::error_code error;
  const auto data = boost::json::parse(row.data.text, error);
  if (!error && data.is_object())
    for (const auto& entry : data.get_object()) columns.emplace_back(entry.key());
  return columns;
}

}  // namespace

std::optional<DataRows> data_rows(std::int64_t runbook_id, const std::vector<DataRow>& rows, Time seen_at, bool finish,
                                  Ledger& ledger) {
  const auto* book = ledger.runbook(runbook_id);
  if (!book || !book->row.is_active || book->row.data_table_name.empty()) return std::nullopt;
  DataRows out{.table = book->row.data_table_name, .rows = rows, .seen_at = seen_at, .finish = finish};
  if (!rows.empty()) out.columns = columns_of(rows.front());
  return out;
}

void note_sync(std::int64_t runbook_id, const std::optional<std::string>& error, const OptionalJson& held_removals,
               const std::vector<ApprovedRemovals>& approvals_seen, Context context) {
  constexpr std::size_t text_bytes_max = 8 << 10;
  auto& book = context.ledger.existing_runbook(runbook_id);
  book.changed = true;
  if (error) {
    book.row.last_error = clean_text(*error, text_bytes_max);
    book.row.last_error_at = context.now;
    return;
  }
  book.row.last_error.reset();
  book.row.last_synced_at = context.now;
  book.row.held_removals = held_removals;
  note_approvals(approvals_seen, held_removals, context);
}

Outcome set_automation(const std::string& name, std::int32_t version, bool enabled, Context context) {
  auto* book = context.ledger.runbook(name, version);
  if (!book) return {Outcome::Problem::runbook_not_found, "there is no runbook '" + name + "'"};
  const bool changes = book->row.automation_enabled != enabled;
  book->row.automation_enabled = enabled;
  book->changed = book->changed || changes;
  return {.changed = changes};
}

}  // namespace baton::runbook
