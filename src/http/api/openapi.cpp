// Writes the OpenAPI 3.1 document from the table of routes, so that neither can be right alone.
#include <array>
#include <map>
#include <vector>

#include "base/json_write.hpp"
#include "http/api/routes.hpp"

namespace baton::http {

namespace {

struct Named {
  std::string_view name, json;
};

// clang-format off
constexpr std::array<Named, 38> parameters{{
    {"wait_ms", R"({"name":"wait_ms","in":"query","schema":{"type":"integer","minimum":0,"maximum":60000,"default":0}})"},
    {"topic", R"({"name":"topic","in":"query","description":"job:ID, batch:NUMBER, runbook:NAME, call:ID, queue:NAME, queues or all; more than one is fine","schema":{"type":"array","maxItems":50,"items":{"type":"string"},"default":["all"]},"explode":true})"},
    {"last_event_id", R"({"name":"last_event_id","in":"query","description":"where to resume, unless the header Last-Event-ID says it","schema":{"type":"string"}})"},
    {"last_event_id_header", R"({"name":"Last-Event-ID","in":"header","description":"where to resume: the last id that was seen","schema":{"type":"string"}})"},
    {"status", R"({"name":"status","in":"query","schema":{"$ref":"#/components/schemas/JobStatus"}})"},
    {"workflow_id", R"({"name":"workflow_id","in":"query","schema":{"type":"string"}})"},
    {"created_from", R"({"name":"created_from","in":"query","description":"inclusive","schema":{"type":"string","format":"date-time"}})"},
    {"created_until", R"({"name":"created_until","in":"query","description":"exclusive","schema":{"type":"string","format":"date-time"}})"},
    {"limit", R"({"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":200,"default":50}})"},
    {"event_limit", R"({"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":1000,"default":200}})"},
    {"cursor", R"({"name":"cursor","in":"query","description":"next_cursor of the page before","schema":{"type":"string"}})"},
    {"after", R"({"name":"after","in":"query","description":"next_after of the answer before","schema":{"type":"integer","minimum":0,"default":0}})"},
    {"tag", R"({"name":"tag","in":"query","schema":{"type":"string"}})"},
    {"full", R"({"name":"full","in":"query","description":"true: large documents too","schema":{"type":"boolean","default":false}})"},
    {"item_after", R"({"name":"after","in":"query","description":"next_after of the answer before","schema":{"type":"integer","minimum":-1,"default":-1}})"},
    {"overdue_behavior", R"({"name":"overdue_behavior","in":"query","description":"the same as open_batches, without keep; not both","schema":{"type":"string","enum":["rerun","ignore"]}})"},
    {"open_batches", R"({"name":"open_batches","in":"query","description":"what becomes of open batches that have begun: keep, they finish on their version; ignore, the new one for what is not due yet and has not begun; rerun, what is overdue begins again","schema":{"type":"string","enum":["keep","ignore","rerun"]}})"},
    {"rerun_init", R"({"name":"rerun_init","in":"query","description":"open batches run their init steps again","schema":{"type":"boolean","default":false}})"},
    {"runbook", R"({"name":"runbook","in":"query","schema":{"type":"string"}})"},
    {"batch_status", R"({"name":"status","in":"query","schema":{"$ref":"#/components/schemas/BatchStatus"}})"},
    {"member_status", R"({"name":"status","in":"query","schema":{"$ref":"#/components/schemas/MemberStatus"}})"},
    {"key", R"({"name":"key","in":"query","description":"only the member of that key: the active one, else the newest","schema":{"type":"string","maxLength":1000}})"},
    {"many_limit", R"({"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":1000,"default":100}})"},
    {"matrix_limit", R"({"name":"limit","in":"query","schema":{"type":"integer","minimum":1,"maximum":500,"default":100}})"},
    {"preview_limit", R"({"name":"limit","in":"query","description":"so many members are shown","schema":{"type":"integer","minimum":1,"maximum":1000,"default":20}})"},
    {"plan_limit", R"({"name":"limit","in":"query","description":"so many members are shown","schema":{"type":"integer","minimum":1,"maximum":100,"default":5}})"},
    {"phase", R"({"name":"phase","in":"query","description":"absent: the next one","schema":{"type":"string"}})"},
    {"by", R"({"name":"by","in":"query","description":"who does it","schema":{"type":"string","maxLength":200}})"},
    {"query_reason", R"({"name":"reason","in":"query","description":"why","schema":{"type":"string","maxLength":2000}})"},
    {"call_status", R"({"name":"status","in":"query","schema":{"type":"string","enum":["Scheduled","Running","Succeeded","Failed"]}})"},
    {"call_name", R"({"name":"name","in":"query","schema":{"type":"string"}})"},
    {"due_from", R"({"name":"dueFrom","in":"query","description":"inclusive","schema":{"type":"string","format":"date-time"}})"},
    {"due_until", R"({"name":"dueUntil","in":"query","description":"exclusive","schema":{"type":"string","format":"date-time"}})"},
    {"entity_type", R"({"name":"type","in":"query","schema":{"type":"string","enum":["queue","topic","subscription"],"default":"queue"}})"},
    {"bus_topic", R"({"name":"topic","in":"query","description":"whose subscriptions","schema":{"type":"string"}})"},
    {"dead", R"({"name":"dead","in":"query","description":"true: of the dead-letter queue","schema":{"type":"boolean","default":false}})"},
    {"peek_limit", R"({"name":"limit","in":"query","description":"fewer when they are large","schema":{"type":"integer","minimum":1,"maximum":200,"default":20}})"},
    {"version", R"({"name":"version","in":"query","description":"absent: the latest","schema":{"type":"integer","minimum":1}})"},
}};

// Members in short: name:type, where ~ stands before what may be absent and ? behind what may be null. A type
// is int, text, bool, time, any, a schema, or [] with the type of its items before it.
constexpr std::string_view runbook_members =
    "id:int name:text version:int is_active:bool data_table_name:text overdue_behavior:text ignore_overdue_applied:bool rerun_init:bool created_at:time "
    "automation_enabled:bool last_error:text? last_error_at:time? last_synced_at:time? held_removals:any in_transition:bool open_batches:text? ";

constexpr std::string_view batch_members =
    "id:int runbook_id:int batch_start_time:time? status:BatchStatus detected_at:time init_dispatched_at:time? is_manual:bool importing:bool created_by:text? "
    "completed_at:time? paused_at:time? paused_by:text? paused_reason:text? hold_id:int? phase_overlap:text error_message:text? removals_approved:bool walk:text ";
constexpr std::string_view phase_members =
    "id:int batch_id:int phase_name:text offset_minutes:int due_at:time? runbook_version:int status:PhaseStatus dispatched_at:time? completed_at:time? walk:text "
    "waits_for:text current_index:int ";
constexpr std::string_view member_members =
    "id:int batch_id:int member_key:text status:MemberStatus added_at:time removed_at:time? failed_at:time? add_dispatched_at:time? remove_dispatched_at:time? "
    "catching_up:bool ~data_json:any ~worker_data_json:any ";
constexpr std::string_view execution_members =
    "id:int type:text batch_id:int runbook_version:int ~phase_execution_id:int? ~batch_member_id:int? ~is_catch_up:bool ~kind:text ~sequence:text ~caused_by_step_id:int? "
    "~caused_by_init_id:int? step_name:text step_index:int status:StepStatus skipped:bool worker_id:text function_name:text? job_id:text? error_message:text? dispatched_at:time? "
    "completed_at:time? is_poll_step:bool ~poll_interval_sec:int? ~poll_timeout_sec:int? ~poll_started_at:time? ~last_polled_at:time? poll_count:int max_retries:int? "
    "retry_interval_sec:int? retry_backoff:text? retry_count:int retry_after:time? timeout_sec:int? job_state:text queued_at:time? leased_by:text? leased_at:time? "
    "lease_until:time? delivery_count:int dead_at:time? ";

constexpr std::string_view call_members =
    "tenantId:text serviceCallId:text name:text status:text dueAt:time submittedAt:time startedAt:time? finishedAt:time? requestSpec:any responseMeta:any errorMeta:any "
    "tags:text[] correlationId:text repeatOf:text? ";

constexpr std::string_view bus_settings =
    "~status:text ~lock_seconds:any ~deliveries_max:int ~time_to_live_seconds:any ~dead_letter_on_expiry:bool ~dead_letter_on_filter_error:bool "
    "~detects_duplicates:bool ~history_seconds:any ~size_max_mb:int ~delete_when_idle_seconds:any ~user_metadata:text ";
constexpr std::string_view bus_entity_members =
    "path:text type:text reserved:bool status:text lock_seconds:any deliveries_max:int time_to_live_seconds:any dead_letter_on_expiry:bool "
    "dead_letter_on_filter_error:bool detects_duplicates:bool history_seconds:any size_max_mb:int delete_when_idle_seconds:any user_metadata:text "
    "counts:BusCounts bytes:int last_sequence_number:int created_at:time updated_at:time accessed_at:time ~subscriptions:int ~rules:BusRule[] ~pool:text ~counts_are_at_least:bool ";

struct Short {
  std::string_view name, base, members;
};

constexpr std::array<Short, 105> short_schemas{{
    {"BusSettings", bus_settings, ""},
    {"BusEntityCreation", bus_settings, "type:text path:text ~rules:BusRule[]"},
    {"BusCounts", "", "active:int dead:int scheduled:int deferred:int"},
    {"BusEntity", bus_entity_members, ""},
    {"BusEntityView", bus_entity_members, "oldest_enqueued_at:time?"},
    {"BusEntityPage", "", "entities:BusEntity[] next_cursor:text?"},
    {"BusSql", "", "expression:text ~parameters:any"},
    {"BusCorrelation", "", "~correlation_id:text ~message_id:text ~to:text ~reply_to:text ~label:text ~session_id:text ~reply_to_session_id:text ~content_type:text ~properties:any"},
    {"BusRule", "", "name:text ~sql:BusSql ~correlation:BusCorrelation ~false:bool ~action:BusSql ~created_ms:int"},
    {"BusMessage", "", "sequence_number:int state:text message_id:text enqueued_at:time delivery_count:int locked_until:time? ~expires_at:time? ~scheduled_for:time? size:int enqueued_sequence_number:int dead_letter_source:text? dead_letter_reason:text? dead_letter_description:text? ~changes:any ~properties:any ~application_properties:any ~body_type:text ~body:any ~content_base64:text"},
    {"BusMessagePage", "", "messages:BusMessage[] next_after:int"},
    {"BusReplay", "", "~sequence_numbers:int[] ~max:int ~after:int ~up_to:int"},
    {"BusReplayed", "", "replayed:int are_more:bool next_after:int"},
    {"Deleted", "", "deleted:bool"},
    {"Broker", "", "address:text connected:bool since:time trouble:text? trouble_at:time? links:BrokerLink[] rejected:BrokerRejected[]"},
    {"BrokerLink", "", "address:text direction:text queue:text? open:bool since:time trouble:text?"},
    {"BrokerRejected", "", "at:time rejected_by:text source:text message_id:text? reason:text description:text"},
    {"StreamChange", "", "kind:text id:text what:text ~status:text ~node_id:text ~workflow_id:text ~version:int ~runbook_id:int tenant:text at:time commit:int"},
    {"StreamNotice", "", "why:text"},
    {"ServiceCall", call_members, ""},
    {"ServiceCallMade", call_members, "created:bool"},
    {"ServiceCallChanged", call_members, "changed:bool"},
    {"ServiceCallRefused", "", "code:text error:text"},
    {"ServiceCallView", call_members, "timeline:ServiceCallEvent[]"},
    {"ServiceCallEvent", "", "version:int type:text occurredAt:time correlationId:text causationId:text data:any"},
    {"ServiceCallPage", "", "serviceCalls:ServiceCall[] nextCursor:text?"},
    {"RequestSpec", "", "~method:text url:text ~headers:Headers ~body:any ~bodyBase64:text ~timeoutMs:int ~redirects:int ~probe:Probe"},
    {"Probe", "", "~method:text url:text ~headers:Headers"},
    {"ServiceCallSubmission", "", "~tenantId:text name:text ~dueAt:time ~delaySeconds:any requestSpec:RequestSpec ~tags:text[] ~idempotencyKey:text ~correlationId:text"},
    {"ServiceCallBatch", "", "calls:ServiceCallSubmission[]"},
    {"ServiceCallsSubmitted", "", "calls:ServiceCallAnswer[]"},
    {"Reschedule", "", "~dueAt:time ~delaySeconds:any ~by:text ~reason:text"},
    {"Repeat", "", "~dueAt:time ~delaySeconds:any ~idempotencyKey:text"},
    {"Runbook", runbook_members, ""},
    {"RunbookText", runbook_members, "yaml_content:text"},
    {"RunbookChanged", runbook_members, "changed:bool"},
    {"RunbookPublished", runbook_members, "created:bool warnings:Diagnostic[]"},
    {"RunbookChange", "", "change:text where:text ~field:text ~from:text ~to:text"},
    {"PhaseImpact", "", "phase_name:text version:int what:text due_at:time? at_once:bool"},
    {"BatchImpactAnswer", "", "answer:text phases:PhaseImpact[]"},
    {"BatchImpact", "", "batch_id:int batch_start_time:time? status:BatchStatus runbook_version:int has_begun:bool member_count:int member_keys:text[] answers:BatchImpactAnswer[]"},
    {"RunbookImpact", "", "name:text version:int current_version:int? unchanged:bool changes:RunbookChange[] open_batches:BatchImpact[] are_more:bool warnings:Diagnostic[]"},
    {"RunbookPage", "", "runbooks:Runbook[] next_cursor:text?"},
    {"RunbookVersions", "", "versions:Runbook[]"},
    {"RunbookValidation", "", "valid:bool ~name:text errors:Diagnostic[] warnings:Diagnostic[]"},
    {"Automation", "", "enabled:bool"},
    {"SchedulerMessage", "", "messageType:text runbookName:text runbookVersion:int batchId:int ~phaseExecutionId:int ~memberIds:int[] ~batchMemberId:int ~stepExecutionId:int ~initExecutionId:int ~isInitStep:bool ~stepName:text ~retryCount:int"},
    {"EventOutcome", "", "accepted:bool ~changed:bool ~note:text ~code:text ~message:text"},
    {"EventAnswer", "", "~accepted:bool ~changed:bool ~note:text ~results:EventOutcome[]"},
    {"WorkerResultOutcome", "", "jobId:text accepted:bool duplicate:bool ~ignored:text ~code:text ~message:text"},
    {"WorkerResultAnswer", "", "~accepted:bool ~duplicate:bool ~ignored:text ~code:text ~results:WorkerResultOutcome[]"},
    {"RunbookJob", "", "jobId:text batchId:int workerId:text functionName:text parameters:any correlationData:CorrelationData lease:text lease_until:time timeout_seconds:int delivery_count:int retry_count:int"},
    {"CorrelationData", "", "~stepExecutionId:int ~initExecutionId:int ~cleanupExecutionId:int isInitStep:bool runbookName:text runbookVersion:int"},
    {"BatchSummary", batch_members, "runbook_name:text runbook_version:int outcome:Outcome"},
    {"BatchChanged", batch_members, "changed:bool note:text"},
    {"BatchCreated", batch_members, "member_count:int left_out:int"},
    {"BatchPage", "", "batches:BatchSummary[] next_cursor:text?"},
    {"BatchView", batch_members, "runbook_name:text runbook_version:int outcome:Outcome holds:Need[] no_worker:NoWorker[] members:Counts phases:PhaseView[] init_steps:Execution[] rollbacks:Counts removals:Counts catch_up:Counts skipped:Counts open_cleanups:Execution[] held_removals:any"},
    {"NeedAnswer", "", "answer:text does:text"},
    {"Need", "", "id:text kind:text ~runbook:text ~batch_id:int ~phase_execution_id:int? ~phase:text? ~job_id:text ~node_id:text ~queue:text ~waiting:int message:text since:time? ~details:any answers:NeedAnswer[] answer_by:time?"},
    {"NeedList", "", "needs:Need[]"},
    {"NeedDecision", "", "answer:text ~by:text ~reason:text"},
    {"NeedDecided", "", "id:text kind:text ~batch_id:int ~job_id:text answer:text? by:text? reason:text? ~decided_at:time? changed:bool"},
    {"NoWorker", "", "queue:text since:time waiting:int last_poll:time? message:text"},
    {"RetryingSteps", "", "count:int next_at:time?"},
    {"PhaseMembers", "", "all:int done:int failed:int"},
    {"WhyReason", "", "reason:text message:text since:time? until:time?"},
    {"Why", "", "id:text status:text reason:text summary:text reasons:WhyReason[]"},
    {"MemberWhy", "", "member_key:text status:text reason:text summary:text reasons:WhyReason[]"},
    {"Report", "", "members:ReportLine[] next_after:int"},
    {"ReportLine", "", "id:int member_key:text status:MemberStatus outcome:text first_at:time? last_at:time? phases_done:text[] failed_phase:text failed_step:text error:text"},
    {"BatchEvent", "", "event_id:int event_type:text created_at:time batch_member_id:int? job_id:text? message:text"},
    {"BatchEvents", "", "events:BatchEvent[] next_after:int"},
    {"StepCounts", "", "step_index:int ~step_name:text counts:Counts ~catch_up:Counts skipped:Counts"},
    {"PhaseView", phase_members, "outcome:Outcome members:PhaseMembers ~retrying:RetryingSteps counts:Counts steps:StepCounts[] rollbacks:Counts catch_up:Counts skipped:Counts"},
    {"PhaseList", "", "phases:PhaseView[]"},
    {"Member", member_members, ""},
    {"MemberPage", "", "members:Member[] next_cursor:text?"},
    {"MemberView", member_members, "steps:ExecutionText[] cleanups:ExecutionText[]"},
    {"ChosenMembers", "", "~member_ids:int[] ~member_keys:text[] ~all:bool ~by:text ~reason:text"},
    {"LeftOut", "", "reason:text message:text count:int member_keys:text[]"},
    {"MembersChanged", "", "count:int left_out:int left_out_because:LeftOut[] note:text member_ids:int[] phases:text[]"},
    {"Execution", execution_members, ""},
    {"ExecutionText", execution_members, "params_json:any result_json:any ~trouble:text"},
    {"Failure", execution_members, "member_key:text phase_name:text"},
    {"FailurePage", "", "failures:Failure[] next_cursor:text?"},
    {"CleanupPage", "", "cleanups:Execution[] next_cursor:text?"},
    {"StepPage", "", "steps:Execution[] next_cursor:text?"},
    {"StepChanged", "", "id:int type:text status:StepStatus"},
    {"MatrixPhase", phase_members, "steps:StepCounts[]"},
    {"MatrixCell", "", "step_id:int status:StepStatus retry_count:int poll_count:int is_catch_up:bool skipped:bool"},
    {"MatrixRow", "", "id:int member_key:text status:MemberStatus catching_up:bool cells:MatrixCells"},
    {"Matrix", "", "batch_id:int members_by_status:Counts phases:MatrixPhase[] members:MatrixRow[] next_cursor:text?"},
    {"Advance", "", "~phase:text ~by:text ~reason:text"},
    {"SourceMember", "", "member_key:text data:any"},
    {"PreviewBatch", "", "batch_start_time:time? member_count:int members:SourceMember[]"},
    {"Preview", "", "name:text version:int member_count:int batches:PreviewBatch[]"},
    {"PlanRequest", "", "~runbook:text ~version:int ~yaml:text ~csv:text ~batch_start_time:text ~limit:int"},
    {"PlannedStep", "", "step_name:text worker_id:text function_name:text params:any unresolved:text[] from_earlier_steps:text[]"},
    {"PlannedPhase", "", "phase_name:text offset_minutes:int due_at:time? overdue:bool step_count:int"},
    {"PlannedSteps", "", "phase_name:text steps:PlannedStep[]"},
    {"PlannedMember", "", "member_key:text phases:PlannedSteps[]"},
    {"PlannedBatch", "", "batch_start_time:time? member_count:int init_steps:PlannedStep[] phases:PlannedPhase[] members:PlannedMember[]"},
    {"Unresolved", "", "phase_name:text? step_name:text variable:text count:int member_keys:text[]"},
    {"Plan", "", "name:text version:int member_count:int note:text batches:PlannedBatch[] unresolved:Unresolved[] warnings:Diagnostic[]"},
}};

constexpr std::string_view job_members =
    R"("job_id":{"type":"string"},"tenant":{"type":"string"},"workflow_id":{"type":"string"},"workflow_version":{"type":"integer"},)"
    R"("status":{"$ref":"#/components/schemas/JobStatus"},"error":{"type":["string","null"]},"traceparent":{"type":["string","null"]},)"
    R"("created_at":{"type":"string","format":"date-time"},"started_at":{"type":["string","null"],"format":"date-time"},)"
    R"("completed_at":{"type":["string","null"],"format":"date-time"},)"
    R"("priority":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}},"due_at":{"type":["string","null"],"format":"date-time"},)"
    R"("paused_at":{"type":["string","null"],"format":"date-time"},"paused_by":{"type":["string","null"]},"rerun_of":{"type":["string","null"]})";

constexpr std::array<Named, 54> schemas{{
    {"Any", R"({"type":"object"})"},
    {"Health", R"({"type":"object","properties":{"status":{"type":"string"},"slow_turn_ms":{"type":"integer","description":"a turn of the engine has taken so long, over a second"}},"required":["status"]})"},
    {"JobStatus", R"({"type":"string","enum":["PENDING","RUNNING","COMPLETED","FAILED","CANCELLED"]})"},
    {"NodeStatus", R"({"type":"string","enum":["PENDING","READY","DISPATCHED","RUNNING","COMPLETED","FAILED","SKIPPED","CANCELLED"]})"},
    {"JobSubmission", R"({"type":"object","additionalProperties":false,"required":["workflow_id"],"properties":{"workflow_id":{"type":"string","minLength":1,"maxLength":200},"version":{"type":"integer","minimum":1},"input_data":{"type":"object","default":{}},"idempotency_key":{"type":"string","maxLength":200},"priority":{"type":"integer","minimum":-100,"maximum":100,"default":0,"description":"higher first"},"tags":{"type":"array","maxItems":20,"items":{"type":"string","maxLength":100}},"due_at":{"type":"string","format":"date-time"},"delay_seconds":{"type":"number","minimum":0}}})"},
    {"JobSummary", ""},  // written from job_members
    {"Job", R"({"allOf":[{"$ref":"#/components/schemas/JobSummary"},{"type":"object","required":["input_data","result_data"],"properties":{"input_data":{"type":["object","null"]},"result_data":{"type":["object","null"]},"input_data_bytes":{"type":"integer"},"result_data_bytes":{"type":"integer"}}}]})"},
    {"JobView", R"({"allOf":[{"$ref":"#/components/schemas/Job"},{"type":"object","required":["nodes"],"properties":{"nodes":{"type":"object","additionalProperties":{"$ref":"#/components/schemas/Node"}},"nodes_truncated":{"type":"boolean"}}}]})"},
    {"Node", R"({"type":"object","required":["status","retry_count"],"properties":{"status":{"$ref":"#/components/schemas/NodeStatus"},"retry_count":{"type":"integer"},"delivery_count":{"type":"integer"},"task_id":{"type":["string","null"]},"queue":{"type":["string","null"]},"worker_id":{"type":["string","null"]},"lease_until":{"type":["string","null"],"format":"date-time"},"items":{"type":"object","properties":{"total":{"type":"integer"},"created":{"type":"integer"},"done":{"type":"integer"},"failed":{"type":"integer"}}},"item_index":{"type":"integer"},"progress":{"type":"object"},"params":{},"checkpoint":{},"timer_due":{"type":"string","format":"date-time"},"dead_at":{"type":"string","format":"date-time"},"job_id":{"type":"string"},"node_id":{"type":"string"},"output":{},"output_bytes":{"type":"integer"},"error":{"type":["string","null"]},"dispatched_at":{"type":["string","null"],"format":"date-time"},"started_at":{"type":["string","null"],"format":"date-time"},"completed_at":{"type":["string","null"],"format":"date-time"}}})"},
    {"JobPage", R"({"type":"object","required":["jobs","next_cursor"],"properties":{"jobs":{"type":"array","items":{"$ref":"#/components/schemas/JobSummary"}},"next_cursor":{"type":["string","null"]}}})"},
    {"Event", R"({"type":"object","required":["event_id","event_type","job_id","created_at"],"properties":{"event_id":{"type":"integer"},"event_type":{"type":"string"},"job_id":{"type":"string"},"node_id":{"type":["string","null"]},"created_at":{"type":"string","format":"date-time"},"event_data":{}}})"},
    {"Timeline", R"({"type":"object","required":["events","next_after"],"properties":{"events":{"type":"array","items":{"$ref":"#/components/schemas/Event"}},"next_after":{"type":"integer"},"status":{"$ref":"#/components/schemas/JobStatus"}}})"},
    {"Change", R"({"type":"object","properties":{"by":{"type":"string","maxLength":200},"reason":{"type":"string","maxLength":2000}}})"},
    {"Rerun", R"({"type":"object","properties":{"idempotency_key":{"type":"string","maxLength":200}}})"},
    {"Approval", R"({"type":"object","required":["by"],"properties":{"by":{"type":"string","maxLength":200},"comment":{"type":"string","maxLength":2000}}})"},
    {"ApprovalPage", R"({"type":"object","required":["approvals"],"properties":{"approvals":{"type":"array","items":{"type":"object","properties":{"job_id":{"type":"string"},"node_id":{"type":"string"},"message":{"type":["string","null"]},"since":{"type":"string","format":"date-time"},"timeout_at":{"type":["string","null"],"format":"date-time"}}}}}})"},
    {"ItemPage", R"({"type":"object","required":["items","next_after"],"properties":{"items":{"type":"array","items":{"$ref":"#/components/schemas/Node"}},"next_after":{"type":"integer"}}})"},
    {"LogPage", R"({"type":"object","required":["lines","next_after"],"properties":{"lines":{"type":"array","items":{"type":"object","properties":{"log_id":{"type":"integer"},"node_id":{"type":"string"},"retry_count":{"type":"integer"},"stream":{"type":"string"},"at":{"type":"string","format":"date-time"},"text":{"type":"string"}}}},"next_after":{"type":"integer"}}})"},
    {"Replayed", R"({"oneOf":[{"$ref":"#/components/schemas/Job"},{"$ref":"#/components/schemas/StepChanged"}]})"},
    {"DeadLetterPage", R"({"type":"object","required":["dead_letters","next_cursor"],"properties":{"dead_letters":{"type":"array","items":{"type":"object","description":"a task of a job, or a job of a runbook, which has batch_id and what comes after it","properties":{"task_id":{"type":"string"},"job_id":{"type":"string"},"node_id":{"type":"string"},"batch_id":{"type":"integer"},"type":{"type":"string","enum":["step","init","cleanup"]},"id":{"type":"integer"},"step_name":{"type":"string"},"batch_member_id":{"type":"integer"},"queue":{"type":["string","null"]},"worker_id":{"type":["string","null"]},"error":{"type":["string","null"]},"deliveries":{"type":"integer"},"dead_at":{"type":"string","format":"date-time"}}}},"next_cursor":{"type":["string","null"]}}})"},
    {"Explanation", R"({"type":"object","required":["job_id","status","reason","summary","waiting"],"properties":{"job_id":{"type":"string"},"workflow_id":{"type":"string"},"status":{"$ref":"#/components/schemas/JobStatus"},"reason":{"type":"string"},"summary":{"type":"string"},"waiting":{"type":"array","items":{"type":"object","required":["node_id","status","reason","message"],"properties":{"node_id":{"type":"string"},"status":{"$ref":"#/components/schemas/NodeStatus"},"reason":{"type":"string","enum":["not_due","paused","waits_for_nodes","retry_later","its_turn_comes","waiting_until","waits_for_approval","limit_reached","waits_for_items","gathering","no_worker","broker_away","workers_busy","running"]},"message":{"type":"string"},"since":{"type":["string","null"],"format":"date-time"},"until":{"type":["string","null"],"format":"date-time"},"queue":{"type":["string","null"]},"held_by":{"type":"array","items":{"type":"string"}}}}}}})"},
    {"WorkerList", R"({"type":"object","required":["workers"],"properties":{"workers":{"type":"array","items":{"type":"object","required":["worker","queues","last_seen_at"],"properties":{"worker":{"type":"string"},"tenant":{"type":"string"},"queues":{"type":"array","items":{"type":"string"}},"first_seen_at":{"type":"string","format":"date-time"},"last_seen_at":{"type":"string","format":"date-time"},"polling":{"type":"boolean"},"running_count":{"type":"integer"},"running":{"type":"array","items":{"type":"string"}},"completed":{"type":"integer"},"failed":{"type":"integer"},"results_last_minute":{"type":"integer"}}}}}})"},
    {"TaskProgress", R"({"type":"object","required":["task_id"],"properties":{"task_id":{"type":"string"},"lease":{"type":["string","null"]},"progress":{"type":"number","minimum":0,"maximum":100},"message":{"type":"string"}}})"},
    {"TaskCheckpoint", R"({"type":"object","required":["task_id","checkpoint"],"properties":{"task_id":{"type":"string"},"lease":{"type":["string","null"]},"checkpoint":{}}})"},
    {"TaskLog", R"({"type":"object","required":["task_id","lines"],"properties":{"task_id":{"type":"string"},"lease":{"type":["string","null"]},"lines":{"type":"array","maxItems":1000,"items":{"type":"object","properties":{"stream":{"type":"string"},"at":{"type":"string","format":"date-time"},"text":{"type":"string"}}}}}})"},
    {"Accepted", R"({"type":"object","required":["accepted"],"properties":{"accepted":{"type":"boolean"}}})"},
    {"LogAnswer", R"({"type":"object","required":["accepted"],"properties":{"accepted":{"type":"boolean"},"stored":{"type":"integer"},"truncated":{"type":"boolean"}}})"},
    {"Diagnostic", R"({"type":"object","required":["line","column","code","message"],"properties":{"line":{"type":"integer"},"column":{"type":"integer"},"code":{"type":"string"},"message":{"type":"string"},"hint":{"type":"string"}}})"},
    {"Published", R"({"type":"object","required":["workflow_id","version","created"],"properties":{"workflow_id":{"type":"string"},"version":{"type":"integer"},"created":{"type":"boolean"},"warnings":{"type":"array","items":{"$ref":"#/components/schemas/Diagnostic"}}}})"},
    {"Validation", R"({"type":"object","required":["valid","errors","warnings"],"properties":{"valid":{"type":"boolean"},"workflow_id":{"type":"string"},"version":{"type":"integer"},"errors":{"type":"array","items":{"$ref":"#/components/schemas/Diagnostic"}},"warnings":{"type":"array","items":{"$ref":"#/components/schemas/Diagnostic"}}}})"},
    {"WorkflowPage", R"({"type":"object","required":["workflows","next_cursor"],"properties":{"workflows":{"type":"array","items":{"type":"object","properties":{"workflow_id":{"type":"string"},"version":{"type":"integer"},"published_at":{"type":"string","format":"date-time"}}}},"next_cursor":{"type":["string","null"]}}})"},
    {"Workflow", R"({"type":"object","required":["workflow_id","version","definition"],"properties":{"workflow_id":{"type":"string"},"version":{"type":"integer"},"published_at":{"type":"string","format":"date-time"},"definition":{"type":"string"}}})"},
    {"Headers", R"({"type":"object","additionalProperties":{"type":"string"}})"},
    {"ServiceCallAnswer", R"({"oneOf":[{"$ref":"#/components/schemas/ServiceCallMade"},{"$ref":"#/components/schemas/ServiceCallRefused"}]})"},
    {"PollRequest", R"({"type":"object","properties":{"max":{"type":"integer","minimum":1,"maximum":1000,"default":1},"wait_ms":{"type":"integer","minimum":0,"maximum":60000,"default":0},"worker":{"type":"string"},"heartbeat":{"type":"boolean","default":false}}})"},
    {"PollAnswer", R"({"type":"object","required":["jobs"],"properties":{"jobs":{"type":"array","items":{"anyOf":[{"$ref":"#/components/schemas/WorkflowJob"},{"$ref":"#/components/schemas/RunbookJob"}]}}}})"},
    {"WorkflowJob", R"({"type":"object","required":["task_id","job_id","node_id","handler","params","queue","lease"],"properties":{"task_id":{"type":"string"},"job_id":{"type":"string"},"node_id":{"type":"string"},"handler":{"type":"string"},"params":{},"queue":{"type":"string"},"timeout_seconds":{"type":"integer"},"retry_count":{"type":"integer"},"delivery_count":{"type":"integer"},"lease":{"type":"string"},"lease_until":{"type":"string","format":"date-time"},"traceparent":{"type":"string"},"checkpoint":{}}})"},
    {"BatchStatus", R"({"type":"string","enum":["detected","init_dispatched","active","completed","failed","cancelled"]})"},
    {"Outcome", R"({"type":"string","description":"the status, but completed_with_failures instead of completed when a part failed"})"},
    {"MemberStatus", R"({"type":"string","enum":["active","removed","failed"]})"},
    {"PhaseStatus", R"({"type":"string","enum":["pending","dispatched","completed","failed","skipped","superseded"]})"},
    {"StepStatus", R"({"type":"string","enum":["pending","dispatched","polling","succeeded","failed","poll_timeout","rolled_back","cancelled"]})"},
    {"Counts", R"({"type":"object","description":"how many are in which status; those with none are not there","additionalProperties":{"type":"integer"}})"},
    {"MatrixCells", R"({"type":"array","description":"one for each step of each phase, in the order of phases and steps","items":{"anyOf":[{"type":"null"},{"$ref":"#/components/schemas/MatrixCell"}]}})"},
    {"SchedulerMessages", R"({"oneOf":[{"$ref":"#/components/schemas/SchedulerMessage"},{"type":"array","maxItems":1000,"items":{"$ref":"#/components/schemas/SchedulerMessage"}}]})"},
    {"WorkerResult", R"({"type":"object","required":["jobId","status"],"properties":{"jobId":{"type":"string","maxLength":600,"description":"which attempt it is of"},"status":{"type":"string"},"result":{},"error":{},"durationMs":{"type":["number","null"],"minimum":0},"lease":{"type":["string","null"]},"workerId":{"type":["string","null"]},"correlationData":{"type":"object","description":"as the job had it; which step it is of","properties":{"stepExecutionId":{"type":"integer"},"initExecutionId":{"type":"integer"},"cleanupExecutionId":{"type":"integer"},"isInitStep":{"type":"boolean"}}}}})"},
    {"WorkerResults", R"({"oneOf":[{"$ref":"#/components/schemas/WorkerResult"},{"type":"array","maxItems":1000,"items":{"$ref":"#/components/schemas/WorkerResult"}}]})"},
    {"TaskResult", R"({"type":"object","required":["task_id","status"],"properties":{"task_id":{"type":"string"},"job_id":{"type":"string"},"node_id":{"type":"string"},"status":{"type":"string","enum":["completed","failed"]},"output":{},"error":{"type":["string","null"]},"error_message":{"type":["string","null"]},"worker_id":{"type":["string","null"]},"execution_duration_ms":{"type":["integer","null"]},"lease":{"type":["string","null"]}}})"},
    {"TaskResults", R"({"type":"object","required":["results"],"properties":{"results":{"type":"array","maxItems":1000,"items":{"$ref":"#/components/schemas/TaskResult"}}}})"},
    {"ResultAnswer", R"({"type":"object","required":["accepted","duplicate"],"properties":{"accepted":{"type":"boolean"},"duplicate":{"type":"boolean"},"ignored":{"type":"string"},"code":{"type":"string"}}})"},
    {"ResultAnswers", R"({"type":"object","required":["results"],"properties":{"results":{"type":"array","items":{"type":"object","required":["task_id","accepted","duplicate"],"properties":{"task_id":{"type":"string"},"accepted":{"type":"boolean"},"duplicate":{"type":"boolean"},"ignored":{"type":"string"},"code":{"type":"string"},"message":{"type":"string"}}}}}})"},
    {"HeartbeatRequest", R"({"type":"object","required":["worker","tasks"],"properties":{"worker":{"type":"string"},"tasks":{"type":"array","maxItems":1000,"items":{"type":"object","required":["task_id","lease"],"properties":{"task_id":{"type":"string"},"lease":{"type":"string"}}}}}})"},
    {"HeartbeatAnswer", R"({"type":"object","required":["lease_until","cancelled"],"properties":{"lease_until":{"type":"string","format":"date-time"},"cancelled":{"type":"array","items":{"type":"string"}}}})"},
    {"Problem", R"({"type":"object","required":["type","title","status","code"],"properties":{"type":{"type":"string"},"title":{"type":"string"},"status":{"type":"integer"},"code":{"type":"string"},"detail":{"type":"string"},"instance":{"type":"string"},"errors":{"type":"array","items":{"type":"object"}}}})"},
}};
// clang-format on

Json reference_to(std::string_view schema) { return json_object("$ref", "#/components/schemas/" + std::string(schema)); }

// "int" -> {"type":"integer"}
Json schema_of(std::string_view type, bool is_nullable) {
  if (type.ends_with("[]"))
    return json_object("type", "array", "items", schema_of(type.substr(0, type.size() - 2), false));
  if (type == "any") return {"{}"};
  if (type != "int" && type != "bool" && type != "text" && type != "time") {
    if (!is_nullable) return reference_to(type);
    return json_object("anyOf", std::array{json_object("type", "null"), reference_to(type)});
  }
  const std::string_view word = type == "int" ? "integer" : type == "bool" ? "boolean" : "string";
  Json schema{"{"};
  if (is_nullable)
    append_member(schema.text, "type", std::array<std::string_view, 2>{word, "null"});
  else
    append_member(schema.text, "type", word);
  if (type == "time") append_member(schema.text, "format", "date-time");
  schema.text += '}';
  return schema;
}

// "id:int" -> "id":{"type":"integer"}
void append_properties(std::string& out, std::string_view members, std::vector<std::string_view>& required) {
  while (!members.empty()) {
    auto member = members.substr(0, members.find(' '));
    members.remove_prefix(std::min(member.size() + 1, members.size()));
    if (member.empty()) continue;
    const bool is_optional = member.starts_with('~');
    const bool is_nullable = member.ends_with('?');
    member = member.substr(is_optional ? 1 : 0, member.size() - (is_optional ? 1 : 0) - (is_nullable ? 1 : 0));
    const auto colon = member.find(':');
    append_member(out, member.substr(0, colon), schema_of(member.substr(colon + 1), is_nullable));
    if (!is_optional) required.push_back(member.substr(0, colon));
  }
}

void append_short_schemas(std::string& out) {
  for (const auto& [name, base, members] : short_schemas) {
    Json properties{"{"};
    std::vector<std::string_view> required;
    append_properties(properties.text, base, required);
    append_properties(properties.text, members, required);
    properties.text += '}';
    append_member(out, name, json_object("type", "object", "required", required, "properties", properties));
  }
}

std::string_view parameter(std::string_view name) {
  for (const auto& each : parameters) {
    if (each.name == name) return each.json;
  }
  ENSURE(!"a route names an unknown parameter");
  return {};
}

Json content_of(std::string_view media_type, const Json& schema) {
  return json_object(media_type, json_object("schema", schema));
}

void append_parameters(std::string& out, const Route& route) {
  std::vector<Json> all{{R"({"name":"Baton-Tenant","in":"header","schema":{"type":"string"}})"}};
  for (auto at = route.pattern.find('{'); at != std::string_view::npos; at = route.pattern.find('{', at + 1)) {
    const auto name = route.pattern.substr(at + 1, route.pattern.find('}', at) - at - 1);
    all.push_back(json_object("name", name, "in", "path", "required", true, "schema", schema_of("text", false)));
  }
  auto names = route.query;
  while (!names.empty()) {
    const auto end = std::min(names.find(' '), names.size());
    all.push_back({std::string(parameter(names.substr(0, end)))});
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  append_member(out, "parameters", all);
}

Json request_body(std::string_view body) {
  if (body != "yaml" && body != "csv") return json_object("content", content_of("application/json", reference_to(body)));
  const std::string_view media_type = body == "yaml" ? "application/yaml" : "text/csv";
  return json_object("required", true, "content", content_of(media_type, schema_of("text", false)));
}

Json answer_content(std::string_view answer) {
  if (answer == "text") return content_of("text/plain", schema_of("text", false));
  if (answer == "events")
    return {R"({"text/event-stream":{"schema":{"type":"string","description":"blocks of event, id and data, where data is JSON as x-data says"},)"
            R"("x-data":{"anyOf":[{"$ref":"#/components/schemas/StreamChange"},{"$ref":"#/components/schemas/StreamNotice"}]}}})"};
  return content_of("application/json", reference_to(answer));
}

Json operation_of(const Route& route) {
  Json made{"{"};
  std::string& out = made.text;
  append_members(out, "operationId", route.operation, "summary", route.summary);
  append_parameters(out, route);
  if (route.permission == Permission::none) append_member(out, "security", std::vector<Json>{});
  if (!route.body.empty()) append_member(out, "requestBody", request_body(route.body));
  const Json done = json_object("description", "done", "content", answer_content(route.answer));
  const Json refused = json_object("description", "refused", "content",
                                   content_of("application/problem+json", reference_to("Problem")));
  append_member(out, "responses", json_object("2XX", done, "default", refused));
  out += '}';
  return made;
}

void append_paths(std::string& out) {
  std::map<std::string_view, std::vector<const Route*>> by_path;
  for (const auto& route : routes()) by_path[route.pattern].push_back(&route);
  for (const auto& [path, operations] : by_path) {
    append_key(out, path);
    out += '{';
    for (const auto* route : operations) append_member(out, route->method == "GET" ? "get" : "post", operation_of(*route));
    out += '}';
  }
}

void append_schemas(std::string& out) {
  for (const auto& [name, json] : schemas) {
    append_key(out, name);
    if (name == "JobSummary") {
      out +=
          R"({"type":"object","required":["job_id","workflow_id","workflow_version","status","created_at"],"properties":{)";
      out += job_members;
      out += "}}";
    } else {
      out += json;
    }
  }
  append_short_schemas(out);
}

std::string write_document() {
  std::string out =
      R"({"openapi":"3.1.0","info":{"title":"baton","version":"1","description":"Durable orchestration: workflows, jobs and the workers that run them."},)"
      R"("servers":[{"url":"/"}],"security":[{},{"bearer":[]}],"paths":{)";
  append_paths(out);
  out += R"(},"components":{"securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"schemas":{)";
  append_schemas(out);
  out += "}}}";
  return out;
}

}  // namespace

const std::string& openapi_document() {
  static const std::string document = write_document();
  return document;
}

}  // namespace baton::http
