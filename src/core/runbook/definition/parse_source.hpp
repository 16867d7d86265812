// `data_source` of a runbook. Private to the parser.
#pragma once

#include "base/diagnostics.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

void read_source(const yaml::Entry& entry, DataSource& source, Diagnostics& diagnostics);

}  // namespace baton::runbook
