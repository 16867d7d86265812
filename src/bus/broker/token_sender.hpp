// Puts tokens to a broker's $cbs, one for each entity, and again before they expire.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "bus/message.hpp"

namespace baton::bus {

// What is put for an entity. Forever: somebody else says when it is to be put again.
struct TokenToPut {
  std::string type, text;
  Time renew_at = Time::max();
};
using TokenFor = std::function<TokenToPut(const std::string& resource, Time now)>;

class TokenSender {
 public:
  // `done` is called once all of them were taken, the first time; `refused` when one is not.
  TokenSender(pn_session_t* session, std::string host, std::vector<std::string> entities, TokenFor token_for, std::function<void()> done,
              std::function<void(std::string why)> refused);

  [[nodiscard]] bool owns(pn_link_t* link) const { return link == sender_ || link == receiver_; }
  void on_flow(Time now);
  void on_delivery(pn_delivery_t* delivery);
  void on_tick(Time now);
  void put_all(Time now);

 private:
  void put(const std::string& entity, Time now);

  const std::string host_;
  const std::vector<std::string> entities_;
  const TokenFor token_for_;
  const std::function<void()> done_;
  const std::function<void(std::string)> refused_;
  pn_link_t* const sender_;
  pn_link_t* const receiver_;
  std::size_t put_ = 0, taken_ = 0;  // of this round
  bool is_first_round_ = true;
  Time renew_at_{}, round_began_{};
  std::uint64_t sent_ = 0;
};

}  // namespace baton::bus
