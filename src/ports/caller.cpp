#include "ports/caller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/text.hpp"
#include "base/url.hpp"

namespace baton {
namespace {

constexpr std::size_t method_bytes_max = 32;
constexpr std::size_t headers_max = 64;
constexpr std::size_t header_name_bytes_max = 256;
constexpr std::size_t header_value_bytes_max = 8 * 1024;
constexpr std::size_t headers_bytes_max = 32 * 1024;
constexpr int redirects_most = 20;

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").contains(c);
  });
}

// They say where a message ends and what becomes of the connection, which is ours to say: whoever sets them
// could put a second request into the first.
bool is_ours(std::string_view name) {
  static constexpr std::string_view ours[] = {
      "host",   "content-length", "transfer-encoding", "connection", "keep-alive",
      "expect", "upgrade",        "http2-settings",    "te",         "trailer"};
  const auto small = lower(name);
  return std::ranges::find(ours, small) != std::end(ours) || small.starts_with("proxy-");
}

Result<> check_header(const std::string& name, const std::string& value) {
  if (!is_token(name) || name.size() > header_name_bytes_max)
    return invalid("the name of a header is empty, too long, or has characters that a name must not have");
  if (is_ours(name))
    return invalid(
        fmt::format("the header '{}' cannot be set: it is for the connection, which is baton's", name));
  if (value.size() > header_value_bytes_max)
    return invalid(fmt::format("the header '{}' is longer than {} bytes", name, header_value_bytes_max));
  const bool has_controls =
      std::ranges::any_of(value, [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
  if (has_controls) return invalid(fmt::format("the header '{}' has a control character", name));
  return {};
}

Result<> check_method(const std::string& method) {
  if (!is_token(method) || method.size() > method_bytes_max)
    return invalid("the method is not a word such as GET or POST");
  const auto small = lower(method);
  if (small == "connect" || small == "trace") return invalid(fmt::format("the method {} is refused", method));
  return {};
}

constexpr std::string_view telling[] = {"cookie",     "authoriz", "authentic", "token",  "secret",
                                        "key",        "passw",    "passp",     "bearer", "hmac",
                                        "credential", "session",  "signature", "jwt"};

}  // namespace

bool is_sensitive(std::string_view name) {
  constexpr std::string_view endings[] = {"auth", "otp", "sig", "pin", "pwd"};
  const std::string small = lower(name);
  return small == "code" ||
         std::ranges::any_of(endings, [&](std::string_view word) { return small.ends_with(word); }) ||
         std::ranges::any_of(telling, [&](std::string_view word) { return small.contains(word); });
}

namespace {

// %6b is k, in whatever name it hides.
std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* at = text.data() + i + 1;
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && std::from_chars(at, at + 2, byte, 16).ptr == at + 2;
    out += is_code ? static_cast<char>(byte) : text[i];
    if (is_code) i += 2;
  }
  return out;
}

// user:password@ of a URL.
std::string without_user(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme == url.npos) return std::string(url);
  const auto begin = scheme + 3;
  const auto end = std::min(url.find_first_of("/?#", begin), url.size());
  const auto at = url.substr(0, end).rfind('@');
  if (at == url.npos || at < begin) return std::string(url);
  return std::string(url.substr(0, begin)).append(redacted).append(url.substr(at));
}

}  // namespace

std::string without_secrets(std::string_view text) {
  const std::string url = without_user(text);
  const auto query = url.find_first_of("?#");
  if (query == url.npos) return url;
  std::string out = url.substr(0, query);
  char separator = url[query];
  for (std::string_view rest = std::string_view(url).substr(query + 1); separator != '\0';) {
    const auto end = rest.find_first_of("&;#");
    const std::string_view parameter = rest.substr(0, end);
    const auto equals = parameter.find('=');
    out += separator;
    if (equals != parameter.npos && is_sensitive(decoded(parameter.substr(0, equals))))
      out.append(parameter.substr(0, equals + 1)).append(redacted);
    else
      out += parameter;
    separator = end == rest.npos ? '\0' : rest[end];
    rest = end == rest.npos ? std::string_view{} : rest.substr(end + 1);
  }
  return out;
}

Result<std::string> origin_of(const std::string& url) {
  TRY_ASSIGN(const auto parsed, parse_url(url));
  return parsed.origin();
}

Result<> check(const OutgoingRequest& request) {
  TRY(check_method(request.method));
  TRY(parse_url(request.url));
  if (request.headers.size() > headers_max)
    return invalid(fmt::format("there are more than {} headers", headers_max));
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) {
    TRY(check_header(name, value));
    bytes += name.size() + value.size();
  }
  if (bytes > headers_bytes_max)
    return invalid(fmt::format("the headers are longer than {} bytes together", headers_bytes_max));
  if (request.timeout <= Duration::zero() || request.timeout > outgoing_timeout_max)
    return invalid("the timeout is not between 1 ms and 24 hours");
  if (request.redirects_max < 0 || request.redirects_max > redirects_most)
    return invalid(fmt::format("redirects are followed 0 to {} times", redirects_most));
  return {};
}

}  // namespace baton
