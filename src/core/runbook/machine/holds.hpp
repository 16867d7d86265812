// What may be answered to what waits for a person.
#pragma once

#include <string_view>
#include <vector>

#include "core/runbook/machine/rows.hpp"

namespace baton::runbook {

struct Answer {
  std::string_view word;
  std::string_view does;  // what comes of it
};
[[nodiscard]] std::vector<Answer> answers_of(HoldKind kind);

}  // namespace baton::runbook
