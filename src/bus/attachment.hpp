// A link that is being attached: what its address means is found out, which takes questions to the engine, and then there is a
// link of the right kind, or a reason why not. Until then nothing is said to the client.
//
// Owned by the client, on the bus's I/O thread; it ends with the client's interest, and is told nothing more then.
#pragma once

#include "bus/client.hpp"

namespace baton::bus {

using Attached = std::expected<std::shared_ptr<Link>, Condition>;

class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  // `done` is called once, also from within start().
  Attachment(Client& client, pn_link_t* link, Address address, std::function<void(Attached)> done);
  void start();

 private:
  void on_found(const Reply& reply);
  void done(Attached attached);
  void refuse(const char* condition, std::string why);
  void refuse_as_not_found();

  [[nodiscard]] std::optional<Condition> refusal_before() const;
  [[nodiscard]] std::optional<Condition> refusal_to_send() const;
  [[nodiscard]] std::shared_ptr<Link> direct_inlet();
  void attach_inlet();
  void attach_outlet();
  void attach_management();

  // Of the topic of jobs.
  void find_pool(std::function<void(std::string pool)> then);
  void make_pool(std::string pool, std::function<void(std::string)> then);
  // Of workflows.
  void find_task_queue(std::function<void()> then);
  void attach_to_tasks(const std::string& queue);

  [[nodiscard]] bool is(const std::string& name) const;
  [[nodiscard]] bool is_own_subscription() const;
  [[nodiscard]] bool allows_any(std::initializer_list<Permission> permissions) const;
  [[nodiscard]] EntityKey key() const;

  Client& client_;
  pn_link_t* const link_;
  const Address address_;
  const bool gives_;  // the client receives
  const Names& names_;
  const Principal principal_;
  std::function<void(Attached)> done_;
  std::optional<EntityInfo> entity_;
};

}  // namespace baton::bus
