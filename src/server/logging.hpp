// Logs go to standard error: text for people on a terminal, one JSON object a line otherwise.
#pragma once

#include <string>

#include "server/config.hpp"

namespace baton::server {

// Sets up the default logger of the process; call it once, before threads log.
void set_up_logging(const std::string& level, LogFormat format);

}  // namespace baton::server
