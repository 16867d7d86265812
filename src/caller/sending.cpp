#include "caller/sending.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/status.hpp>

#include "caller/redirect.hpp"

namespace baton::caller {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t addresses_max = 8;  // that are tried, one after the other
constexpr int interim_answers_max = 8;

Duration since(Steady::time_point begin) {
  return std::chrono::duration_cast<Duration>(Steady::now() - begin);
}

std::string shown(Duration duration) {
  const auto millis = duration.count();
  return millis % 1000 == 0 ? fmt::format("{} s", millis / 1000) : fmt::format("{} ms", millis);
}

OutgoingKind kind_of(const error_code& error) {
  return error.category() == asio::error::get_ssl_category() ? OutgoingKind::tls_error
                                                             : OutgoingKind::network_error;
}

bool says(const OutgoingRequest& request, std::string_view name) {
  return std::ranges::any_of(request.headers, [&](const auto& header) {
    return std::ranges::equal(header.first, name, [](char a, char b) { return (a | 32) == (b | 32); });
  });
}

}  // namespace

Sending::Sending(Loop& loop, std::string for_whom, OutgoingRequest request,
                 std::function<void(OutgoingResult)> done)
    : loop_(loop),
      for_whom_(std::move(for_whom)),
      request_(std::move(request)),
      done_(std::move(done)),
      end_(began_ + std::min(request_.timeout, outgoing_timeout_max)),
      timer_(loop.io),
      lookup_(loop.io) {
  ++loop_.common.under_way;
}

asio::awaitable<void> Sending::run(std::shared_ptr<Sending> self) {
  try {
    co_await self->go();
  } catch (const std::exception& error) {
    self->connection_.reset();
    self->broken(OutgoingKind::network_error, fmt::format("the request failed: {}", error.what()));
  }
  self->finish();
}

asio::awaitable<void> Sending::go() {
  if (const auto right = check(request_); !right) {
    broken(OutgoingKind::invalid_request, right.error().message);
    co_return;
  }
  url_ = parse_url(request_.url).value();
  for (int followed = 0;; ++followed) {
    origin_ = url_.origin();
    const bool has_answer = co_await hop();
    if (!has_answer || !follow(followed)) co_return;
  }
}

// One request and its answer; false: there was none.
asio::awaitable<bool> Sending::hop() {
  for (;;) {
    const bool is_open = co_await open();
    if (!is_open) co_return false;
    const Sent sent = co_await write();
    if (sent == Sent::failed) co_return false;
    if (sent == Sent::all) break;
    // A kept connection was dead, and none of the request has gone: the next one may have it.
  }
  const bool has_answer = co_await receive();
  co_return has_answer;
}

