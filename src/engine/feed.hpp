// What a commit tells the feed: a projection of its write set. Pure.
#pragma once

#include "ports/feed.hpp"
#include "ports/store.hpp"

namespace baton::engine {

// Jobs, batches, runbooks, calls and workflows that changed, with their status where it is part of what is
// written, and the queues whose tasks changed, each once.
[[nodiscard]] Changes changes_of(const WriteSet& writes);

}  // namespace baton::engine
