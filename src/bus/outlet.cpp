#include "bus/outlet.hpp"

#include <algorithm>

namespace baton::bus {
namespace {

constexpr Duration poll_time = std::chrono::seconds{10};
constexpr std::uint32_t poll_max = 1'000;
constexpr std::size_t session_outgoing_max = 4 << 20;  // bytes that wait for the client

}  // namespace

Outlet::Outlet(Client& client, pn_link_t* link, std::string queue)
    : client_(client),
      link_(link),
      queue_(std::move(queue)),
      principal_(client.principal()),
      is_deleting_(pn_link_remote_snd_settle_mode(link) == PN_SND_SETTLED) {}

void Outlet::on_flow() {
  const bool is_draining = pn_link_get_drain(link_);
  if (is_draining && poll_) {  // it has brought what there was
    end_poll();
    pn_link_drained(link_);
  } else if (credit() == 0) {
    end_poll();
  }
  ask(is_draining ? Duration{} : poll_time);
}

void Outlet::on_tick() { ask(poll_time); }  // the engine may have had no time before

void Outlet::ask() {
  if (!pn_link_get_drain(link_)) ask(poll_time);
}

// One poll at a time, for as many as the client takes. A client that takes more than it reads waits for the next tick.
void Outlet::ask(Duration wait) {
  const std::uint32_t wanted = std::min({credit(), room(), poll_max});
  if (poll_ || wanted == 0 || pn_session_outgoing_bytes(pn_link_session(link_)) > session_outgoing_max || !client_.may_send_more()) return;
  Poll poll{.tenant = principal_.own(),
            .queue = queue_,
            .worker = client_.name(),
            .max = wanted,
            .heartbeats = is_locking(),
            .lease_time = lease_time(),
            .wait_until = client_.services().clock.now() + wait,
            .is_listed = is_worker()};
  poll_ = client_.submit(std::move(poll), weak_from_this(), [this](Reply reply) { on_handouts(std::move(reply)); });
}

// As many as the client still wants; it may have changed its mind.
void Outlet::on_handouts(Reply reply) {
  poll_.reset();
  auto* handouts = std::get_if<PollReply>(&reply);
  if (!handouts) return;  // it is asked again at the next tick
  std::vector<Handout> unsent;
  for (Handout& handout : handouts->jobs) {
    if (credit() > 0) send(handout);
    else unsent.push_back(std::move(handout));
  }
  give_back(std::move(unsent));
  if (handouts->jobs.empty()) on_nothing();
  if (pn_link_get_drain(link_)) pn_link_drained(link_);
  else ask(poll_time);
}

void Outlet::end_poll() {
  if (poll_) std::exchange(poll_, nullptr)->abandon();
}

void Outlet::give_back(std::vector<Handout> unsent) { bus::give_back(client_.services().inbox, std::move(unsent)); }

pn_delivery_t* Outlet::put(const LockToken& tag, std::string_view bytes) {
  pn_delivery_t* delivery = pn_delivery(link_, pn_dtag(tag.data(), tag.size()));
  pn_link_send(link_, bytes.data(), bytes.size());
  pn_link_advance(link_);
  client_.count(pn_link_session(link_));
  client_.services().sent.add();
  if (is_deleting_) pn_delivery_settle(delivery);
  return is_deleting_ ? nullptr : delivery;
}

}  // namespace baton::bus
