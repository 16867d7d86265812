// How a handler waits: for the engine, for a read, and not longer than the client and the server are there.
//
// Answers arrive on other threads, through the mailbox; everything else here belongs to the I/O thread.
#pragma once

#include <atomic>
#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "http/wire/message.hpp"
#include "http/wire/server.hpp"
#include "http/wire/streams.hpp"
#include "http/wire/task.hpp"
#include "ports/mailbox.hpp"

namespace baton::http {

// Something that a coroutine waits for.
class Awaited : public Arrival {
 public:
  void arrive() override;                  // it is here: resume who waits, or deal with it alone
  void abandon();                          // nobody will collect it any more; resumes who waits
  void drop() override { uncollected(); }  // it came when there was nobody left at all; any thread
  [[nodiscard]] bool arrived() const { return arrived_; }
  void resume_on_arrival(std::coroutine_handle<> waiting) { waiting_ = waiting; }

 protected:
  virtual void uncollected() {}  // it came after it was abandoned
  virtual void abandoned() {}

 private:
  std::coroutine_handle<> waiting_;
  bool arrived_ = false;
  bool abandoned_ = false;
};

// The engine's answer. Work that was handed to a client who has gone is given back.
class AwaitedReply final : public Awaited, public Waiter, public std::enable_shared_from_this<AwaitedReply> {
 public:
  AwaitedReply(std::shared_ptr<Mailbox> mailbox, Inbox& inbox)
      : mailbox_(std::move(mailbox)), inbox_(inbox) {}
  void deliver(Reply reply) override;
  [[nodiscard]] bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  [[nodiscard]] Reply take() { return std::move(reply_); }

 private:
  void uncollected() override;
  void abandoned() override { gone_.store(true, std::memory_order_relaxed); }

  std::shared_ptr<Mailbox> mailbox_;
  Inbox& inbox_;
  Reply reply_;
  std::atomic<bool> gone_{false};
};

void return_tasks(Inbox& inbox, std::vector<TaskLease> tasks);

template <class T>
struct AwaitedRead final : Awaited {
  std::optional<T> value;
};

// no: until the answer comes. when_stopping: until the server stops or the client is seen to have gone.
// watching: the same, and the client is watched from the start, because an answer that it cannot take costs
// others.
enum class Interruptible { no, when_stopping, watching };

// One connection's side of waiting.
struct WaitState {
  std::shared_ptr<Awaited> waiting;
  Interruptible interruptible = Interruptible::no;
  bool stopping = false;  // do not begin long waits
  bool over = false;      // nobody reads the answer: wait for nothing
  std::function<void()> watch;

  void interrupt(bool terminal);
};

// Waits for it; answers false when the wait was interrupted.
class Wait {
 public:
  Wait(WaitState& wait_state, std::shared_ptr<Awaited> awaited, Interruptible interruptible)
      : wait_state_(wait_state), awaited_(std::move(awaited)), interruptible_(interruptible) {}
  [[nodiscard]] bool await_ready() const { return awaited_->arrived() || wait_state_.over; }
  void await_suspend(std::coroutine_handle<> waiting);
  bool await_resume();

 private:
  WaitState& wait_state_;
  std::shared_ptr<Awaited> awaited_;
  Interruptible interruptible_;
};

class Subscriptions;  // subscriptions.hpp

// What handlers work with.
struct Services {
  const Options& options;
  Inbox& inbox;
  ReadPool& reads;
  metrics::Registry& metrics;
  const Clock& clock;
  std::function<Readiness()> readiness;
  std::shared_ptr<Mailbox> mailbox;
  TokenCache tokens;
  std::shared_ptr<Subscriptions> subscriptions;
  OpenStreams streams;
  EventTexts event_texts;
  std::mt19937_64 random{std::random_device{}()};
  std::shared_ptr<std::mutex> sources_busy = std::make_shared<std::mutex>();  // held while one is read
};

struct Context {
  Context(Services& all, WaitState& of, Request from)
      : services(all), wait_state(of), request(std::move(from)) {}

  Services& services;
  WaitState& wait_state;
  Request request;

  [[nodiscard]] std::shared_ptr<AwaitedReply> submit(Command command);
  // None: the wait was interrupted.
  template <class C>
  Task<std::optional<Reply>> ask(C&& command, Interruptible interruptible = Interruptible::no) {
    return collect(submit(Command(std::forward<C>(command))), interruptible);
  }
  // Hands all in before it waits for the first, so that one commit can take them. None: it was interrupted.
  Task<std::vector<std::optional<Reply>>> ask_all(std::vector<Command> commands);
  // When a wait of this length from now ends; at once when the server is stopping.
  [[nodiscard]] Time wait_until(std::int64_t wait_ms) const;
  [[nodiscard]] std::string new_id();

  // fn: Reads& -> Result<T>, on a thread of the pool.
  template <class Fn, class R = std::invoke_result_t<Fn&, Reads&>>
  Task<R> read(Fn&& fn, ReadPool::Of of = ReadPool::Of::commits) {
    auto awaited = std::make_shared<AwaitedRead<R>>();
    auto done = [awaited, mailbox = services.mailbox](R result) {
      awaited->value.emplace(std::move(result));
      mailbox->put(awaited);
    };
    services.reads.run(std::forward<Fn>(fn), std::move(done), of);
    return collect(std::move(awaited));
  }

  // fn: () -> T, on a thread of the pool: what would hold up everybody else here. None: it was interrupted.
  template <class Fn, class T = std::invoke_result_t<Fn&>>
  Task<std::optional<T>> compute(Fn&& fn) {
    auto awaited = std::make_shared<AwaitedRead<T>>();
    auto work = [awaited, mailbox = services.mailbox, fn = std::forward<Fn>(fn)]() mutable {
      awaited->value.emplace(fn());
      mailbox->put(awaited);
    };
    services.reads.compute(std::move(work));
    return collect_computed(std::move(awaited));
  }

 private:
  Task<std::optional<Reply>> collect(std::shared_ptr<AwaitedReply> awaited, Interruptible interruptible);
  template <class R>
  Task<R> collect(std::shared_ptr<AwaitedRead<R>> awaited) {
    Wait wait(wait_state, awaited, Interruptible::no);
    const bool here = co_await wait;
    if (!here) co_return R(fail(Code::unavailable, "the server is stopping"));
    co_return std::move(*awaited->value);
  }
  template <class T>
  Task<std::optional<T>> collect_computed(std::shared_ptr<AwaitedRead<T>> awaited) {
    Wait wait(wait_state, awaited, Interruptible::no);
    const bool here = co_await wait;
    std::optional<T> value;
    if (here) value = std::move(awaited->value);
    co_return value;
  }
};

// A body that goes on for as long as somebody reads it.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  // Waits for what is to be sent next and appends it. False: this was the last.
  virtual Task<bool> next(Context& context, std::string& out) = 0;
  // The client did not take it in time: the connection is closed.
  virtual void cut_off() = 0;
};

}  // namespace baton::http
