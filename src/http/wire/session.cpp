#include "http/wire/session.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <cerrno>
#include <iterator>
#include <tuple>
#include <utility>

#include "http/json/problem.hpp"
#include "http/wire/api.hpp"

namespace baton::http {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr std::size_t small_read = 4 * 1024;
constexpr std::size_t large_read = 64 * 1024;
constexpr std::size_t kept_out_max = 4 * 1024;
constexpr std::size_t drained_max = 1024 * 1024;

struct IoResult {
  error_code error;
  std::size_t bytes = 0;
};

struct ReadSome {
  asio::ip::tcp::socket& socket;
  asio::mutable_buffer into;
  IoResult result{};
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    socket.async_read_some(into, [this, waiting](const error_code& error, std::size_t bytes) {
      result = {error, bytes};
      waiting.resume();
    });
  }
  IoResult await_resume() const { return result; }
};

struct WriteAll {
  asio::ip::tcp::socket& socket;
  std::string_view text;
  IoResult result{};
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> waiting) {
    asio::async_write(socket, asio::buffer(text.data(), text.size()),
                      [this, waiting](const error_code& error, std::size_t bytes) {
                        result = {error, bytes};
                        waiting.resume();
                      });
  }
  IoResult await_resume() const { return result; }
};

std::string_view detail_of(int status) {
  switch (status) {
    case 408: return "the request did not arrive in time";
    case 413: return "the body is larger than this server takes (its setting body_max, 4 MiB if nothing is said)";
    case 431: return "the header is too large";
    default: return "the request is not well-formed HTTP/1.1";
  }
}

std::string_view code_of(int status) {
  switch (status) {
    case 408: return "request_timeout";
    case 413: return "body_too_large";
    case 431: return "header_too_large";
    default: return "malformed_request";
  }
}

}  // namespace

void SessionGroup::count(int route, std::string_view method, int status, std::chrono::nanoseconds took) {
  const auto& table = services.options.api->patterns;
  const auto index = route < 0 ? table.size() : static_cast<std::size_t>(route);
  const std::string_view pattern = route < 0 ? "none" : table[index];
  if (by_route.size() <= table.size()) by_route.resize(table.size() + 1);
  auto& metrics = by_route[index];
  if (metrics.seconds == nullptr) {
    metrics.seconds =
        &services.metrics.histogram("baton_http_request_seconds", "How long requests took, waits included.",
                                    fmt::format("route=\"{}\"", pattern));
  }
  metrics.seconds->observe(took);
  for (const auto& [known, counter] : metrics.by_status) {
    if (known == status) return counter->add();
  }
  // Without a route the method is the client's invention and must not become a label.
  auto& counter = services.metrics.counter(
      "baton_http_requests_total", "Requests answered.",
      fmt::format("method=\"{}\",route=\"{}\",status=\"{}\"", route < 0 ? "other" : method, pattern, status));
  metrics.by_status.emplace_back(status, &counter);
  counter.add();
}

Session::Session(asio::ip::tcp::socket socket, SessionGroup& group)
    : socket_(std::move(socket)), group_(group) {
  place_ = group_.sessions.insert(group_.sessions.end(), this);
  group_.connections.set(static_cast<std::int64_t>(group_.sessions.size()));
  wait_state_.stopping = group_.stopping;
  wait_state_.watch = [this] { watch(); };
}

Session::~Session() {
  group_.sessions.erase(place_);
  group_.connections.set(static_cast<std::int64_t>(group_.sessions.size()));
  if (group_.sessions.empty() && group_.stopping) group_.on_empty();
}

void Session::start(bool welcome) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  serve(shared_from_this(), welcome);
}

Detached Session::serve([[maybe_unused]] std::shared_ptr<Session> self, bool welcome) {
  try {
    if (welcome) {
      while (co_await serve_one()) {
      }
    } else {
      auto full = group_.services.options.api->refuse(503, "too_many_connections", "the server has too many connections");
      co_await respond(std::move(full), false, false, "-");
    }
    if (phase_ == Phase::draining) co_await drain();
  } catch (const std::exception& error) {
    spdlog::error("a connection failed: {}", error.what());
  }
  error_code ignored;
  socket_.close(ignored);
}

void Session::enter(Phase phase, std::chrono::milliseconds limit) {
  phase_ = phase;
  timed_out_ = false;
  deadline_ = limit == std::chrono::milliseconds::max() ? SteadyTime::max() : steady_clock::now() + limit;
}

