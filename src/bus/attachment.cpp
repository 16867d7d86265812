#include "bus/attachment.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "bus/inlet.hpp"
#include "bus/job_outlet.hpp"
#include "bus/messages/lock_token.hpp"
#include "bus/messages/message_inlet.hpp"
#include "bus/messages/message_management.hpp"
#include "bus/messages/message_outlet.hpp"
#include "bus/request_link.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t queue_name_max = 200;
constexpr std::string_view pool_prefix = "worker-";

using message::EntityType;

// A receiver that wants the messages of one session, which nobody has here.
bool asks_for_session(pn_link_t* link) {
  pn_data_t* filter = pn_terminus_filter(pn_link_remote_source(link));
  pn_data_rewind(filter);
  if (!pn_data_next(filter) || pn_data_type(filter) != PN_MAP) return false;
  bool found = false;
  pn_data_enter(filter);
  while (pn_data_next(filter)) {
    found = found || (pn_data_type(filter) == PN_SYMBOL && text_of(pn_data_get_symbol(filter)) == "com.microsoft:session-filter");
    if (!pn_data_next(filter)) break;
  }
  pn_data_exit(filter);
  return found;
}

}  // namespace

Attachment::Attachment(Client& client, pn_link_t* link, Address address, std::function<void(Attached)> done)
    : client_(client),
      link_(link),
      address_(std::move(address)),
      gives_(pn_link_is_sender(link)),
      names_(client.services().options.names),
      principal_(client.principal()),
      done_(std::move(done)) {}

void Attachment::start() {
  if (auto why = refusal_before()) return done(std::unexpected(*std::move(why)));
  if (auto inlet = direct_inlet()) return done(std::move(inlet));
  client_.submit(FindEntity{.key = key(), .is_attach = true}, weak_from_this(), [this](const Reply& reply) { on_found(reply); });
}

void Attachment::on_found(const Reply& reply) {
  const auto* refused = std::get_if<Refused>(&reply);
  if (refused && refused->refusal != Refusal::entity_not_found) return done(std::unexpected(condition_of(*refused)));
  const auto* found = std::get_if<EntitiesReply>(&reply);
  if (found && !found->entities.empty()) entity_ = found->entities.front();
  if (entity_ && entity_->entity.entity_id > entity_id_max) return refuse("amqp:internal-error", "this entity has a number for which lock tokens have no room");
  if (address_.is_management) return attach_management();
  return gives_ ? attach_outlet() : attach_inlet();
}

void Attachment::done(Attached attached) {
  const auto self = shared_from_this();  // whoever is told lets go of it
  std::exchange(done_, {})(std::move(attached));
}

void Attachment::refuse(const char* condition, std::string why) { done(std::unexpected(Condition{condition, std::move(why)})); }
void Attachment::refuse_as_not_found() { refuse("amqp:not-found", "The messaging entity '" + key().path + "' could not be found."); }

bool Attachment::is(const std::string& name) const { return equal_ignoring_case(address_.entity, name); }

// By the path that the entity is found by, so that no spelling of an address leads around it.
bool Attachment::is_own_subscription() const {
  const std::string path = key().path;
  return equal_ignoring_case(path, message::subscription_path(names_.events_topic, names_.events_subscription)) ||
         equal_ignoring_case(path, message::subscription_path(names_.results_topic, names_.results_subscription));
}

bool Attachment::allows_any(std::initializer_list<Permission> permissions) const {
  return std::ranges::any_of(permissions, [&](Permission one) { return allows(principal_.role, one); });
}

EntityKey Attachment::key() const {
  return {principal_.own(), address_.subscription.empty() ? address_.entity : message::subscription_path(address_.entity, address_.subscription)};
}

