// Runbooks: publish, check, list, show, switch on and off.
#include "core/runbook/definition/definition.hpp"
#include "http/api/definition_body.hpp"
#include "http/api/routes.hpp"
#include "http/api/runbook_impact.hpp"
#include "http/api/stored_runbook.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

runbook::Parsed parse_runbook(std::string_view text) { return runbook::parse(text); }

Task<Response> change_runbook(Context& context, ChangeRunbook command) {
  command.name = context.request.captures[0];
  if (!is_printable(command.name, 400)) co_return no_such_runbook(command.name);
  auto reply = co_await tell<RunbookReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, {});
  append_runbook(response.body, reply->runbook, Documents::none, ObjectEnd::open);
  append_member(response.body, "changed", reply->changed);
  response.body += '}';
  co_return response;
}

}  // namespace

namespace {

// What becomes of open batches: overdue_behavior is the contract's word for it, and knows no keep.
void read_open_batches(const Request& request, PublishRunbook& command, std::vector<FieldError>& errors) {
  const auto* behavior = request.argument("overdue_behavior");
  const auto* said = request.argument("open_batches");
  if (behavior) {
    command.overdue_behavior = *behavior;
    if (*behavior == "rerun" || *behavior == "ignore")
      command.open_batches = runbook::open_batches(*behavior);
    else
      errors.push_back({"overdue_behavior", "must be rerun or ignore"});
  }
  if (said) {
    command.open_batches = runbook::open_batches(*said);
    if (!command.open_batches) errors.push_back({"open_batches", "must be keep, ignore or rerun"});
  }
  if (behavior && said) errors.push_back({"overdue_behavior", "says the same as open_batches: give one of them"});
}

// With the preview that helps to decide.
Task<Response> refuse_open_batches(Context& context, const Refused& refused, const Definition& definition,
                                   const std::string& text) {
  auto response = problem(refused);
  auto impact = co_await read_impact(context, definition, text);
  if (!impact) co_return response;
  response.body.pop_back();
  append_member(response.body, "impact", Json{*std::move(impact)});
  response.body += '}';
  co_return response;
}

}  // namespace

Task<Response> publish_runbook(Context& context) {
  if (auto wrong = check_definition(context.request)) co_return std::move(*wrong);
  std::vector<FieldError> errors;
  PublishRunbook command;
  command.rerun_init = query_boolean(context.request, "rerun_init", errors).value_or(false);
  read_open_batches(context.request, command, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto parsed = co_await parse_definition(context, context.request.body, parse_runbook);
  if (!parsed) co_return problem(stopping());
  if (!parsed->definition) co_return problem(parsed->diagnostics);
  command.definition = parsed->definition;
  command.text = context.request.body;
  auto reply = co_await tell<RunbookReply>(context, std::move(command));
  if (!reply && reply.error().refusal == Refusal::open_batches)
    co_return co_await refuse_open_batches(context, reply.error(), parsed->definition, context.request.body);
  if (!reply) co_return problem(reply.error());
  auto response = json_response(reply->changed ? 201 : 200, {});
  append_runbook(response.body, reply->runbook, Documents::none, ObjectEnd::open);
  append_member(response.body, "created", reply->changed);
  append_diagnostics(response.body, "warnings", parsed->diagnostics, Diagnostic::Level::warning);
  response.body += '}';
  response.headers.emplace_back("Location", "/api/v1/runbooks/" + percent_encode(reply->runbook.name) +
                                                "?version=" + std::to_string(reply->runbook.version));
  co_return response;
}

Task<Response> validate_runbook(Context& context) {
  if (auto wrong = check_definition(context.request)) co_return std::move(*wrong);
  auto parsed = co_await parse_definition(context, context.request.body, parse_runbook);
  if (!parsed) co_return problem(stopping());
  auto response = json_response(200, "{");
  append_member(response.body, "valid", parsed->definition != nullptr);
  if (parsed->definition) append_member(response.body, "name", parsed->definition->name);
  append_diagnostics(response.body, "errors", parsed->diagnostics, Diagnostic::Level::error);
  append_diagnostics(response.body, "warnings", parsed->diagnostics, Diagnostic::Level::warning);
  response.body += '}';
  co_return response;
}

Task<Response> list_runbooks(Context& context) {
  std::vector<FieldError> errors;
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 50, {1, 200}, errors));
  const std::string after = query_name_cursor(context.request, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  auto query = [after, limit](Reads& reads) { return reads.runbooks(after, limit + 1); };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return problem(rows.error());
  std::optional<std::string> cursor;
  if (rows->size() > limit) {
    rows->resize(limit);
    cursor = base64url(rows->back().name);
  }
  auto response = json_response(200, "{");
  append_list(response.body, "runbooks", *rows,
              [](std::string& out, const auto& row) { append_runbook(out, row, Documents::none); });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

Task<Response> show_runbook(Context& context) {
  std::vector<FieldError> errors;
  const auto version = query_version(context.request, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  const auto name = context.request.captures[0];
  if (!is_printable(name, 400)) co_return no_such_runbook(name, version);
  auto query = [name, version](Reads& reads) { return reads.runbook(name, version); };
  auto row = co_await context.read(std::move(query));
  if (!row) co_return problem(row.error());
  if (!*row) co_return no_such_runbook(name, version);
  Response response;
  if (context.request.accept.starts_with("application/yaml")) {
    response.content_type = "application/yaml";
    response.body = std::move((*row)->yaml_content);
    co_return response;
  }
  append_runbook(response.body, **row, Documents::all);
  co_return response;
}

Task<Response> list_versions(Context& context) {
  const auto name = context.request.captures[0];
  if (!is_printable(name, 400)) co_return no_such_runbook(name);
  auto query = [name](Reads& reads) { return reads.versions(name); };
  auto rows = co_await context.read(std::move(query));
  if (!rows) co_return problem(rows.error());
  if (rows->empty()) co_return no_such_runbook(name);
  auto response = json_response(200, "{");
  append_list(response.body, "versions", *rows,
              [](std::string& out, const auto& row) { append_runbook(out, row, Documents::none); });
  response.body += '}';
  co_return response;
}

Task<Response> activate_runbook(Context& context) {
  std::vector<FieldError> errors;
  ChangeRunbook command{.version = query_version(context.request, errors),
                        .what = ChangeRunbook::What::activate};
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  co_return co_await change_runbook(context, std::move(command));
}

Task<Response> deactivate_runbook(Context& context) {
  ChangeRunbook command{.what = ChangeRunbook::What::deactivate};
  co_return co_await change_runbook(context, std::move(command));
}

Task<Response> set_automation(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  const auto enabled = fields.boolean("enabled");
  if (!enabled && errors.empty()) fields.wrong("enabled", "is required");
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  ChangeRunbook command{.what = *enabled ? ChangeRunbook::What::automation_on
                                         : ChangeRunbook::What::automation_off};
  co_return co_await change_runbook(context, std::move(command));
}

}  // namespace baton::http
