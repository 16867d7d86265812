// What publishing a runbook would do to its open batches, as JSON.
#pragma once

#include <memory>
#include <string>

#include "http/api/stored_runbook.hpp"
#include "http/wire/context.hpp"

namespace baton::http {

// An object that is closed: {"name":…,"version":…,"changes":[…],"open_batches":[…],"are_more":…}.
// What is referred to must last until it is there.
Task<Result<std::string>> read_impact(Context& context, const Definition& definition, const std::string& text);

}  // namespace baton::http
