#include "bus/own_topics.hpp"

#include <spdlog/spdlog.h>

#include "base/json.hpp"
#include "bus/messages/lock_token.hpp"
#include "bus/messages/message_encoding.hpp"

namespace baton::bus {

namespace {

constexpr std::uint32_t consumed_at_once = 100;
constexpr Duration consumer_wait = std::chrono::seconds{10};
constexpr std::size_t dead_letter_text_max = 4'000;

const Tenant only_tenant{"default"};

}  // namespace

class OwnTopic : public std::enable_shared_from_this<OwnTopic> {
 public:
  OwnTopic(Services& services, Inlet what, const std::string& topic, const std::string& subscription)
      : services_(services), what_(what), topic_{only_tenant, topic}, subscription_{only_tenant, message::subscription_path(topic, subscription)} {}

  // The engine may have had no time before, or the topic not have been there.
  void on_tick() {
    if (is_stopping_) return;
    if (!is_looking_) look();
    if (!queue_ && !is_finding_) find_queue();
    if (poll_ || undecided_ > 0 || is_settling_) return;
    if (!settlements_.empty()) settle();
    else if (queue_) poll();
  }

  void stop() {
    is_stopping_ = true;
    if (poll_) std::exchange(poll_, nullptr)->abandon();
  }

  [[nodiscard]] const EntityKey* topic() const { return is_there_ ? &topic_ : nullptr; }
  [[nodiscard]] bool has_other_subscriptions() const { return has_others_; }

 private:
  std::shared_ptr<AwaitedReply> submit(Command command, std::function<void(Reply)> then) {
    auto waiter = std::make_shared<AwaitedReply>(services_.mailbox, services_.inbox, [weak = weak_from_this(), then = std::move(then)](Reply& reply) {
      const auto alive = weak.lock();
      if (alive) then(std::move(reply));
      return alive != nullptr;
    });
    services_.inbox.submit(std::move(command), waiter);
    return waiter;
  }

  void look() {
    is_looking_ = true;
    submit(FindEntity{.key = topic_, .is_attach = true}, [this](const Reply& reply) {
      is_looking_ = false;
      const auto* found = std::get_if<EntitiesReply>(&reply);
      if (!found && std::holds_alternative<Refused>(reply) && may_pass(std::get<Refused>(reply))) return;
      is_there_ = found && !found->entities.empty();
      has_others_ = is_there_ && found->entities.front().subscriptions > 1;
    });
  }

  void find_queue() {
    is_finding_ = true;
    submit(FindEntity{.key = subscription_, .is_attach = true}, [this](const Reply& reply) {
      is_finding_ = false;
      const auto* found = std::get_if<EntitiesReply>(&reply);
      if (!found || found->entities.empty()) return;
      queue_ = message::queue_name(found->entities.front().entity.entity_id, message::Lane::active);
      on_tick();
    });
  }

  void poll() {
    Poll poll{.tenant = only_tenant,
              .queue = *queue_,
              .worker = "baton",
              .max = consumed_at_once,
              .heartbeats = true,
              .lease_time = std::nullopt,
              .wait_until = services_.clock.now() + consumer_wait,
              .is_listed = false};
    poll_ = submit(std::move(poll), [this](Reply reply) {
      poll_.reset();
      auto* handouts = std::get_if<PollReply>(&reply);
      if (!handouts) return queue_.reset();  // it is looked for again at the next tick
      if (handouts->jobs.empty()) return on_tick();
      undecided_ = handouts->jobs.size();
      for (const Handout& one : handouts->jobs) take(one);
    });
  }

