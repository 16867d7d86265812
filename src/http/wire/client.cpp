#include "http/wire/client.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <algorithm>
#include <atomic>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <cerrno>
#include <variant>

#include "base/tls.hpp"
#include "http/wire/text.hpp"

namespace baton::http {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using Message = beast::http::request<beast::http::string_body>;
using Parser = beast::http::response_parser<beast::http::string_body>;
using Plain = beast::tcp_stream;
using Secure = beast::ssl_stream<beast::tcp_stream>;

constexpr std::uint64_t answer_bytes_max = 256ULL * 1024 * 1024;

}  // namespace

const std::string* ClientResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

struct Client::State {
  std::string base_url;
  std::optional<std::string> token, tenant, called;
  asio::io_context io{1};
  std::optional<asio::ssl::context> tls;
  std::optional<Url> address;  // its target is a path in front of every other
  std::variant<std::monostate, Plain, Secure> stream;
  beast::flat_buffer buffer;
  std::atomic<bool> interrupted = false;
  bool was_connected = false;

  Plain& lowest() {
    auto* secure = std::get_if<Secure>(&stream);
    return secure != nullptr ? beast::get_lowest_layer(*secure) : std::get<Plain>(stream);
  }
  bool is_open() { return !std::holds_alternative<std::monostate>(stream); }
  void close() {
    stream.emplace<std::monostate>();
    buffer.clear();
  }

  // Starts one operation and waits for it; the stream's own timer ends it in time.
  template <class Start>
  error_code wait(Start start) {
    error_code result = asio::error::operation_aborted;
    start([&result](const error_code& error, auto&&...) { result = error; });
    io.restart();
    io.run();
    return result;
  }

  // Sends, and reads with `read`. A server that refuses a body (too large, say) answers and hangs up before
  // it has read it all.
  template <class Read>
  error_code ask(const Message& message, std::chrono::milliseconds timeout, Read read) {
    lowest().expires_after(timeout);
    const auto run = [&](auto& open) {
      const auto unsent = wait([&](auto done) { beast::http::async_write(open, message, done); });
      if (unsent && unsent != asio::error::broken_pipe && unsent != asio::error::connection_reset)
        return unsent;
      const auto unread = wait([&](auto done) { read(open, done); });
      return unread && unsent ? unsent : unread;
    };
    return address->secure ? run(std::get<Secure>(stream)) : run(std::get<Plain>(stream));
  }