Task<bool> Session::serve_one() {
  const auto& options = group_.services.options;
  std::optional<RequestReader> reader;
  reader.emplace(options.header_bytes_max, options.body_bytes_max);
  const int refused = co_await read_request(*reader);
  if (refused < 0) co_return false;
  if (refused > 0) {
    group_.count(-1, "", refused, {});
    auto why = options.api->refuse(refused, code_of(refused), detail_of(refused));
    co_await respond(std::move(why), false, false, "-");
    co_return false;
  }
  const auto began = steady_clock::now();
  bool keep_alive = reader->keep_alive();
  Context context(group_.services, wait_state_, take_request(*reader));
  reader.reset();
  release_buffer();
  enter(Phase::handling, std::chrono::milliseconds::max());
  ++requests_;
  watched_ = false;
  int route = -1;
  unanswered_ = &context.request;
  auto response = co_await options.api->dispatch(context, route);
  unanswered_ = nullptr;
  if (watched_) {
    error_code ignored;
    socket_.cancel(ignored);
    watched_ = false;
  }
  const auto& request = context.request;
  const int status = response.status;
  keep_alive = keep_alive && !group_.stopping;
  add_instance(response, request.request_id);
  auto handed_out = std::move(response.handed_out);
  bool written = false;
  if (response.stream) {
    keep_alive = false;
    written = co_await respond_with_stream(context, std::move(response));
  } else if (!wait_state_.over) {
    const bool head = request.method == "HEAD";
    written = co_await respond(std::move(response), keep_alive, head, request.request_id);
  }
  if (!written) return_tasks(group_.services.inbox, std::move(handed_out));
  const auto took = steady_clock::now() - began;
  group_.count(route, request.method, status, took);
  const auto level = status >= 500 ? spdlog::level::warn : spdlog::level::debug;
  if (spdlog::should_log(level)) {
    spdlog::log(level, "request id={} method={} path={} status={} ms={:.3f}", request.request_id,
                request.method, request.path, status,
                std::chrono::duration<double, std::milli>(took).count());
  }
  co_return written&& keep_alive;
}

Task<int> Session::read_request(RequestReader& reader) {
  const auto& options = group_.services.options;
  const bool waiting = buffer_.size() == 0;
  if (waiting && group_.stopping) co_return -1;
  // A new connection has the time of a header to say something, an old one may be idle for longer.
  enter(waiting ? Phase::idle : Phase::header, waiting && !first_ ? options.idle_time : options.header_time);
  first_ = false;
  while (true) {
    while (buffer_.size() > 0 && !reader.is_done()) {
      const auto step = reader.read(buffer_);
      if (step == RequestReader::Step::refused) co_return reader.refused_with();
      if (step == RequestReader::Step::needs_more) break;
      if (step == RequestReader::Step::header) {
        enter(Phase::body, options.body_time);
        if (reader.expects_continue() && !reader.is_done() && buffer_.size() == 0) {
          const bool written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
          if (!written) co_return -1;
          enter(Phase::body, options.body_time);
        }
      }
    }
    if (reader.is_done()) co_return 0;
    const auto wanted = reader.has_header() ? large_read : small_read;
    ReadSome read{socket_, buffer_.prepare(wanted)};
    const auto [error, bytes] = co_await read;
    if (timed_out_) co_return phase_ == Phase::idle ? -1 : 408;
    if (error) co_return -1;
    buffer_.commit(bytes);
    if (phase_ == Phase::idle) enter(Phase::header, options.header_time);
  }
}

Request Session::take_request(RequestReader& reader) {
  auto request = reader.take();
  if (request.request_id.empty()) request.request_id = fmt::format("{:016x}", group_.services.random());
  return request;
}

// All of the header that does not depend on the body.
void Session::begin_answer(const Response& response, bool keep_alive, std::string_view request_id) {
  out_.clear();
  out_.reserve(256 + response.body.size());
  fmt::format_to(std::back_inserter(out_),
                 "HTTP/1.1 {} {}\r\nServer: baton\r\nDate: {}\r\nContent-Type: {}\r\nX-Request-Id: {}\r\n",
                 response.status, reason_phrase(response.status), group_.date, response.content_type,
                 request_id);
  for (const auto& [name, value] : response.headers) {
    out_ += name;
    out_ += ": ";
    out_ += value;
    out_ += "\r\n";
  }
  if (!keep_alive) out_ += "Connection: close\r\n";
}

