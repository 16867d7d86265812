// The input of a job against what its definition declares. Pure.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "core/workflow/definition/definition.hpp"

namespace baton::workflow {

// "integer": the name of a type in definitions and messages.
[[nodiscard]] std::string_view to_string(InputType type);

// The input with the defaults filled in, or everything that is wrong with it, one message each. A definition
// that declares no inputs takes any object, which is then not even parsed.
[[nodiscard]] std::expected<Json, std::vector<std::string>> check_input(const Definition& definition,
                                                                        const Json& input);

}  // namespace baton::workflow
