// A link over which a client asks for something and is answered over another one.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

struct Outcome {
  std::int32_t status = 200;
  std::string description;
  const char* condition = nullptr;
};

// An answer with its body, encoded; empty: none.
struct Answer {
  Outcome outcome;
  std::string body;
};

// A request, as long as it takes to answer it; what it says is read at once, and then only who asked is kept.
struct Request {
  MessagePtr message;
  std::string reply_to;
  std::string encoded;  // the whole of it
  void forget_content();
  [[nodiscard]] std::string property(std::string_view key) const { return text_in(pn_message_properties(message.get()), key); }
};

inline constexpr int answers_max = 20;  // that wait for the credit of a link
inline const Outcome too_much{503, "too much waits for this connection: try again", "com.microsoft:server-busy"};

class RequestLink : public Link, public std::enable_shared_from_this<RequestLink> {
 public:
  // So many may be asked before the first is answered, at most answers_max, each of so many bytes.
  RequestLink(Client& client, pn_link_t* link, int at_once, std::size_t bytes_max = 64 << 10);
  void on_delivery(pn_delivery_t* delivery) override;

 protected:
  virtual void on_request(std::shared_ptr<Request> request) = 0;
  // A place among the requests under way whose answers may be large; none: too much is under way, or waits for the client.
  [[nodiscard]] std::shared_ptr<const void> place() { return client_.take_place(); }
  // Each request, once. `add` puts the body, if there is one. Whoever takes no answers loses the link.
  void answer(const Request& request, const Outcome& outcome, const std::function<void(pn_data_t*)>& add = {});
  void reply(const Request& request, const Answer& said);

  Client& client_;
  pn_link_t* const link_;

 private:
  const std::size_t bytes_max_;
};

// $cbs, where a client shows its tokens; $management of a pool or a queue of tasks, where it renews and settles the locks of its
// messages. A pool that is a subscription has rules too.
[[nodiscard]] std::shared_ptr<Link> make_cbs(Client& client, pn_link_t* link);
[[nodiscard]] std::shared_ptr<Link> make_management(Client& client, pn_link_t* link, std::string queue, std::optional<EntityKey> subscription);

}  // namespace baton::bus
