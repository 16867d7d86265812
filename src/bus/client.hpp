// One client of the endpoint: its connection, who it is, and its links.
//
// A link is attached to an address; what that means is found out once (attachment.hpp), and then the link's own class handles
// what comes over it. Links end with the connection's AMQP, not with its socket: from the first word of an end, ours or the
// client's, nothing more is handed out.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "bus/address.hpp"
#include "bus/link.hpp"
#include "bus/reply.hpp"
#include "bus/sasl.hpp"
#include "bus/services.hpp"
#include "bus/transfer.hpp"

namespace baton::bus {

class Attachment;

// What a client may do. A connection has one, for good.
struct Principal {
  std::string token_id;  // empty: everybody is let in
  Role role = Role::viewer;
  std::optional<Tenant> tenant;  // none: all
  [[nodiscard]] Tenant own() const { return tenant.value_or(Tenant{"default"}); }
};

class Client final : public Connection {
 public:
  Client(boost::asio::ip::tcp::socket socket, Services& services);
  ~Client() override;
  void start() { pump(); }
  void on_tick();
  // Ends all links, and says goodbye with a reason.
  void say_goodbye(const char* condition, std::string_view description);

  [[nodiscard]] Services& services() { return services_; }
  // Only links ask, and those are of who was let in.
  [[nodiscard]] const Principal& principal() const { return *principal_; }
  [[nodiscard]] std::string token_id() const { return principal_ ? principal_->token_id : ""; }
  [[nodiscard]] std::string name() const;
  // To what is under the resource, an escaped URL, until then. Otherwise why not.
  [[nodiscard]] std::expected<void, std::string> let_in(const Token& token, std::string_view resource, Time until);

  // Hands a command in. `then` is called on this thread while `owner` lives, and the connection goes on after it.
  std::shared_ptr<AwaitedReply> submit(Command command, std::weak_ptr<void> owner, std::function<void(Reply)> then);
  // The link's flush() is called when all that came in has been handled.
  void flush_later(std::weak_ptr<Link> link) { to_flush_.push_back(std::move(link)); }
  // Detaches it for a reason: what it was attached to is not there any more.
  void end_link(pn_link_t* link, const Condition& why);
  // What waits in a session has become more or less.
  void count(pn_session_t* session);
  // Whether little enough waits for the client in all of them together.
  [[nodiscard]] bool may_send_more();
  // For a request whose answer may be large: it goes with the request. None: too many of them are under way, or too much waits.
  [[nodiscard]] std::shared_ptr<const void> take_place();
  // Sends the answer to a request that came over `link` back to who asked. False: it takes none.
  [[nodiscard]] bool answer(pn_link_t* link, const std::string& reply_to, pn_message_t* message);

 private:
  struct Waiting {  // bytes
    std::size_t incoming = 0;  // that came and were not taken
    std::size_t outgoing = 0;  // that the client has not read
  };

  void handle(pn_event_t* event) override;
  void handled() override;
  void ended() override;
  void on_open();
  void look_up_password();
  void on_attach(pn_link_t* link);
  void attach(pn_link_t* link);
  void on_attached(pn_link_t* link, std::expected<std::shared_ptr<Link>, Condition> attached);
  [[nodiscard]] bool may_use(std::string_view address) const;
  void refuse(pn_link_t* link, const Condition& why);
  void on_detach(pn_link_t* link);
  void on_begin(pn_session_t* session);
  void on_end(pn_session_t* session);
  void count(pn_session_t* session, Waiting now);
  void on_delivery(pn_link_t* link, pn_delivery_t* delivery);
  [[nodiscard]] bool is_stuck(pn_session_t* session) const;
  void end_links();
  void free(pn_link_t* link);
  void free_lingering();
  [[nodiscard]] std::shared_ptr<Link> link_of(pn_link_t* link) const;  // it may end while it is told something

  Services& services_;
  Sasl sasl_;
  std::optional<Principal> principal_;
  std::map<std::string, Time> grants_;  // paths, in lower case, with when their token expires; empty: everything
  bool is_looking_up_ = false;
  std::vector<pn_link_t*> waiting_;  // attached before it was known who this is
  std::map<pn_link_t*, std::shared_ptr<Attachment>> attaching_;
  std::map<pn_link_t*, std::shared_ptr<Link>> links_;
  std::vector<std::weak_ptr<Link>> to_flush_;
  struct Lingering {  // detached while the client holds messages of it
    pn_link_t* link;
    std::chrono::steady_clock::time_point until;
  };
  std::vector<Lingering> lingering_;
  std::unordered_map<pn_session_t*, Waiting> sessions_;  // as it was counted last
  Waiting waiting_bytes_;                                // in all of them
  std::set<pn_link_t*> open_;  // refused ones too, until the client has detached them
  std::uint64_t answers_ = 0;
  const std::shared_ptr<const char> place_ = std::make_shared<const char>();  // as many places are taken as there are others who hold it
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::time_point> goodbye_at_;
};

}  // namespace baton::bus
