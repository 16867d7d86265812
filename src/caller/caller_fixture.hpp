// For tests: a real server on a port of the system's choice, of which a test decides every byte, and a caller
// in front of it.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <list>
#include <mutex>
#include <thread>

#include "caller/caller.hpp"
#include "tests/support/listener.hpp"

namespace baton::caller {

// The server's end of one connection.
class Peer {
 public:
  Peer(int fd, SSL_CTX* tls) : fd_(fd), tls_(tls == nullptr ? nullptr : SSL_new(tls)) {
    if (tls_ == nullptr) return;
    ::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without asking for that
    SSL_set_fd(tls_, fd_);
    if (SSL_accept(tls_) != 1) broken_ = true;
  }
  ~Peer() {
    SSL_free(tls_);
    ::close(fd_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // The next request, head and body; empty: there is none any more.
  std::string request() {
    for (;;) {
      const auto end = seen_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const auto at = seen_.find("Content-Length: ");
        const std::size_t body = at < end ? std::stoul(seen_.substr(at + 16)) : 0;
        if (seen_.size() >= end + 4 + body) {
          auto found = seen_.substr(0, end + 4 + body);
          seen_.erase(0, found.size());
          return found;
        }
      }
      char buffer[16 * 1024];
      const auto bytes = broken_ ? -1
                         : tls_  ? SSL_read(tls_, buffer, sizeof buffer)
                                 : ::recv(fd_, buffer, sizeof buffer, 0);
      if (bytes <= 0) return {};
      seen_.append(buffer, static_cast<std::size_t>(bytes));
    }
  }
  bool send(std::string_view text) {
    while (!text.empty()) {
      const auto bytes = broken_ ? -1
                         : tls_  ? SSL_write(tls_, text.data(), static_cast<int>(text.size()))
                                 : ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (bytes <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(bytes));
    }
    return true;
  }
  bool answer(std::string_view body, std::string_view head = "HTTP/1.1 200 OK\r\n") {
    return send(std::string(head) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                std::string(body));
  }
  void take_leave() {
    if (tls_ != nullptr) SSL_shutdown(tls_);
  }
  // The connection ends with a RST instead of an end.
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }

 private:
  int fd_;
  SSL* tls_;
  bool broken_ = false;
  std::string seen_;
};

class TestServer {
 public:
  using Script = std::function<void(Peer&)>;

  explicit TestServer(Script script, SSL_CTX* tls = nullptr) : script_(std::move(script)), tls_(tls) {
    acceptor_ = std::thread([this] { accept(); });
  }
  ~TestServer() { stop(); }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void stop() {
    if (stopping_.exchange(true)) return;
    ::shutdown(listener_.fd, SHUT_RDWR);
    acceptor_.join();
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (auto& each : peers_) each.join();
    ::close(listener_.fd);
  }
  // Waits, or returns false because the test is over.
  bool pause(std::chrono::milliseconds time) {
    for (; time.count() > 0 && !stopping_; time -= std::chrono::milliseconds{5})
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    return !stopping_;
  }
  void hang() {
    while (pause(std::chrono::seconds{1})) {
    }
  }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] std::uint16_t port() const { return listener_.port; }
  [[nodiscard]] std::string url(std::string_view path = "/", std::string_view host = "127.0.0.1",
                                std::string_view scheme = "http") const {
    return std::string(scheme) + "://" + std::string(host) + ":" + std::to_string(listener_.port) +
           std::string(path);
  }

 private:
  void accept() {
    for (;;) {
      const int fd = ::accept(listener_.fd, nullptr, nullptr);
      if (fd < 0 || stopping_) {
        if (fd >= 0) ::close(fd);
        return;
      }
      ++connections_;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      peers_.emplace_back([this, fd] { serve(fd); });
    }
  }
  void serve(int fd) {
    auto peer = std::make_unique<Peer>(fd, tls_);
    script_(*peer);
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    peer.reset();
  }

  Script script_;
  SSL_CTX* tls_;
  const support::Listener listener_ = support::listen_on_loopback(512);
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::vector<int> open_;
  std::list<std::thread> peers_;
  std::thread acceptor_;
};

class CallerTest : public ::testing::Test {
 protected:
  CallerTest() {
    const std::vector<std::string> allow{"127.0.0.0/8"};
    options_.egress = Egress::parse(allow, {}).value();
    options_.resolve = [](const std::string& host) -> Result<std::vector<IpAddress>> {
      if (host.ends_with(".test")) return std::vector{*IpAddress::parse("127.0.0.1")};
      return fail(Code::unavailable, "no such name");
    };
  }
  void start() {
    auto made = HttpCaller::start(options_);
    ASSERT_TRUE(made) << made.error().message;
    caller_ = *std::move(made);
  }
  std::future<OutgoingResult> send(OutgoingRequest request, const std::string& for_whom = "a") {
    if (!caller_) start();
    const auto origin = origin_of(request.url).value_or("none");
    auto promise = std::make_shared<std::promise<OutgoingResult>>();
    auto outcome = promise->get_future();
    caller_->send(for_whom, origin, std::move(request),
                  [promise](OutgoingResult result) { promise->set_value(std::move(result)); });
    return outcome;
  }
  static OutgoingResult wait(std::future<OutgoingResult> outcome) {
    if (outcome.wait_for(std::chrono::seconds{10}) == std::future_status::ready) return outcome.get();
    ADD_FAILURE() << "no outcome";
    std::abort();  // what hangs would hang the whole suite
  }
  OutgoingResult call(OutgoingRequest request) { return wait(send(std::move(request))); }
  OutgoingResult get(std::string url) {
    OutgoingRequest request;
    request.url = std::move(url);
    request.timeout = std::chrono::seconds{5};
    return call(std::move(request));
  }
  // Nobody waits, and no connection stays.
  void expect_nothing_left() {
    EXPECT_EQ(caller_->stats().under_way, 0U);
    caller_->stop();
    EXPECT_EQ(caller_->stats().connections_open, 0U);
  }
  static std::string header(const OutgoingResult& result, std::string_view name) {
    for (const auto& [key, value] : result.headers)
      if (key == name) return value;
    return "(none)";
  }

  Options options_;
  std::unique_ptr<HttpCaller> caller_;
};

// Answers every request on every connection.
inline void agree(Peer& peer) {
  while (!peer.request().empty()) {
    if (!peer.answer("fine")) return;
  }
}

}  // namespace baton::caller
