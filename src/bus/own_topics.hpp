// What baton itself has of the topics for events and results. What is sent there over a link becomes a command at once
// (inlet.hpp); this is for the rest: messages that were scheduled come out of baton's own subscriptions when their time has come,
// and become commands then. It also knows whether others have subscriptions, who want copies.
//
// Owned by the bus's I/O thread. A message is completed when what it says is durable; one that can never be taken is a dead
// letter, for the reason; what the engine has no time for is tried again.
#pragma once

#include <array>
#include <memory>

#include "bus/inlet.hpp"
#include "bus/services.hpp"

namespace baton::bus {

class OwnTopic;

class OwnTopics {
 public:
  explicit OwnTopics(Services& services);
  ~OwnTopics();
  void on_tick();
  void stop();

  // The topic, if it is there. Known within a second or two of a change.
  [[nodiscard]] const EntityKey* topic(Inlet what) const;
  [[nodiscard]] bool has_other_subscriptions(Inlet what) const;

 private:
  [[nodiscard]] const OwnTopic& of(Inlet what) const;
  std::array<std::shared_ptr<OwnTopic>, 2> topics_;
};

}  // namespace baton::bus
