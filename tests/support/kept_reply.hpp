// For tests: keeps the reply to a command until the test looks at it.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "ports/commands.hpp"

namespace baton::support {

struct KeptReply final : Waiter {
  std::optional<Reply> reply;
  void deliver(Reply given) override {
    EXPECT_FALSE(reply) << "a command is answered once";
    reply = std::move(given);
  }
  [[nodiscard]] std::optional<Refusal> refusal() const {
    const auto* refused = reply ? std::get_if<Refused>(&*reply) : nullptr;
    return refused ? std::optional{refused->refusal} : std::nullopt;
  }
};

}  // namespace baton::support
