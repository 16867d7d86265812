#include "bus/job_outlet.hpp"

#include <algorithm>

#include "bus/outlet.hpp"
#include "ports/task_messages.hpp"

namespace baton::bus {
namespace {

// As the SDKs read it. The sequence number orders the messages of one link, no more.
std::string message_of(const Handout& job, std::int64_t number, Time now) {
  MessageWriter message;
  message.header(static_cast<std::uint32_t>(std::max(job.delivery_count - 1, 0)));
  message.annotations([&](pn_data_t* map) {
    put_symbol(map, "x-opt-sequence-number");
    pn_data_put_long(map, number);
    put_symbol(map, "x-opt-enqueued-time");
    pn_data_put_timestamp(map, to_millis(now));
    put_symbol(map, "x-opt-locked-until");
    pn_data_put_timestamp(map, to_millis(job.lease_until));
  });
  write_job(message, job);
  return message.take();
}

std::string reason_of(pn_delivery_t* delivery) {
  pn_condition_t* condition = pn_disposition_condition(pn_delivery_remote(delivery));
  pn_data_t* info = pn_condition_info(condition);
  const std::string reason = text_in(info, "DeadLetterReason");
  return dead_lettered(reason.empty() ? text_of(pn_condition_get_description(condition)) : reason,
                       text_in(info, "DeadLetterErrorDescription"));
}

class JobOutlet final : public Outlet {
 public:
  using Outlet::Outlet;

  // Messages that have not left are nobody's: another worker gets their jobs.
  void on_end() override {
    Outlet::on_end();
    ReturnTasks back;
    for (const auto& [delivery, message] : unsettled_) {
      const auto lock = locks().find(message.token);
      if (lock == locks().end() || !take_back(delivery)) continue;
      back.tasks.push_back(lock->second.task);
      locks().erase(lock);
    }
    bus::give_back(client_.services().inbox, std::move(back));
  }

  // The client's word on a message that it has; we answer with the same, settled. Its first word counts.
  void on_delivery(pn_delivery_t* delivery) override {
    const std::uint64_t outcome = pn_delivery_remote_state(delivery);
    const bool is_settled = pn_delivery_settled(delivery);
    pn_delivery_clear(delivery);
    const auto found = unsettled_.find(delivery);
    if (found == unsettled_.end() || found->second.is_settling || (outcome == 0 && !is_settled)) return;
    const LockToken token = found->second.token;
    const auto lock = locks().find(token);
    if (outcome == 0) return settle(delivery, 0);
    if (lock == locks().end()) return refuse(delivery, lock_lost);
    auto command = command_of(delivery, outcome, lock->second);
    if (!command) return refuse(delivery, {"amqp:not-implemented", "a job cannot be deferred, only taken, abandoned or given up"});
    found->second.is_settling = true;
    client_.submit(*std::move(command), weak_from_this(),
                   [this, delivery, outcome, token](const Reply& reply) { on_settled(delivery, outcome, token, reply); });
  }

 private:
  struct Message {
    LockToken token;
    bool is_settling = false;
  };
  inline static const Condition lock_lost{"com.microsoft:message-lock-lost", "the lock has expired, or the job is another's by now"};

  // Who receives and deletes has it in hand at once: it has no lock, and the lease lasts as long as the job's time.
  [[nodiscard]] std::optional<Duration> lease_time() const override { return client_.services().options.lock_time; }
  [[nodiscard]] bool is_worker() const override { return true; }
  [[nodiscard]] std::map<LockToken, Lock>& locks() { return client_.services().locks; }

  [[nodiscard]] std::optional<Command> command_of(pn_delivery_t* delivery, std::uint64_t outcome, const Lock& lock) const {
    using How = SettleTask::How;
    switch (outcome) {
      case PN_ACCEPTED: return settlement(lock, How::keep, "");
      case PN_REJECTED: return settlement(lock, How::give_up, reason_of(delivery));
      case PN_RELEASED: return ReturnTasks{{lock.task}, "the worker released it"};
      case PN_MODIFIED:
        if (pn_disposition_is_undeliverable(pn_delivery_remote(delivery))) return std::nullopt;
        return settlement(lock, How::abandon, abandoned);
      default: return std::nullopt;
    }
  }

  // The engine's answer. What may pass leaves the lock as it was: the client may say it again, over $management.
  void on_settled(pn_delivery_t* delivery, std::uint64_t outcome, const LockToken& token, const Reply& reply) {
    const auto found = unsettled_.find(delivery);
    if (found == unsettled_.end() || found->second.token != token) return;
    const auto* refused = std::get_if<Refused>(&reply);
    if (refused && may_pass(*refused)) return refuse(delivery, condition_of(*refused));
    locks().erase(token);
    if (refused) refuse(delivery, lock_lost);
    else settle(delivery, outcome);
    ask();  // there may be room again
  }

  void settle(pn_delivery_t* delivery, std::uint64_t outcome) {
    unsettled_.erase(delivery);
    if (outcome != 0) pn_delivery_update(delivery, outcome);
    pn_delivery_settle(delivery);
  }

  void refuse(pn_delivery_t* delivery, const Condition& why) {
    unsettled_.erase(delivery);
    reject(delivery, why);
    pn_delivery_settle(delivery);
  }

  void send(const Handout& job) override {
    Services& services = client_.services();
    const LockToken token = token_of(job);
    pn_delivery_t* delivery = put(token, message_of(job, ++sent_, services.clock.now()));
    if (!delivery) return;
    unsettled_[delivery] = {.token = token};
    services.locks[token] = {principal_.tenant, queue_, {job.task_id, job.lease}, job.lease_until};
  }

  std::map<pn_delivery_t*, Message> unsettled_;  // proton uses a delivery again when it is settled
  std::int64_t sent_ = 0;
};

}  // namespace

std::shared_ptr<Link> make_job_outlet(Client& client, pn_link_t* link, std::string queue) {
  return std::make_shared<JobOutlet>(client, link, std::move(queue));
}

void write_job(MessageWriter& message, const Handout& job, std::string_view subject) {
  std::string body;
  append_handout(body, job);
  message.properties(job.task_id, "application/json", subject);
  message.application_properties([&](pn_data_t* map) {
    put(map, "WorkerId", std::string_view(job.queue));
    put(map, "FunctionName", std::string_view(job.handler));
  });
  message.data(body);
}

SettleTask settlement(const Lock& lock, SettleTask::How how, std::string reason) {
  return {.tenant = lock.tenant, .task_id = lock.task.task_id, .lease = lock.task.lease, .how = how, .reason = std::move(reason)};
}

std::string dead_lettered(std::string_view reason, std::string_view description) {
  std::string text = "dead-lettered by its worker";
  for (const std::string_view part : {reason, description})
    if (!part.empty()) text += ": " + clean_text(part, 2'000);
  return text;
}

}  // namespace baton::bus
