// What differs between two versions of a runbook, as people name it: phases and steps by name, and their fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

struct Difference {
  enum class What { added, removed, changed };
  What what{};
  std::string where;     // phase 'cut-over', step 'stop'
  std::string field;     // changed: which
  std::string from, to;  // changed: empty where it was not given
};
[[nodiscard]] std::string_view name(Difference::What what);

// In the order of the new version; what was removed comes last. Steps of a phase that was added or removed are not told
// one by one.
[[nodiscard]] std::vector<Difference> differences(const Definition& from, const Definition& to);

}  // namespace baton::runbook
