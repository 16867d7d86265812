#include "http/api/source_members.hpp"

#include <algorithm>
#include <map>

#include "base/csv.hpp"
#include "http/json/answer.hpp"
#include "http/json/problem.hpp"
#include "ports/data_source.hpp"

namespace baton::http {

namespace {

using MembersOrProblem = std::expected<SourceMembers, Response>;

MembersOrProblem read_table(const runbook::Definition& definition, const SourceTable& table, bool with_times) {
  auto members = runbook::read_members(definition.data_source, table, with_times);
  if (!members)
    return std::unexpected(problem(422, "invalid_rows", "the rows cannot be taken", members.error()));
  return *std::move(members);
}

bool has_times(const runbook::DataSource& source, const SourceTable& table) {
  const auto is_time = [&](const std::string& column) { return equal_ignoring_case(column, source.batch_time_column); };
  return std::ranges::any_of(table.columns, is_time);
}

MembersOrProblem fetch(const runbook::Definition& definition, DataSources& sources, std::mutex& busy) {
  const std::unique_lock lock(busy, std::try_to_lock);
  if (!lock)
    return std::unexpected(problem(503, "overloaded", "a data source is being read for somebody else"));
  const auto table = sources.fetch(definition.data_source);
  if (!table) return std::unexpected(problem(502, "data_source_failed", table.error().message));
  return read_table(definition, *table, true);
}

}  // namespace

MembersOrProblem members_of_csv(const runbook::Definition& definition, std::string_view text, CsvTimes times) {
  auto parsed = csv::read(text);
  if (!parsed) return std::unexpected(problem(422, "invalid_rows", "the CSV cannot be read", parsed.error()));
  if (parsed->rows.empty()) return std::unexpected(problem(422, "invalid_rows", "the CSV has no rows"));
  SourceTable table{.columns = std::move(parsed->columns), .rows = {}, .lines = std::move(parsed->lines)};
  for (auto& row : parsed->rows)
    table.rows.emplace_back(std::make_move_iterator(row.begin()), std::make_move_iterator(row.end()));
  return read_table(definition, table, times == CsvTimes::if_there && has_times(definition.data_source, table));
}

Task<MembersOrProblem> read_csv_members(Context& context, const Definition& definition, std::string& text,
                                        CsvTimes times) {
  auto work = [definition, text = std::move(text), times] { return members_of_csv(*definition, text, times); };
  auto members = co_await context.compute(std::move(work));
  MembersOrProblem answer = members ? *std::move(members) : MembersOrProblem(std::unexpected(problem(stopping())));
  co_return answer;
}

Task<MembersOrProblem> fetch_members(Context& context, const Definition& definition) {
  MembersOrProblem answer = std::unexpected(problem(503, "not_configured", "this server reads no data sources"));
  auto* sources = context.services.options.data_sources;
  if (sources == nullptr) co_return answer;
  auto work = [definition, sources, busy = context.services.sources_busy] {
    return fetch(*definition, *sources, *busy);
  };
  auto members = co_await context.compute(std::move(work));
  answer = members ? *std::move(members) : MembersOrProblem(std::unexpected(problem(stopping())));
  co_return answer;
}

std::vector<Wave> group_by_time(const SourceMembers& members, std::optional<Time> otherwise) {
  std::map<std::optional<Time>, Wave> waves;
  for (const auto& member : members) {
    const auto time = member.batch_time ? member.batch_time : otherwise;
    auto& wave = waves[time];
    wave.batch_start_time = time;
    wave.members.push_back(&member);
  }
  std::vector<Wave> sorted;
  for (auto& [time, wave] : waves) sorted.push_back(std::move(wave));
  return sorted;
}

}  // namespace baton::http
