#include "bus/broker/publisher.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "bus/job_outlet.hpp"
#include "bus/transfer.hpp"

namespace baton::bus {
namespace {

using steady = std::chrono::steady_clock;

constexpr Duration poll_wait = std::chrono::seconds{10};
constexpr std::size_t unconfirmed_max = 256;
constexpr std::size_t outgoing_max = 4 << 20;  // bytes that wait for the broker
constexpr std::chrono::minutes unconfirmed_time_max{5};
constexpr std::chrono::seconds busy_time{2};  // that Service Bus wants to be left alone for when it says that it is busy

// The message itself is wrong, and would be the next time. Whatever else a broker rejects with may pass: it is busy, full, disabled, or has a fault.
bool is_about_message(std::string_view condition) {
  constexpr std::array<std::string_view, 7> names{
      "amqp:decode-error",    "amqp:invalid-field",           "amqp:link:message-size-exceeded", "amqp:not-allowed",
      "amqp:not-implemented", "com.microsoft:argument-error", "com.microsoft:argument-out-of-range"};
  return std::ranges::find(names, condition) != names.end();
}

class PublisherLink final : public Link, public std::enable_shared_from_this<PublisherLink> {
 public:
  PublisherLink(ConnectionToBroker& connection, pn_link_t* link, std::string queue)
      : connection_(connection), services_(connection.services()), link_(link), queue_(std::move(queue)) {}
  ~PublisherLink() override { end_poll(); }

  [[nodiscard]] bool is_idle() const override { return unconfirmed_.empty(); }  // all that was sent is confirmed

  void on_flow() override { ask(); }

  void on_tick() override {
    if (connection_.is_leaving()) end_poll();
    renew();
    ask();
  }

  void on_delivery(pn_delivery_t* delivery) override {
    const auto found = unconfirmed_.find(delivery);
    const std::uint64_t outcome = pn_delivery_remote_state(delivery);
    pn_delivery_clear(delivery);
    if (found == unconfirmed_.end() || (!is_outcome(outcome) && !pn_delivery_settled(delivery))) return;
    const TaskLease task = std::move(found->second.task);
    unconfirmed_.erase(found);
    conclude(task, outcome, delivery);
    pn_delivery_settle(delivery);
    ask();
  }

  // Whether the broker has these is not known: they are published again.
  void on_end() override {
    end_poll();
    ReturnTasks back{.tasks = {}, .reason = "the broker did not confirm the message"};
    for (auto& [delivery, sent] : unconfirmed_) back.tasks.push_back(std::move(sent.task));
    unconfirmed_.clear();
    give_back(std::move(back));
  }

 private:
  struct Sent {
    TaskLease task;
    steady::time_point sent;
  };

  static bool is_outcome(std::uint64_t state) { return state == PN_ACCEPTED || state == PN_REJECTED || state == PN_RELEASED || state == PN_MODIFIED; }

  void conclude(const TaskLease& task, std::uint64_t outcome, pn_delivery_t* delivery) {
    if (outcome == PN_ACCEPTED) {
      if (refusals_.has_failed()) spdlog::info("the broker takes what is for queue {} again", queue_);
      refusals_.succeeded();
      services_.published.add();
      return settle(task, SettleTask::How::keep, {});
    }
    const bool is_first = !refusals_.has_failed();
    if (steady::now() >= paused_until_) paused_until_ = steady::now() + refusals_.next();  // those that were sent together are one refusal
    end_poll();  // or what is given back would be sent again at once
    if (outcome == PN_REJECTED) return on_rejected(task, pn_disposition_condition(pn_delivery_remote(delivery)), is_first);
    // Nobody there is to get it, for now.
    if (is_first) spdlog::warn("the broker gives back what is for queue {}: is there a queue for it?", queue_);
    give_back({.tasks = {task}, .reason = "the broker gave it back"});
  }

  // Only a message that is wrong uses up deliveries.
  void on_rejected(const TaskLease& task, pn_condition_t* condition, bool is_first) {
    const std::string_view name = text_of(pn_condition_get_name(condition));
    const std::string why = "the broker rejected it: " + text_of_condition(condition);
    services_.rejected.add();
    note_rejected(task.task_id, std::string(name), text_of_condition(condition));
    if (is_about_message(name)) {
      spdlog::warn("{} of queue {}: {}", task.task_id, queue_, why);
      return settle(task, SettleTask::How::abandon, why);
    }
    if (name == "com.microsoft:server-busy") paused_until_ = std::max(paused_until_, steady::now() + busy_time);
    if (is_first) spdlog::warn("{} of queue {}: {}; trying again", task.task_id, queue_, why);
    give_back({.tasks = {task}, .reason = why});
  }

