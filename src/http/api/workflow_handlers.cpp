// Workflows: publish, check, list, show.
#include "core/workflow/definition/definition.hpp"
#include "http/api/definition_body.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

workflow::Parsed parse_workflow(std::string_view text) { return workflow::parse(text); }

}  // namespace

Task<Response> publish_workflow(Context& context) {
  if (auto wrong = check_definition(context.request)) co_return std::move(*wrong);
  auto parsed = co_await parse_definition(context, context.request.body, parse_workflow);
  if (!parsed) co_return problem(stopping());
  if (!parsed->definition) co_return problem(parsed->diagnostics);
  PublishWorkflow command;
  command.tenant = context.request.tenant;
  command.definition = parsed->definition;
  command.text = std::move(context.request.body);
  auto published = co_await tell<WorkflowReply>(context, std::move(command));
  if (!published) co_return problem(published.error());
  auto response = json_response(published->created ? 201 : 200, "{");
  append_member(response.body, "workflow_id", published->workflow_id);
  append_member(response.body, "version", published->version);
  append_member(response.body, "created", published->created);
  append_diagnostics(response.body, "warnings", parsed->diagnostics, Diagnostic::Level::warning);
  response.body += '}';
  response.headers.emplace_back("Location", "/api/v1/workflows/" + percent_encode(published->workflow_id) +
                                                "?version=" + std::to_string(published->version));
  co_return response;
}

Task<Response> validate_workflow(Context& context) {
  if (auto wrong = check_definition(context.request)) co_return std::move(*wrong);
  auto parsed = co_await parse_definition(context, context.request.body, parse_workflow);
  if (!parsed) co_return problem(stopping());
  auto response = json_response(200, "{");
  append_member(response.body, "valid", parsed->definition != nullptr);
  if (parsed->definition) {
    append_member(response.body, "workflow_id", parsed->definition->workflow_id);
    append_member(response.body, "version", parsed->definition->version);
  }
  append_diagnostics(response.body, "errors", parsed->diagnostics, Diagnostic::Level::error);
  append_diagnostics(response.body, "warnings", parsed->diagnostics, Diagnostic::Level::warning);
  response.body += '}';
  co_return response;
}

Task<Response> list_workflows(Context& context) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 50, {1, 200}, errors));
  const std::string after = query_name_cursor(context.request, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  const auto tenant = context.request.tenant;
  // One more than asked for tells whether there is a next page.
  auto query = [tenant, after, limit](Reads& reads) { return reads.workflows(tenant, after, limit + 1); };
  auto found = co_await context.read(std::move(query));
  if (!found) co_return problem(found.error());
  std::optional<std::string> cursor;
  if (found->size() > limit) {
    found->resize(limit);
    cursor = base64url(found->back().workflow_id);
  }
  auto response = json_response(200, "{");
  append_list(response.body, "workflows", *found, [](std::string& out, const auto& each) {
    append_object(out, "workflow_id", each.workflow_id, "version", each.version, "published_at",
                  each.published_at);
  });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_workflow(Context& context) {
  std::vector<FieldError> errors;
  const auto version =
      static_cast<std::int32_t>(query_integer(context.request, "version", 0, {1, 2'147'483'647}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  const auto tenant = context.request.tenant;
  const auto id = context.request.captures[0];
  Result<std::optional<workflow::Workflow>> found = std::nullopt;
  if (is_printable(id, 200)) {
    auto query = [tenant, id, version](Reads& reads) { return reads.workflow(tenant, id, version); };
    found = co_await context.read(std::move(query));
  }
  if (!found) co_return problem(found.error());
  if (!*found) {
    const auto which = version == 0 ? std::string() : " in version " + std::to_string(version);
    co_return problem(404, "workflow_not_found", "no workflow '" + id + "'" + which);
  }
  auto& workflow = **found;
  Response response;
  if (context.request.accept.starts_with("application/yaml")) {
    response.content_type = "application/yaml";
    response.body = std::move(workflow.definition);
    co_return response;
  }
  response.body = "{";
  append_member(response.body, "workflow_id", workflow.workflow_id);
  append_member(response.body, "version", workflow.version);
  append_member(response.body, "published_at", workflow.published_at);
  append_member(response.body, "definition", workflow.definition);
  response.body += '}';
  co_return response;
}

}  // namespace baton::http
