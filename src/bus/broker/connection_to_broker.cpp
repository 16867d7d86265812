#include "bus/broker/connection_to_broker.hpp"

#include <fmt/format.h>
#include <proton/sasl.h>
#include <proton/ssl.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "base/base64.hpp"
#include "bus/broker/consumer.hpp"
#include "bus/broker/publisher.hpp"
#include "bus/transfer.hpp"

namespace baton::bus {
namespace {

constexpr std::uint32_t frame_bytes_max = 64 << 10;
constexpr std::size_t session_bytes_max = 4 << 20;
constexpr pn_millis_t idle_time = 120'000;  // half of it is what the broker hears
constexpr std::chrono::seconds login_time{30};
constexpr std::chrono::seconds attach_time{30}, refusal_time{2};  // until the broker has answered, or has ended what it refused

Trouble trouble_of(pn_condition_t* condition, const std::string& what = "") {
  return {what + std::string(text_of(pn_condition_get_name(condition))), what + text_of_condition(condition)};
}

bool is_refused(pn_link_t* link) {
  return pn_terminus_get_type(pn_link_is_sender(link) ? pn_link_remote_target(link) : pn_link_remote_source(link)) == PN_UNSPECIFIED;
}

}  // namespace

void BrokerServices::settle(SettleTask command) {
  // It does not end with the link, or with the connection: the job would be published again.
  ++settling;
  auto waiter = std::make_shared<AwaitedReply>(mailbox, inbox, [this, command](Reply& reply) {
    --settling;
    const auto* refused = std::get_if<Refused>(&reply);
    if (refused && may_pass(*refused)) unsaid.push_back(command);
    return true;
  });
  inbox.submit(std::move(command), std::move(waiter));
}

void BrokerServices::say_unsaid() {
  for (SettleTask& command : std::exchange(unsaid, {})) settle(std::move(command));
}

ConnectionToBroker::ConnectionToBroker(std::shared_ptr<ByteStream> stream, BrokerServices& services, std::function<void(Trouble)> on_end)
    : Connection(std::move(stream)), services_(services), on_end_(std::move(on_end)) {}

void ConnectionToBroker::start() {
  const BrokerAddress& address = services_.options.address;
  pn_connection_set_container(amqp(), fmt::format("baton-{}", base64url({new_token().data(), 12})).c_str());  // no other baton's
  pn_connection_set_hostname(amqp(), address.virtual_host.empty() ? address.host.c_str() : ("vhost:" + address.virtual_host).c_str());
  if (!address.user.empty()) {
    pn_connection_set_user(amqp(), address.user.c_str());
    pn_connection_set_password(amqp(), address.password.c_str());
  }
  if (address.has_own_tls() && !use_tls()) give_up(fmt::format("the certificates of '{}' cannot be read", services_.options.trusted));
  pn_sasl_t* sasl = pn_sasl(transport());
  pn_sasl_allowed_mechs(sasl, address.user.empty() ? "ANONYMOUS" : "PLAIN");
  pn_sasl_set_allow_insecure_mechs(sasl, !address.has_own_tls());
  pn_transport_require_encryption(transport(), address.has_own_tls());
  pn_transport_set_max_frame(transport(), frame_bytes_max);
  pn_transport_set_idle_timeout(transport(), idle_time);
  bind();
  if (has_given_up_) return terminate();
  pn_connection_open(amqp());
  session_ = pn_session(amqp());
  pn_session_open(session_);
  pump();
}

// The domain lives as long as the transport uses it: proton counts.
bool ConnectionToBroker::use_tls() {
  const std::string& trusted = services_.options.trusted;
  pn_ssl_domain_t* domain = pn_ssl_domain(PN_SSL_MODE_CLIENT);
  const bool is_set = domain && (trusted.empty() || pn_ssl_domain_set_trusted_ca_db(domain, trusted.c_str()) == 0) &&
                      pn_ssl_domain_set_peer_authentication(domain, PN_SSL_VERIFY_PEER_NAME, nullptr) == 0 &&
                      pn_ssl_domain_set_protocols(domain, "TLSv1.2 TLSv1.3") == 0 && pn_ssl_init(pn_ssl(transport()), domain, nullptr) == 0 &&
                      pn_ssl_set_peer_hostname(pn_ssl(transport()), services_.options.address.host.c_str()) == 0;
  if (domain) pn_ssl_domain_free(domain);
  return is_set;
}

void ConnectionToBroker::handle(pn_event_t* event) {
  on_event(event);
  if (has_given_up_) terminate();
}

void ConnectionToBroker::on_event(pn_event_t* event) {
  pn_link_t* link = pn_event_link(event);
  const bool is_token = link && tokens_ && tokens_->owns(link);
  switch (pn_event_type(event)) {
    case PN_CONNECTION_REMOTE_OPEN: return on_open();
    case PN_CONNECTION_REMOTE_CLOSE:
      note_trouble(trouble_of(pn_connection_remote_condition(amqp())));
      return pn_connection_close(amqp());
    case PN_SESSION_REMOTE_CLOSE: return on_session_ended(pn_event_session(event));
    case PN_TRANSPORT_ERROR:
      return note_trouble(text_of_condition(pn_transport_condition(transport())));
    case PN_LINK_REMOTE_OPEN:
      if (!is_token) on_attached(link);
      return;
    case PN_LINK_REMOTE_DETACH:
    case PN_LINK_REMOTE_CLOSE:
      if (is_token) return on_tokens_detached(pn_link_remote_condition(link));
      if (Way* way = way_of(link)) detach(*way, trouble_of(pn_link_remote_condition(link)));
      return;
    case PN_LINK_FLOW:
      if (is_token) return tokens_->on_flow(services_.clock.now());
      if (Way* way = way_of(link); way && way->link) way->link->on_flow();
      return;
    case PN_DELIVERY:
      if (is_token) return tokens_->on_delivery(pn_event_delivery(event));
      if (Way* way = way_of(link); way && way->link) way->link->on_delivery(pn_event_delivery(event));
      return;
    default: return;
  }
}

void ConnectionToBroker::on_open() {
  is_rabbit_ = text_in(pn_connection_remote_properties(amqp()), "product") == "RabbitMQ";
  list_ways();
  if (!services_.token_for) return attach_all();
  std::vector<std::string> entities;
  for (const Way& way : ways_)
    if (std::ranges::find(entities, way.address) == entities.end()) entities.push_back(way.address);
  tokens_ = std::make_unique<TokenSender>(session_, services_.options.address.host, std::move(entities), services_.token_for, [this] { attach_all(); },
                                          [this](const Trouble& why) { on_tokens_refused(why); });
}

// Azure ends what is idle, and between two rounds these links are.
void ConnectionToBroker::on_tokens_detached(pn_condition_t* why) {
  if (tokens_->is_first_round()) give_up(trouble_of(why, "it takes no tokens: "));
  else tokens_->drop_links();
}

void ConnectionToBroker::on_tokens_refused(const Trouble& why) {
  const BrokerAddress& address = services_.options.address;
  services_.on_tokens_refused();
  const std::string what = address.identity ? "token of the identity" : "key '" + address.key_name + "'";
  give_up({"token " + why.name, fmt::format("it does not take the {}: {}", what, why.text)});
}

void ConnectionToBroker::put_tokens() {
  if (!tokens_) return;  // they are not asked for yet
  tokens_->put_all(services_.clock.now());
  pump();
}

// RabbitMQ has exchanges for topics, and a queue TOPIC.SUBSCRIPTION for a subscription.
void ConnectionToBroker::list_ways() {
  const BrokerOptions& options = services_.options;
  const auto source = [&](const std::string& topic, const std::string& subscription) {
    return is_rabbit_ ? "/amq/queue/" + topic + "." + subscription : topic + "/Subscriptions/" + subscription;
  };
  const auto publish = [&](const std::string& queue, std::string address) {
    ways_.push_back({.address = std::move(address), .is_sender = true, .queue = queue, .make = [this, queue](pn_link_t* link) { return make_publisher(*this, link, queue); }});
  };
  const auto consume = [&](Inlet what, const std::string& topic, const std::string& subscription) {
    ways_.push_back({.address = source(topic, subscription), .is_sender = false, .queue = {}, .make = [this, what](pn_link_t* link) { return make_consumer(*this, link, what); }});
  };
  for (const std::string& pool : options.pools) publish(pool, is_rabbit_ ? "/exchange/" + options.names.jobs_topic : options.names.jobs_topic);
  for (const std::string& queue : options.queues) publish(queue, is_rabbit_ ? "/amq/queue/" + queue : queue);
  consume(Inlet::results, options.names.results_topic, options.results_subscription);
  consume(Inlet::events, options.names.events_topic, options.events_subscription);
}

void ConnectionToBroker::attach_all() {
  is_attached_ = true;
  spdlog::info("connected to the broker {}{}", services_.options.address.shown(), is_rabbit_ ? ", a RabbitMQ" : "");
  const Time now = services_.clock.now();
  std::vector<BrokerState::Link> links;
  for (const Way& way : ways_)
    links.push_back({.address = way.address, .is_sender = way.is_sender, .queue = way.queue, .is_open = false, .since = now, .trouble = {}});
  services_.state.connected(std::move(links), now);
  for (Way& way : ways_) attach(way);
}

void ConnectionToBroker::attach(Way& way) {
  const std::string name = fmt::format("baton-{}", ++links_made_);
  way.session = pn_session(amqp());
  pn_session_set_incoming_capacity(way.session, session_bytes_max);
  pn_session_open(way.session);
  way.amqp = way.is_sender ? pn_sender(way.session, name.c_str()) : pn_receiver(way.session, name.c_str());
  pn_terminus_set_address(pn_link_target(way.amqp), way.is_sender ? way.address.c_str() : name.c_str());
  pn_terminus_set_address(pn_link_source(way.amqp), way.is_sender ? name.c_str() : way.address.c_str());
  pn_link_set_snd_settle_mode(way.amqp, PN_SND_UNSETTLED);
  pn_link_set_rcv_settle_mode(way.amqp, PN_RCV_FIRST);
  pn_link_open(way.amqp);
  way.answer_by = steady::now() + attach_time;
}

void ConnectionToBroker::on_attached(pn_link_t* link) {
  Way* way = way_of(link);
  if (!way) return;
  if (is_refused(link)) {  // it is ended next, with the reason
    way->answer_by = steady::now() + refusal_time;
    return;
  }
  way->link = way->make(link);
  way->backoff.succeeded();
  services_.state.link_opened(number_of(*way), services_.clock.now());
  if (!std::exchange(way->told, "").empty()) spdlog::info("the broker has '{}' again", way->address);
  way->link->on_flow();
}

void ConnectionToBroker::on_session_ended(pn_session_t* session) {
  const auto way = std::ranges::find(ways_, session, &Way::session);
  pn_condition_t* why = pn_session_remote_condition(session);
  if (way != ways_.end()) return detach(*way, trouble_of(why));
  if (session == session_) give_up(trouble_of(why, "it ended the session: "));
}

// Azure ends what is idle as a matter of course; what does not exist may be made yet.
void ConnectionToBroker::detach(Way& way, const Trouble& why) {
  const bool is_usual = why.name.empty() || why.name == "amqp:link:detach-forced";
  if (!is_usual && std::exchange(way.told, why.name) != why.name)
    spdlog::warn("the broker ended the link to '{}': {}; trying again", way.address, why.text);
  if (way.link) way.link->on_end();
  way.link.reset();
  services_.state.link_closed(number_of(way), why.text, services_.clock.now());
  way.retry_at = steady::now() + way.backoff.next();
  way.amqp = nullptr;  // goes with its session
  pn_session_t* session = std::exchange(way.session, nullptr);
  pn_session_close(session);
  pn_session_free(session);
}

ConnectionToBroker::Way* ConnectionToBroker::way_of(pn_link_t* link) {
  const auto found = std::ranges::find(ways_, link, &Way::amqp);
  return !link || found == ways_.end() ? nullptr : &*found;
}

void ConnectionToBroker::on_tick() {
  if (!is_attached_ && !is_leaving_ && steady::now() - began_ > login_time) give_up({"it does not let us in"});
  if (tokens_) tokens_->on_tick(services_.clock.now());
  for (Way& way : ways_) {
    if (way.link) way.link->on_tick();
    else if (!is_attached_ || is_leaving_) continue;
    else if (way.amqp && way.answer_by <= steady::now()) detach(way, {"it was refused without a reason, or not answered"});
    else if (!way.amqp && way.retry_at <= steady::now()) attach(way);
  }
  if (has_given_up_) return terminate();
  tick();
}

void ConnectionToBroker::begin_goodbye() { is_leaving_ = true; }

bool ConnectionToBroker::is_idle() const {
  return std::ranges::all_of(ways_, [](const Way& way) { return !way.link || way.link->is_idle(); });
}

void ConnectionToBroker::say_goodbye() {
  is_leaving_ = true;
  for (Way& way : ways_)
    if (way.link) way.link->on_goodbye();
  pn_connection_close(amqp());
  pump();
}

void ConnectionToBroker::give_up(Trouble why) {
  note_trouble(std::move(why));
  has_given_up_ = true;
}

// What follows from the first one is none.
void ConnectionToBroker::note_trouble(Trouble why) {
  if (why_.text.empty()) why_ = std::move(why);
}

void ConnectionToBroker::ended() {
  is_attached_ = false;
  for (Way& way : ways_)
    if (way.link) way.link->on_end();
  ways_.clear();
  on_end_(why_.text.empty() ? Trouble("it ended the connection") : why_);
}

std::shared_ptr<AwaitedReply> ConnectionToBroker::submit(Command command, std::weak_ptr<void> owner, std::function<void(Reply)> then) {
  return await_reply(weak_from_this(), services_.mailbox, services_.inbox, std::move(command), std::move(owner), std::move(then));
}

}  // namespace baton::bus
