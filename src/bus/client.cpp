#include "bus/client.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "bus/attachment.hpp"
#include "bus/request_link.hpp"
#include "ports/shared_access.hpp"

namespace baton::bus {
namespace {

constexpr std::uint32_t frame_bytes_max = 64 << 10;
constexpr std::uint16_t channels_max = 999;  // said before anybody shows a token
constexpr std::size_t sessions_before = 64;   // without one
constexpr pn_millis_t idle_time = 240'000;  // said to the client: half of it may pass without a frame
constexpr std::size_t session_bytes_before = 128 << 10, session_bytes_max = 4 << 20;
// Of all sessions together: what comes beyond is shed, and beyond the other nothing more is asked for.
constexpr std::size_t incoming_max = 64 << 20, outgoing_max = 32 << 20;
constexpr long large_requests_max = 32;  // under way, each with an answer of 8 MiB perhaps
constexpr std::size_t links_max = 1'000;
constexpr std::size_t link_name_bytes_max = 1'024;
constexpr std::size_t links_before = 8, links_waiting_max = 100;  // without a token; while a password is looked up
constexpr std::size_t grants_max = 1'000;
constexpr std::chrono::seconds patience{2};

using steady = std::chrono::steady_clock;

Condition not_found(std::string_view what) {
  return {"amqp:not-found", "The messaging entity '" + std::string(what) + "' could not be found."};
}
Condition unauthorized(std::string why) { return {"amqp:unauthorized-access", std::move(why)}; }

// Of the side that the client chose; ours is the other one.
std::string_view address_of(pn_link_t* link) {
  return text_of(pn_terminus_get_address(pn_link_is_sender(link) ? pn_link_remote_source(link) : pn_link_remote_target(link)));
}

// Where tokens are shown, by who has none yet.
bool is_cbs(pn_link_t* link) { return path_of(address_of(link)) == "$cbs"; }

void echo_modes(pn_link_t* link) {
  pn_link_set_snd_settle_mode(link, pn_link_remote_snd_settle_mode(link));
  pn_link_set_rcv_settle_mode(link, pn_link_remote_rcv_settle_mode(link));
}

// They may be large: not those of who may not use the link.
void echo_terms(pn_link_t* link) {
  pn_terminus_copy(pn_link_source(link), pn_link_remote_source(link));
  pn_terminus_copy(pn_link_target(link), pn_link_remote_target(link));
}

// The client answers with a detach of its own, and the link goes then.
void close_with(pn_link_t* link, const Condition& why) {
  pn_condition_set_name(pn_link_condition(link), why.name);
  pn_condition_set_description(pn_link_condition(link), why.description.c_str());
  pn_link_close(link);
}

}  // namespace

Client::Client(boost::asio::ip::tcp::socket socket, Services& services) : Connection(std::move(socket)), services_(services) {
  pn_transport_set_server(transport());
  use_sasl(transport(), sasl_);
  pn_transport_require_auth(transport(), true);
  pn_transport_set_max_frame(transport(), frame_bytes_max);
  pn_transport_set_channel_max(transport(), channels_max);
  pn_transport_set_idle_timeout(transport(), idle_time);
  bind();
  pn_connection_set_container(amqp(), "baton");
  if (services_.options.access == Access::open) principal_ = Principal{.token_id = "", .role = Role::admin, .tenant = std::nullopt};
  services_.clients.insert(this);
}

Client::~Client() { services_.clients.erase(this); }

std::string Client::name() const {
  const std::string name = "amqp:" + std::string(text_of(pn_connection_remote_container(amqp())));
  return is_printable(name, 200) ? name : "amqp";
}

void Client::handled() {
  for (const auto& weak : std::exchange(to_flush_, {}))
    if (const auto link = weak.lock()) link->flush();
}

void Client::handle(pn_event_t* event) {
  pn_link_t* link = pn_event_link(event);
  const pn_event_type_t type = pn_event_type(event);
  // Who goes on beginning things though it was sent away does not listen, and each of them would take memory until our patience ends.
  if (goodbye_at_ && (type == PN_SESSION_REMOTE_OPEN || type == PN_LINK_REMOTE_OPEN)) return terminate();
  switch (type) {
    case PN_CONNECTION_REMOTE_OPEN: return on_open();
    case PN_CONNECTION_REMOTE_CLOSE:
      end_links();
      if (!goodbye_at_) goodbye_at_ = steady::now();
      return pn_connection_close(amqp());
    case PN_TRANSPORT_ERROR:
    case PN_TRANSPORT_TAIL_CLOSED:  // what is to be said still may take long, if nobody reads it
      end_links();
      if (!goodbye_at_) goodbye_at_ = steady::now();
      return;
    case PN_SESSION_REMOTE_OPEN: return on_begin(pn_event_session(event));
    case PN_SESSION_REMOTE_CLOSE: return on_end(pn_event_session(event));
    case PN_LINK_REMOTE_OPEN: return on_attach(link);
    case PN_LINK_REMOTE_DETACH:
    case PN_LINK_REMOTE_CLOSE: return on_detach(link);
    case PN_LINK_FLOW:
      if (const auto found = link_of(link)) found->on_flow();
      return;
    case PN_DELIVERY: return on_delivery(link, pn_event_delivery(event));
    default: return;
  }
}

// ---- beginning and end

void Client::on_open() {
  pn_connection_open(amqp());
  if (sasl_.password && !principal_) look_up_password();
}

void Client::look_up_password() {
  using Found = Result<std::optional<Token>>;
  is_looking_up_ = true;
  services_.options.tokens.by_hash(
      token_hash(*std::exchange(sasl_.password, std::nullopt)),
      arriving<Found>(services_.mailbox, [weak = weak_from_this()](Found found) {
        const auto self = std::static_pointer_cast<Client>(weak.lock());
        if (!self) return;
        self->is_looking_up_ = false;
        if (!found) return self->say_goodbye("com.microsoft:server-busy", "the store is not reachable at the moment");
        if (!*found || (*found)->revoked_at) return self->say_goodbye("amqp:unauthorized-access", "the password is not a token of this server");
        (void)self->let_in(**found, "", Time::max());
        for (pn_link_t* link : std::exchange(self->waiting_, {})) self->on_attach(link);
        self->pump();
      }));
}

std::expected<void, std::string> Client::let_in(const Token& token, std::string_view resource, Time until) {
  if (principal_ && principal_->token_id != token.token_id) return std::unexpected("a connection is one client's: this is the key of another");
  const std::string path = scope_of(resource);
  if (grants_.size() >= grants_max && !grants_.contains(path)) return std::unexpected("too many tokens were shown over this connection");
  principal_ = Principal{token.token_id, token.role, token.tenant};
  grants_[path] = until;
  return {};
}

void Client::say_goodbye(const char* condition, std::string_view description) {
  end_links();
  if (!goodbye_at_) goodbye_at_ = steady::now();
  close(condition, description);
}

void Client::end_links() {
  waiting_.clear();
  attaching_.clear();
  lingering_.clear();  // they go with the connection
  for (const auto& [link, ours] : links_) ours->on_end();
  links_.clear();
}

void Client::ended() {
  end_links();
  services_.clients.erase(this);
}

void Client::on_tick() {
  if (goodbye_at_ && steady::now() - *goodbye_at_ > patience) return terminate();
  if (!principal_ && !goodbye_at_ && steady::now() - began_ > services_.options.login_time)
    return say_goodbye("amqp:unauthorized-access", "no token was put in time");
  const Time now = services_.clock.now();
  if (std::erase_if(grants_, [&](const auto& grant) { return grant.second <= now; }) > 0)
    for (const auto& [link, ours] : std::map(links_))
      if (!is_cbs(link) && !may_use(address_of(link))) end_link(link, unauthorized("the token has expired"));
  for (const auto& [link, ours] : std::map(links_)) ours->on_tick();
  free_lingering();
  tick();
}

// ---- links

void Client::on_attach(pn_link_t* link) {
  open_.insert(link);
  if (text_of(pn_link_name(link)).size() > link_name_bytes_max) return say_goodbye("amqp:invalid-field", "the name of a link has at most 1,024 bytes here");
  const std::size_t allowed = principal_ ? links_max : is_looking_up_ ? links_waiting_max : links_before;
  if (open_.size() > allowed) return say_goodbye("amqp:resource-limit-exceeded", "this connection has too many links");
  if (is_looking_up_) return waiting_.push_back(link);
  echo_modes(link);
  attach(link);
}

// Whether a token was shown for it, or for what it is part of.
bool Client::may_use(std::string_view address) const {
  if (!principal_) return false;
  if (principal_->token_id.empty()) return true;
  return std::ranges::any_of(grants_, [&](const auto& grant) { return covers(grant.first, address); });
}

void Client::attach(pn_link_t* link) {
  if (pn_terminus_get_type(pn_link_remote_target(link)) == PN_COORDINATOR)
    return refuse(link, {"amqp:not-implemented", "there are no transactions here"});
  const std::string_view text = address_of(link);
  const auto address = parse_address(text);
  if (!address) return refuse(link, not_found(text));
  if (!is_cbs(link) && !may_use(text)) return refuse(link, unauthorized("Unauthorized access. 'Listen' or 'Send' claims are required: put a token first."));
  echo_terms(link);
  if (is_cbs(link)) return on_attached(link, pn_link_is_sender(link) ? std::make_shared<Link>() : make_cbs(*this, link));
  pn_session_set_incoming_capacity(pn_link_session(link), session_bytes_max);
  const auto attachment = std::make_shared<Attachment>(*this, link, *address, [this, link](Attached attached) { on_attached(link, std::move(attached)); });
  attaching_[link] = attachment;
  attachment->start();
}

void Client::on_attached(pn_link_t* link, Attached attached) {
  attaching_.erase(link);
  if (!attached) return refuse(link, attached.error());
  const auto ours = links_[link] = *std::move(attached);
  pn_link_open(link);
  ours->on_flow();
}

// With no source or no target, and then closed for a reason: that is how an attach is refused.
void Client::refuse(pn_link_t* link, const Condition& why) {
  pn_terminus_set_type(pn_link_is_sender(link) ? pn_link_source(link) : pn_link_target(link), PN_UNSPECIFIED);
  pn_link_open(link);
  close_with(link, why);
}

void Client::end_link(pn_link_t* link, const Condition& why) {
  if (const auto found = link_of(link)) found->on_close();
  links_.erase(link);
  close_with(link, why);
}

void Client::on_detach(pn_link_t* link) {
  std::erase(waiting_, link);
  if (attaching_.erase(link) > 0) pn_link_open(link);  // an attach is answered before it is taken back
  if (const auto found = link_of(link)) found->on_end();
  links_.erase(link);
  pn_link_close(link);
  // Freeing it would say that the messages are settled which the client still holds: it settles them over $management.
  if (pn_link_unsettled(link) > 0) return lingering_.push_back({link, steady::now() + services_.options.lock_time});
  free(link);
}

void Client::free(pn_link_t* link) {
  pn_session_t* session = pn_link_session(link);
  open_.erase(link);
  pn_link_free(link);
  count(session);
}

void Client::free_lingering() {
  const auto now = steady::now();
  std::erase_if(lingering_, [&](const Lingering& one) {
    if (one.until <= now) free(one.link);
    return one.until <= now;
  });
}

// ---- sessions

void Client::on_begin(pn_session_t* session) {
  sessions_[session] = {};
  if (sessions_.size() > sessions_before && !principal_) return say_goodbye("amqp:resource-limit-exceeded", "too many sessions without a token");
  pn_session_set_incoming_capacity(session, session_bytes_before);
  pn_session_open(session);
}

void Client::on_end(pn_session_t* session) {
  std::erase_if(open_, [&](pn_link_t* link) { return pn_link_session(link) == session; });
  std::erase_if(waiting_, [&](pn_link_t* link) { return pn_link_session(link) == session; });
  std::erase_if(links_, [&](const auto& entry) {
    const bool is_its = pn_link_session(entry.first) == session;
    if (is_its) entry.second->on_end();
    return is_its;
  });
  std::erase_if(attaching_, [&](const auto& entry) { return pn_link_session(entry.first) == session; });
  std::erase_if(lingering_, [&](const Lingering& one) { return pn_link_session(one.link) == session; });
  count(session, {});
  sessions_.erase(session);
  pn_session_close(session);
  pn_session_free(session);
}

void Client::count(pn_session_t* session) { count(session, {pn_session_incoming_bytes(session), pn_session_outgoing_bytes(session)}); }

void Client::count(pn_session_t* session, Waiting now) {
  const Waiting before = std::exchange(sessions_[session], now);
  waiting_bytes_.incoming += now.incoming - before.incoming;
  waiting_bytes_.outgoing += now.outgoing - before.outgoing;
}

// What sessions have sent meanwhile is found out only when it matters.
bool Client::may_send_more() {
  if (waiting_bytes_.outgoing <= outgoing_max) return true;
  for (const auto& [session, waiting] : sessions_) count(session);
  return waiting_bytes_.outgoing <= outgoing_max;
}

std::shared_ptr<const void> Client::take_place() { return may_send_more() && place_.use_count() <= large_requests_max ? place_ : nullptr; }

// The windows of all sessions together are more than a connection may hold: what makes it too much is not taken.
void Client::on_delivery(pn_link_t* link, pn_delivery_t* delivery) {
  // Ours are advanced at once, so it is the client's: proton takes transfers over links in whichever direction.
  if (pn_link_is_sender(link) && pn_link_current(link)) return terminate();
  if (pn_link_is_receiver(link) && pn_link_remote_credit(link) < 0 && !goodbye_at_)
    return say_goodbye("amqp:link:transfer-limit-exceeded", "more was sent over a link than it was given credit for");
  if (const auto found = link_of(link)) found->on_delivery(delivery);
  if (!pn_link_is_receiver(link)) return;
  pn_session_t* session = pn_link_session(link);
  count(session);
  for (bool is_whole = true; is_whole && (waiting_bytes_.incoming > incoming_max || is_stuck(session)); count(session)) is_whole = shed(link);
}

// It has no room for another frame, and holds nothing whole that could be taken.
bool Client::is_stuck(pn_session_t* session) const {
  if (sessions_.at(session).incoming + frame_bytes_max <= pn_session_get_incoming_capacity(session)) return false;
  return std::ranges::none_of(links_, [&](const auto& entry) {
    pn_delivery_t* next = pn_link_is_receiver(entry.first) && pn_link_session(entry.first) == session ? pn_link_current(entry.first) : nullptr;
    return next && !pn_delivery_partial(next);
  });
}

std::shared_ptr<Link> Client::link_of(pn_link_t* link) const {
  const auto found = links_.find(link);
  return found == links_.end() ? nullptr : found->second;
}

// ---- commands and answers

std::shared_ptr<AwaitedReply> Client::submit(Command command, std::weak_ptr<void> owner, std::function<void(Reply)> then) {
  return await_reply(weak_from_this(), services_.mailbox, services_.inbox, std::move(command), std::move(owner), std::move(then));
}

// Who asked is found by its link's name or address, and if it named neither, by the session. Of a client that takes
// no answers only a few are kept.
bool Client::answer(pn_link_t* request, const std::string& reply_to, pn_message_t* message) {
  const std::string_view asked = address_of(request);
  pn_link_t* way = nullptr;
  for (const auto& [link, ours] : links_) {
    if (!pn_link_is_sender(link) || !equal_ignoring_case(address_of(link), asked)) continue;
    const bool is_named = reply_to == text_of(pn_link_name(link)) || reply_to == text_of(pn_terminus_get_address(pn_link_remote_target(link)));
    if (is_named) way = link;
    else if (!way && pn_link_session(link) == pn_link_session(request)) way = link;
  }
  if (!way || pn_link_queued(way) >= answers_max) return false;
  const std::string tag = std::to_string(++answers_);
  pn_delivery_t* delivery = pn_delivery(way, pn_dtag(tag.data(), tag.size()));
  const std::string bytes = encode(message);
  pn_link_send(way, bytes.data(), bytes.size());
  pn_link_advance(way);
  pn_delivery_settle(delivery);
  count(pn_link_session(way));
  return true;
}

}  // namespace baton::bus
