#include "bus/broker/broker_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json.hpp"
#include "base/url.hpp"

namespace baton::bus {
namespace {

constexpr std::uint16_t plain_port = 5672, secure_port = 5671, web_port = 80, secure_web_port = 443;
constexpr std::string_view web_path = "/$servicebus/websocket";  // where Service Bus has it

std::unexpected<Error> wrong(const char* why) {
  return fail(Code::invalid, fmt::format("not the address of a broker: {}. Expected amqp://USER:PASSWORD@HOST:PORT, amqps://… or "
                                         "Endpoint=sb://HOST/;SharedAccessKeyName=…;SharedAccessKey=…",
                                         why));
}

// HOST[:PORT], with what may stand behind it.
Result<> read_host(std::string_view text, BrokerAddress& address) {
  text = text.substr(0, text.find('/'));
  const bool has_brackets = text.starts_with('[');
  const auto close = has_brackets ? text.find(']') : text.npos;
  if (has_brackets && close == text.npos) return wrong("a bracket is not closed");
  const auto colon = text.find(':', has_brackets ? close : 0);
  address.host = has_brackets ? text.substr(1, close - 1) : text.substr(0, colon);
  const bool is_host = !address.host.empty() && std::ranges::all_of(address.host, [](char c) { return c > ' ' && c < 127 && c != '@'; });
  if (!is_host) return wrong("the host is missing, or is none");
  address.port = address.is_secure ? secure_port : plain_port;
  if (colon == text.npos) return {};
  const std::string_view port = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc{} || end != port.data() + port.size() || address.port == 0) return wrong("the port is not a number up to 65535");
  address.has_port = true;
  return {};
}

Result<BrokerAddress> read_url(std::string_view text) {
  BrokerAddress address;
  address.is_secure = text.starts_with("amqps://");
  text.remove_prefix(text.find("://") + 3);
  if (const auto at = text.rfind('@'); at != text.npos) {
    const std::string_view login = text.substr(0, at);
    const auto colon = login.find(':');
    const auto user = percent_decode(login.substr(0, colon));
    const auto password = percent_decode(colon == login.npos ? std::string_view{} : login.substr(colon + 1));
    if (!user || !password || user->empty()) return wrong("user and password are malformed");
    address.user = *user;
    address.password = *password;
    text.remove_prefix(at + 1);
  }
  TRY(read_host(text, address));
  if (const auto slash = text.find('/'); slash != text.npos) {
    const auto name = percent_decode(text.substr(slash + 1));
    if (!name || text.find_first_of("?#", slash) != text.npos) return wrong("what is behind the host is not a virtual host");
    address.virtual_host = *name;
  }
  return address;
}

Result<BrokerAddress> read_connection_string(std::string_view text) {
  BrokerAddress address;
  std::string_view endpoint;
  bool is_emulator = false;
  while (!text.empty()) {
    const auto end = std::min(text.find(';'), text.size());
    const std::string_view field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (field.empty()) continue;
    const auto equals = field.find('=');
    if (equals == field.npos) return wrong("a part of the connection string has no value");
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    if (equal_ignoring_case(name, "Endpoint")) endpoint = value;
    else if (equal_ignoring_case(name, "SharedAccessKeyName")) address.key_name = value;
    else if (equal_ignoring_case(name, "SharedAccessKey")) address.key = value;
    else if (equal_ignoring_case(name, "UseDevelopmentEmulator")) is_emulator = equal_ignoring_case(value, "true");
    else if (equal_ignoring_case(name, "EntityPath")) return wrong("with EntityPath it is of one queue or topic; take that of the namespace");
    else return wrong("it has a part that is not known here");
  }
  if (!endpoint.starts_with("sb://")) return wrong("its Endpoint does not begin with sb://");
  if (address.key_name.empty() || address.key.empty()) return wrong("SharedAccessKeyName or SharedAccessKey is missing");
  address.is_secure = !is_emulator;
  TRY(read_host(endpoint.substr(5), address));
  return address;
}

std::string host_and_port(const BrokerAddress& address) {
  return fmt::format("{}:{}", address.host.contains(':') ? "[" + address.host + "]" : address.host, address.port);
}

}  // namespace

std::string BrokerAddress::shown() const {
  if (is_websocket) return fmt::format("{}://{}{}", is_secure ? "wss" : "ws", host_and_port(*this), web_path);
  return fmt::format("{}://{}", is_secure ? "amqps" : "amqp", host_and_port(*this));
}

Result<Url> BrokerAddress::websocket_url() const {
  return parse_url(fmt::format("{}://{}{}", is_secure ? "https" : "http", host_and_port(*this), web_path));
}

void BrokerAddress::use_websocket() {
  is_websocket = true;
  if (!has_port) port = is_secure ? secure_web_port : web_port;
}

Result<BrokerAddress> parse_namespace(std::string_view text) {
  BrokerAddress address;
  address.is_secure = true;
  if (text.starts_with("sb://")) text.remove_prefix(5);
  if (text.ends_with('/')) text.remove_suffix(1);
  if (text.find_first_of("/;=") != text.npos || !read_host(text, address))
    return fail(Code::invalid, "not a namespace: expected its name, such as SITE.servicebus.windows.net; a connection string is for bus");
  return address;
}

Result<BrokerAddress> parse_broker_address(std::string_view text) {
  if (text.starts_with("amqp://") || text.starts_with("amqps://")) return read_url(text);
  if (text.contains('=')) return read_connection_string(text);
  return wrong("it is neither a URL nor a connection string");
}

}  // namespace baton::bus
