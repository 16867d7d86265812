// What comes over a link, and what is said of it.
#pragma once

#include <proton/engine.h>

#include <functional>
#include <optional>
#include <string>

#include "ports/commands.hpp"

namespace baton::bus {

// Why something is refused, as AMQP says it.
struct Condition {
  const char* name;
  std::string description;
};

// What the other side says, with the name of the condition; empty: nothing.
[[nodiscard]] std::string text_of_condition(pn_condition_t* condition);

// What may pass makes its sender try again; else it is told what is wrong.
[[nodiscard]] Condition condition_of(const Refused& refused);
[[nodiscard]] bool may_pass(const Refused& refused);

// The outcome of a delivery; settling it is another matter.
void reject(pn_delivery_t* delivery, const Condition& why);

// One transfer, whole; the link has gone on to the next one then. None: more is to come, or it was aborted or too large, and was
// dealt with; of the latter `on_too_large` is told, if there is one.
[[nodiscard]] std::optional<std::string> take_transfer(pn_link_t* link, pn_delivery_t* delivery, std::size_t bytes_max,
                                                       const std::function<void(const Condition&)>& on_too_large = {});

// Lets go of what a link holds next, for want of room; its sender hears so at its end, and tries again. False: more of it is to
// come, which is let go of as it comes, or there is nothing.
bool shed(pn_link_t* link);

}  // namespace baton::bus
