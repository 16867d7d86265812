// The data sources of a server: its connections, and HTTP by its own client.
#pragma once

#include <memory>

#include "ports/data_source.hpp"
#include "server/config.hpp"

namespace baton::server {

[[nodiscard]] std::unique_ptr<DataSources> open_data_sources(const Config& config,
                                                             Environment environment = process_environment());

}  // namespace baton::server
