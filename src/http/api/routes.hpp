// Every path of the API, once: what it is, who may use it, and who answers. OpenAPI is written from this same
// table.
#pragma once

#include <span>
#include <string_view>

#include "http/api/auth.hpp"
#include "http/wire/api.hpp"
#include "http/wire/context.hpp"
#include "http/wire/task.hpp"

namespace baton::http {

using Handler = Task<Response> (*)(Context&);

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

[[nodiscard]] const Api& rest_api();

using Checked = std::optional<Response>;  // none: go on
// Who asks, for which tenant, and whether they may. A stream asks again from time to time.
Task<Checked> authorize(Context& context, Permission permission);
// Its part for those who send no token. Pure.
[[nodiscard]] Checked refuse_stranger(const Request& request, const Options& options);
// Whom it acts for, of one who is bound to a tenant or to none.
[[nodiscard]] Checked decide_tenant(Request& request, const std::optional<workflow::Tenant>& bound);

[[nodiscard]] const std::string& openapi_document();

// job_handlers.cpp
Task<Response> submit_job(Context& context);
Task<Response> list_jobs(Context& context);
Task<Response> show_job(Context& context);
Task<Response> show_timeline(Context& context);
// operate_handlers.cpp
Task<Response> cancel_job(Context& context);
Task<Response> pause_job(Context& context);
Task<Response> resume_job(Context& context);
Task<Response> retry_job(Context& context);
Task<Response> rerun_job(Context& context);
Task<Response> approve_node(Context& context);
Task<Response> reject_node(Context& context);
Task<Response> explain_job(Context& context);
Task<Response> replay_task(Context& context);
// node_handlers.cpp
Task<Response> show_node(Context& context);
Task<Response> list_items(Context& context);
Task<Response> show_logs(Context& context);
Task<Response> list_approvals(Context& context);
Task<Response> list_dead_letters(Context& context);
// workflow_handlers.cpp
Task<Response> publish_workflow(Context& context);
Task<Response> validate_workflow(Context& context);
Task<Response> list_workflows(Context& context);
Task<Response> show_workflow(Context& context);
// worker_handlers.cpp
Task<Response> poll_tasks(Context& context);
Task<Response> report_result(Context& context);
Task<Response> report_results(Context& context);
Task<Response> heartbeat(Context& context);
Task<Response> report_progress(Context& context);
Task<Response> report_checkpoint(Context& context);
Task<Response> report_log(Context& context);
Task<Response> list_workers(Context& context);
// runbook_handlers.cpp
Task<Response> publish_runbook(Context& context);
Task<Response> validate_runbook(Context& context);
Task<Response> list_runbooks(Context& context);
Task<Response> show_runbook(Context& context);
Task<Response> list_versions(Context& context);
Task<Response> activate_runbook(Context& context);
Task<Response> deactivate_runbook(Context& context);
Task<Response> set_automation(Context& context);
// impact_handlers.cpp
Task<Response> show_impact(Context& context);
// plan_handlers.cpp
Task<Response> preview_runbook(Context& context);
Task<Response> plan_runbook(Context& context);
// import_handlers.cpp
Task<Response> create_batch(Context& context);
Task<Response> add_batch_members(Context& context);
// batch_handlers.cpp
Task<Response> list_batches(Context& context);
Task<Response> show_batch(Context& context);
Task<Response> advance_batch(Context& context);
Task<Response> pause_batch(Context& context);
Task<Response> resume_batch(Context& context);
Task<Response> cancel_batch(Context& context);
Task<Response> approve_removals(Context& context);
Task<Response> list_phases(Context& context);
Task<Response> list_batch_events(Context& context);
// needs_you_handlers.cpp
Task<Response> list_needs(Context& context);
Task<Response> answer_need(Context& context);
// why_handlers.cpp
Task<Response> explain_batch(Context& context);
Task<Response> explain_member(Context& context);
template <runbook::RowType type>
Task<Response> explain_execution(Context& context);
// report_handlers.cpp
Task<Response> report_batch(Context& context);
// member_handlers.cpp
Task<Response> list_members(Context& context);
Task<Response> show_member(Context& context);
Task<Response> remove_members(Context& context);
Task<Response> retry_members(Context& context);
Task<Response> list_failures(Context& context);
// matrix_handlers.cpp
Task<Response> show_matrix(Context& context);
// step_handlers.cpp
Task<Response> list_steps(Context& context);
Task<Response> list_cleanups(Context& context);
template <runbook::RowType type>
Task<Response> show_execution(Context& context);
template <runbook::RowType type>
Task<Response> show_execution_logs(Context& context);
template <runbook::RowType type, ChangeStep::What what>
Task<Response> change_execution(Context& context);
// event_handlers.cpp
Task<Response> accept_events(Context& context);
Task<Response> report_worker_result(Context& context);
// stream_handlers.cpp
Task<Response> open_stream(Context& context);
// system_handlers.cpp
Task<Response> show_health(Context& context);
Task<Response> show_readiness(Context& context);
Task<Response> show_metrics(Context& context);
Task<Response> submit_call(Context& context);
Task<Response> submit_calls(Context& context);
Task<Response> list_calls(Context& context);
Task<Response> show_call(Context& context);
Task<Response> cancel_call(Context& context);
Task<Response> reschedule_call(Context& context);
Task<Response> repeat_call(Context& context);
Task<Response> show_openapi(Context& context);
// bus_handlers.cpp
Task<Response> list_bus_entities(Context& context);
Task<Response> show_broker(Context& context);
Task<Response> show_bus_entity(Context& context);
Task<Response> create_bus_entity(Context& context);
Task<Response> change_bus_entity(Context& context);
Task<Response> delete_bus_entity(Context& context);
Task<Response> add_bus_rule(Context& context);
Task<Response> replace_bus_rule(Context& context);
Task<Response> delete_bus_rule(Context& context);
Task<Response> peek_bus_messages(Context& context);
Task<Response> replay_bus_dead_letters(Context& context);

}  // namespace baton::http