  // A server may close an idle connection at any time: seeing that before sending makes the loss harmless.
  bool is_stale() {
    char byte = 0;
    const auto seen = ::recv(lowest().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return seen >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  // Between two operations nothing runs that could be interrupted; so each is preceded by this.
  Result<> go_on() {
    if (!interrupted) return {};
    close();
    return fail(Code::unavailable, "interrupted");
  }

  // The error names the URL only to whoever gave it.
  Result<> read_base_url() {
    if (address) return {};
    auto url = parse_url(base_url);
    if (!url && called) return std::unexpected(std::move(url).error());
    if (!url)
      return fail(Code::invalid, fmt::format("'{}' is not a URL such as http://127.0.0.1:8080", base_url));
    url->target.resize(url->target.find_last_not_of('/', url->target.find('?') - 1) + 1);
    address = *std::move(url);
    return {};
  }

  const std::string& shown() const { return called ? *called : base_url; }

  Error cannot_connect(const error_code& error) const {
    if (error == asio::error::connection_refused) {
      return {Code::unavailable, fmt::format("cannot connect to {}: connection refused{}", shown(),
                                             called ? "" : "\n  Is `baton serve` running?")};
    }
    if (error == beast::error::timeout) {
      return {Code::unavailable, fmt::format("cannot connect to {}: no answer in time", shown())};
    }
    return {Code::unavailable, fmt::format("cannot connect to {}: {}", shown(), error.message())};
  }

  Result<> connect(std::chrono::milliseconds timeout);
  Result<> shake_hands();
  Result<ClientResponse> exchange(const Message& message, std::chrono::milliseconds timeout,
                                  bool& sent_nothing_back);
  Message build(std::string_view method, std::string_view target, std::string body,
                std::string_view content_type, const Headers& headers) const;
};

Result<> Client::State::connect(std::chrono::milliseconds timeout) {
  close();
  tcp::resolver resolver(io);
  error_code error;
  const auto endpoints = resolver.resolve(address->host, std::to_string(address->port), error);
  if (error) return std::unexpected(cannot_connect(error));
  if (address->secure) {
    if (!tls) TRY(set_up_tls(tls.emplace(asio::ssl::context::tls_client).native_handle()));
    stream.emplace<Secure>(io, *tls);
  } else {
    stream.emplace<Plain>(io);
  }
  lowest().expires_after(timeout);
  error = wait([&](auto done) { lowest().async_connect(endpoints, done); });
  if (!error) {
    error_code ignored;
    lowest().socket().set_option(tcp::no_delay(true), ignored);
    if (!address->secure) return {};
    return shake_hands();
  }
  close();
  return std::unexpected(cannot_connect(error));
}

Result<> Client::State::shake_hands() {
  auto& secure = std::get<Secure>(stream);
  error_code error = asio::error::invalid_argument;
  if (expect_host(secure.native_handle(), *address))
    error = wait([&](auto done) { secure.async_handshake(asio::ssl::stream_base::client, done); });
  if (!error) return {};
  const std::string why = tls_problem(secure.native_handle(), error.message());
  close();
  return fail(Code::unavailable, fmt::format("cannot connect to {}: TLS: {}", shown(), why));
}

Message Client::State::build(std::string_view method, std::string_view target, std::string body,
                             std::string_view content_type, const Headers& headers) const {
  Message message;
  message.version(11);
  message.method_string({method.data(), method.size()});
  message.target(address->target + std::string(target));
  message.set(beast::http::field::host, address->authority());
  message.set(beast::http::field::user_agent, "baton");
  if (token) message.set(beast::http::field::authorization, "Bearer " + *token);
  if (tenant) message.set("Baton-Tenant", *tenant);
  if (!body.empty())
    message.set(beast::http::field::content_type, {content_type.data(), content_type.size()});
  for (const auto& [name, value] : headers) message.set(name, value);
  message.body() = std::move(body);
  message.prepare_payload();
  return message;
}

Result<ClientResponse> Client::State::exchange(const Message& message, std::chrono::milliseconds timeout,
                                               bool& sent_nothing_back) {
  Parser parser;
  parser.body_limit(answer_bytes_max);
  const auto error = ask(message, timeout,
                         [&](auto& open, auto done) { beast::http::async_read(open, buffer, parser, done); });
  if (error) {
    sent_nothing_back = !parser.got_some() && error != beast::error::timeout;
    close();
    const auto why = error == beast::error::timeout ? std::string("no answer in time")
                     : error == beast::http::error::end_of_stream
                         ? std::string("the server closed the connection without an answer")
                         : error.message();
    return fail(Code::unavailable, fmt::format("no answer from {}: {}", shown(), why));
  }
  ClientResponse response;
  auto answer = parser.release();
  response.status = static_cast<int>(answer.result_int());
  for (const auto& field : answer) {
    const auto name = field.name_string();
    const auto value = field.value();
    response.headers.emplace_back(std::string(name.data(), name.size()),
                                  std::string(value.data(), value.size()));
  }
  if (const auto* type = response.header("Content-Type")) response.content_type = *type;
  response.body = std::move(answer.body());
  if (!answer.keep_alive()) close();
  return response;
}

Client::Client(std::string base_url, std::optional<std::string> token, std::optional<std::string> tenant,
               std::optional<std::string> called)
    : state_(std::make_unique<State>()) {
  state_->base_url = std::move(base_url);
  state_->token = std::move(token);
  state_->tenant = std::move(tenant);
  state_->called = std::move(called);
}

Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

bool Client::was_connected() const { return state_->was_connected; }

void Client::interrupt() {
  state_->interrupted = true;
  // A posted closure waits for the next operation if none is under way now.
  asio::post(state_->io, [state = state_.get()] {
    if (state->is_open()) state->lowest().close();
  });
}

Result<ClientResponse> Client::request(std::string_view method, std::string_view target, std::string body,
                                       std::string_view content_type, const Headers& headers,
                                       std::chrono::milliseconds timeout) {
  auto& state = *state_;
  TRY(state.read_base_url());
  const auto has_controls = [](std::string_view text) {
    return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  };
  bool injected = has_controls(state.token.value_or("")) || has_controls(state.tenant.value_or(""));
  for (const auto& [name, value] : headers) injected = injected || has_controls(name) || has_controls(value);
  if (injected) return fail(Code::invalid, "a token, a tenant or a header must not have control characters");
  state.was_connected = false;
  try {
    TRY(state.go_on());
    const auto message = state.build(method, target, std::move(body), content_type, headers);
    if (state.is_open() && state.is_stale()) state.close();
    const bool reused = state.is_open();
    if (!reused) TRY(state.connect(timeout));
    state.was_connected = true;
    TRY(state.go_on());
    bool sent_nothing_back = false;
    auto response = state.exchange(message, timeout, sent_nothing_back);
    if (response || !reused || !sent_nothing_back || method != "GET") return response;
    TRY(state.connect(timeout));
    return state.exchange(message, timeout, sent_nothing_back);
  } catch (const std::exception& error) {
    state.close();
    return fail(Code::invalid, fmt::format("cannot ask {}: {}", state.shown(), error.what()));
  }
}

// --- events

namespace {
constexpr std::chrono::seconds silence_max{50};
}

struct EventStream::State {
  using EventParser = beast::http::response_parser<beast::http::buffer_body>;

  explicit State(Client of) : client(std::move(of)) {}

  Client client;
  std::optional<EventParser> parser;
  std::string last_event_id;
  std::string text;  // read and not yet understood
  std::array<char, 16 * 1024> bytes{};
  bool is_reading = false;
  error_code error;  // of the read that has ended
  std::chrono::steady_clock::time_point heard_at;

  Client::State& connection() { return *client.state_; }

  void close() {
    // What is being read has to end before what it is read from.
    if (connection().is_open()) connection().lowest().close();
    connection().io.restart();
    connection().io.run();
    connection().close();
    is_reading = false;
    parser.reset();
    text.clear();
  }

  void read_more() {
    parser->get().body() = {bytes.data(), bytes.size(), true};
    is_reading = true;
    const auto done = [this](const error_code& result, std::size_t) {
      error = result == beast::http::error::need_buffer ? error_code{} : result;
      is_reading = false;
    };
    if (auto* secure = std::get_if<Secure>(&connection().stream))
      beast::http::async_read_some(*secure, connection().buffer, *parser, done);
    else
      beast::http::async_read_some(std::get<Plain>(connection().stream), connection().buffer, *parser, done);
  }

  // The next block that has data; blocks end with an empty line.
  std::optional<ServerEvent> take_event() {
    for (auto end = text.find("\n\n"); end != text.npos; end = text.find("\n\n")) {
      const std::string block = text.substr(0, end + 1);
      text.erase(0, end + 2);
      ServerEvent event;
      bool has_data = false;
      for (std::string_view rest = block; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        const auto colon = line.find(": ");
        if (colon == line.npos) continue;
        const auto field = line.substr(0, colon), value = line.substr(colon + 2);
        if (field == "event") event.event = value;
        if (field == "id") last_event_id = value;
        if (field == "data") event.data += value, has_data = true;
      }
      if (has_data) return event;
    }
    return std::nullopt;
  }
};

EventStream::EventStream(Client client) : state_(std::make_unique<State>(std::move(client))) {}
EventStream::~EventStream() { state_->close(); }

Result<ClientResponse> EventStream::open(std::string_view target) {
  State& state = *state_;
  state.close();
  Client::State& connection = state.connection();
  constexpr std::chrono::seconds timeout{30};
  TRY(connection.read_base_url());
  TRY(connection.connect(timeout));
  Client::Headers headers{{"Accept", "text/event-stream"}};
  if (!state.last_event_id.empty()) headers.emplace_back("Last-Event-ID", state.last_event_id);
  const auto message = connection.build("GET", target, {}, "", headers);
  state.parser.emplace();
  state.parser->body_limit(boost::none);
  const auto error = connection.ask(message, timeout, [&](auto& open, auto done) {
    beast::http::async_read_header(open, connection.buffer, *state.parser, done);
  });
  if (error) {
    state.close();
    return fail(Code::unavailable, fmt::format("no answer from {}: {}", connection.shown(), error.message()));
  }
  connection.lowest().expires_never();
  state.heard_at = std::chrono::steady_clock::now();
  ClientResponse response;
  response.status = static_cast<int>(state.parser->get().result_int());
  return response;
}

Result<std::optional<ServerEvent>> EventStream::next(std::chrono::milliseconds within) {
  State& state = *state_;
  const auto until = std::chrono::steady_clock::now() + within;
  while (true) {
    if (auto event = state.take_event()) return event;
    if (!state.parser || state.parser->is_done())
      return fail(Code::unavailable, fmt::format("{} ended the stream", state.connection().shown()));
    if (!state.is_reading) state.read_more();
    state.connection().io.restart();
    while (state.is_reading && std::chrono::steady_clock::now() < until)
      if (state.connection().io.run_one_until(until) == 0) break;
    // A server that is alive says something every 15 seconds.
    const bool is_silent =
        state.is_reading && std::chrono::steady_clock::now() - state.heard_at > silence_max;
    if (state.is_reading && !is_silent) return std::nullopt;
    if (is_silent) state.error = asio::error::timed_out;
    if (state.error) {
      const std::string why = state.error.message();
      state.close();
      return fail(Code::unavailable, fmt::format("lost {}: {}", state.connection().shown(), why));
    }
    state.heard_at = std::chrono::steady_clock::now();
    const auto& body = state.parser->get().body();
    state.text.append(state.bytes.data(), state.bytes.size() - body.size);
  }
}

}  // namespace baton::http
