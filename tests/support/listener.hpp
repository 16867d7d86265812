// A socket that listens on 127.0.0.1, on a port of the system's choice. Whoever asked for it closes it.
#pragma once

#include <cstdint>

namespace baton::support {

struct Listener {
  int fd = -1;
  std::uint16_t port = 0;
};
// Throws if there is none.
[[nodiscard]] Listener listen_on_loopback(int backlog);

}  // namespace baton::support
