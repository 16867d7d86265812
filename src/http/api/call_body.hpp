// Submissions of service calls as they arrive: read, checked, and as commands.
#pragma once

#include <expected>

#include "http/json/fields.hpp"
#include "http/wire/context.hpp"

namespace baton::http {

[[nodiscard]] std::expected<SubmitCalls, Response> read_submission(Context& context);
// Many at once.
[[nodiscard]] std::expected<SubmitCalls, Response> read_batch(Context& context);

// The header Idempotency-Key, or else the key of the body.
[[nodiscard]] std::optional<std::string> use_header(const Request& request, std::optional<std::string> key,
                                                    std::vector<FieldError>& errors);
// The field dueAt; none: it is not there, or wrong.
[[nodiscard]] std::optional<Time> read_due(JsonView object, Fields& fields);
// dueAt, or delaySeconds from now.
struct When {
  std::optional<Time> due_at;
  std::string told;  // for comparisons: a delay is the same an hour later
};
[[nodiscard]] When read_when(const Context& context, JsonView object, Fields& fields);

}  // namespace baton::http
