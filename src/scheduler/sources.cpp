#include "scheduler/sources.hpp"

#include <fmt/format.h>

#include "base/diagnostic.hpp"
#include "scheduler/readers.hpp"

namespace baton::scheduler {
namespace {

// The readers take care not to say it; a library that quotes what it was given might.
std::string without(std::string message, const std::string& secret) {
  constexpr std::size_t size_min = 4;  // less is in any text by chance
  if (secret.size() < size_min) return message;
  for (auto at = message.find(secret); at != message.npos; at = message.find(secret, at + 3))
    message.replace(at, secret.size(), "***");
  return message;
}

std::vector<std::string> expected_columns(const runbook::DataSource& source) {
  std::vector<std::string> columns{source.primary_key};
  if (!source.batch_time_column.empty()) columns.push_back(source.batch_time_column);
  return columns;
}

}  // namespace

Sources::Sources(Connections connections, HttpGet get, Limits limits)
    : connections_(std::move(connections)), get_(std::move(get)), limits_(limits) {}

Result<SourceTable> Sources::fetch(const runbook::DataSource& source) {
  const auto connection = connections_(source.connection);
  if (!connection || connection->empty()) {
    return fail(
        Code::invalid,
        fmt::format("connection {}: the server has neither an environment variable nor a configured connection of this "
                    "name; set it where 'baton serve' is started, not where the command line runs, and start the server "
                    "again",
                    in_quotes(source.connection)));
  }
  const auto failed = [&](Code code, std::string message) {
    return fail(code, fmt::format("connection {}: {}", in_quotes(source.connection),
                                  without(std::move(message), *connection)));
  };
  if (stop_.stop_requested()) return failed(Code::unavailable, "the server is stopping");
  try {
    auto table = read(source, *connection);
    if (!table) return failed(table.error().code, std::move(table).error().message);
    // An empty list of JSON says nobody is there, but not which columns they would have.
    if (table->columns.empty()) table->columns = expected_columns(source);
    return table;
  } catch (const std::exception& error) {
    return failed(Code::unavailable, error.what());
  }
}

Result<SourceTable> Sources::read(const runbook::DataSource& source, const std::string& connection) const {
  switch (source.type) {
    case runbook::SourceType::csv: return read_csv_file(connection, limits_);
    case runbook::SourceType::sqlite: return read_sqlite(connection, source.query, limits_, stop_.get_token());
    case runbook::SourceType::postgres:
      return read_postgres(connection, source.query, limits_, stop_.get_token());
    case runbook::SourceType::http: return read_http(get_, connection, source.query, limits_, stop_.get_token());
    case runbook::SourceType::unsupported: break;
  }
  return fail(Code::invalid, "baton cannot read sources of this type yet");
}

}  // namespace baton::scheduler
