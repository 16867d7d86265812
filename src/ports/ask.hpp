// Hands a command in and gives back a future for its answer, for callers that may block: start-up, the
// scheduler and the command line.
#pragma once

#include <future>
#include <memory>
#include <utility>

#include "ports/commands.hpp"

namespace baton {

[[nodiscard]] inline std::future<Reply> ask(Inbox& inbox, Command command) {
  class Promise final : public Waiter {
   public:
    void deliver(Reply reply) override { promise.set_value(std::move(reply)); }
    std::promise<Reply> promise;
  };
  auto waiter = std::make_shared<Promise>();
  auto answer = waiter->promise.get_future();
  inbox.submit(std::move(command), std::move(waiter));
  return answer;
}

}  // namespace baton
