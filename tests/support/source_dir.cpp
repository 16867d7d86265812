#include "tests/support/source_dir.hpp"

namespace baton::support {

std::filesystem::path source_dir() { return BATON_SOURCE_DIR; }

}  // namespace baton::support
