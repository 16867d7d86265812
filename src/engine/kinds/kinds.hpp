// The kinds of work that this engine knows: a new one is registered here.
#pragma once

#include "engine/kind.hpp"
#include "engine/options.hpp"

namespace baton::engine {

[[nodiscard]] Kinds make_kinds(const WriterOptions& options, const WriterMetrics& metrics);

}  // namespace baton::engine
