#include "http/wire/exchange.hpp"

#include "base/ids.hpp"

namespace baton::http {

void Parcel::arrive() {
  arrived_ = true;
  if (abandoned_) {
    uncollected();
  } else if (auto waiting = std::exchange(waiting_, {})) {
    waiting.resume();
  }
}

void Parcel::abandon() {
  if (arrived_ || abandoned_) return;
  abandoned_ = true;
  abandoned();
  if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
}

void Mailbox::put(std::shared_ptr<Parcel> parcel) {
  {
    const std::lock_guard lock(mutex_);
    if (!closed_) {
      arrived_.push_back(std::move(parcel));
      if (arrived_.size() == 1) wake_();
      return;
    }
  }
  parcel->drop();
}

void Mailbox::drain() {
  std::vector<std::shared_ptr<Parcel>> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived.swap(arrived_);
  }
  for (auto& parcel : arrived) {
    parcel->arrive();
    parcel.reset();
  }
}

void Mailbox::close() {
  std::vector<std::shared_ptr<Parcel>> arrived;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    arrived.swap(arrived_);
  }
  for (const auto& parcel : arrived) parcel->drop();
}

void ReplyParcel::deliver(Reply reply) {
  reply_ = std::move(reply);
  mailbox_->put(shared_from_this());
}

void ReplyParcel::uncollected() {
  auto* poll = std::get_if<PollReply>(&reply_);
  if (poll == nullptr || poll->jobs.empty()) return;
  std::vector<TaskLease> tasks;
  for (auto& job : poll->jobs) tasks.push_back({std::move(job.task_id), std::move(job.lease)});
  return_tasks(inbox_, std::move(tasks));
}

void return_tasks(Inbox& inbox, std::vector<TaskLease> tasks) {
  if (!tasks.empty()) inbox.submit(ReturnTasks{std::move(tasks)}, std::make_shared<Nobody>());
}

void Exchange::interrupt(bool terminal) {
  if (terminal) over = true;
  if (!waiting || (!terminal && interruptible == Interruptible::no)) return;
  const auto parcel = waiting;  // resuming replaces it
  parcel->abandon();
}

void Wait::await_suspend(std::coroutine_handle<> waiting) {
  exchange_.waiting = parcel_;
  exchange_.interruptible = interruptible_;
  parcel_->resume_on_arrival(waiting);
  if (interruptible_ == Interruptible::watching && exchange_.watch) exchange_.watch();
}

bool Wait::await_resume() {
  exchange_.waiting = nullptr;
  exchange_.interruptible = Interruptible::no;
  if (!parcel_->arrived()) parcel_->abandon();
  return parcel_->arrived();
}

std::shared_ptr<ReplyParcel> Call::submit(Command command) {
  auto parcel = std::make_shared<ReplyParcel>(services.mailbox, services.inbox);
  services.inbox.submit(std::move(command), parcel);
  return parcel;
}

Task<std::optional<Reply>> Call::collect(std::shared_ptr<ReplyParcel> parcel, Interruptible interruptible) {
  Wait wait(exchange, parcel, interruptible);
  const bool here = co_await wait;
  std::optional<Reply> reply;
  if (here) reply = parcel->take();
  co_return reply;
}

Task<std::vector<std::optional<Reply>>> Call::ask_all(std::vector<Command> commands) {
  std::vector<std::shared_ptr<ReplyParcel>> parcels;
  for (auto& command : commands) parcels.push_back(submit(std::move(command)));
  std::vector<std::optional<Reply>> replies;
  for (const auto& parcel : parcels) {
    Wait wait(exchange, parcel, Interruptible::no);
    const bool here = co_await wait;
    replies.emplace_back();
    if (here) replies.back() = parcel->take();
  }
  co_return replies;
}

Time Call::wait_until(std::int64_t wait_ms) const {
  const auto now = services.clock.now();
  return exchange.stopping ? now : now + Duration{wait_ms};
}

std::string Call::new_id() { return uuid7(services.clock.now(), services.random(), services.random()); }

}  // namespace baton::http
