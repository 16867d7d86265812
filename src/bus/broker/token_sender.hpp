// Puts tokens to a broker's $cbs, one for each entity, and again before they expire: a round each time.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "bus/broker/trouble.hpp"
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
              std::function<void(Trouble why)> refused);

  [[nodiscard]] bool owns(pn_link_t* link) const { return link == sender_ || link == receiver_; }
  [[nodiscard]] bool is_first_round() const { return is_first_round_; }
  // The broker ended one of them: they are made again when there is something to put.
  void drop_links();
  void on_flow(Time now);
  void on_delivery(pn_delivery_t* delivery);
  void on_tick(Time now);
  void put_all(Time now);

 private:
  void make_links();
  void put(const std::string& entity, Time now);
  [[nodiscard]] bool is_answered() const { return put_ == entities_.size() && awaited_.empty(); }

  pn_session_t* const session_;
  const std::string host_;
  const std::vector<std::string> entities_;
  const TokenFor token_for_;
  const std::function<void()> done_;
  const std::function<void(Trouble)> refused_;
  std::string reply_address_;
  pn_link_t* sender_ = nullptr;
  pn_link_t* receiver_ = nullptr;
  std::size_t put_ = 0;            // of this round
  std::set<std::string> awaited_;  // the message ids of this round that are not answered
  bool is_first_round_ = true;
  Time renew_at_{}, round_began_{};
  std::uint64_t sent_ = 0, links_made_ = 0;
};

}  // namespace baton::bus
