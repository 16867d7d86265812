#include "http/api/batch_reads.hpp"

#include "http/json/problem.hpp"

namespace baton::http {

Result<BatchSummary> known_batch(Reads& reads, std::int64_t id) {
  TRY_ASSIGN(auto batch, reads.batch(id));
  if (!batch) return fail(Code::not_found, "no batch");
  return *std::move(batch);
}

std::optional<runbook::MemberStatus> query_member_status(const Request& request,
                                                         std::vector<FieldError>& errors) {
  const auto* text = request.argument("status");
  if (text == nullptr) return std::nullopt;
  const auto status = runbook::member_status(*text);
  if (!status) errors.push_back({"status", "must be active, failed or removed"});
  return status;
}

Response no_such_batch(const Request& request) {
  return problem(404, "batch_not_found", "no batch '" + request.captures[0] + "'");
}

Response batch_problem(const Request& request, const Error& error) {
  return error.code == Code::not_found ? no_such_batch(request) : problem(error);
}

Result<std::shared_ptr<const runbook::Definition>> read_definition(Reads& reads, const std::string& name,
                                                                   std::int32_t version) {
  TRY_ASSIGN(const auto row, reads.runbook(name, version));
  if (!row) return nullptr;
  return runbook::parse(row->yaml_content, runbook::Strictness::stored).definition;
}

}  // namespace baton::http
