#include "bus/broker/dialer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>

namespace baton::bus {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

struct Lookup {
  asio::steady_timer answered;
  std::optional<Lookups::Found> found;
};

tcp::endpoint endpoint_of(const IpAddress& address, std::uint16_t port) {
  if (!address.v4) return {asio::ip::address_v6(address.bytes), port};
  asio::ip::address_v4::bytes_type bytes;
  std::copy_n(address.bytes.begin(), bytes.size(), bytes.begin());
  return {asio::ip::address_v4(bytes), port};
}

}  // namespace

std::string stream_problem(const error_code& error) {
  return error == boost::beast::error::timeout || error == asio::error::operation_aborted ? "it does not answer" : error.message();
}

// The answer comes on another thread, and maybe when nobody waits any more.
asio::awaitable<Lookups::Found> Dialer::find(std::string host, Deadline until) {
  if (const auto address = IpAddress::parse(host)) co_return std::vector{*address};
  const auto lookup = std::make_shared<Lookup>(asio::steady_timer(io_, until), std::nullopt);
  lookups_.find("broker", host, until, [&io = io_, weak = std::weak_ptr(lookup)](const Lookups::Found& found) {
    asio::post(io, [weak, found] {
      const auto waiting = weak.lock();
      if (!waiting) return;
      waiting->found = found;
      waiting->answered.cancel();
    });
  });
  error_code ignored;
  co_await lookup->answered.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  if (!lookup->found) co_return fail(Code::unavailable, "the name server does not answer");
  co_return *std::move(lookup->found);
}

asio::awaitable<Result<Dialer::Plain>> Dialer::connect(std::string host, std::uint16_t port, Deadline until) {
  const auto found = co_await find(host, until);
  if (!found || found->empty())
    co_return fail(Code::unavailable, fmt::format("cannot find {}: {}", host, found ? "it has no address" : found.error().message));
  std::vector<tcp::endpoint> endpoints;
  for (const IpAddress& address : *found) endpoints.push_back(endpoint_of(address, port));
  Plain stream(io_);
  stream.expires_at(until);
  error_code error;
  co_await stream.async_connect(endpoints, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(Code::unavailable, stream_problem(error));
  stream.socket().set_option(tcp::no_delay(true), error);
  co_return std::move(stream);
}

asio::awaitable<Result<Dialer::Secure>> Dialer::connect_secure(Url url, Trust trust, Deadline until) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  const auto is_set = set_up_tls(context.native_handle(), trusted_, trust);
  if (!is_set) co_return std::unexpected(is_set.error());
  auto plain = co_await connect(url.host, url.port, until);
  if (!plain) co_return std::unexpected(std::move(plain).error());
  Secure stream(*std::move(plain), context);
  if (!expect_host(stream.native_handle(), url)) co_return fail(Code::invalid, "its name cannot be that of a certificate");
  error_code error;
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::redirect_error(asio::use_awaitable, error));
  if (error) co_return fail(Code::unavailable, tls_problem(stream.native_handle(), stream_problem(error)));
  co_return std::move(stream);
}

}  // namespace baton::bus
