// What is said between baton and workers, and schedulers, as JSON: the same over HTTP and over the bus.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.hpp"
#include "ports/commands.hpp"

namespace baton {

// A task, or a job of a runbook, as its worker gets it. Without a lease nothing is said of one.
void append_handout(std::string& out, const Handout& task);

// The result of a task of a workflow. Whoever calls sets the tenant.
[[nodiscard]] ReportResult read_task_result(JsonView body, std::string prefix, std::vector<FieldError>& errors);
// The result of a job of a runbook.
[[nodiscard]] std::expected<ReportResult, std::string> parse_runbook_result(std::string_view document);
// Either: one with a task_id is of a workflow.
[[nodiscard]] std::expected<ReportResult, std::string> parse_any_result(std::string_view document);

}  // namespace baton
