// Whatever a URL or a Location says, reading it must not crash; what was read is safe to put on a request line
// and in a Host header, and reads again as itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/url.hpp"

namespace {

bool is_safe(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
}

void check(const baton::Url& url) {
  ENSURE(!url.host.empty() && is_safe(url.host) && url.port != 0);
  ENSURE(std::ranges::none_of(url.host, [](char c) { return c >= 'A' && c <= 'Z'; }));
  ENSURE(url.target.starts_with('/') && is_safe(url.target) && url.target.find('#') == url.target.npos);
  const auto again = baton::parse_url((url.secure ? "https://" : "http://") + url.authority() + url.target);
  ENSURE(again && again->origin() == url.origin() && again->target == url.target);
  ENSURE(again->host_kind == url.host_kind);
}

}  // namespace

// The first line is a URL, the rest is where its answer leads to.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t line = std::min(text.find('\n'), text.size());
  const auto url = baton::parse_url(text.substr(0, line));
  if (!url) {
    ENSURE(!url.error().message.empty());
    return 0;
  }
  check(*url);
  if (line == text.size()) return 0;
  if (const auto next = baton::resolve_url(*url, text.substr(line + 1))) check(*next);
  return 0;
}
