#include "http/json/problem.hpp"

#include <algorithm>
#include <ranges>

#include "base/json_write.hpp"

namespace baton::http {

namespace {

constexpr std::string_view problem_type = "application/problem+json";

// Everything but the closing brace: members may follow.
Response open_problem(int status, std::string_view code, std::string_view detail) {
  Response response;
  response.status = status;
  response.content_type = problem_type;
  response.body = '{';
  append_members(response.body, "type", "about:blank", "title", reason_phrase(status), "status", status,
                 "code", code, "detail", detail);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 502: return "Bad Gateway";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    case 507: return "Insufficient Storage";
    default: return "Unknown";
  }
}

Response problem(int status, std::string_view code, std::string_view detail) {
  auto response = open_problem(status, code, detail);
  response.body += '}';
  return response;
}

Response problem(std::string_view detail, const std::vector<FieldError>& errors) {
  auto response = open_problem(422, "invalid_request", detail);
  append_list(response.body, "errors", errors, [](std::string& out, const FieldError& error) {
    append_object(out, "field", error.field, "message", error.message);
  });
  response.body += '}';
  return response;
}

Response problem(int status, std::string_view code, std::string_view detail,
                 const std::vector<std::string>& errors) {
  auto response = open_problem(status, code, detail);
  if (!errors.empty())
    append_list(response.body, "errors", errors,
                [](std::string& out, const std::string& error) { append_object(out, "message", error); });
  response.body += '}';
  return response;
}

Response problem(const Refused& refused) {
  return problem(status_of(refused.refusal), name(refused.refusal), refused.message, refused.details);
}

Response problem(const Error& error) {
  switch (error.code) {
    case Code::invalid:
      return problem(422, name(Refusal::row_unreadable), error.message);  // what is stored
    case Code::not_found: return problem(404, "not_found", error.message);
    case Code::conflict: return problem(409, "conflict", error.message);
    case Code::full: return problem(507, "store_full", error.message);
    case Code::unavailable:
    case Code::busy:
    case Code::fenced:
    case Code::corrupt:
    case Code::unknown: return problem(503, "store_unavailable", error.message);
  }
  return problem(500, "internal", error.message);
}

Response problem(const std::vector<Diagnostic>& diagnostics) {
  const auto count = std::ranges::count(diagnostics, Diagnostic::Level::error, &Diagnostic::level);
  auto response =
      open_problem(422, "invalid_definition",
                   "the definition has " + std::to_string(count) + (count == 1 ? " error" : " errors"));
  append_diagnostics(response.body, "errors", diagnostics, Diagnostic::Level::error);
  append_diagnostics(response.body, "warnings", diagnostics, Diagnostic::Level::warning);
  response.body += '}';
  return response;
}

void add_instance(Response& response, std::string_view request_id) {
  if (response.content_type != problem_type || !response.body.ends_with('}')) return;
  response.body.pop_back();
  append_member(response.body, "instance", request_id);
  response.body += '}';
}

void append_diagnostics(std::string& out, std::string_view key, const std::vector<Diagnostic>& diagnostics,
                        Diagnostic::Level level) {
  auto of_level =
      diagnostics | std::views::filter([&](const Diagnostic& each) { return each.level == level; });
  append_list(out, key, of_level, [](std::string& to, const Diagnostic& each) {
    append_object(to, "line", each.at.line, "column", each.at.column, "code", each.code, "message",
                  each.message, "hint", each.hint);
  });
}

int status_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::workflow_not_found:
    case Refusal::job_not_found:
    case Refusal::node_not_found:
    case Refusal::runbook_not_found:
    case Refusal::batch_not_found:
    case Refusal::phase_not_found:
    case Refusal::member_not_found:
    case Refusal::step_not_found:
    case Refusal::call_not_found:
    case Refusal::entity_not_found:
    case Refusal::message_not_found:
    case Refusal::hold_not_found:
    case Refusal::task_not_found: return 404;
    case Refusal::row_unreadable:
    case Refusal::invalid_input: return 422;
    case Refusal::entity_exists:
    case Refusal::lock_lost:
    case Refusal::quota_exceeded:
    case Refusal::not_possible:
    case Refusal::runbook_replaced:
    case Refusal::open_batches:
    case Refusal::already_decided:
    case Refusal::idempotency_key_reused:
    case Refusal::version_exists:
    case Refusal::stale_result:
    case Refusal::job_ended:
    case Refusal::job_not_failed:
    case Refusal::not_waiting:
    case Refusal::not_dead: return 409;
    case Refusal::overloaded:
    case Refusal::stopping:
    case Refusal::store_unavailable: return 503;
    case Refusal::store_full: return 507;
  }
  return 500;
}

}  // namespace baton::http
