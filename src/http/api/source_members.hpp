// Members as they come: from a CSV text in a request, or from the data source of a runbook. Read whole or not
// at all; what is wrong is a problem that names every row.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/runbook/definition/definition.hpp"
#include "core/runbook/members/members.hpp"
#include "http/api/stored_runbook.hpp"

namespace baton::http {

using SourceMembers = std::vector<runbook::SourceMember>;

// A batch that is made by hand has no T, whatever the rows say. Otherwise the column of the time is read if there is one:
// a file for a batch by hand may lack it.
enum class CsvTimes { none, if_there };
[[nodiscard]] std::expected<SourceMembers, Response> members_of_csv(const runbook::Definition& definition,
                                                                    std::string_view text, CsvTimes times);
// The same off the I/O thread; takes the text with it.
Task<std::expected<SourceMembers, Response>> read_csv_members(Context& context, const Definition& definition,
                                                              std::string& text, CsvTimes times = CsvTimes::none);

// Asks the data source, one request at a time: whoever comes meanwhile hears that it is busy.
Task<std::expected<SourceMembers, Response>> fetch_members(Context& context, const Definition& definition);

// Members of one T. `otherwise` is the T of those that have none: of an immediate batch, or none for one that
// is made by hand.
struct Wave {
  std::optional<Time> batch_start_time;
  std::vector<const runbook::SourceMember*> members;
};
[[nodiscard]] std::vector<Wave> group_by_time(const SourceMembers& members, std::optional<Time> otherwise);

}  // namespace baton::http
