#include "bus/messages/message_outlet.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "bus/messages/lock_token.hpp"
#include "bus/messages/message_changes.hpp"
#include "bus/messages/message_encoding.hpp"
#include "bus/outlet.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t reason_max = 4'096;
constexpr std::chrono::seconds look_pause{3};

std::string bytes_of_data(pn_data_t* data) {
  const ssize_t size = pn_data_encoded_size(data);
  std::string bytes(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
  const ssize_t got = bytes.empty() ? 0 : pn_data_encode(data, bytes.data(), bytes.size());
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

// None: what is in it is no map.
message::Changes changes_said(pn_data_t* data) {
  if (!data || pn_data_size(data) == 0) return {};
  const std::string bytes = bytes_of_data(data);
  std::string_view rest = bytes;
  const auto map = wire::take(rest);
  return map && wire::is_well_formed(*map) ? changes_in(*map) : message::Changes{};
}

std::optional<Settlement::How> how_of(std::uint64_t outcome, pn_disposition_t* said) {
  using enum Settlement::How;
  switch (outcome) {
    case PN_ACCEPTED: return complete;
    case PN_REJECTED: return dead_letter;
    case PN_RELEASED: return release;
    case PN_MODIFIED: return pn_disposition_is_undeliverable(said) ? defer : abandon;
    default: return std::nullopt;
  }
}

// The reason is among the properties of the error, under names that are texts or symbols; what else is there is a change of the
// message's properties.
void read_rejection(pn_disposition_t* said, Settlement& settlement) {
  pn_condition_t* condition = pn_disposition_condition(said);
  settlement.changes = changes_said(pn_condition_info(condition));
  const auto take = [&](const char* name) {
    const auto found = settlement.changes.set.find(name);
    std::string text;
    if (found == settlement.changes.set.end()) return text;
    if (const auto* value = std::get_if<std::string>(&found->second)) text = clean_reason(*value);
    settlement.changes.set.erase(found);
    return text;
  };
  settlement.reason = take("DeadLetterReason");
  settlement.description = take("DeadLetterErrorDescription");
  if (settlement.reason.empty() && settlement.description.empty())
    settlement.description = clean_reason(text_of(pn_condition_get_description(condition)));
}

class MessageOutlet final : public Outlet {
 public:
  MessageOutlet(Client& client, pn_link_t* link, EntityKey entity, std::int64_t entity_id, message::Lane lane)
      : Outlet(client, link, message::queue_name(entity_id, lane)), entity_(std::move(entity)), entity_id_(entity_id) {}

  // Messages that have not left are nobody's: another receiver gets them.
  void on_end() override {
    flush();
    Outlet::on_end();
    ReturnTasks back;
    for (pn_delivery_t *one = pn_unsettled_head(link_), *next; one; one = next) {
      next = pn_unsettled_next(one);
      const auto lock = is_settling(one) ? std::nullopt : lock_in(one);
      if (lock && take_back(one)) back.tasks.push_back({message::task_id(lock->message), std::to_string(lock->number)});
    }
    bus::give_back(client_.services().inbox, std::move(back));
  }

  // The client's word on a message that it has. Its first word counts.
  void on_delivery(pn_delivery_t* delivery) override {
    const std::uint64_t outcome = pn_delivery_remote_state(delivery);
    const bool is_settled = pn_delivery_settled(delivery);
    pn_delivery_clear(delivery);
    const auto how = how_of(outcome, pn_delivery_remote(delivery));
    if (is_settling(delivery) || (!how && !is_settled)) return;
    const auto lock = lock_in(delivery);
    if (!how || !lock) return end(delivery);  // settled without a word: the lock goes on until it expires
    Settlement settlement{.lock = *lock, .how = *how, .reason = {}, .description = {}, .changes = {}};
    if (outcome == PN_REJECTED) read_rejection(pn_delivery_remote(delivery), settlement);
    if (outcome == PN_MODIFIED) settlement.changes = changes_said(pn_disposition_annotations(pn_delivery_remote(delivery)));
    pn_delivery_set_context(delivery, this);
    said_.push_back({delivery, outcome});
    settle_later(std::move(settlement));
  }

  void on_tick() override {
    Outlet::on_tick();
    flush();
    if (std::chrono::steady_clock::now() - looked_at_ > look_pause) look();
  }

  void flush() override {
    if (settlements_.empty()) return;
    SettleMessages command{.tenant = principal_.own(), .settlements = std::exchange(settlements_, {})};
    if (is_deleting_) return complete(command);
    client_.submit(std::move(command), weak_from_this(),
                   [this, said = std::exchange(said_, {})](const Reply& reply) { on_settled(said, reply); });
  }

 private:
  struct Said {
    pn_delivery_t* delivery;  // ours until we settle it
    std::uint64_t outcome;
  };

  [[nodiscard]] bool is_settling(pn_delivery_t* delivery) const { return pn_delivery_get_context(delivery) == this; }

  // None: its tag is no token of this queue.
  [[nodiscard]] std::optional<MessageLock> lock_in(pn_delivery_t* delivery) const {
    const pn_delivery_tag_t tag = pn_delivery_tag(delivery);
    LockToken token{};
    if (tag.size == token.size()) std::copy_n(tag.start, tag.size, token.begin());
    const auto lock = lock_of(token);
    return lock && lock->message.entity_id == entity_id_ ? lock : std::nullopt;
  }

  // Also for who receives and deletes: what cannot be sent to it any more is another's then.
  [[nodiscard]] bool is_locking() const override { return true; }

  void send(const Handout& handout) override {
    if (!handout.message) return give_back({handout});
    const MessageLock lock = lock_of(*handout.message);
    (void)put(token_of(lock), write_message(*handout.message));
    if (is_deleting_) settle_later({.lock = lock, .how = Settlement::How::complete, .reason = {}, .description = {}, .changes = {}});
  }

  void settle_later(Settlement settlement) {
    if (settlements_.empty()) client_.flush_later(weak_from_this());
    settlements_.push_back(std::move(settlement));
  }

  // What was received and deleted. What the engine has no time for is said again at the next tick.
  void complete(const SettleMessages& command) {
    client_.submit(command, weak_from_this(), [this, settlements = command.settlements](const Reply& reply) {
      const auto* refused = std::get_if<Refused>(&reply);
      if (refused && may_pass(*refused)) settlements_.insert(settlements_.end(), settlements.begin(), settlements.end());
    });
  }

  void on_nothing() override { look(); }

  // The entity may be gone, or disabled: whoever receives should hear of it, and get no more.
  void look() {
    if (std::exchange(is_looking_, true)) return;
    looked_at_ = std::chrono::steady_clock::now();
    client_.submit(FindEntity{entity_}, weak_from_this(), [this](const Reply& reply) {
      is_looking_ = false;
      const auto* refused = std::get_if<Refused>(&reply);
      const auto* found = std::get_if<EntitiesReply>(&reply);
      if (refused && refused->refusal != Refusal::entity_not_found) return;
      const bool is_there = found && !found->entities.empty() && found->entities.front().entity.entity_id == entity_id_;
      if (!is_there) return client_.end_link(link_, {"amqp:not-found", "The messaging entity '" + entity_.path + "' could not be found."});
      if (!found->entities.front().settings.gives_messages())
        client_.end_link(link_, {"com.microsoft:entity-disabled", "'" + entity_.path + "' is disabled for receiving"});
    });
  }

  void on_settled(const std::vector<Said>& said, const Reply& reply) {
    const auto* each = std::get_if<SettledReply>(&reply);
    const auto* all = std::get_if<Refused>(&reply);
    for (std::size_t i = 0; i < said.size(); ++i) {
      const Refused* refused = all ? all : each && i < each->settled.size() && each->settled[i] ? &*each->settled[i] : nullptr;
      if (refused) reject(said[i].delivery, condition_of(*refused));
      else pn_delivery_update(said[i].delivery, said[i].outcome);
      end(said[i].delivery);
    }
    ask();  // there may be room again
  }

  static void end(pn_delivery_t* delivery) {
    pn_delivery_set_context(delivery, nullptr);
    pn_delivery_settle(delivery);
  }

  const EntityKey entity_;
  const std::int64_t entity_id_;
  bool is_looking_ = false;
  std::chrono::steady_clock::time_point looked_at_ = std::chrono::steady_clock::now();
  std::vector<Said> said_;               // since the last flush
  std::vector<Settlement> settlements_;  // one for each, or of what has been sent to who receives and deletes
};

}  // namespace

std::string clean_reason(std::string_view text) { return clean_text(text, reason_max); }

std::shared_ptr<Link> make_message_outlet(Client& client, pn_link_t* link, EntityKey entity, std::int64_t entity_id, message::Lane lane) {
  return std::make_shared<MessageOutlet>(client, link, std::move(entity), entity_id, lane);
}

}  // namespace baton::bus