void Session::end_of_answers() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  enter(Phase::draining, std::chrono::seconds{1});
}

Task<bool> Session::respond(Response response, bool keep_alive, bool head, std::string_view request_id) {
  begin_answer(response, keep_alive, request_id);
  fmt::format_to(std::back_inserter(out_), "Content-Length: {}\r\n\r\n", response.body.size());
  if (!head) out_ += response.body;
  response.body = {};
  const bool written = co_await write(out_);
  if (out_.capacity() > kept_out_max) out_ = {};
  if (written && !keep_alive) end_of_answers();
  co_return written;
}

// The end of the connection is the end of the body.
Task<bool> Session::respond_with_stream(Context& context, Response response) {
  begin_answer(response, false, context.request.request_id);
  out_ += "\r\n";
  bool written = co_await write(out_);
  bool goes_on = true;
  while (written && goes_on) {
    out_ = {};  // most of the time there is nothing to say
    enter(Phase::handling, std::chrono::milliseconds::max());
    goes_on = co_await response.stream->next(context, out_);
    if (!out_.empty() && !wait_state_.over) written = co_await write(out_);
  }
  if (!written && timed_out_) response.stream->cut_off();
  if (written && !wait_state_.over) end_of_answers();
  co_return written;
}

Task<bool> Session::write(std::string_view text) {
  enter(Phase::writing, group_.services.options.write_time);
  WriteAll all{socket_, text};
  const auto [error, bytes] = co_await all;
  co_return !error;
}

// A socket closed with unread data answers with a reset, which can destroy the answer on its way: read on for
// a moment.
Task<bool> Session::drain() {
  buffer_.clear();
  std::size_t drained = 0;
  while (drained < drained_max && !wait_state_.over) {
    ReadSome read{socket_, buffer_.prepare(small_read)};
    const auto [error, bytes] = co_await read;
    if (error) break;
    drained += bytes;
  }
  co_return true;
}

void Session::check_time(SteadyTime now) {
  if (wait_state_.waiting && wait_state_.interruptible != Interruptible::no && !watched_) watch();
  if (now < deadline_) return;
  deadline_ = SteadyTime::max();
  timed_out_ = true;
  error_code ignored;
  if (phase_ == Phase::header || phase_ == Phase::body) {
    socket_.cancel(ignored);  // the reader sees it and answers 408
  } else {
    socket_.close(ignored);
  }
}

void Session::stop() {
  wait_state_.stopping = true;
  if (phase_ == Phase::idle) {
    error_code ignored;
    timed_out_ = true;
    socket_.cancel(ignored);
  }
  wait_state_.interrupt(false);
}

void Session::terminate() {
  if (unanswered_ != nullptr) tell_no_answer();
  error_code ignored;
  socket_.close(ignored);
  wait_state_.interrupt(true);
}

// A closed connection alone would not say that the server stops, and invites to send the same again at once. Nothing is
// waited for: a text of this size fits into what the system buffers.
void Session::tell_no_answer() {
  const Request& request = *std::exchange(unanswered_, nullptr);
  auto late = group_.services.options.api->refuse(503, "stopping", "the server is stopping and has no answer yet; what was asked may or may not have happened");
  add_instance(late, request.request_id);
  begin_answer(late, false, request.request_id);
  fmt::format_to(std::back_inserter(out_), "Content-Length: {}\r\n\r\n{}", late.body.size(), late.body);
  std::ignore = ::send(socket_.native_handle(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

// Sees a client go while its request waits. More data is a next request and tells nothing.
void Session::watch() {
  watched_ = true;
  if (buffer_.size() > 0) return;
  buffer_ = {};  // thousands may wait like this
  socket_.async_wait(asio::ip::tcp::socket::wait_read, [self = shared_from_this(),
                                                        request = requests_](const error_code& error) {
    if (error || request != self->requests_ || !self->watched_) return;
    char byte = 0;
    const auto seen = ::recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (seen > 0) return;
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) return self->watch();
    self->wait_state_.interrupt(true);
  });
}

void Session::release_buffer() {
  if (buffer_.size() == 0 && (buffer_.capacity() > small_read || wait_state_.stopping)) buffer_ = {};
}

}  // namespace baton::http
