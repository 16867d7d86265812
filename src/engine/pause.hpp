// Pauses after a failure.
#pragma once

#include "base/time.hpp"

namespace baton::engine {

constexpr Duration pause_max{2'000};

// The end of a pause; at once if the clock was set back since it began, so that it seems to be longer than any is.
[[nodiscard]] inline Time after_pause(Time end, Time now) { return end - now > pause_max ? Time{} : end; }

}  // namespace baton::engine
