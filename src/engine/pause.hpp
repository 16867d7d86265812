// Pauses after a failure.
#pragma once

#include "base/time.hpp"

namespace baton::engine {

constexpr Duration pause_max{2'000};

// The end of a pause; at once if the clock was set back since it began, so that it seems to be longer than any of its kind is.
[[nodiscard]] inline Time after_pause(Time end, Time now, Duration longest = pause_max) { return end - now > longest ? Time{} : end; }

}  // namespace baton::engine
