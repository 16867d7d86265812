#include "cli/bench/sink.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>

namespace baton::cli::bench {

Sink::Sink(std::size_t calls) : counts_(calls), firsts_(calls) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  (void)bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
  (void)listen(listener_, 1024);
  (void)getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  for (const int fd : {listener_, wake_}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    (void)epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
  thread_ = std::thread([this] { run(); });
}

Sink::~Sink() {
  stop();
  for (const int fd : {listener_, poll_, wake_}) close(fd);
}

void Sink::stop() {
  const std::uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

void Sink::run() {
  std::map<int, std::string> connections;  // what is there of the next request
  std::array<epoll_event, 256> events{};
  while (true) {
    const int n = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < n; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_) {
        for (const auto& [open, text] : connections) close(open);
        return;
      }
      if (fd == listener_) {
        accept_all();
      } else if (!serve(fd, connections[fd])) {
        connections.erase(fd);
        close(fd);
      }
    }
  }
}

void Sink::accept_all() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    (void)epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
  }
}

// A GET has no body: it ends with its header.
bool Sink::serve(int fd, std::string& pending) {
  static constexpr std::string_view answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
  std::array<char, 16 * 1024> buffer;
  const auto got = recv(fd, buffer.data(), buffer.size(), 0);
  if (got <= 0) return false;
  pending.append(buffer.data(), static_cast<std::size_t>(got));
  for (auto end = pending.find("\r\n\r\n"); end != std::string::npos; end = pending.find("\r\n\r\n")) {
    const auto target = pending.find(' ') + 1;
    note(std::string_view(pending).substr(target, pending.find(' ', target) - target));
    pending.erase(0, end + 4);
    if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return false;
  }
  return true;
}

void Sink::note(std::string_view target) {
  std::size_t call = counts_.size();
  target.remove_prefix(target.empty() ? 0 : 1);
  (void)std::from_chars(target.data(), target.data() + target.size(), call);
  if (call < counts_.size()) {
    if (counts_[call] == 0)
      firsts_[call] = std::chrono::duration_cast<std::chrono::microseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
    if (counts_[call] < 255) ++counts_[call];
  }
  ++seen_;
}

}  // namespace baton::cli::bench
