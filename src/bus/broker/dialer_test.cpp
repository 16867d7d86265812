#include "bus/broker/dialer.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <future>
#include <thread>

namespace baton::bus {
namespace {

using steady = std::chrono::steady_clock;
namespace asio = boost::asio;

// Why there is no connection.
asio::awaitable<void> dial(Dialer& dialer, std::string host, std::uint16_t port, Dialer::Deadline until, std::string& why) {
  const auto stream = co_await dialer.connect(std::move(host), port, until);
  why = stream ? "there is one" : stream.error().message;
}

TEST(Dialer, ANameServerThatIsAwayDoesNotHoldUpAStop) {
  const auto server = std::make_shared<std::promise<void>>();
  const auto answered = server->get_future().share();
  const auto began = steady::now();
  {
    asio::io_context io;
    Dialer dialer(io, "", [answered, server](const std::string&) -> Lookups::Found {
      answered.wait();
      return fail(Code::unavailable, "too late");
    });
    std::string why;
    asio::co_spawn(io, dial(dialer, "broker.example", 5671, began + std::chrono::minutes{1}, why), asio::detached);
    io.run_for(std::chrono::milliseconds{100});
  }
  EXPECT_LT(steady::now() - began, std::chrono::seconds{3});
  server->set_value();
}

TEST(Dialer, ANameThatIsNotFoundInTimeIsToldSo) {
  const auto server = std::make_shared<std::promise<void>>();
  const auto answered = server->get_future().share();
  asio::io_context io;
  Dialer dialer(io, "", [answered, server](const std::string&) -> Lookups::Found {
    answered.wait();
    return fail(Code::unavailable, "too late");
  });
  std::string why;
  asio::co_spawn(io, dial(dialer, "broker.example", 5671, steady::now() + std::chrono::milliseconds{50}, why), asio::detached);
  io.run();
  EXPECT_EQ(why, "cannot find broker.example: the name server does not answer");
  server->set_value();
}

TEST(Dialer, APortThatNobodyListensOnIsToldAtOnce) {
  asio::io_context io;
  asio::ip::tcp::acceptor taken(io, {asio::ip::address_v4::loopback(), 0});
  const std::uint16_t port = taken.local_endpoint().port();
  taken.close();
  Dialer dialer(io, "");
  std::string why;
  asio::co_spawn(io, dial(dialer, "127.0.0.1", port, steady::now() + std::chrono::seconds{10}, why), asio::detached);
  io.run();
  EXPECT_EQ(why, "Connection refused");
}

}  // namespace
}  // namespace baton::bus