asio::awaitable<bool> Sending::open() {
  const auto& options = loop_.common.options;
  timed_out_ = timed_out_ || Steady::now() >= end_;
  if (stopped_ || timed_out_) co_return broken(OutgoingKind::network_error, {});
  if (options.egress.denies_host(url_.host)) {
    co_return broken(OutgoingKind::egress_denied, fmt::format("the egress policy refuses {}", url_.host));
  }
  static constexpr std::string_view safe[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
  const bool is_safe = std::ranges::find(safe, request_.method) != std::end(safe);
  connection_ = loop_.pool.take(pool_key(), url_.host, options.egress,
                                is_safe ? options.idle_max : options.idle_max_unsafe);
  reused_ = connection_ != nullptr;
  if (reused_) {
    ++loop_.common.connections_reused;
    result_.address = connection_->address.text();
    co_return true;
  }
  connect_end_ = Steady::now() + options.connect_timeout;
  limit(Phase::looking_up, connect_end_, options.connect_timeout);
  const bool found = co_await find_addresses();
  if (!found) co_return false;
  const bool connected = co_await connect();
  if (!connected || !url_.secure) co_return connected;
  const bool trusted = co_await shake_hands();
  co_return trusted;
}

// Looks the name up, once, and keeps of its addresses those that the policy allows.
asio::awaitable<bool> Sending::find_addresses() {
  if (url_.host_kind != Url::HostKind::name) {
    const auto address = IpAddress::parse(url_.host);
    found_ = std::vector{address.value()};
  } else {
    found_.reset();
    lookup_.expires_at(Steady::time_point::max());
    const auto tell = [weak = weak_from_this(), &io = loop_.io](const Lookups::Found& found) {
      asio::post(io, [weak, found] {
        const auto self = weak.lock();
        if (!self) return;
        self->found_ = found;
        self->lookup_.cancel();
      });
    };
    loop_.common.lookups.find(for_whom_, url_.host, std::min(connect_end_, end_), tell);
    error_code ignored;
    co_await lookup_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  if (!found_ || stopped_ || timed_out_)
    co_return broken(OutgoingKind::network_error, "the lookup was interrupted");
  if (!*found_ || (*found_)->empty()) {
    co_return broken(OutgoingKind::network_error,
                     fmt::format("cannot find {}: {}", url_.host,
                                 *found_ ? "it has no address" : found_->error().message));
  }
  addresses_ = **std::move(found_);
  const auto first = addresses_.front();
  std::erase_if(addresses_,
                [&](const IpAddress& each) { return !loop_.common.options.egress.allows(url_.host, each); });
  if (!addresses_.empty()) co_return true;
  result_.address.clear();
  const bool named = url_.host_kind == Url::HostKind::name;
  co_return broken(
      OutgoingKind::egress_denied,
      named ? fmt::format("the egress policy refuses {}, the address of {}", first.text(), url_.host)
            : fmt::format("the egress policy refuses {}", first.text()));
}

asio::awaitable<bool> Sending::connect() {
  if (addresses_.size() > addresses_max) addresses_.resize(addresses_max);
  connection_ = std::make_unique<Connection>(loop_.io, loop_.common.connections_open);
  error_code error;
  for (std::size_t i = 0; i < addresses_.size(); ++i) {
    // An address that does not answer leaves the others their share of the time.
    const auto now = Steady::now();
    const auto left = std::min(connect_end_, end_) - now;
    limit(Phase::connecting, now + left / static_cast<int>(addresses_.size() - i),
          std::min(loop_.common.options.connect_timeout, request_.timeout));
    timed_out_ = false;
    result_.address = addresses_[i].text();
    error = co_await connection_->connect(addresses_[i], url_.port);
    if (stopped_) break;
    if (!error && !timed_out_) {
      ++loop_.common.connections_opened;
      co_return true;
    }
  }
  connection_.reset();
  co_return broken(OutgoingKind::network_error,
                   fmt::format("cannot connect to {}: {}", url_.authority(), error.message()));
}

asio::awaitable<bool> Sending::shake_hands() {
  limit(Phase::shaking_hands, connect_end_, loop_.common.options.connect_timeout);
  const error_code error = co_await connection_->shake_hands(loop_.common.tls, url_);
  if (!error) co_return true;
  const auto why = connection_->tls_problem(error);
  connection_.reset();
  co_return broken(kind_of(error), fmt::format("no TLS with {}: {}", url_.authority(), why));
}

std::string Sending::head() const {
  const auto& options = loop_.common.options;
  std::string text;
  text.reserve(512);
  auto out = std::back_inserter(text);
  fmt::format_to(out, "{} {} HTTP/1.1\r\nHost: {}\r\n", request_.method, url_.target, url_.authority());
  for (const auto& [name, value] : request_.headers) fmt::format_to(out, "{}: {}\r\n", name, value);
  if (!says(request_, "User-Agent")) fmt::format_to(out, "User-Agent: {}\r\n", options.user_agent);
  if (!says(request_, "Accept")) text += "Accept: */*\r\n";
  // Nothing is unpacked here, so that a small answer cannot become a large one.
  if (!says(request_, "Accept-Encoding")) text += "Accept-Encoding: identity\r\n";
  const bool usual = request_.method == "POST" || request_.method == "PUT" || request_.method == "PATCH";
  if (usual || !request_.body.empty()) fmt::format_to(out, "Content-Length: {}\r\n", request_.body.size());
  text += "\r\n";
  return text;
}

asio::awaitable<Sending::Sent> Sending::write() {
  limit(Phase::sending);
  timed_out_ = timed_out_ || Steady::now() >= end_;
  if (stopped_ || timed_out_) {  // better not sent than in doubt
    connection_.reset();
    broken(OutgoingKind::network_error, {});
    co_return Sent::failed;
  }
  connection_->limit_delivery(std::chrono::duration_cast<Duration>(end_ - Steady::now()));
  const auto text = head();
  const bool left_before = result_.may_have_left;
  result_.may_have_left = true;
  const IoResult done = co_await connection_->write(text, request_.body);
  sent_whole_ = !done.error;
  if (!done.error) co_return Sent::all;
  // Of a plain connection we know that the kernel took nothing; TLS may have sent a part of a record.
  const bool nothing = done.bytes == 0 && !connection_->is_secure();
  if (nothing) result_.may_have_left = left_before;
  if (nothing && reused_ && !stopped_ && !timed_out_) co_return Sent::nothing;
  const bool hung_up = done.error == asio::error::broken_pipe || done.error == asio::error::connection_reset;
  // A server that refuses a body, for its size say, answers and hangs up before it has read it all.
  if (!nothing && hung_up && !stopped_ && !timed_out_) co_return Sent::all;
  connection_.reset();
  broken(kind_of(done.error),
         fmt::format("the connection broke while the request was sent: {}", done.error.message()));
  co_return Sent::failed;
}

asio::awaitable<bool> Sending::receive() {
  if (const auto time = loop_.common.options.first_byte_timeout) {
    limit(Phase::waiting, Steady::now() + *time, *time);
  } else {
    limit(Phase::waiting);
  }
  for (int interim = 0; interim <= interim_answers_max; ++interim) {
    Parser parser;
    prepare(parser, request_.method == "HEAD");
    const error_code error = co_await read(parser);
    const auto status = parser.is_header_done() ? parser.get().result_int() : 0;
    if (!error && status / 100 == 1 && status != 101) continue;
    auto connection = std::move(connection_);
    if (!settle(parser, error)) co_return false;
    if (!error) keep(parser, std::move(connection));
    co_return true;
  }
  connection_.reset();
  co_return broken(OutgoingKind::network_error, "the server sent interim answers without an end");
}

// Reads until the parser has enough.
asio::awaitable<error_code> Sending::read(Parser& parser) {
  auto& buffer = connection_->buffer;
  for (;;) {
    error_code error;
    if (buffer.size() > 0) {
      const auto used = parser.put(buffer.data(), error);
      buffer.consume(used);
      if (error == http::error::need_more) error = {};
      if (error || parser.is_done()) co_return error;
    }
    const IoResult got = co_await connection_->read_some();
    if (got.bytes > 0 && phase_ == Phase::waiting) {
      result_.first_byte = since(began_);
      limit(Phase::reading);
    }
    const bool truncated = got.error == asio::ssl::error::stream_truncated;
    const bool is_end_of_body = parser.is_header_done() && parser.need_eof();
    if (truncated && is_end_of_body) co_return got.error;
    if (!truncated && got.error != asio::error::eof) {
      if (got.error) co_return got.error;
      continue;
    }
    if (!parser.got_some()) co_return asio::error::eof;
    parser.put_eof(error);
    co_return error;
  }
}

// The outcome by the status, if the answer was read as far as we care to.
bool Sending::settle(Parser& parser, const error_code& error) {
  if (!parser.is_header_done()) return broken(kind_of(error), answer_problem(error));
  tell(parser.get(), result_);
  location_ = parser.get()[http::field::location];
  // Without a length the end of the connection is the end of the body, and many do not take leave from TLS.
  const bool read_enough = error == http::error::body_limit || error == asio::ssl::error::stream_truncated;
  if (error) result_.truncated = true;
  if (error && !read_enough) return broken(kind_of(error), answer_problem(error));
  const bool fine = result_.status / 100 == 2;
  result_.kind = fine ? OutgoingKind::answered : OutgoingKind::http_error;
  if (fine) return true;
  const auto known = http::int_to_status(static_cast<unsigned>(result_.status));
  const auto reason = http::obsolete_reason(known);
  result_.message = fmt::format("the server answered {}", result_.status);
  if (known != http::status::unknown) result_.message.append(" ").append(reason.data(), reason.size());
  return true;
}

// Puts the connection into the pool, if another request may come on it.
void Sending::keep(const Parser& parser, std::unique_ptr<Connection> connection) {
  const auto& answer = parser.get();
  // Some servers do not read a body that they do not expect, and take it for the next request.
  const bool odd_body = !request_.body.empty() && (request_.method == "GET" || request_.method == "HEAD");
  const bool reusable = parser.keep_alive() && sent_whole_ && !odd_body && connection->buffer.size() == 0 &&
                        answer.result_int() != 101 && connection->is_quiet();
  if (!reusable) return;
  const auto& options = loop_.common.options;
  auto idle = options.idle_max;
  // A second earlier than the server says that it will close.
  if (const auto promised = keep_alive_of(answer))
    idle = std::min<Duration>(idle, *promised - std::chrono::seconds{1});
  connection->idle_end = std::min(Steady::now() + idle, connection->opened + options.age_max);
  if (connection->idle_end > Steady::now()) loop_.keep(pool_key(), std::move(connection));
}

// Whether there is another hop; if so, the request is now that one.
bool Sending::follow(int followed) {
  if (request_.redirects_max == 0 || !is_redirect(result_.status) || location_.empty()) return false;
  if (followed == request_.redirects_max) {
    result_.message = fmt::format("more than {} redirects", request_.redirects_max);
    return false;
  }
  auto to = redirect(request_, url_, result_.status, location_);
  if (!to) {
    result_.message = fmt::format("the redirect is not followed: {}", to.error().message);
    return false;
  }
  url_ = *std::move(to);
  const bool left = result_.may_have_left;
  result_ = OutgoingResult{};
  result_.may_have_left = left;
  result_.redirected_to = without_secrets(url_.origin() + url_.target);
  return true;
}

void Sending::limit(Phase phase, Steady::time_point until, Duration told) {
  phase_ = phase;
  told_ = until < end_ ? told : request_.timeout;
  until = std::min(until, end_);
  if (timer_.expiry() == until) return;
  timer_.expires_at(until);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    // The timer may have been set anew when this was on its way already.
    if (error || self->timer_.expiry() > Steady::now()) return;
    self->timed_out_ = true;
    self->close();
  });
}