// What needs no question.
std::optional<Condition> Attachment::refusal_before() const {
  if (gives_ && asks_for_session(link_)) return Condition{"amqp:not-implemented", "there are no message sessions here"};
  if (address_.is_management) return std::nullopt;
  const std::string& name = address_.entity;
  const auto unauthorized = [&](const char* what) {
    return Condition{"amqp:unauthorized-access", std::string("the role of this key may not ") + what + " '" + name + "'"};
  };
  if (gives_) {
    if (is_own_subscription() && !address_.is_dead_letters)
      return Condition{"amqp:not-allowed", "baton itself receives what is sent to '" + name + "': make a subscription of your own"};
    if (!allows_any({Permission::work})) return unauthorized("receive from");
    return std::nullopt;
  }
  return refusal_to_send();
}

// To the entity of this address, over a link or as a scheduled message.
std::optional<Condition> Attachment::refusal_to_send() const {
  const std::string& name = address_.entity;
  // Runbooks, which such events are about, are all in one tenant.
  if (is(names_.events_topic) && principal_.own().value != "default")
    return Condition{"amqp:not-found", "The messaging entity '" + name + "' could not be found."};
  if (is(names_.jobs_topic))
    return Condition{"amqp:not-allowed", "jobs come from runbooks and workflows: nobody else sends to '" + name + "'"};
  if (!address_.subscription.empty() || address_.is_dead_letters)
    return Condition{"amqp:not-allowed", "messages are sent to queues and topics, not to '" + key().path + "'"};
  const bool may_send = is(names_.events_topic)    ? allows_any({Permission::submit})
                        : is(names_.results_topic) ? allows_any({Permission::work})
                                                   : allows_any({Permission::submit, Permission::work});
  if (!may_send) return Condition{"amqp:unauthorized-access", "the role of this key may not send to '" + name + "'"};
  return std::nullopt;
}

// What schedulers and workers say is taken at once.
std::shared_ptr<Link> Attachment::direct_inlet() {
  if (gives_ || address_.is_management) return nullptr;
  if (is(names_.events_topic)) return make_inlet(client_, link_, Inlet::events);
  if (is(names_.results_topic)) return make_inlet(client_, link_, Inlet::results);
  return nullptr;
}

void Attachment::attach_inlet() {
  if (!entity_) return refuse_as_not_found();
  if (!entity_->settings.takes_messages()) return refuse("com.microsoft:entity-disabled", "'" + key().path + "' is disabled for sending");
  done(make_message_inlet(client_, link_, {principal_.own(), entity_->entity.path}, entity_->entity.entity_type == EntityType::topic));
}

void Attachment::attach_outlet() {
  if (is(names_.jobs_topic)) return find_pool([this](const std::string& pool) { attach_to_tasks(pool); });
  if (!entity_) return find_task_queue([this] { attach_to_tasks(address_.entity); });
  if (entity_->entity.entity_type == EntityType::topic) return refuse("amqp:not-allowed", "'" + key().path + "' is a topic: receive from a subscription of it");
  if (!entity_->settings.gives_messages()) return refuse("com.microsoft:entity-disabled", "'" + key().path + "' is disabled for receiving");
  const auto lane = address_.is_dead_letters ? message::Lane::dead : message::Lane::active;
  done(make_message_outlet(client_, link_, {principal_.own(), entity_->entity.path}, entity_->entity.entity_id, lane));
}

// Over the sender's end answers go; what may be asked depends on what it is.
void Attachment::attach_management() {
  const auto refuse_as_unauthorized = [this] {
    refuse("amqp:unauthorized-access", "the role of this key may not receive from '" + address_.entity + "'");
  };
  const auto of_tasks = [this, refuse_as_unauthorized](const std::string& queue) {
    if (!allows_any({Permission::work})) return refuse_as_unauthorized();
    if (gives_) return done(std::make_shared<Link>());
    const auto subscription = address_.subscription.empty() ? std::nullopt : std::optional(key());
    done(make_management(client_, link_, queue, subscription));
  };
  const bool is_of_jobs = is(names_.jobs_topic) && !address_.subscription.empty();
  if (is_of_jobs && (!entity_ || message::pool_of(entity_->rules)))  // which may make it
    return allows_any({Permission::work}) ? find_pool(of_tasks) : refuse_as_unauthorized();
  if (!entity_) return find_task_queue([this, of_tasks] { of_tasks(address_.entity); });
  const bool is_own = is(names_.events_topic) || is(names_.results_topic);
  if (is_own && address_.subscription.empty() && principal_.own().value != "default")
    return refuse("amqp:not-allowed", "nothing can be scheduled in '" + address_.entity + "' of this tenant: nobody would take it from there");
  if (gives_) return done(std::make_shared<Link>());
  done(make_message_management(client_, link_,
                               {.key = {principal_.own(), entity_->entity.path},
                                .entity_id = entity_->entity.entity_id,
                                .type = entity_->entity.entity_type,
                                .is_dead_letters = address_.is_dead_letters,
                                .is_own = is_own_subscription() && !address_.is_dead_letters,
                                .no_sending = refusal_to_send()}));
}

