#include "http/api/routes.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "http/json/problem.hpp"

namespace baton::http {

namespace {

using enum Permission;
using runbook::RowType;
using What = ChangeStep::What;

Task<Response> refuse_tenant(Context& context) {
  co_return problem(404, "runbook_not_found",
                    "runbooks belong to the tenant 'default', not to '" + context.request.tenant.value + "'");
}

// The tables of runbooks, which others write too, know no tenants: only one may see them.
template <Handler handler>
Task<Response> of_default(Context& context) {
  return context.request.tenant.value == "default" ? handler(context) : refuse_tenant(context);
}

// clang-format off
constexpr std::array<Route, 108> table{{
    {"POST", "/api/v1/jobs", submit, submit_job, "submitJob", "Submit a job; wait_ms waits for its end", "wait_ms", "JobSubmission", "Job"},
    {"GET", "/api/v1/jobs", read, list_jobs, "listJobs", "List jobs, newest first", "status workflow_id tag created_from created_until limit cursor", "", "JobPage"},
    {"GET", "/api/v1/jobs/{job_id}", read, show_job, "getJob", "Show a job with its nodes; wait_ms waits for its end; documents over 64 KiB are left out unless full=true", "wait_ms full", "", "JobView"},
    {"GET", "/api/v1/jobs/{job_id}/timeline", read, show_timeline, "getTimeline", "The events of a job, oldest first; wait_ms waits for new ones", "after event_limit wait_ms", "", "Timeline"},
    {"GET", "/api/v1/jobs/{job_id}/why", read, explain_job, "explainJob", "Why a job, and each node of it that waits, is not running", "", "", "Explanation"},
    {"POST", "/api/v1/jobs/{job_id}/cancel", submit, cancel_job, "cancelJob", "Cancel a job", "", "Change", "Job"},
    {"POST", "/api/v1/jobs/{job_id}/pause", submit, pause_job, "pauseJob", "Pause a job: what runs goes on, nothing new is handed out", "", "Change", "Job"},
    {"POST", "/api/v1/jobs/{job_id}/resume", submit, resume_job, "resumeJob", "Let a paused job go on", "", "Change", "Job"},
    {"POST", "/api/v1/jobs/{job_id}/retry", submit, retry_job, "retryJob", "Let a FAILED job go on from the nodes that failed", "", "Change", "Job"},
    {"POST", "/api/v1/jobs/{job_id}/rerun", submit, rerun_job, "rerunJob", "Submit a new job with the same version, input, priority and tags", "", "Rerun", "Job"},
    {"GET", "/api/v1/jobs/{job_id}/nodes/{node_id}", read, show_node, "getNode", "One node, or one child of a fan-out, with its documents", "", "", "Node"},
    {"GET", "/api/v1/jobs/{job_id}/nodes/{node_id}/items", read, list_items, "listItems", "The children of a fan-out, by index", "item_after event_limit", "", "ItemPage"},
    {"GET", "/api/v1/jobs/{job_id}/nodes/{node_id}/logs", read, show_logs, "getLogs", "What the tasks of a node said, oldest first", "after event_limit", "", "LogPage"},
    {"POST", "/api/v1/jobs/{job_id}/nodes/{node_id}/approve", submit, approve_node, "approveNode", "Approve an approval node", "", "Approval", "Job"},
    {"POST", "/api/v1/jobs/{job_id}/nodes/{node_id}/reject", submit, reject_node, "rejectNode", "Reject an approval node", "", "Approval", "Job"},
    {"GET", "/api/v1/needs-you", read, list_needs, "listNeeds", "What needs a person: what waits for an answer, and what is stuck", "", "", "NeedList"},
    {"POST", "/api/v1/needs-you/{need_id}/answer", submit, answer_need, "answerNeed", "Decide what waits for a person; it is decided once", "", "NeedDecision", "NeedDecided"},
    {"GET", "/api/v1/approvals", read, list_approvals, "listApprovals", "Approvals that wait for a person, the most urgent first, then the oldest", "limit", "", "ApprovalPage"},
    {"GET", "/api/v1/dead-letters", read, list_dead_letters, "listDeadLetters", "Tasks, and jobs of runbooks, given up after too many deliveries, oldest first", "limit cursor", "", "DeadLetterPage"},
    {"POST", "/api/v1/dead-letters/{task_id}/replay", submit, replay_task, "replayTask", "Let the job or the batch of a dead letter go on from it", "", "Change", "Replayed"},
    {"POST", "/api/v1/workflows", publish, publish_workflow, "publishWorkflow", "Publish a version of a workflow", "", "yaml", "Published"},
    {"GET", "/api/v1/workflows", read, list_workflows, "listWorkflows", "List workflows by id", "limit cursor", "", "WorkflowPage"},
    {"POST", "/api/v1/workflows/validate", read, validate_workflow, "validateWorkflow", "Check a definition without publishing it", "", "yaml", "Validation"},
    {"GET", "/api/v1/workflows/{workflow_id}", read, show_workflow, "getWorkflow", "Show a workflow; with Accept: application/yaml its text", "version", "", "Workflow"},
    {"POST", "/api/v1/workers/{queue}/jobs:poll", work, poll_tasks, "pollTasks", "Ask for tasks of a queue; long-polls up to wait_ms", "", "PollRequest", "PollAnswer"},
    {"POST", "/api/v1/workers/heartbeat", work, heartbeat, "heartbeat", "Renew leases and hear which tasks to stop", "", "HeartbeatRequest", "HeartbeatAnswer"},
    {"GET", "/api/v1/workers", read, list_workers, "listWorkers", "The workers seen since the server came up", "", "", "WorkerList"},
    {"POST", "/api/v1/callbacks/task-progress", work, report_progress, "reportProgress", "Say how far a task is", "", "TaskProgress", "Accepted"},
    {"POST", "/api/v1/callbacks/task-checkpoint", work, report_checkpoint, "reportCheckpoint", "Store what the next attempt is to begin from", "", "TaskCheckpoint", "Accepted"},
    {"POST", "/api/v1/callbacks/task-log", work, report_log, "reportLog", "Store lines of a task's log", "", "TaskLog", "LogAnswer"},
    {"POST", "/api/v1/callbacks/task-result", work, report_result, "reportResult", "Report the result of a task", "", "TaskResult", "ResultAnswer"},
    {"POST", "/api/v1/callbacks/task-results", work, report_results, "reportResults", "Report the results of many tasks, each on its own", "", "TaskResults", "ResultAnswers"},
    {"POST", "/api/v1/callbacks/worker-result", work, of_default<report_worker_result>, "reportWorkerResult", "Report the result of a job of a runbook, or an array of up to 1,000", "", "WorkerResults", "WorkerResultAnswer"},
    {"POST", "/api/v1/events", submit, of_default<accept_events>, "acceptEvents", "Take a message of a scheduler, or an array of up to 1,000", "", "SchedulerMessages", "EventAnswer"},
    {"POST", "/api/v1/runbooks", publish, of_default<publish_runbook>, "publishRunbook", "Publish a version of a runbook; refused when open batches have begun and nothing is said of them", "open_batches overdue_behavior rerun_init", "yaml", "RunbookPublished"},
    {"GET", "/api/v1/runbooks", read, of_default<list_runbooks>, "listRunbooks", "List runbooks by name, the newest version of each", "limit cursor", "", "RunbookPage"},
    {"POST", "/api/v1/runbooks/validate", read, of_default<validate_runbook>, "validateRunbook", "Check a runbook without publishing it", "", "yaml", "RunbookValidation"},
    {"POST", "/api/v1/runbooks/impact", read, of_default<show_impact>, "runbookImpact", "What publishing it would do to open batches, and what differs; nothing is stored", "", "yaml", "RunbookImpact"},
    {"POST", "/api/v1/runbooks/plan", publish, of_default<plan_runbook>, "planRunbook", "A dry run: phases with their times, steps of members with what is known; nothing is stored", "plan_limit", "PlanRequest", "Plan"},
    {"GET", "/api/v1/runbooks/{name}", read, of_default<show_runbook>, "getRunbook", "Show a runbook; with Accept: application/yaml its text", "version", "", "RunbookText"},
    {"GET", "/api/v1/runbooks/{name}/versions", read, of_default<list_versions>, "listRunbookVersions", "All versions of a runbook", "", "", "RunbookVersions"},
    {"POST", "/api/v1/runbooks/{name}/activate", publish, of_default<activate_runbook>, "activateRunbook", "Make a version the active one; without version the newest", "version", "", "RunbookChanged"},
    {"POST", "/api/v1/runbooks/{name}/deactivate", publish, of_default<deactivate_runbook>, "deactivateRunbook", "Deactivate a runbook: no new batches", "", "", "RunbookChanged"},
    {"POST", "/api/v1/runbooks/{name}/automation", submit, of_default<set_automation>, "setAutomation", "Look at the data source, or no longer", "", "Automation", "RunbookChanged"},
    {"GET", "/api/v1/runbooks/{name}/preview", read, of_default<preview_runbook>, "previewRunbook", "What the data source says now, as batches", "version preview_limit", "", "Preview"},
    {"POST", "/api/v1/runbooks/{name}/batches", submit, of_default<create_batch>, "createBatch", "Make a batch from CSV; its phases are advanced by hand", "version by", "csv", "BatchCreated"},
    {"GET", "/api/v1/batches", read, of_default<list_batches>, "listBatches", "List batches, newest first", "runbook batch_status limit cursor", "", "BatchPage"},
    {"GET", "/api/v1/batches/{batch_id}", read, of_default<show_batch>, "getBatch", "A batch with its phases, counters, init steps and open cleanups", "", "", "BatchView"},
    {"POST", "/api/v1/batches/{batch_id}/advance", submit, of_default<advance_batch>, "advanceBatch", "Begin the next phase that is pending, or the named one", "phase", "Advance", "BatchChanged"},
    {"POST", "/api/v1/batches/{batch_id}/pause", submit, of_default<pause_batch>, "pauseBatch", "Pause a batch: what runs goes on, nothing new is handed out", "", "Change", "BatchChanged"},
    {"POST", "/api/v1/batches/{batch_id}/resume", submit, of_default<resume_batch>, "resumeBatch", "Let a paused batch go on", "", "Change", "BatchChanged"},
    {"POST", "/api/v1/batches/{batch_id}/cancel", submit, of_default<cancel_batch>, "cancelBatch", "Cancel a batch", "", "Change", "BatchChanged"},
    {"POST", "/api/v1/batches/{batch_id}/approve-removals", submit, of_default<approve_removals>, "approveRemovals", "Let the members leave whose removal is held", "", "Change", "BatchChanged"},
    {"GET", "/api/v1/batches/{batch_id}/why", read, of_default<explain_batch>, "explainBatch", "Why a batch does not go on", "", "", "Why"},
    {"GET", "/api/v1/batches/{batch_id}/report", read, of_default<report_batch>, "reportBatch", "A line for each member: what became of it", "after event_limit", "", "Report"},
    {"GET", "/api/v1/batches/{batch_id}/events", read, of_default<list_batch_events>, "listBatchEvents", "What happened to a batch, oldest first", "after event_limit", "", "BatchEvents"},
    {"GET", "/api/v1/batches/{batch_id}/phases", read, of_default<list_phases>, "listPhases", "The phases of a batch with their counters", "", "", "PhaseList"},
    {"GET", "/api/v1/batches/{batch_id}/members", read, of_default<list_members>, "listMembers", "The members of a batch by id; full=true: with their data", "member_status key full many_limit cursor", "", "MemberPage"},
    {"POST", "/api/v1/batches/{batch_id}/members", submit, of_default<add_batch_members>, "addMembers", "Add members from CSV; in a batch that has begun they catch up", "by query_reason", "csv", "MembersChanged"},
    {"GET", "/api/v1/batches/{batch_id}/members/{member_id}", read, of_default<show_member>, "getMember", "A member with all its steps and cleanups", "", "", "MemberView"},
    {"GET", "/api/v1/batches/{batch_id}/members/{member_id}/why", read, of_default<explain_member>, "explainMember", "Why a member, named by its id or its key, does not go on", "", "", "MemberWhy"},
    {"POST", "/api/v1/batches/{batch_id}/members:remove", submit, of_default<remove_members>, "removeMembers", "Remove members", "", "ChosenMembers", "MembersChanged"},
    {"POST", "/api/v1/batches/{batch_id}/members:retry", submit, of_default<retry_members>, "retryMembers", "Let failed members go on from what failed; all of them when none are named", "", "ChosenMembers", "MembersChanged"},
    {"GET", "/api/v1/batches/{batch_id}/matrix", read, of_default<show_matrix>, "getMatrix", "Members against steps: columns with their counters, and a page of rows", "member_status matrix_limit cursor", "", "Matrix"},
    {"GET", "/api/v1/batches/{batch_id}/failures", read, of_default<list_failures>, "listFailures", "Steps, init steps and cleanups that failed for good, the last to fail first", "limit cursor", "", "FailurePage"},
    {"GET", "/api/v1/batches/{batch_id}/cleanups", read, of_default<list_cleanups>, "listCleanups", "Rollbacks and removals of a batch, by id", "many_limit cursor", "", "CleanupPage"},
    {"GET", "/api/v1/phases/{phase_id}/steps", read, of_default<list_steps>, "listSteps", "The steps of a phase, by id", "many_limit cursor", "", "StepPage"},
    {"GET", "/api/v1/steps/{step_id}", read, of_default<show_execution<RowType::step>>, "getStep", "One step with its documents", "", "", "ExecutionText"},
    {"GET", "/api/v1/steps/{step_id}/why", read, of_default<explain_execution<RowType::step>>, "explainStep", "Why it does not go on", "", "", "Why"},
    {"GET", "/api/v1/steps/{step_id}/logs", read, of_default<show_execution_logs<RowType::step>>, "getStepLogs", "What its jobs said, all tries and polls of it, oldest first", "after event_limit", "", "LogPage"},
    {"POST", "/api/v1/steps/{step_id}/retry", submit, of_default<change_execution<RowType::step, What::retry>>, "retryStep", "Try it again", "", "Change", "StepChanged"},
    {"POST", "/api/v1/steps/{step_id}/skip", submit, of_default<change_execution<RowType::step, What::skip>>, "skipStep", "Take it as done", "", "Change", "StepChanged"},
    {"POST", "/api/v1/steps/{step_id}/cancel", submit, of_default<change_execution<RowType::step, What::cancel>>, "cancelStep", "Give it up", "", "Change", "StepChanged"},
    {"GET", "/api/v1/inits/{init_id}", read, of_default<show_execution<RowType::init>>, "getInit", "One init step with its documents", "", "", "ExecutionText"},
    {"GET", "/api/v1/inits/{init_id}/why", read, of_default<explain_execution<RowType::init>>, "explainInit", "Why it does not go on", "", "", "Why"},
    {"GET", "/api/v1/inits/{init_id}/logs", read, of_default<show_execution_logs<RowType::init>>, "getInitLogs", "What its jobs said, all tries and polls of it, oldest first", "after event_limit", "", "LogPage"},
    {"POST", "/api/v1/inits/{init_id}/retry", submit, of_default<change_execution<RowType::init, What::retry>>, "retryInit", "Try it again", "", "Change", "StepChanged"},
    {"POST", "/api/v1/inits/{init_id}/skip", submit, of_default<change_execution<RowType::init, What::skip>>, "skipInit", "Take it as done", "", "Change", "StepChanged"},
    {"POST", "/api/v1/inits/{init_id}/cancel", submit, of_default<change_execution<RowType::init, What::cancel>>, "cancelInit", "Give it up", "", "Change", "StepChanged"},
    {"GET", "/api/v1/cleanups/{cleanup_id}", read, of_default<show_execution<RowType::cleanup>>, "getCleanup", "One cleanup with its documents", "", "", "ExecutionText"},
    {"GET", "/api/v1/cleanups/{cleanup_id}/why", read, of_default<explain_execution<RowType::cleanup>>, "explainCleanup", "Why it does not go on", "", "", "Why"},
    {"GET", "/api/v1/cleanups/{cleanup_id}/logs", read, of_default<show_execution_logs<RowType::cleanup>>, "getCleanupLogs", "What its jobs said, all tries and polls of it, oldest first", "after event_limit", "", "LogPage"},
    {"POST", "/api/v1/cleanups/{cleanup_id}/retry", submit, of_default<change_execution<RowType::cleanup, What::retry>>, "retryCleanup", "Try it again", "", "Change", "StepChanged"},
    {"POST", "/api/v1/cleanups/{cleanup_id}/skip", submit, of_default<change_execution<RowType::cleanup, What::skip>>, "skipCleanup", "Take it as done", "", "Change", "StepChanged"},
    {"POST", "/api/v1/cleanups/{cleanup_id}/cancel", submit, of_default<change_execution<RowType::cleanup, What::cancel>>, "cancelCleanup", "Give it up", "", "Change", "StepChanged"},
    {"POST", "/api/v1/tenants/{tenant}/service-calls", submit, submit_call, "submitServiceCall", "Have one HTTP request made at its time, once", "", "ServiceCallSubmission", "ServiceCallMade"},
    {"POST", "/api/v1/tenants/{tenant}/service-calls:batch", submit, submit_calls, "submitServiceCalls", "Submit up to 1,000 calls, as an object, an array or NDJSON; each is answered by itself", "", "ServiceCallBatch", "ServiceCallsSubmitted"},
    {"GET", "/api/v1/tenants/{tenant}/service-calls", read, list_calls, "listServiceCalls", "List service calls, newest first; of a range of time the earliest first", "call_status call_name tag due_from due_until limit cursor", "", "ServiceCallPage"},
    {"GET", "/api/v1/tenants/{tenant}/service-calls/{service_call_id}", read, show_call, "getServiceCall", "A service call with its events; wait_ms waits for its end", "wait_ms", "", "ServiceCallView"},
    {"POST", "/api/v1/tenants/{tenant}/service-calls/{service_call_id}/cancel", submit, cancel_call, "cancelServiceCall", "Cancel a call that is Scheduled", "", "Change", "ServiceCallChanged"},
    {"POST", "/api/v1/tenants/{tenant}/service-calls/{service_call_id}/reschedule", submit, reschedule_call, "rescheduleServiceCall", "Give a call that is Scheduled another time", "", "Reschedule", "ServiceCallChanged"},
    {"POST", "/api/v1/tenants/{tenant}/service-calls/{service_call_id}/repeat", submit, repeat_call, "repeatServiceCall", "Make the same request once more, as a call of its own", "", "Repeat", "ServiceCallMade"},
    {"GET", "/api/v1/bus/entities", read, list_bus_entities, "listBusEntities", "List queues, topics, or the subscriptions of a topic, by their paths", "entity_type bus_topic many_limit cursor", "", "BusEntityPage"},
    {"POST", "/api/v1/bus/entities", publish, create_bus_entity, "createBusEntity", "Make a queue, a topic or a subscription", "", "BusEntityCreation", "BusEntity"},
    {"GET", "/api/v1/bus/entities/{path}", read, show_bus_entity, "getBusEntity", "A queue, a topic or a subscription: settings, counts, rules; slashes in the path are %2F", "", "", "BusEntityView"},
    {"POST", "/api/v1/bus/entities/{path}", publish, change_bus_entity, "changeBusEntity", "Change settings; those that are not named stay", "", "BusSettings", "BusEntity"},
    {"POST", "/api/v1/bus/entities/{path}/delete", publish, delete_bus_entity, "deleteBusEntity", "Delete it with its messages, a topic with its subscriptions", "", "", "Deleted"},
    {"POST", "/api/v1/bus/entities/{path}/rules", publish, add_bus_rule, "addBusRule", "Add a rule to a subscription", "", "BusRule", "BusEntity"},
    {"POST", "/api/v1/bus/entities/{path}/rules/{rule}", publish, replace_bus_rule, "replaceBusRule", "Replace a rule of a subscription", "", "BusRule", "BusEntity"},
    {"POST", "/api/v1/bus/entities/{path}/rules/{rule}/delete", publish, delete_bus_rule, "deleteBusRule", "Delete a rule of a subscription", "", "", "Deleted"},
    {"GET", "/api/v1/bus/entities/{path}/messages", read, peek_bus_messages, "peekBusMessages", "Look at messages without receiving them, by sequence number; full=true: with their content", "dead after peek_limit full", "", "BusMessagePage"},
    {"POST", "/api/v1/bus/entities/{path}/dead-letters:replay", publish, replay_bus_dead_letters, "replayBusDeadLetters", "Send dead letters back to where they came from; without numbers the first ones", "", "BusReplay", "BusReplayed"},
    {"GET", "/api/v1/bus/broker", read, show_broker, "getBroker", "The external broker: whether it is connected, the links, the last trouble, and the messages that were rejected last", "", "", "Broker"},
    {"GET", "/api/v1/stream", read, open_stream, "openStream", "What changes, as server-sent events, from now on or after last_event_id", "topic last_event_id last_event_id_header", "", "events"},
    {"GET", "/api/v1/openapi.json", none, show_openapi, "getOpenApi", "This document", "", "", "Any"},
    {"GET", "/healthz", none, show_health, "getHealth", "Whether the process is alive", "", "", "Health"},
    {"GET", "/readyz", none, show_readiness, "getReadiness", "Whether the server can do work", "", "", "Health"},
    {"GET", "/metrics", read, show_metrics, "getMetrics", "Counters in Prometheus' text format", "", "", "text"},
}};
// clang-format on

std::string_view next_segment(std::string_view& rest) {
  const auto end = std::min(rest.find('/'), rest.size());
  const auto segment = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return segment;
}

bool matches(std::string_view pattern, std::string_view path, std::vector<std::string>& captures) {
  captures.clear();
  if (pattern.find('{') == std::string_view::npos) return pattern == path;
  if (std::ranges::count(pattern, '/') != std::ranges::count(path, '/')) return false;
  while (!pattern.empty()) {
    const auto expected = next_segment(pattern);
    const auto actual = next_segment(path);
    if (!expected.starts_with('{')) {
      if (expected != actual) return false;
      continue;
    }
    auto decoded = percent_decode(actual);
    if (!decoded || decoded->empty()) return false;
    captures.push_back(*std::move(decoded));
  }
  return path.empty();
}

Response unauthorized(std::string_view detail) {
  auto response = problem(401, "unauthorized", detail);
  response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"baton\"");
  return response;
}

std::optional<std::string_view> bearer(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  if (header.size() <= scheme.size() || !equal_ignoring_case(header.substr(0, scheme.size()), scheme)) {
    return std::nullopt;
  }
  auto token = header.substr(scheme.size());
  while (token.starts_with(' ')) token.remove_prefix(1);
  return token;
}

// localhost, 127.0.0.1 or [::1], with or without a port; also nothing at all, which no browser sends.
bool names_this_machine(std::string_view host) {
  if (host.empty()) return true;
  if (const auto colon = host.rfind(':'); colon != host.npos && !host.ends_with(']')) {
    if (host.find_first_not_of("0123456789", colon + 1) != host.npos) return false;
    host = host.substr(0, colon);
  }
  const bool is_ipv4 = host.find_first_not_of("0123456789.") == host.npos;
  return equal_ignoring_case(host, "localhost") || host == "[::1]" || (is_ipv4 && host.starts_with("127."));
}

// A page of another site, open in somebody's browser, must not be able to use a server that is open.
bool is_cross_site(const Request& request) {
  if (!request.from_browser || request.origin.empty()) return false;
  const auto host = request.origin.find("://");
  return host == std::string::npos ||
         !equal_ignoring_case(std::string_view(request.origin).substr(host + 3), request.host);
}

Task<Response> handle(Context& context, int& route) {
  auto& request = context.request;
  std::string allowed;
  route = find_route(request.method, request.path, request.captures, allowed);
  if (route < 0 && !allowed.empty()) {
    auto response =
        problem(405, "method_not_allowed", request.method + " is not possible here; use " + allowed);
    response.headers.emplace_back("Allow", allowed);
    co_return response;
  }
  if (route < 0) co_return problem(404, "not_found", "no such path: " + request.path);
  const auto& found = table[static_cast<std::size_t>(route)];
  auto refused = co_await authorize(context, found.permission);
  if (refused) co_return std::move(*refused);
  auto arguments = parse_query(request.query);
  if (!arguments) co_return problem(400, "malformed_query", "the query has a malformed % escape");
  request.arguments = *std::move(arguments);
  auto response = co_await found.handler(context);
  co_return response;
}

}  // namespace

