// One reader for each kind of data source. Their errors say what is wrong, by row and column where there are
// some; who calls adds the name of the connection. What may take long looks at `stop`. Private to the scheduler.
#pragma once

#include <string>
#include <string_view>

#include "scheduler/sources.hpp"

namespace baton::scheduler {

[[nodiscard]] Result<SourceTable> read_csv_file(std::string_view path, const Limits& limits);
[[nodiscard]] Result<SourceTable> read_csv_text(std::string_view text, const Limits& limits);
[[nodiscard]] Result<SourceTable> read_json_text(std::string_view text, const Limits& limits);
[[nodiscard]] Result<SourceTable> read_sqlite(std::string_view path, const std::string& query,
                                              const Limits& limits, const std::stop_token& stop);
[[nodiscard]] Result<SourceTable> read_postgres(const std::string& url, const std::string& query,
                                                const Limits& limits, const std::stop_token& stop);
[[nodiscard]] Result<SourceTable> read_http(const HttpGet& get, const std::string& url, std::string_view query,
                                            const Limits& limits, const std::stop_token& stop);

}  // namespace baton::scheduler
