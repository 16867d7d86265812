#include "base/url.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url.hpp>
#include <charconv>

namespace baton {
namespace {

namespace urls = boost::urls;

constexpr std::size_t url_bytes_max = 8192;
constexpr std::size_t host_bytes_max = 253;
constexpr std::size_t label_bytes_max = 63;

std::unexpected<Error> invalid(std::string message) { return fail(Code::invalid, std::move(message)); }

template <class View>
std::string text_of(const View& view) {
  return {view.data(), view.size()};
}

Result<> check_characters(std::string_view text) {
  for (const unsigned char c : text) {
    if (c < 0x20 || c == 0x7f) return invalid("the URL has a control character");
    if (c == ' ') return invalid("the URL has a blank; it must be written as %20");
    if (c == '\\') return invalid("the URL has a backslash");
    if (c > 0x7f) {
      return invalid("the URL has a character that is not ASCII; it must be encoded, in a host name as xn--");
    }
  }
  return {};
}

// What stands between "//" and the path. Boost 1.81 reads http://1.2.3.4./ as 1.2.3.4 with the path "./";
// others would not.
std::string_view authority_of(std::string_view text) {
  const auto begin = text.find("//") + 2;
  return text.substr(begin, std::min(text.find_first_of("/?#", begin), text.size()) - begin);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_label_char(char c) { return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_'; }

// 2130706433, 127.1, 0177.0.0.1 and 0x7f.1 are addresses to some resolvers and names to others.
bool looks_like_number(std::string_view label) {
  return std::ranges::all_of(label, is_digit) || label.starts_with("0x");
}

Result<std::string> host_name(std::string host) {
  std::ranges::transform(host, host.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (host.ends_with('.')) host.pop_back();
  if (host.empty()) return invalid("the URL has no host");
  if (host.size() > host_bytes_max) return invalid("the host name of the URL is too long");
  std::string_view rest = host, label;
  for (bool more = true; more;) {
    const auto dot = rest.find('.');
    more = dot != std::string_view::npos;
    label = rest.substr(0, dot);
    rest = more ? rest.substr(dot + 1) : std::string_view{};
    if (label.empty() || label.size() > label_bytes_max || !std::ranges::all_of(label, is_label_char))
      return invalid("the host of the URL is not a name made of letters, digits, '-' and '.'");
  }
  if (looks_like_number(label))
    return invalid("an IPv4 address must be four decimal numbers without leading zeros");
  return host;
}

Result<> read_host(const urls::url_view& parsed, Url& url) {
  switch (parsed.host_type()) {
    case urls::host_type::ipv4:
      url.host_kind = Url::HostKind::ipv4;
      url.host = text_of(parsed.encoded_host());
      return {};
    case urls::host_type::ipv6:
      url.host_kind = Url::HostKind::ipv6;
      url.host = parsed.host_ipv6_address().to_string();
      return {};
    case urls::host_type::name: {
      TRY_ASSIGN(url.host, host_name(text_of(parsed.encoded_host())));
      return {};
    }
    default: return invalid("the URL has no host that can be connected to");
  }
}

Result<std::uint16_t> read_port(std::string_view text, bool secure) {
  if (text.empty()) return secure ? std::uint16_t{443} : std::uint16_t{80};
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0)
    return invalid("the port of the URL is not a number from 1 to 65535");
  return port;
}

}  // namespace

std::string Url::authority() const {
  const std::string shown = host_kind == HostKind::ipv6 ? '[' + host + ']' : host;
  return port == (secure ? 443 : 80) ? shown : fmt::format("{}:{}", shown, port);
}

std::string Url::origin() const {
  const bool bracketed = host_kind == HostKind::ipv6;
  return fmt::format("{}://{}{}{}:{}", secure ? "https" : "http", bracketed ? "[" : "", host,
                     bracketed ? "]" : "", port);
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > url_bytes_max)
    return invalid(fmt::format("the URL is longer than {} bytes", url_bytes_max));
  TRY(check_characters(text));
  const auto parsed = urls::parse_uri({text.data(), text.size()});
  if (!parsed) return invalid("not a URL such as https://host/path");
  if (parsed->scheme_id() != urls::scheme::http && parsed->scheme_id() != urls::scheme::https)
    return invalid("only http and https are spoken");
  if (!parsed->has_authority()) return invalid("the URL has no host");
  if (text_of(parsed->encoded_authority()) != authority_of(text))
    return invalid("the host of the URL is malformed");
  if (parsed->has_userinfo())
    return invalid("a user or password in the URL is refused; send a header instead");
  Url url;
  url.secure = parsed->scheme_id() == urls::scheme::https;
  TRY(read_host(*parsed, url));
  TRY_ASSIGN(url.port, read_port(text_of(parsed->port()), url.secure));
  url.target = text_of(parsed->encoded_path());
  if (url.target.empty()) url.target = "/";
  if (parsed->has_query()) url.target += '?' + text_of(parsed->encoded_query());
  return url;
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  if (reference.size() > url_bytes_max) return invalid("the URL is too long");
  TRY(check_characters(reference));
  const auto parsed = urls::parse_uri_reference({reference.data(), reference.size()});
  if (!parsed) return invalid("not a URL");
  const std::string base_text = base.origin() + base.target;
  const auto whole = urls::parse_uri(base_text);
  if (!whole) return invalid("not a URL");
  urls::url resolved(*whole);
  if (!resolved.resolve(*parsed)) return invalid("not a URL");
  return parse_url(text_of(resolved.buffer()));
}

namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  const auto is_unreserved = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '-' || c == '_' || c == '.' || c == '~';
  };
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(c)) out += c;
    else out.append({'%', hex[byte >> 4U], hex[byte & 15U]});
  }
  return out;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      out += ' ';
    } else if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace baton
