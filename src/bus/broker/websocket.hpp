// AMQP over a websocket, for sites whose firewall lets out nothing but HTTPS: each message of the websocket is a piece of the stream of bytes,
// with no regard to where frames of AMQP begin or end.
#pragma once

#include "bus/broker/dialer.hpp"
#include "bus/byte_stream.hpp"

namespace baton::bus {

[[nodiscard]] boost::asio::awaitable<Result<std::shared_ptr<ByteStream>>> open_websocket(Dialer& dialer, Url url, Trust trust, Dialer::Deadline until);

}  // namespace baton::bus
