// One connection to a broker, with its links: tokens first where the broker wants them, then a link for each pool, queue and subscription.
// A link that the broker ends is opened again; the connection's owner opens another connection when this one has ended.
//
// Owned by the broker's I/O thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bus/broker/backoff.hpp"
#include "bus/broker/broker.hpp"
#include "bus/broker/token_sender.hpp"
#include "bus/broker/trouble.hpp"
#include "bus/connection.hpp"
#include "bus/link.hpp"
#include "bus/reply.hpp"

namespace baton::bus {

// What all connections to the broker share, one after the other.
struct BrokerServices {
  const BrokerOptions& options;
  Inbox& inbox;
  const Clock& clock;
  BrokerState& state;
  metrics::Counter& published;
  metrics::Counter& consumed;
  metrics::Counter& rejected;
  std::shared_ptr<Mailbox> mailbox;
  TokenFor token_for;  // none: the broker wants no tokens
  std::function<void()> on_tokens_refused;
  // Published jobs whose settlement the engine had no time for: it is said again, or they would be published again.
  std::vector<SettleTask> unsaid;
  std::size_t settling = 0;  // that the engine has not answered

  void settle(SettleTask command);
  void say_unsaid();
};

class ConnectionToBroker final : public Connection {
 public:
  ConnectionToBroker(std::shared_ptr<ByteStream> stream, BrokerServices& services, std::function<void(Trouble why)> on_end);
  void start();
  void on_tick();
  void put_tokens();  // there are others now
  // Nothing more is published or decided; what was is waited for.
  void begin_goodbye();
  [[nodiscard]] bool is_idle() const;  // what was published is confirmed, and what came in has its answer if the engine was asked
  void say_goodbye();

  [[nodiscard]] BrokerServices& services() { return services_; }
  [[nodiscard]] bool is_open() const { return is_attached_; }
  [[nodiscard]] bool is_leaving() const { return is_leaving_; }
  [[nodiscard]] bool is_rabbit() const { return is_rabbit_; }
  std::shared_ptr<AwaitedReply> submit(Command command, std::weak_ptr<void> owner, std::function<void(Reply)> then);
  // The connection is of no use any more, and ends when whoever is at it now has done.
  void give_up(Trouble why);

 private:
  using steady = std::chrono::steady_clock;
  struct Way {  // a link that is to be there
    std::string address;
    bool is_sender = false;
    std::string queue;  // that is published over it; empty: it receives
    std::function<std::shared_ptr<Link>(pn_link_t*)> make;
    pn_session_t* session = nullptr;  // of its own: RabbitMQ ends the whole session when a link of it fails
    pn_link_t* amqp = nullptr;
    std::shared_ptr<Link> link;
    steady::time_point retry_at{}, answer_by{};
    Backoff backoff{std::chrono::seconds{2}, std::chrono::seconds{60}};
    std::string told;  // the name of why it is not there, if that is logged
  };

  void note_trouble(Trouble why);
  void handle(pn_event_t* event) override;
  void on_event(pn_event_t* event);
  void ended() override;
  bool use_tls();
  void on_open();
  void on_tokens_detached(pn_condition_t* why);
  void on_tokens_refused(const Trouble& why);
  void list_ways();
  void attach_all();
  void attach(Way& way);
  void on_attached(pn_link_t* link);
  void on_session_ended(pn_session_t* session);
  void detach(Way& way, const Trouble& why);
  [[nodiscard]] Way* way_of(pn_link_t* link);
  [[nodiscard]] std::size_t number_of(const Way& way) const { return static_cast<std::size_t>(&way - ways_.data()); }

  BrokerServices& services_;
  std::function<void(Trouble)> on_end_;
  pn_session_t* session_ = nullptr;
  std::unique_ptr<TokenSender> tokens_;
  std::vector<Way> ways_;
  bool is_attached_ = false, is_leaving_ = false, is_rabbit_ = false, has_given_up_ = false;
  std::uint64_t links_made_ = 0;
  Trouble why_;  // the first one
  const steady::time_point began_ = steady::now();
};

}  // namespace baton::bus
