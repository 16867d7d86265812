#include "cli/bench/wire.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>

namespace baton::cli::bench {
namespace {

constexpr std::size_t read_bytes = 256 * 1024;
volatile std::sig_atomic_t interrupted = 0;

std::unexpected<Error> system_error(std::string_view what) {
  return fail(Code::unavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

std::size_t number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  std::size_t number = 0;
  if (at != std::string_view::npos)
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), number);
  return number;
}

struct Head {
  int status = 0;
  std::size_t body_at = 0;
  std::size_t end = 0;  // of the whole answer
};

std::optional<Head> read_head(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const auto head = text.substr(0, end);
  Head found{.status = static_cast<int>(number_after(head, "HTTP/1.1 ")), .body_at = end + 4};
  found.end = found.body_at + number_after(head, "Content-Length: ");
  return found;
}

}  // namespace

void watch_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool was_interrupted() { return interrupted != 0; }

std::string post(std::string_view target, std::string_view body) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      target, body.size(), body);
}

Wire::Wire(std::string url)
    : url_(std::move(url)), epoll_(epoll_create1(EPOLL_CLOEXEC)), buffer_(read_bytes) {}

Wire::~Wire() {
  for (const Connection& connection : connections_) close(connection.fd);
  close(epoll_);
}

Result<std::size_t> Wire::open() {
  const std::string_view address =
      std::string_view{url_}.substr(std::min(url_.size(), std::strlen("http://")));
  const auto colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(number_after(address, ":")));
  if (colon == std::string_view::npos ||
      inet_pton(AF_INET, std::string{address.substr(0, colon)}.c_str(), &to.sin_addr) != 1)
    return fail(Code::invalid, fmt::format("'{}' is not http://ADDRESS:PORT", url_));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error("cannot make a socket");
  connections_.push_back({fd, {}});
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return system_error(fmt::format("cannot connect to {}", url_));
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{.events = EPOLLIN, .data = {.u64 = connections_.size() - 1}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return system_error("cannot watch a socket");
  return connections_.size() - 1;
}

Result<> Wire::send(std::size_t connection, std::string_view request) {
  const int fd = connections_[connection].fd;
  while (!request.empty()) {
    // The socket blocks when its buffer is full: the server reads a request whatever else it does, so this is
    // short.
    const auto sent = ::send(fd, request.data(), request.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR && !was_interrupted()) continue;
    if (sent < 0) return system_error("cannot send to the server");
    request.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<> Wire::wait(std::chrono::nanoseconds patience, const Answer& answer) {
  std::array<epoll_event, 128> events{};
  const auto whole = std::chrono::floor<std::chrono::seconds>(patience);
  const timespec limit{whole.count(), (patience - whole).count()};
  const int ready = epoll_pwait2(epoll_, events.data(), events.size(), &limit, nullptr);
  if (was_interrupted()) return fail(Code::unavailable, "interrupted");
  if (ready < 0 && errno != EINTR) return system_error("cannot wait for answers");
  for (int i = 0; i < ready; ++i) TRY(receive(events[static_cast<std::size_t>(i)].data.u64, answer));
  return {};
}

Result<> Wire::receive(std::size_t index, const Answer& answer) {
  Connection& connection = connections_[index];
  const auto got = recv(connection.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return system_error("the server broke a connection");
  if (got == 0) return fail(Code::unavailable, "the server closed a connection");
  std::string_view text{buffer_.data(), static_cast<std::size_t>(got)};
  std::string joined;  // mostly an answer comes in one piece and is read where it is
  if (!connection.in.empty()) {
    joined = std::move(connection.in);
    joined += text;
    text = joined;
  }
  connection.in.clear();
  const auto head = read_head(text);
  if (!head || head->end > text.size()) {
    connection.in = text;
    return {};
  }
  return answer(index, head->status, text.substr(head->body_at, head->end - head->body_at));
}

}  // namespace baton::cli::bench
