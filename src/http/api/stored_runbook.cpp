#include "http/api/stored_runbook.hpp"

#include "http/json/fields.hpp"
#include "http/json/problem.hpp"

namespace baton::http {

namespace {

Result<std::optional<StoredRunbook>> find_runbook(Reads& reads, const std::string& name, std::int32_t version) {
  TRY_ASSIGN(const auto row, reads.runbook(name, version));
  if (!row) return std::nullopt;
  auto parsed = runbook::parse(row->yaml_content, runbook::Strictness::stored);
  return StoredRunbook{parsed.definition, row->version, row->is_active, std::move(parsed.diagnostics)};
}

}  // namespace

Task<std::expected<StoredRunbook, Response>> read_runbook(Context& context, const std::string& name,
                                                          std::int32_t version) {
  std::expected<StoredRunbook, Response> answer = std::unexpected(no_such_runbook(name, version));
  if (!is_printable(name, 400)) co_return answer;
  auto query = [name, version](Reads& reads) { return find_runbook(reads, name, version); };
  auto found = co_await context.read(std::move(query));
  if (!found) {
    answer = std::unexpected(problem(found.error()));
  } else if (*found && (*found)->definition) {
    answer = *std::move(*found);
  } else if (*found) {
    answer = std::unexpected(problem(422, baton::name(Refusal::row_unreadable),
                                     "the stored text of runbook '" + name + "' cannot be read"));
  }
  co_return answer;
}

Response no_such_runbook(const std::string& name, std::int32_t version) {
  const auto which = version == 0 ? std::string() : " in version " + std::to_string(version);
  return problem(404, "runbook_not_found", "no runbook '" + name + "'" + which);
}

std::int32_t query_version(const Request& request, std::vector<FieldError>& errors) {
  return static_cast<std::int32_t>(query_integer(request, "version", 0, {1, 2'147'483'647}, errors));
}

}  // namespace baton::http
