// A runbook as it is stored, parsed on a thread of the pool, or the problem that is the response.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "core/runbook/definition/definition.hpp"
#include "http/json/problem.hpp"
#include "http/wire/context.hpp"

namespace baton::http {

using Definition = std::shared_ptr<const runbook::Definition>;

struct StoredRunbook {
  Definition definition;  // never null
  std::int32_t version = 0;
  bool is_active = false;
  std::vector<Diagnostic> diagnostics;
};

// version 0: the active one, else the newest.
Task<std::expected<StoredRunbook, Response>> read_runbook(Context& context, const std::string& name,
                                                          std::int32_t version);

[[nodiscard]] Response no_such_runbook(const std::string& name, std::int32_t version = 0);

// `version` in the query; 0: it is not there.
[[nodiscard]] std::int32_t query_version(const Request& request, std::vector<FieldError>& errors);

}  // namespace baton::http
