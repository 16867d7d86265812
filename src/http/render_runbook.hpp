// The JSON of runbooks and their batches: the names of members are those of the columns.
#pragma once

#include <string>

#include "http/render.hpp"
#include "ports/runbook_commands.hpp"
#include "ports/runbook_reads.hpp"

namespace baton::http {

// With Documents::all the text of the runbook too.
void append_runbook(std::string& out, const runbook::Runbook& row, Documents documents,
                    Ending ending = Ending::closed);
void append_batch(std::string& out, const runbook::Batch& batch, Ending ending = Ending::closed);
void append_batch(std::string& out, const BatchSummary& summary, Ending ending = Ending::closed);

}  // namespace baton::http
