// One partition runs today. Whoever opens a store takes it from here; nothing else knows.
#pragma once

#include "ports/subject.hpp"

namespace baton::server {

inline constexpr Partition only_partition{0};

}  // namespace baton::server