Checked decide_tenant(Request& request, const std::optional<workflow::Tenant>& bound) {
  if (request.tenant_header && !is_name(*request.tenant_header, 100)) {
    return problem(422, "invalid_tenant", "Baton-Tenant must match [A-Za-z0-9_.-]{1,100}");
  }
  if (bound && request.tenant_header && *request.tenant_header != bound->value) {
    return problem(403, "forbidden", "the token belongs to another tenant");
  }
  if (bound) {
    request.scope = bound;
  } else if (request.tenant_header) {
    request.scope = workflow::Tenant{*request.tenant_header};
  }
  request.tenant = request.scope.value_or(workflow::Tenant{"default"});
  return std::nullopt;
}

Checked refuse_stranger(const Request& request, const Options& options) {
  if (options.access == Access::required) return unauthorized("a bearer token is required");
  // A name that somebody made to point here is not this machine's: a page under that name has an origin equal
  // to its Host, and some browsers do not tell the origin.
  if (options.loopback && !names_this_machine(request.host))
    return problem(
        403, "forbidden",
        "without tokens this server answers on this machine only: the Host must be localhost, 127.0.0.1 or "
        "[::1], not '" +
            clean_text(request.host, 100) + "'");
  if (is_cross_site(request)) return problem(403, "forbidden", "requests from other sites need a token");
  return std::nullopt;
}

