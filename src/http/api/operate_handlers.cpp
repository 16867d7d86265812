// What people do to jobs: cancel, pause, resume, retry, rerun, approve, replay, and ask why nothing happens.
#include "core/runbook/machine/messages.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

// The answer to a command that tells a job.
Task<Response> tell_job(Context& context, Command command) {
  auto reply = co_await tell<JobReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(reply->created ? 201 : 200, {});
  append_job(response.body, reply->job, Documents::brief);
  co_return response;
}

// The tags of a job, which are stored as a JSON array.
std::vector<std::string> texts_of(const std::optional<std::string>& json) {
  std::vector<std::string> texts;
  const auto document = JsonDocument::parse(json.value_or("[]"));
  if (document)
    for (const JsonView& item : document->root().items()) texts.emplace_back(item.string());
  return texts;
}

Task<Response> change_job(Context& context, ChangeJob::What what) {
  auto change = read_attribution(context.request);
  if (!change) co_return std::move(change.error());
  ChangeJob command{.tenant = context.request.tenant, .job_id = {context.request.captures[0]}, .what = what};
  command.by = std::move(change->by);
  command.reason = std::move(change->reason);
  if (!is_printable(command.job_id.value, 200)) co_return no_such_job(command.job_id.value);
  Command given = std::move(command);
  co_return co_await tell_job(context, std::move(given));
}

Task<Response> decide_approval(Context& context, bool approved) {
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  DecideApproval command{.tenant = context.request.tenant,
                         .job_id = {context.request.captures[0]},
                         .node_id = context.request.captures[1],
                         .approved = approved};
  command.by = fields.required_text("by", 200);
  command.comment = fields.prose("comment").value_or("");
  if (command.comment.size() > 2000) fields.wrong("comment", "must have at most 2000 bytes");
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  if (!is_printable(command.job_id.value, 200)) co_return no_such_job(command.job_id.value);
  Command given = std::move(command);
  co_return co_await tell_job(context, std::move(given));
}

}  // namespace

Task<Response> cancel_job(Context& context) { return change_job(context, ChangeJob::What::cancel); }
Task<Response> pause_job(Context& context) { return change_job(context, ChangeJob::What::pause); }
Task<Response> resume_job(Context& context) { return change_job(context, ChangeJob::What::resume); }
Task<Response> retry_job(Context& context) { return change_job(context, ChangeJob::What::retry); }
Task<Response> approve_node(Context& context) { return decide_approval(context, true); }
Task<Response> reject_node(Context& context) { return decide_approval(context, false); }

// A new job of the same version with the same input, priority and tags.
Task<Response> rerun_job(Context& context) {
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  auto key = fields.text("idempotency_key", 200);
  if (!key) key = context.request.idempotency_key;
  if (key && !is_printable(*key, 200))
    fields.wrong("Idempotency-Key", "must have 1 to 200 bytes and no control characters");
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  const workflow::JobId id{context.request.captures[0]};
  if (!is_printable(id.value, 200)) co_return no_such_job(id.value);
  auto query = [id, tenant = context.request.tenant](Reads& reads) { return reads.job(tenant, id); };
  auto job = co_await context.read(std::move(query));
  if (!job) co_return problem(job.error());
  if (!*job) co_return no_such_job(id.value);
  SubmitJob command{.job_id = {context.new_id()},
                    .tenant = context.request.tenant,
                    .workflow_id = (*job)->workflow_id,
                    .version = (*job)->workflow_version,
                    .input_data = std::move((*job)->input_data),
                    .idempotency_key = key,
                    .request_hash = key ? sha256_hex("rerun:" + id.value) : "",
                    .priority = (*job)->priority,
                    .tags = texts_of((*job)->tags),
                    .rerun_of = id.value};
  Command given = std::move(command);
  co_return co_await tell_job(context, std::move(given));
}

Task<Response> explain_job(Context& context) {
  const workflow::JobId id{context.request.captures[0]};
  if (!is_printable(id.value, 200)) co_return no_such_job(id.value);
  ExplainJob question{context.request.tenant, id};
  auto reply = co_await tell<ExplainReply>(context, std::move(question));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_explanation(response.body, *reply);
  co_return response;
}

Task<Response> replay_task(Context& context) {
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  ReplayTask command{context.request.tenant, context.request.captures[0],
                     fields.text("by", 200).value_or("")};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  if (!is_printable(command.task_id, 600)) co_return problem(404, "task_not_found", "there is no such task");
  Command given = std::move(command);
  // A name of a runbook's job is no name of a task.
  if (!runbook::parse_job_id(context.request.captures[0]))
    co_return co_await tell_job(context, std::move(given));
  auto reply = co_await tell<StepReply>(context, std::move(given));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_step_reply(response.body, *reply);
  co_return response;
}

}  // namespace baton::http
