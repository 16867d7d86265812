// The token of an identity: asked for when there is none, kept from one connection to the next, and asked for again before it expires.
//
// Owned by the broker's I/O thread.
#pragma once

#include <expected>
#include <functional>
#include <optional>

#include "bus/broker/backoff.hpp"
#include "bus/broker/dialer.hpp"
#include "bus/broker/identity.hpp"
#include "bus/broker/trouble.hpp"
#include "ports/clock.hpp"

namespace baton::bus {

class TokenSource {
 public:
  // `renewed` is told of a token that replaces another one.
  TokenSource(boost::asio::io_context& io, Dialer& dialer, Identity identity, const Clock& clock, std::function<void()> renewed);

  // Sees to it that there is a token.
  [[nodiscard]] boost::asio::awaitable<std::expected<void, Trouble>> prepare();
  [[nodiscard]] std::string text() const { return token_ ? token_->text : ""; }  // empty: there is none
  void on_tick();
  // The broker does not take it: another one is asked for before the next connection.
  void forget() { token_.reset(); }

 private:
  using steady = std::chrono::steady_clock;
  [[nodiscard]] boost::asio::awaitable<std::expected<IdentityToken, Trouble>> ask();
  [[nodiscard]] boost::asio::awaitable<void> renew();

  boost::asio::io_context& io_;
  Dialer& dialer_;
  const Identity identity_;
  const Clock& clock_;
  const std::function<void()> renewed_;
  std::optional<IdentityToken> token_;
  bool is_renewing_ = false;
  Backoff backoff_{std::chrono::seconds{1}, std::chrono::seconds{60}};
  steady::time_point retry_at_{};
  std::string told_;  // the name of why it is not renewed, if that is logged
};

}  // namespace baton::bus