void Sending::stop() {
  stopped_ = true;
  close();
}

void Sending::close() {
  lookup_.cancel();
  if (connection_) connection_->close();
}

std::string Sending::timeout_message() const {
  const auto time = shown(told_);
  switch (phase_) {
    case Phase::looking_up: return fmt::format("the address of {} was not found within {}", url_.host, time);
    case Phase::connecting: return fmt::format("no connection to {} within {}", url_.authority(), time);
    case Phase::shaking_hands: return fmt::format("no TLS with {} within {}", url_.authority(), time);
    case Phase::sending: return fmt::format("the request was not taken within {}", time);
    case Phase::waiting: return fmt::format("no answer within {}", time);
    case Phase::reading: return fmt::format("the answer did not end within {}", time);
  }
  return {};
}

bool Sending::broken(OutgoingKind kind, std::string message) {
  result_.kind = stopped_ ? OutgoingKind::stopped : timed_out_ ? OutgoingKind::timeout : kind;
  result_.message = stopped_ ? "the server is stopping" : timed_out_ ? timeout_message() : std::move(message);
  return false;
}

void Sending::finish() {
  timer_.cancel();
  result_.total = since(began_);
  loop_.under_way.erase(this);
  --loop_.common.under_way;
  const auto done = std::move(done_);
  done(std::move(result_));
}

}  // namespace baton::caller
