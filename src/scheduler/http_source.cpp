#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "scheduler/readers.hpp"

namespace baton::scheduler {
namespace {

// What a URL's query may hold as it is; everything else is escaped, so that people can write blanks and
// quotes.
bool may_stand(std::string_view text, std::size_t at) {
  const auto is_hex = [&](std::size_t i) {
    return i < text.size() &&
           std::string_view("0123456789abcdefABCDEF").find(text[i]) != std::string_view::npos;
  };
  const char c = text[at];
  if (c == '%') return is_hex(at + 1) && is_hex(at + 2);
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-._~!$&'()*+,;=:@/?").find(c) != std::string_view::npos;
}

std::string with_query(const std::string& url, std::string_view query) {
  std::string out = url.substr(0, url.find('#'));
  while (query.starts_with('?') || query.starts_with('&')) query.remove_prefix(1);
  if (query.empty()) return out;
  if (out.find('?') == out.npos) {
    out += '?';
  } else if (!out.ends_with('?') && !out.ends_with('&')) {
    out += '&';
  }
  for (std::size_t i = 0; i < query.size(); ++i) {
    if (may_stand(query, i)) {
      out += query[i];
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(query[i]));
    }
  }
  return out;
}

std::unexpected<Error> refused(int status) {
  const bool is_redirect = status >= 300 && status < 400;
  const bool passes = status >= 500 || status == 408 || status == 429;
  return fail(passes ? Code::unavailable : Code::invalid,
              fmt::format("the server answered with status {}{}", status,
                          is_redirect ? "; redirects are not followed" : ""));
}

bool looks_like_json(std::string_view body) {
  const auto at = body.find_first_not_of(" \t\r\n");
  return at != body.npos && (body[at] == '[' || body[at] == '{');
}

}  // namespace

Result<SourceTable> read_http(const HttpGet& get, const std::string& url, std::string_view query,
                              const Limits& limits, const std::stop_token& stop) {
  if (!url.starts_with("http://") && !url.starts_with("https://"))
    return fail(Code::invalid, "not a URL that begins with http:// or https://");
  TRY_ASSIGN(const HttpAnswer answer, get(with_query(url, query), stop));
  if (answer.status != 200) return refused(answer.status);
  if (answer.body.size() > limits.bytes)
    return fail(Code::invalid, fmt::format("the answer has {} bytes; at most {} are read", answer.body.size(),
                                           limits.bytes));
  std::string type = lower(answer.content_type.substr(0, answer.content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  if (type == "application/json" || type.ends_with("+json")) return read_json_text(answer.body, limits);
  if (type == "text/csv" || type == "application/csv") return read_csv_text(answer.body, limits);
  // File servers often do not know better. A page, say of a login, is never data.
  if (type.empty() || type == "text/plain" || type == "application/octet-stream" ||
      type == "application/vnd.ms-excel")
    return looks_like_json(answer.body) ? read_json_text(answer.body, limits)
                                        : read_csv_text(answer.body, limits);
  return fail(Code::invalid, fmt::format("the server answered with {}, which is neither JSON nor CSV",
                                         in_quotes(clean_text(type, 100))));
}

}  // namespace baton::scheduler
