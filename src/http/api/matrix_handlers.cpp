// The members of a batch against the steps of its phases: the columns with how many are where, which are
// counted already, and a page of rows. What it costs does not depend on how many members there are.
#include <map>

#include "http/api/batch_reads.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

struct Column {
  std::int64_t phase_execution_id = 0;
  std::int32_t step_index = 0;
  friend auto operator<=>(const Column&, const Column&) = default;
};

struct Matrix {
  std::vector<runbook::PhaseExecution> phases;
  std::vector<runbook::Count> counts;
  std::map<Column, std::string> columns;  // and the names of their steps
  std::vector<runbook::Member> members;
  std::vector<MatrixCell> cells;
};

// The steps that the versions of the runbook say there are; a phase that has not begun has no rows yet.
Result<> name_columns(Reads& reads, const std::string& runbook_name, Matrix& matrix) {
  std::map<std::int32_t, std::shared_ptr<const runbook::Definition>> versions;
  for (const auto& row : matrix.phases) {
    if (!versions.contains(row.runbook_version)) {
      TRY_ASSIGN(versions[row.runbook_version], read_definition(reads, runbook_name, row.runbook_version));
    }
    const auto& definition = versions[row.runbook_version];
    const auto* phase = definition ? definition->phase(row.phase_name) : nullptr;
    if (phase == nullptr || row.status == runbook::PhaseStatus::superseded) continue;
    std::int32_t index = 0;
    for (const auto& step : phase->steps) matrix.columns[{row.id, index++}] = step.name;
  }
  // Rows that others wrote may not be in any definition.
  for (const auto& count : matrix.counts)
    if (count.lane == "step" || count.lane == "catch_up")
      if (count.phase_execution_id != 0)
        matrix.columns.try_emplace({count.phase_execution_id, count.step_index});
  for (const auto& cell : matrix.cells) {
    auto& known = matrix.columns[{cell.phase_execution_id, cell.step_index}];
    if (known.empty()) known = cell.step_name;
  }
  return {};
}

Result<Matrix> read_matrix(Reads& reads, std::int64_t id, std::optional<runbook::MemberStatus> status,
                           Page page) {
  TRY_ASSIGN(const auto batch, known_batch(reads, id));
  Matrix matrix;
  TRY_ASSIGN(matrix.phases, reads.phases(id));
  TRY_ASSIGN(matrix.counts, reads.counts(id));
  TRY_ASSIGN(matrix.members, reads.members(id, status, page.from, page.limit + 1));
  std::vector<std::int64_t> ids;
  for (const auto& member : matrix.members)
    if (ids.size() < page.limit) ids.push_back(member.id);
  if (!ids.empty()) {
    TRY_ASSIGN(matrix.cells, reads.cells(ids));
  }
  TRY(name_columns(reads, batch.runbook_name, matrix));
  return matrix;
}

// Phases in the order of their rows, each with its steps; cells of a row come in the same order.
std::vector<std::pair<const runbook::PhaseExecution*, std::vector<Column>>> layout(const Matrix& matrix) {
  std::vector<std::pair<const runbook::PhaseExecution*, std::vector<Column>>> phases;
  for (const auto& phase : matrix.phases) {
    std::vector<Column> columns;
    for (auto at = matrix.columns.lower_bound({phase.id, 0});
         at != matrix.columns.end() && at->first.phase_execution_id == phase.id; ++at)
      columns.push_back(at->first);
    if (!columns.empty()) phases.emplace_back(&phase, std::move(columns));
  }
  return phases;
}

void append_cell(std::string& out, const MatrixCell& cell) {
  out += '{';
  append_member(out, "step_id", cell.step_id);
  append_member(out, "status", name(cell.status));
  append_member(out, "retry_count", cell.retry_count);
  append_member(out, "poll_count", cell.poll_count);
  append_member(out, "is_catch_up", cell.is_catch_up);
  append_member(out, "skipped", cell.is_skipped);
  out += '}';
}

void append_matrix(std::string& out, const Matrix& matrix) {
  const auto phases = layout(matrix);
  append_list(out, "phases", phases, [&](std::string& to, const auto& entry) {
    const auto& [phase, columns] = entry;
    append_phase(to, *phase, ObjectEnd::open);
    append_list(to, "steps", columns, [&](std::string& into, const Column& column) {
      into += '{';
      append_member(into, "step_index", column.step_index);
      append_member(into, "step_name", matrix.columns.at(column));
      append_counts(into, "counts", matrix.counts, {"step", column.phase_execution_id, column.step_index});
      append_counts(into, "catch_up", matrix.counts,
                    {"catch_up", column.phase_execution_id, column.step_index});
      append_counts(into, "skipped", matrix.counts, {"skipped", column.phase_execution_id, column.step_index});
      into += '}';
    });
    to += '}';
  });
  std::map<std::pair<std::int64_t, Column>, const MatrixCell*> cells;
  for (const auto& cell : matrix.cells)
    cells[{cell.batch_member_id, {cell.phase_execution_id, cell.step_index}}] = &cell;
  append_list(out, "members", matrix.members, [&](std::string& to, const runbook::Member& member) {
    to += '{';
    append_member(to, "id", member.id);
    append_member(to, "member_key", member.member_key);
    append_member(to, "status", name(member.status));
    append_member(to, "catching_up", member.catching_up);
    std::vector<const MatrixCell*> row;
    for (const auto& [phase, columns] : phases)
      for (const Column& column : columns) {
        const auto found = cells.find({member.id, column});
        row.push_back(found == cells.end() ? nullptr : found->second);
      }
    append_list(to, "cells", row, [](std::string& into, const MatrixCell* cell) {
      if (cell == nullptr) {
        into += "null";
      } else {
        append_cell(into, *cell);
      }
    });
    to += '}';
  });
}

// Written where it is read: thousands of cells would hold up everybody else on the I/O thread.
Result<std::string> matrix_body(Reads& reads, std::int64_t id, std::optional<runbook::MemberStatus> status,
                                Page page) {
  TRY_ASSIGN(auto matrix, read_matrix(reads, id, status, page));
  const auto cursor = cut_page(matrix.members, page.limit, [](const auto& row) { return row.id; });
  std::string out = "{";
  append_member(out, "batch_id", id);
  append_counts(out, "members_by_status", matrix.counts, {"member"});
  append_matrix(out, matrix);
  append_member(out, "next_cursor", cursor);
  out += '}';
  return out;
}

}  // namespace

Task<Response> show_matrix(Context& context) {
  std::vector<FieldError> errors;
  const auto status = query_member_status(context.request, errors);
  const auto page = query_page(context.request, 100, 500, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [id = captured_id(context.request), status, page](Reads& reads) {
    return matrix_body(reads, id, status, page);
  };
  auto body = co_await context.read(std::move(query));
  if (!body) co_return batch_problem(context.request, body.error());
  co_return json_response(200, *std::move(body));
}

}  // namespace baton::http
