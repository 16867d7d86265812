// A server that says what the test wants it to say and remembers what it was asked. Plain HTTP/1.1 with
// Content-Length, a thread for each connection.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/listener.hpp"

namespace baton::e2e {

class FakeServer {
 public:
  struct Request {
    std::string target, body, head;  // head: the request line and the headers
  };
  struct Reply {
    int status = 200;  // 0: the connection breaks without an answer
    std::string body = "{}";
    std::string content_type;  // empty: not said
  };
  using Handler = std::function<Reply(const Request&)>;  // on any of the threads
  enum class Handling { one_at_a_time, all_at_once };

  explicit FakeServer(Handler handler, Handling handling = Handling::one_at_a_time)
      : handler_(std::move(handler)), handling_(handling) {
    const support::Listener listener = support::listen_on_loopback(1024);
    listener_ = listener.fd;
    url_ = "http://127.0.0.1:" + std::to_string(listener.port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  ~FakeServer() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (const int fd : connections_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int fd : connections_) close(fd);
    close(listener_);
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  // Changes what the handler looks at, while it looks at nothing (one at a time).
  void between_requests(const std::function<void()>& change) {
    const std::scoped_lock lock(mutex_);
    change();
  }
  // What was asked at a path that ends so, in order.
  [[nodiscard]] std::vector<std::string> asked(std::string_view ending) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> bodies;
    for (const auto& request : requests_)
      if (request.target.ends_with(ending)) bodies.push_back(request.body);
    return bodies;
  }
  // The paths' last words, in order.
  [[nodiscard]] std::vector<std::string> order() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> words;
    for (const auto& request : requests_)
      words.push_back(request.target.substr(request.target.rfind('/') + 1));
    return words;
  }

 private:
  void accept_all() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      connections_.push_back(fd);
      threads_.emplace_back([this, fd] { serve(fd); });
    }
  }
  void serve(int fd) {
    std::string text;
    char buffer[16 * 1024];
    while (true) {
      const auto head = text.find("\r\n\r\n");
      const std::size_t length = head == std::string::npos ? 0 : length_of(text.substr(0, head));
      if (head == std::string::npos || text.size() < head + 4 + length) {
        const auto got = recv(fd, buffer, sizeof buffer, 0);
        if (got <= 0) return;
        text.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      const auto target = text.substr(text.find(' ') + 1, text.find(" HTTP/") - text.find(' ') - 1);
      const Reply reply = answer({target, text.substr(head + 4, length), text.substr(0, head)});
      text.erase(0, head + 4 + length);
      if (reply.status == 0) {
        shutdown(fd, SHUT_RDWR);
        return;
      }
      const std::string out =
          "HTTP/1.1 " + std::to_string(reply.status) +
          " X\r\nContent-Length: " + std::to_string(reply.body.size()) + "\r\n" +
          (reply.content_type.empty() ? "" : "Content-Type: " + reply.content_type + "\r\n") + "\r\n" +
          reply.body;
      if (send(fd, out.data(), out.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
  static std::size_t length_of(const std::string& head) {
    const auto at = head.find("Content-Length: ");
    return at == std::string::npos ? 0 : std::stoul(head.substr(at + 16));
  }
  Reply answer(const Request& request) {
    std::unique_lock lock(mutex_);
    requests_.push_back(request);
    if (handling_ == Handling::all_at_once) lock.unlock();
    return handler_(request);
  }

  Handler handler_;
  const Handling handling_;
  std::string url_;
  int listener_ = -1;
  std::mutex mutex_;
  std::vector<Request> requests_;
  std::vector<int> connections_;  // of the accepting thread, until it has ended
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace baton::e2e
