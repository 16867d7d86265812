// Errors as application/problem+json (RFC 9457) with a stable `code` for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json_fields.hpp"
#include "base/result.hpp"
#include "http/wire/message.hpp"
#include "ports/commands.hpp"

namespace baton::http {

[[nodiscard]] std::string_view reason_phrase(int status);

[[nodiscard]] Response problem(int status, std::string_view code, std::string_view detail);
[[nodiscard]] Response problem(std::string_view detail,
                               const std::vector<FieldError>& errors);  // 422 invalid_request
[[nodiscard]] Response problem(int status, std::string_view code, std::string_view detail,
                               const std::vector<std::string>& errors);  // as [{"message":…},…]
[[nodiscard]] Response problem(const Refused& refused);
[[nodiscard]] Response problem(const Error& error);
[[nodiscard]] Response problem(const std::vector<Diagnostic>& diagnostics);  // 422 invalid_definition

// The server names the request in a problem that was made without knowing it.
void add_instance(Response& response, std::string_view request_id);

// "key":[{"line":…,"column":…,"code":…,"message":…,"hint":…},…] of one level.
void append_diagnostics(std::string& out, std::string_view key, const std::vector<Diagnostic>& diagnostics,
                        Diagnostic::Level level);

[[nodiscard]] int status_of(Refusal refusal);

}  // namespace baton::http
