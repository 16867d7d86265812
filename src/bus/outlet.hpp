// A link over which a client receives what waits in a queue of the engine: one more who polls it, with the link's credit for how
// many it takes. What that is, jobs or messages, and how they are settled is for those derived from it.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

class Outlet : public Link, public std::enable_shared_from_this<Outlet> {
 public:
  Outlet(Client& client, pn_link_t* link, std::string queue);
  ~Outlet() override { end_polls(); }

  void on_flow() override;
  void on_tick() override;
  void on_end() override { end_polls(); }
  void on_close() override;

 protected:
  // How long a lease is taken for; none: the queue says.
  [[nodiscard]] virtual std::optional<Duration> lease_time() const { return std::nullopt; }
  [[nodiscard]] virtual bool is_worker() const { return false; }
  // Whether it has what it is given for a short time only, until it is settled.
  [[nodiscard]] virtual bool is_locking() const { return !is_deleting_; }
  virtual void send(const Handout& handout) = 0;
  virtual void on_nothing() {}  // came for a while
  void ask();  // for more, if it wants more

  // Messages that have not left when the link ends are nobody's.
  void give_back(std::vector<Handout> unsent);
  // What was put on the link and has not left does not leave any more. False: it has, or a part of it, and the rest follows;
  // clients are known that take a part for the whole when the rest does not come.
  [[nodiscard]] bool take_back(pn_delivery_t* delivery);
  // A delivery with these bytes, under that tag; its context is how many they are.
  pn_delivery_t* put(const LockToken& tag, std::string_view bytes);

  Client& client_;
  pn_link_t* const link_;
  const std::string queue_;
  const Principal principal_;  // as it was when the link was attached
  const bool is_deleting_;     // receive and delete: nothing is settled later

 private:
  // A number without a sign, whatever proton's type says; we never send more than it allows.
  [[nodiscard]] std::uint32_t credit() const { return static_cast<std::uint32_t>(pn_link_credit(link_)); }
  [[nodiscard]] std::uint32_t room() const;  // how many more it may have
  std::shared_ptr<AwaitedReply> poll(Duration wait, void (Outlet::*then)(Reply));
  void on_handouts(Reply reply);
  void on_last_handouts(Reply reply);
  void send_all(PollReply& handouts);
  void drained();
  void end_polls();

  std::shared_ptr<AwaitedReply> poll_;
  std::shared_ptr<AwaitedReply> last_poll_;  // of a drain
};

}  // namespace baton::bus
