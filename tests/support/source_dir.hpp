// Where the checkout is, for tests that read its files.
#pragma once

#include <filesystem>

namespace baton::support {

std::filesystem::path source_dir();

}  // namespace baton::support
