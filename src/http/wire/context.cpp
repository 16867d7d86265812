#include "http/wire/context.hpp"

#include "base/ids.hpp"

namespace baton::http {

void Awaited::arrive() {
  arrived_ = true;
  if (abandoned_) {
    uncollected();
  } else if (auto waiting = std::exchange(waiting_, {})) {
    waiting.resume();
  }
}

void Awaited::abandon() {
  if (arrived_ || abandoned_) return;
  abandoned_ = true;
  abandoned();
  if (auto waiting = std::exchange(waiting_, {})) waiting.resume();
}

void AwaitedReply::deliver(Reply reply) {
  reply_ = std::move(reply);
  mailbox_->put(shared_from_this());
}

void AwaitedReply::uncollected() {
  auto* poll = std::get_if<PollReply>(&reply_);
  if (poll == nullptr || poll->jobs.empty()) return;
  std::vector<TaskLease> tasks;
  for (auto& job : poll->jobs) tasks.push_back({std::move(job.task_id), std::move(job.lease)});
  return_tasks(inbox_, std::move(tasks));
}

void return_tasks(Inbox& inbox, std::vector<TaskLease> tasks) {
  if (!tasks.empty()) inbox.submit(ReturnTasks{std::move(tasks)}, std::make_shared<Nobody>());
}

void WaitState::interrupt(bool terminal) {
  if (terminal) over = true;
  if (!waiting || (!terminal && interruptible == Interruptible::no)) return;
  const auto awaited = waiting;  // resuming replaces it
  awaited->abandon();
}

void Wait::await_suspend(std::coroutine_handle<> waiting) {
  wait_state_.waiting = awaited_;
  wait_state_.interruptible = interruptible_;
  awaited_->resume_on_arrival(waiting);
  if (interruptible_ == Interruptible::watching && wait_state_.watch) wait_state_.watch();
}

bool Wait::await_resume() {
  wait_state_.waiting = nullptr;
  wait_state_.interruptible = Interruptible::no;
  if (!awaited_->arrived()) awaited_->abandon();
  return awaited_->arrived();
}

std::shared_ptr<AwaitedReply> Context::submit(Command command) {
  auto awaited = std::make_shared<AwaitedReply>(services.mailbox, services.inbox);
  services.inbox.submit(std::move(command), awaited);
  return awaited;
}

Task<std::optional<Reply>> Context::collect(std::shared_ptr<AwaitedReply> awaited,
                                            Interruptible interruptible) {
  Wait wait(wait_state, awaited, interruptible);
  const bool here = co_await wait;
  std::optional<Reply> reply;
  if (here) reply = awaited->take();
  co_return reply;
}

Task<std::vector<std::optional<Reply>>> Context::ask_all(std::vector<Command> commands) {
  std::vector<std::shared_ptr<AwaitedReply>> awaited;
  for (auto& command : commands) awaited.push_back(submit(std::move(command)));
  std::vector<std::optional<Reply>> replies;
  for (const auto& each : awaited) {
    Wait wait(wait_state, each, Interruptible::no);
    const bool here = co_await wait;
    replies.emplace_back();
    if (here) replies.back() = each->take();
  }
  co_return replies;
}

Time Context::wait_until(std::int64_t wait_ms) const {
  const auto now = services.clock.now();
  return wait_state.stopping ? now : now + Duration{wait_ms};
}

std::string Context::new_id() { return uuid7(services.clock.now(), services.random(), services.random()); }

}  // namespace baton::http
