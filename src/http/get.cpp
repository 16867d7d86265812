#include "http/get.hpp"

#include <openssl/evp.h>

#include <boost/url/parse.hpp>

namespace baton::http {
namespace {

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');  // OpenSSL ends it with a NUL
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

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
