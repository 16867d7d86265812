#include "bus/job_outlet.hpp"

#include <algorithm>

#include "ports/task_messages.hpp"

namespace baton::bus {
namespace {

constexpr Duration poll_time = std::chrono::seconds{10};
constexpr std::uint32_t poll_max = 1'000;
constexpr std::size_t outgoing_max = 4 << 20;  // bytes that wait for the client

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

class JobOutlet final : public Link, public std::enable_shared_from_this<JobOutlet> {
 public:
  JobOutlet(Client& client, pn_link_t* link, std::string queue)
      : client_(client),
        link_(link),
        queue_(std::move(queue)),
        principal_(client.principal()),
        is_deleting_(pn_link_remote_snd_settle_mode(link) == PN_SND_SETTLED) {}
  ~JobOutlet() override { end_poll(); }

  void on_flow() override {
    const bool is_draining = pn_link_get_drain(link_);
    if (is_draining && poll_) {  // it has brought what there was
      end_poll();
      pn_link_drained(link_);
    } else if (credit() == 0) {
      end_poll();
    }
    ask(is_draining ? Duration{} : poll_time);
  }
  void on_tick() override { ask(poll_time); }  // the engine may have had no time before

  // Messages that have not left are nobody's: another worker gets their jobs.
  void on_end() override {
    end_poll();
    ReturnTasks back;
    for (const auto& [delivery, message] : unsettled_) {
      const auto lock = locks().find(message.token);
      if (!pn_delivery_buffered(delivery) || lock == locks().end()) continue;
      back.tasks.push_back(lock->second.task);
      locks().erase(lock);
    }
    give_back(std::move(back));
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

  // A number without a sign, whatever proton's type says; we never send more than it allows.
  [[nodiscard]] std::uint32_t credit() const { return static_cast<std::uint32_t>(pn_link_credit(link_)); }
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
    if (refused) return refuse(delivery, lock_lost);
    settle(delivery, outcome);
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

  // One poll at a time, for as many as the client takes. A client that takes more than it reads waits for the next tick.
  void ask(Duration wait) {
    const std::uint32_t wanted = credit();
    if (poll_ || wanted == 0 || pn_session_outgoing_bytes(pn_link_session(link_)) > outgoing_max) return;
    const Services& services = client_.services();
    // Who receives and deletes has it in hand at once: the lease lasts as long as the job's time.
    Poll poll{.tenant = principal_.own(),
              .queue = queue_,
              .worker = client_.name(),
              .max = std::min(wanted, poll_max),
              .heartbeats = !is_deleting_,
              .lease_time = services.options.lock_time,
              .wait_until = services.clock.now() + wait};
    poll_ = client_.submit(std::move(poll), weak_from_this(), [this](Reply reply) {
      poll_.reset();
      auto* jobs = std::get_if<PollReply>(&reply);
      if (!jobs) return;  // it is asked again at the next tick
      send(jobs->jobs);
      if (pn_link_get_drain(link_)) pn_link_drained(link_);
      else ask(poll_time);
    });
  }

  void end_poll() {
    if (poll_) std::exchange(poll_, nullptr)->abandon();
  }

  // As many as the client still wants; it may have changed its mind.
  void send(const std::vector<Handout>& jobs) {
    ReturnTasks back;
    for (const Handout& job : jobs) {
      if (credit() > 0) send(job);
      else back.tasks.push_back({job.task_id, job.lease});
    }
    give_back(std::move(back));
  }

  void send(const Handout& job) {
    Services& services = client_.services();
    const LockToken token = new_token();
    pn_delivery_t* delivery = pn_delivery(link_, pn_dtag(token.data(), token.size()));
    const std::string bytes = message_of(job, ++sent_, services.clock.now());
    pn_link_send(link_, bytes.data(), bytes.size());
    pn_link_advance(link_);
    services.sent.add();
    if (is_deleting_) return pn_delivery_settle(delivery);
    unsettled_[delivery] = {.token = token};
    services.locks[token] = {principal_.tenant, queue_, {job.task_id, job.lease}, job.lease_until};
  }

  void give_back(ReturnTasks back) {
    if (!back.tasks.empty()) client_.services().inbox.submit(std::move(back), std::make_shared<Nobody>());
  }

  Client& client_;
  pn_link_t* const link_;
  const std::string queue_;
  const Principal principal_;  // as it was when the link was attached
  const bool is_deleting_;     // receive and delete: nothing is settled later
  std::shared_ptr<AwaitedReply> poll_;
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
