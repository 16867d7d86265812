#include "bus/outlet.hpp"

#include <algorithm>

namespace baton::bus {
namespace {

constexpr Duration poll_time = std::chrono::seconds{10};
constexpr std::uint32_t poll_max = 1'000;
constexpr std::size_t unsettled_max = 5'000;
constexpr std::size_t session_outgoing_max = 4 << 20;  // bytes that wait for the client

}  // namespace

Outlet::Outlet(Client& client, pn_link_t* link, std::string queue)
    : client_(client),
      link_(link),
      queue_(std::move(queue)),
      principal_(client.principal()),
      is_deleting_(pn_link_remote_snd_settle_mode(link) == PN_SND_SETTLED) {}

void Outlet::on_flow() {
  if (credit() == 0) end_polls();
  ask();
}

void Outlet::on_tick() { ask(); }  // the engine may have had no time before

// One poll at a time that waits. A drain is answered when one behind it that does not wait has brought what there is, or if
// nothing can be asked for.
void Outlet::ask() {
  if (!pn_link_get_drain(link_)) {
    if (!poll_) poll_ = poll(poll_time, &Outlet::on_handouts);
  } else if (!last_poll_) {
    last_poll_ = poll(Duration{}, &Outlet::on_last_handouts);
    if (!last_poll_) drained();
  }
}

std::uint32_t Outlet::room() const {
  const auto unsettled = static_cast<std::size_t>(std::max(pn_link_unsettled(link_), 0));
  return static_cast<std::uint32_t>(unsettled_max - std::min(unsettled, unsettled_max));
}

// For as many as the client takes; none: it takes no more. Who takes more than it reads waits for the next tick.
std::shared_ptr<AwaitedReply> Outlet::poll(Duration wait, void (Outlet::*then)(Reply)) {
  const std::uint32_t wanted = std::min({credit(), room(), poll_max});
  if (wanted == 0 || pn_session_outgoing_bytes(pn_link_session(link_)) > session_outgoing_max || !client_.may_send_more()) return nullptr;
  Poll command{.tenant = principal_.own(),
               .queue = queue_,
               .worker = client_.name(),
               .max = wanted,
               .heartbeats = is_locking(),
               .lease_time = lease_time(),
               .wait_until = client_.services().clock.now() + wait,
               .is_listed = is_worker()};
  return client_.submit(std::move(command), weak_from_this(), [this, then](Reply reply) { (this->*then)(std::move(reply)); });
}

void Outlet::on_handouts(Reply reply) {
  poll_.reset();
  auto* handouts = std::get_if<PollReply>(&reply);
  if (!handouts) return;  // it is asked again at the next tick
  const bool is_nothing = handouts->jobs.empty();
  send_all(*handouts);
  if (is_nothing) on_nothing();
  ask();
}

void Outlet::on_last_handouts(Reply reply) {
  last_poll_.reset();
  if (auto* handouts = std::get_if<PollReply>(&reply)) send_all(*handouts);
  if (pn_link_get_drain(link_)) drained();
  else ask();
}

void Outlet::drained() {
  end_polls();
  pn_link_drained(link_);
}

// As many as the client still wants; it may have changed its mind.
void Outlet::send_all(PollReply& handouts) {
  std::vector<Handout> unsent;
  for (Handout& handout : handouts.jobs) {
    if (credit() > 0) send(handout);
    else unsent.push_back(std::move(handout));
  }
  give_back(std::move(unsent));
}

void Outlet::end_polls() {
  for (auto* each : {&poll_, &last_poll_})
    if (*each) std::exchange(*each, nullptr)->abandon();
}

void Outlet::give_back(std::vector<Handout> unsent) { bus::give_back(client_.services().inbox, std::move(unsent)); }

void Outlet::on_close() {
  flush();
  end_polls();
}

bool Outlet::take_back(pn_delivery_t* delivery) {
  const bool has_begun = pn_delivery_pending(delivery) < reinterpret_cast<std::uintptr_t>(pn_delivery_get_context(delivery));
  if (!pn_delivery_buffered(delivery) || (has_begun && !client_.has_ended())) return false;
  pn_delivery_abort(delivery);
  return true;
}

pn_delivery_t* Outlet::put(const LockToken& tag, std::string_view bytes) {
  pn_delivery_t* delivery = pn_delivery(link_, pn_dtag(tag.data(), tag.size()));
  pn_delivery_set_context(delivery, reinterpret_cast<void*>(bytes.size()));
  pn_link_send(link_, bytes.data(), bytes.size());
  pn_link_advance(link_);
  client_.count(pn_link_session(link_));
  client_.services().sent.add();
  if (is_deleting_) pn_delivery_settle(delivery);
  return is_deleting_ ? nullptr : delivery;
}

}  // namespace baton::bus
