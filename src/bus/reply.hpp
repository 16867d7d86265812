// The engine's answers, brought to the bus's thread.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "bus/connection.hpp"
#include "ports/commands.hpp"
#include "ports/mailbox.hpp"

namespace baton::bus {

// What was handed out and reached nobody: others get it. Of a message it does not count as a delivery; of a job it does, as the count names the
// lease, but giving back never makes it a dead letter. The engine never refuses it.
inline void give_back(Inbox& inbox, ReturnTasks back) {
  if (!back.tasks.empty()) inbox.submit(std::move(back), std::make_shared<Nobody>());
}
inline void give_back(Inbox& inbox, std::vector<Handout> unsent) {
  ReturnTasks back;
  for (Handout& one : unsent) back.tasks.push_back({std::move(one.task_id), std::move(one.lease)});
  give_back(inbox, std::move(back));
}

// Calls back on the bus's thread; false: nobody took the answer. Jobs that were handed out to somebody who does not want them any more are given back.
class AwaitedReply final : public Waiter, public Arrival, public std::enable_shared_from_this<AwaitedReply> {
 public:
  AwaitedReply(std::shared_ptr<Mailbox> mailbox, Inbox& inbox, std::function<bool(Reply&)> then)
      : mailbox_(std::move(mailbox)), inbox_(inbox), then_(std::move(then)) {}

  void deliver(Reply reply) override {
    reply_ = std::move(reply);
    mailbox_->put(shared_from_this());
  }
  [[nodiscard]] bool gone() const override { return is_unwanted_.load(std::memory_order_relaxed); }
  // On the bus's thread: it calls back no more.
  void abandon() { is_unwanted_.store(true, std::memory_order_relaxed); }

  void arrive() override {
    if (gone() || !then_(reply_)) drop();
  }
  void drop() override {
    if (auto* poll = std::get_if<PollReply>(&reply_)) give_back(inbox_, std::move(poll->jobs));
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  Inbox& inbox_;
  const std::function<bool(Reply&)> then_;
  Reply reply_;
  std::atomic<bool> is_unwanted_ = false;
};

// Hands a command in. `then` is called on the bus's thread while `owner` and the connection live, and the connection goes on after it.
[[nodiscard]] inline std::shared_ptr<AwaitedReply> await_reply(std::weak_ptr<Connection> connection, std::shared_ptr<Mailbox> mailbox, Inbox& inbox,
                                                               Command command, std::weak_ptr<void> owner, std::function<void(Reply)> then) {
  auto waiter = std::make_shared<AwaitedReply>(
      std::move(mailbox), inbox, [connection = std::move(connection), owner = std::move(owner), then = std::move(then)](Reply& reply) {
        const auto open = connection.lock();
        const auto alive = owner.lock();
        if (!open || !alive) return false;
        then(std::move(reply));
        open->pump();
        return true;
      });
  inbox.submit(std::move(command), waiter);
  return waiter;
}

// Calls `then` on the bus's thread with what some other thread says.
template <class T>
[[nodiscard]] std::function<void(T)> arriving(std::shared_ptr<Mailbox> mailbox, std::function<void(T)> then) {
  struct Said final : Arrival {
    std::function<void(T)> then;
    std::optional<T> what;
    void arrive() override { then(*std::move(what)); }
    void drop() override {}
  };
  auto said = std::make_shared<Said>();
  said->then = std::move(then);
  return [mailbox = std::move(mailbox), said](T what) {
    said->what.emplace(std::move(what));
    mailbox->put(said);
  };
}

}  // namespace baton::bus
