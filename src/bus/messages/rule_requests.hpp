// What $management of a subscription does with its rules: add-rule, remove-rule, enumerate-rules.
#pragma once

#include "bus/request_link.hpp"

namespace baton::bus {

[[nodiscard]] Outcome outcome_of(const Refused& refused);

// Whether it is about rules; `answer` is told then, once, while the client's link lives.
[[nodiscard]] bool take_rule_request(Client& client, const Principal& principal, const EntityKey& subscription, const Request& request,
                                     const std::weak_ptr<void>& link, std::function<void(Answer)> answer);

// The map that a request has for a body; none: it has another one, or is malformed.
[[nodiscard]] std::optional<wire::Item> body_of(const Request& request);

}  // namespace baton::bus
