// `baton runbook impact`: what a new version would do to open batches.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/fields.hpp"

namespace baton::cli {

[[nodiscard]] int show_impact(const RemoteOptions& options, const std::vector<std::string>& files);
// The preview as people read it.
[[nodiscard]] std::string impact_text(const Fields& impact, Time now);

}  // namespace baton::cli