  void take(const Handout& handout) {
    if (!handout.message) return decided({});
    const message::Message& message = *handout.message;
    Settlement settlement{.lock = lock_of(message), .how = Settlement::How::complete, .reason = {}, .description = {}, .changes = {}};
    if (is_marked_as_taken(message.annotations)) return decided(std::move(settlement));
    auto command = read(message);
    if (!command) return give_up(std::move(settlement), command.error());
    submit(*std::move(command), [this, settlement = std::move(settlement)](const Reply& reply) mutable {
      const auto* refused = std::get_if<Refused>(&reply);
      if (refused && may_pass(*refused)) settlement.how = Settlement::How::release;
      else if (refused && refused->refusal != Refusal::stale_result) return give_up(std::move(settlement), condition_of(*refused));
      decided(std::move(settlement));
    });
  }

  std::expected<Command, Condition> read(const message::Message& message) const {
    const auto sections = split(message.content.value);
    if (!sections) return std::unexpected(Condition{"amqp:decode-error", sections.error()});
    return command_of({.body = text_of_body(*sections), .scheduled_for = std::nullopt}, what_, only_tenant, services_.clock.now());
  }

  void give_up(Settlement settlement, const Condition& why) {
    settlement.how = Settlement::How::dead_letter;
    settlement.reason = why.name;
    settlement.description = clean_text(why.description, dead_letter_text_max);
    spdlog::warn("a message of {} cannot be taken: {}", subscription_.path, settlement.description);
    decided(std::move(settlement));
  }

  // Those that came together are settled together, and then come the next ones. After one that has to be tried again that is
  // at the next tick.
  void decided(std::optional<Settlement> settlement) {
    if (settlement) {
      must_wait_ |= settlement->how == Settlement::How::release;
      settlements_.push_back(*std::move(settlement));
    }
    if (--undecided_ == 0) settle();
  }

  void settle() {
    is_settling_ = true;
    submit(SettleMessages{only_tenant, settlements_}, [this](const Reply& reply) {
      is_settling_ = false;
      keep_unsaid(reply);
      if (!std::exchange(must_wait_, false) && settlements_.empty()) on_tick();
    });
  }

  // What the engine had no time for is said again at the next tick: a message that stays locked comes again, and its command with it.
  void keep_unsaid(const Reply& reply) {
    const auto* each = std::get_if<SettledReply>(&reply);
    const auto* all = std::get_if<Refused>(&reply);
    std::vector<Settlement> unsaid;
    for (std::size_t i = 0; i < settlements_.size(); ++i) {
      const Refused* refused = all ? all : each && i < each->settled.size() && each->settled[i] ? &*each->settled[i] : nullptr;
      if (refused && may_pass(*refused)) unsaid.push_back(std::move(settlements_[i]));
    }
    settlements_ = std::move(unsaid);
  }

  Services& services_;
  const Inlet what_;
  const EntityKey topic_, subscription_;
  bool is_looking_ = false, is_there_ = false, has_others_ = false;
  bool is_finding_ = false, is_stopping_ = false, must_wait_ = false, is_settling_ = false;
  std::optional<std::string> queue_;  // of the subscription; none: it is not known yet
  std::shared_ptr<AwaitedReply> poll_;
  std::size_t undecided_ = 0;
  std::vector<Settlement> settlements_;  // of what was polled last, until they are said
};

OwnTopics::OwnTopics(Services& services) {
  const Names& names = services.options.names;
  topics_[0] = std::make_shared<OwnTopic>(services, Inlet::events, names.events_topic, names.events_subscription);
  topics_[1] = std::make_shared<OwnTopic>(services, Inlet::results, names.results_topic, names.results_subscription);
}
OwnTopics::~OwnTopics() = default;

void OwnTopics::on_tick() {
  for (const auto& topic : topics_) topic->on_tick();
}
void OwnTopics::stop() {
  for (const auto& topic : topics_) topic->stop();
}
const OwnTopic& OwnTopics::of(Inlet what) const { return *topics_[what == Inlet::events ? 0 : 1]; }
const EntityKey* OwnTopics::topic(Inlet what) const { return of(what).topic(); }
bool OwnTopics::has_other_subscriptions(Inlet what) const { return of(what).has_other_subscriptions(); }

}  // namespace baton::bus
