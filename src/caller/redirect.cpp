#include "caller/redirect.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace baton::caller {
namespace {

void drop_body(OutgoingRequest& request) {
  request.body.clear();
  std::erase_if(request.headers, [](const auto& header) {
    static constexpr std::string_view word = "content-";
    const auto& name = header.first;
    return name.size() > word.size() &&
           std::equal(word.begin(), word.end(), name.begin(),
                      [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b + 32 : b); });
  });
}

// Any other header may hold what only the first server is to know.
bool is_for_everybody(std::string_view header) {
  static constexpr std::string_view known[] = {"accept",       "accept-encoding",  "accept-language",
                                               "content-type", "content-language", "user-agent"};
  return std::ranges::find(known, lower(header)) != std::end(known);
}

}  // namespace

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<Url> redirect(OutgoingRequest& request, const Url& from, int status, std::string_view location) {
  TRY_ASSIGN(auto to, resolve_url(from, location));
  if (from.secure && !to.secure) return fail(Code::invalid, "it leads from https to http");
  const bool becomes_get =
      status == 303 ? request.method != "HEAD" : (status == 301 || status == 302) && request.method == "POST";
  if (becomes_get) {
    request.method = "GET";
    drop_body(request);
  }
  if (to.origin() != from.origin())
    std::erase_if(request.headers, [](const auto& header) { return !is_for_everybody(header.first); });
  return to;
}

}  // namespace baton::caller
