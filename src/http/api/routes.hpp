// Every path of the API, once: what it is, who may use it, and who answers. OpenAPI is written from this same
// table.
#pragma once

#include <span>
#include <string_view>

#include "http/api/auth.hpp"
#include "http/wire/exchange.hpp"
#include "http/wire/task.hpp"

namespace baton::http {

using Handler = Task<Response> (*)(Call&);

struct Route {
  std::string_view method;
  std::string_view pattern;  // "/api/v1/jobs/{job_id}"
  Permission permission;
  Handler handler;
  std::string_view operation;  // OpenAPI's operationId
  std::string_view summary;
  std::string_view query;   // names of openapi.cpp's parameters, separated by blanks
  std::string_view body;    // a schema's name, "yaml", "csv", or empty
  std::string_view answer;  // a schema's name, "text", "events" or empty
};

[[nodiscard]] std::span<const Route> routes();

// The position of the route in routes(), or -1; captures are decoded. `allowed` gets the methods of the path
// when it is the method that does not fit.
[[nodiscard]] int find_route(std::string_view method, std::string_view path,
                             std::vector<std::string>& captures, std::string& allowed);

// Routes, authenticates and handles one request. `route` is set as soon as it is known. Never throws.
Task<Response> dispatch(Call& call, int& route);

using Checked = std::optional<Response>;  // none: go on
// Who asks, for which tenant, and whether they may. A stream asks again from time to time.
Task<Checked> authorize(Call& call, Permission permission);

[[nodiscard]] const std::string& openapi_document();

// job_handlers.cpp
Task<Response> submit_job(Call& call);
Task<Response> list_jobs(Call& call);
Task<Response> show_job(Call& call);
Task<Response> show_timeline(Call& call);
// operate_handlers.cpp
Task<Response> cancel_job(Call& call);
Task<Response> pause_job(Call& call);
Task<Response> resume_job(Call& call);
Task<Response> retry_job(Call& call);
Task<Response> rerun_job(Call& call);
Task<Response> approve_node(Call& call);
Task<Response> reject_node(Call& call);
Task<Response> explain_job(Call& call);
Task<Response> replay_task(Call& call);
// node_handlers.cpp
Task<Response> show_node(Call& call);
Task<Response> list_items(Call& call);
Task<Response> show_logs(Call& call);
Task<Response> list_approvals(Call& call);
Task<Response> list_dead_letters(Call& call);
// workflow_handlers.cpp
Task<Response> publish_workflow(Call& call);
Task<Response> validate_workflow(Call& call);
Task<Response> list_workflows(Call& call);
Task<Response> show_workflow(Call& call);
// worker_handlers.cpp
Task<Response> poll_tasks(Call& call);
Task<Response> report_result(Call& call);
Task<Response> report_results(Call& call);
Task<Response> heartbeat(Call& call);
Task<Response> report_progress(Call& call);
Task<Response> report_checkpoint(Call& call);
Task<Response> report_log(Call& call);
Task<Response> list_workers(Call& call);
// runbook_handlers.cpp
Task<Response> publish_runbook(Call& call);
Task<Response> validate_runbook(Call& call);
Task<Response> list_runbooks(Call& call);
Task<Response> show_runbook(Call& call);
Task<Response> list_versions(Call& call);
Task<Response> activate_runbook(Call& call);
Task<Response> deactivate_runbook(Call& call);
Task<Response> set_automation(Call& call);
// plan_handlers.cpp
Task<Response> preview_runbook(Call& call);
Task<Response> plan_runbook(Call& call);
// import_handlers.cpp
Task<Response> create_batch(Call& call);
Task<Response> add_batch_members(Call& call);
// batch_handlers.cpp
Task<Response> list_batches(Call& call);
Task<Response> show_batch(Call& call);
Task<Response> advance_batch(Call& call);
Task<Response> pause_batch(Call& call);
Task<Response> resume_batch(Call& call);
Task<Response> cancel_batch(Call& call);
Task<Response> approve_removals(Call& call);
Task<Response> list_phases(Call& call);
Task<Response> list_batch_events(Call& call);
// member_handlers.cpp
Task<Response> list_members(Call& call);
Task<Response> show_member(Call& call);
Task<Response> remove_members(Call& call);
Task<Response> retry_members(Call& call);
Task<Response> list_failures(Call& call);
// matrix_handlers.cpp
Task<Response> show_matrix(Call& call);
// step_handlers.cpp
Task<Response> list_steps(Call& call);
Task<Response> list_cleanups(Call& call);
template <runbook::Kind kind>
Task<Response> show_execution(Call& call);
template <runbook::Kind kind>
Task<Response> show_execution_logs(Call& call);
template <runbook::Kind kind, ChangeStep::What what>
Task<Response> change_execution(Call& call);
// event_handlers.cpp
Task<Response> accept_events(Call& call);
Task<Response> report_worker_result(Call& call);
// stream_handlers.cpp
Task<Response> open_stream(Call& call);
// system_handlers.cpp
Task<Response> show_health(Call& call);
Task<Response> show_readiness(Call& call);
Task<Response> show_metrics(Call& call);
Task<Response> submit_call(Call& call);
Task<Response> submit_calls(Call& call);
Task<Response> list_calls(Call& call);
Task<Response> show_call(Call& call);
Task<Response> cancel_call(Call& call);
Task<Response> reschedule_call(Call& call);
Task<Response> repeat_call(Call& call);
Task<Response> show_openapi(Call& call);

}  // namespace baton::http
