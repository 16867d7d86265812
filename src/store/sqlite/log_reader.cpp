#include "store/sqlite/log_reader.hpp"

#include <filesystem>

#include "store/sqlite/connection.hpp"

namespace baton::store::sqlite {
namespace {

Result<std::string> first_text(Connection& connection, std::string sql) {
  const Statement statement{std::move(sql), {}};
  std::string text;
  const Query query{&statement, 1, {}, [&](const RowView& row) -> Result<> { return text = row.text(0), Result<>{}; }, {}};
  TRY(connection.run({&query, 1}, Mode::read));
  return text;
}

std::string in_sql_quotes(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Result<std::unique_ptr<Connection>> connect_with_log(const std::string& path) {
  TRY_ASSIGN(auto connection, connect(path, Access::reader));
  // By the name that the database has itself, as its writer does.
  TRY_ASSIGN(const std::string file, first_text(*connection, "SELECT file FROM pragma_database_list WHERE name='main'"));
  const std::string log = log_path(file);
  std::error_code failure;
  if (!std::filesystem::exists(log, failure)) return nullptr;
  // A server keeps it locked for as long as it runs, so waiting would help nobody.
  Result<> attached = connection->script("PRAGMA busy_timeout=0;ATTACH " + in_sql_quotes(log) + " AS log;");
  if (attached) {
    const auto table = first_text(*connection, "SELECT name FROM log.sqlite_master WHERE name='baton_journal'");
    if (table && table->empty()) return nullptr;
    if (!table) attached = std::unexpected(table.error());
  }
  if (attached) attached = connection->script("PRAGMA busy_timeout=5000;");
  if (!attached) return fail(attached.error().code, "cannot read the log " + log + ": " + attached.error().message);
  return connection;
}

}  // namespace baton::store::sqlite
