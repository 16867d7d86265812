// What is known of the external broker, for people who ask: whether it is connected and since when, its links, the last trouble, and the messages that were
// rejected last. The client of the broker tells; nothing of it is stored, and a start begins anew.
//
// Thread-safe; nothing here blocks for long. Bounded by the links, which the settings name, and rejected_max.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace baton {

class BrokerState {
 public:
  struct Link {
    std::string address;  // there
    bool is_sender = false;
    std::string queue;  // whose jobs are published over it; empty: it receives
    bool is_open = false;
    Time since{};         // it is, or is not
    std::string trouble;  // why it was not open last; empty: nobody said
  };
  struct Rejected {
    Time at{};
    std::string source;      // the address over whose link it came or went
    std::string message_id;  // empty: it has none, or cannot be read
    bool by_broker = false;  // a job that the broker rejected; else what came from there and was rejected here
    std::string reason, description;
  };
  struct View {
    std::string address;  // without what is secret
    bool is_connected = false;
    Time since{};         // it is, or is not
    std::string trouble;  // the last one; empty: there was none
    std::optional<Time> trouble_at;
    std::vector<Link> links;  // none before the first connection: what they are called depends on the broker
    std::vector<Rejected> rejected;  // the last ones, the newest first
  };
  static constexpr std::size_t rejected_max = 100;

  // The queues are those whose jobs are published there.
  BrokerState(std::string address, std::vector<std::string> queues, Time now);

  // ---- the client of the broker
  void connected(std::vector<Link> links, Time now);
  void link_opened(std::size_t which, Time now);
  void link_closed(std::size_t which, std::string trouble, Time now);
  void disconnected(std::string trouble, Time now);  // or not connected again, for this reason
  void rejected(Rejected message);

  // ---- who is asked
  [[nodiscard]] View view() const;
  // Why what waits in this queue cannot be published now, with since when, in words; none: it can be, or is not published at all.
  [[nodiscard]] std::optional<std::string> trouble_of(const std::string& queue) const;

 private:
  mutable std::mutex mutex_;
  const std::vector<std::string> queues_;
  View view_;                      // without the rejected ones
  std::deque<Rejected> rejected_;  // the oldest first
};

}  // namespace baton