Task<Checked> authorize(Context& context, Permission permission) {
  auto& request = context.request;
  if (permission == none) co_return decide_tenant(request, std::nullopt);
  if (!request.authorization) {
    if (auto refused = refuse_stranger(request, context.services.options)) co_return std::move(refused);
    request.role = Role::admin;
    request.allowed_until = std::chrono::steady_clock::time_point::max();
    co_return decide_tenant(request, std::nullopt);
  }
  const auto sent = bearer(*request.authorization);
  if (!sent) co_return unauthorized("the Authorization header must be 'Bearer TOKEN'");
  const auto hash = token_hash(*sent);
  auto known = context.services.tokens.find(hash, std::chrono::steady_clock::now());
  if (!known) {
    auto query = [hash](Reads& reads) { return reads.token_by_hash(hash); };
    auto found = co_await context.read(std::move(query), ReadPool::Of::others);
    if (!found) co_return problem(found.error());
    const auto until = context.services.tokens.remember(hash, *found, std::chrono::steady_clock::now());
    known = TokenCache::Known{*std::move(found), until};
  }
  const auto& token = known->token;
  request.allowed_until = known->until;
  if (!token || token->revoked_at) co_return unauthorized("the token is unknown or revoked");
  request.role = token->role;
  if (!allows(token->role, permission)) {
    co_return problem(403, "forbidden", "the role '" + std::string(name(token->role)) + "' may not do this");
  }
  co_return decide_tenant(request, token->tenant);
}

std::span<const Route> routes() { return table; }

int find_route(std::string_view method, std::string_view path, std::vector<std::string>& captures,
               std::string& allowed) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!matches(table[i].pattern, path, captures)) continue;
    if (table[i].method == method) return static_cast<int>(i);
    // A fixed path comes before the pattern that would match it too: it alone decides.
    if (!allowed.empty()) allowed += ", ";
    allowed += table[i].method;
  }
  return -1;
}

namespace {

Task<Response> dispatch(Context& context, int& route) {
  std::string what;
  try {
    auto response = co_await handle(context, route);
    co_return response;
  } catch (const std::exception& error) {
    what = error.what();
  }
  spdlog::error("request {} failed: {}", context.request.request_id, what);
  co_return problem(500, "internal", "something went wrong; the log has more under this request id");
}

}  // namespace

const Api& rest_api() {
  static const Api api = [] {
    Api made{.labels = "", .patterns = {}, .dispatch = dispatch, .refuse = problem};
    for (const Route& each : table) made.patterns.push_back(each.pattern);
    return made;
  }();
  return api;
}

}  // namespace baton::http
