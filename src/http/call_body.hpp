// Submissions of service calls as they arrive: read, checked, and as commands.
#pragma once

#include <expected>

#include "http/exchange.hpp"
#include "http/fields.hpp"

namespace baton::http {

[[nodiscard]] std::expected<SubmitCalls, Response> read_submission(Call& call);
// Many at once.
[[nodiscard]] std::expected<SubmitCalls, Response> read_batch(Call& call);

// The header Idempotency-Key.
[[nodiscard]] std::optional<std::string> read_key(const Request& request, std::vector<FieldError>& errors);
// The field dueAt; none: it is not there, or wrong.
[[nodiscard]] std::optional<Time> read_due(JsonView object, Fields& fields);

}  // namespace baton::http
