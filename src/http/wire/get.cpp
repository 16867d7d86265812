#include "http/wire/get.hpp"

#include <boost/url/parse.hpp>

#include "base/base64.hpp"

namespace baton::http {
namespace {

template <class View>
std::string text_of(const View& view) {
  return {view.data(), view.size()};
}

}  // namespace

Result<ClientResponse> get(const std::string& url, std::chrono::milliseconds timeout, std::stop_token stop) {
  const auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->encoded_host().empty() ||
      (parsed->scheme() != "http" && parsed->scheme() != "https"))
    return fail(Code::invalid, "not a URL such as https://host/path");
  std::optional<std::string> token;
  Client::Headers headers{{"Accept", "application/json, text/csv"}};
  if (parsed->has_password()) {
    headers.emplace_back("Authorization", "Basic " + base64(parsed->user() + ':' + parsed->password()));
  } else if (parsed->has_userinfo()) {
    token = parsed->user();
  }
  std::string target = text_of(parsed->encoded_path());
  if (target.empty()) target = "/";
  if (parsed->has_query()) target += '?' + text_of(parsed->encoded_query());
  Client client(text_of(parsed->scheme()) + "://" + text_of(parsed->encoded_host_and_port()),
                std::move(token), {}, "the server");
  const std::stop_callback interrupt(std::move(stop), [&client] { client.interrupt(); });
  return client.request("GET", target, {}, {}, headers, timeout);
}

}  // namespace baton::http