// ---- jobs and tasks

void Attachment::find_pool(std::function<void(std::string)> then) {
  if (address_.subscription.empty()) return refuse("amqp:not-allowed", "'" + address_.entity + "' is a topic: receive from a subscription of it");
  if (address_.is_dead_letters)
    return refuse("amqp:not-implemented", "jobs have no dead-letter queue: those that were given up are listed and replayed with 'baton dead-letter', or over HTTP at /api/v1/dead-letters");
  if (entity_) {
    auto pool = message::pool_of(entity_->rules);
    if (pool) return then(*std::move(pool));
    return refuse("amqp:not-allowed", "a subscription of '" + address_.entity + "' has one rule, WorkerId = 'the pool', and no other: '" +
                                          address_.subscription + "' has not");
  }
  const std::string_view name = address_.subscription;
  const bool is_of_pool = name.size() > pool_prefix.size() && equal_ignoring_case(name.substr(0, pool_prefix.size()), pool_prefix);
  if (!is_of_pool || !client_.services().options.auto_pools) return refuse_as_not_found();
  make_pool(std::string(name.substr(pool_prefix.size())), std::move(then));
}

void Attachment::make_pool(std::string pool, std::function<void(std::string)> then) {
  ChangeEntity command{.what = ChangeEntity::What::create,
                       .key = key(),
                       .type = EntityType::subscription,
                       .settings = {},
                       .rules = {message::rule_of_pool(pool)}};
  client_.submit(std::move(command), weak_from_this(), [this, pool = std::move(pool), then = std::move(then)](const Reply& reply) {
    const auto* refused = std::get_if<Refused>(&reply);
    if (!refused || refused->refusal == Refusal::entity_exists) return then(pool);
    done(std::unexpected(condition_of(*refused)));
  });
}

void Attachment::find_task_queue(std::function<void()> then) {
  const std::string& queue = address_.entity;
  if (!address_.subscription.empty() || queue.size() > queue_name_max) return refuse_as_not_found();
  if (workflow::is_reserved_queue(queue))
    return refuse("amqp:not-allowed", "the queue '" + queue + "' is reserved: no worker can ask for its tasks");
  const Services& services = client_.services();
  if (!services.options.is_task_queue) return refuse_as_not_found();
  services.options.is_task_queue(
      principal_.own(), queue,
      arriving<Result<bool>>(services.mailbox, [weak = weak_from_this(), then = std::move(then)](Result<bool> is_one) {
        const auto self = weak.lock();
        if (!self) return;
        const auto connection = self->client_.shared_from_this();
        if (!is_one) self->refuse("com.microsoft:server-busy", "the store is not reachable at the moment");
        else if (!*is_one) self->refuse_as_not_found();
        else if (self->address_.is_dead_letters)
          self->refuse("amqp:not-implemented", "tasks of workflows have no dead-letter queue: those that were given up are listed and replayed with 'baton dead-letter', or over HTTP at /api/v1/dead-letters");
        else then();
        connection->pump();
      }));
}

void Attachment::attach_to_tasks(const std::string& queue) {
  if (workflow::is_reserved_queue(queue))
    return refuse("amqp:not-allowed", "the queue '" + queue + "' is reserved: no worker can ask for its tasks");
  done(make_job_outlet(client_, link_, queue));
}

}  // namespace baton::bus