  void note_rejected(const std::string& message_id, std::string reason, std::string description) {
    services_.state.rejected({.at = services_.clock.now(),
                              .source = std::string(text_of(pn_terminus_get_address(pn_link_target(link_)))),
                              .message_id = message_id,
                              .by_broker = true,
                              .reason = std::move(reason),
                              .description = std::move(description)});
  }

  void settle(const TaskLease& task, SettleTask::How how, std::string reason) {
    services_.settle({.tenant = std::nullopt, .task_id = task.task_id, .lease = task.lease, .how = how, .reason = std::move(reason)});
  }

  // A broker that is slow is not dead: who is dead is noticed by its silence.
  void renew() {
    const auto now = steady::now();
    const auto oldest = std::ranges::min_element(unconfirmed_, {}, [](const auto& entry) { return entry.second.sent; });
    if (oldest == unconfirmed_.end() || now < renewed_at_ + services_.options.lock_time / 3) return;
    if (now - oldest->second.sent > unconfirmed_time_max) return connection_.give_up({"it confirms nothing"});
    renewed_at_ = now;
    Heartbeat heartbeat{.tenant = std::nullopt, .worker = worker(), .tasks = {}, .lease_time = services_.options.lock_time};
    for (const auto& [delivery, sent] : unconfirmed_) heartbeat.tasks.push_back(sent.task);
    services_.inbox.submit(std::move(heartbeat), std::make_shared<Nobody>());
  }

  void ask() {
    const auto credit = static_cast<std::size_t>(std::max(pn_link_credit(link_), 0));
    const std::size_t room = std::min(credit, unconfirmed_max - std::min(unconfirmed_.size(), unconfirmed_max));
    if (poll_ || room == 0 || connection_.is_leaving() || steady::now() < paused_until_ || is_backed_up()) return;
    // After a refusal one is tried before the others.
    Poll poll{.tenant = Tenant{"default"},
              .queue = queue_,
              .worker = worker(),
              .max = refusals_.has_failed() ? 1 : static_cast<std::uint32_t>(room),
              .heartbeats = true,
              .lease_time = services_.options.lock_time,
              .wait_until = services_.clock.now() + poll_wait};
    poll_ = connection_.submit(std::move(poll), weak_from_this(), [this](Reply reply) {
      poll_.reset();
      auto* jobs = std::get_if<PollReply>(&reply);
      if (!jobs) return;  // it is asked again at the next tick
      for (Handout& job : jobs->jobs) send(std::move(job));
      ask();
    });
  }

  void send(Handout job) {
    const TaskLease task{job.task_id, job.lease};
    if (pn_link_credit(link_) <= 0 || is_backed_up()) return give_back({.tasks = {task}, .reason = "the broker takes no more at the moment"});
    // A copy of a message that was published twice has another lease, and either is to count: the id of the task names the attempt.
    job.lease.clear();
    MessageWriter message;
    message.header(0, job.timeout);
    write_job(message, job, queue_);
    const std::string bytes = message.take();
    const std::uint64_t bytes_max = pn_link_remote_max_message_size(link_);
    if (bytes_max != 0 && bytes.size() > bytes_max) {
      services_.rejected.add();
      const std::string why = fmt::format("the broker takes messages of {} bytes, and this one has {}", bytes_max, bytes.size());
      note_rejected(task.task_id, "amqp:link:message-size-exceeded", why);
      return settle(task, SettleTask::How::give_up, why);
    }
    const std::string tag = std::to_string(++sent_);
    pn_delivery_t* delivery = pn_delivery(link_, pn_dtag(tag.data(), tag.size()));
    pn_link_send(link_, bytes.data(), bytes.size());
    pn_link_advance(link_);
    if (unconfirmed_.empty()) renewed_at_ = steady::now();
    unconfirmed_[delivery] = {task, steady::now()};
  }

  [[nodiscard]] bool is_backed_up() const { return pn_session_outgoing_bytes(pn_link_session(link_)) > outgoing_max; }
  [[nodiscard]] std::string worker() const { return "bus:" + services_.options.address.host; }

  void end_poll() {
    if (poll_) std::exchange(poll_, nullptr)->abandon();
  }

  void give_back(ReturnTasks back) {
    if (!back.tasks.empty()) services_.inbox.submit(std::move(back), std::make_shared<Nobody>());
  }

  ConnectionToBroker& connection_;
  BrokerServices& services_;
  pn_link_t* const link_;
  const std::string queue_;
  std::shared_ptr<AwaitedReply> poll_;
  std::map<pn_delivery_t*, Sent> unconfirmed_;
  Backoff refusals_{std::chrono::seconds{2}, std::chrono::seconds{60}};
  steady::time_point paused_until_{}, renewed_at_{};
  std::uint64_t sent_ = 0;
};

}  // namespace

std::shared_ptr<Link> make_publisher(ConnectionToBroker& connection, pn_link_t* link, std::string queue) {
  return std::make_shared<PublisherLink>(connection, link, std::move(queue));
}

}  // namespace baton::bus
