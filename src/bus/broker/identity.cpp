#include "bus/broker/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json_document.hpp"

namespace baton::bus {
namespace {

constexpr std::string_view machine_endpoint = "http://169.254.169.254", authority = "https://login.microsoftonline.com";
constexpr std::string_view resource = "https://servicebus.azure.net/";
constexpr std::chrono::minutes renewed_before{10};
constexpr std::int64_t lasts_max = 7 * 86'400;
constexpr std::size_t token_bytes_max = 64 << 10;

// A name of this machine, to which a secret may go as it is.
bool is_local(const Url& url) {
  return url.host == "localhost" || url.host == "::1" || (url.host_kind == Url::HostKind::ipv4 && url.host.starts_with("127."));
}

bool is_header_text(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

Result<TokenRequest> managed_request(const Identity& identity) {
  std::string_view endpoint = identity.endpoint.empty() ? machine_endpoint : std::string_view(identity.endpoint);
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  const bool is_app = !identity.header.empty();
  if (!is_header_text(identity.header)) return fail(Code::invalid, "bus_identity_header has characters that no header has");
  std::string text = is_app ? fmt::format("{}?api-version=2019-08-01", endpoint)
                            : fmt::format("{}/metadata/identity/oauth2/token?api-version=2018-02-01", endpoint);
  text += "&resource=" + percent_encode(resource);
  if (!identity.client_id.empty()) text += "&client_id=" + percent_encode(identity.client_id);
  auto url = parse_url(text);
  if (!url) return fail(Code::invalid, "bus_token_endpoint: " + url.error().message);
  TokenRequest request{.url = *std::move(url), .headers = {}, .form = {}};
  if (is_app) request.headers.emplace_back("X-IDENTITY-HEADER", identity.header);
  else request.headers.emplace_back("Metadata", "true");
  return request;
}

Result<TokenRequest> secret_request(const Identity& identity) {
  for (const auto& [value, name] : {std::pair{&identity.tenant_id, "bus_tenant_id"}, {&identity.client_id, "bus_client_id"}, {&identity.client_secret, "bus_client_secret"}})
    if (value->empty()) return fail(Code::invalid, fmt::format("a client secret needs {} too", name));
  std::string_view endpoint = identity.endpoint.empty() ? authority : std::string_view(identity.endpoint);
  while (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  auto url = parse_url(fmt::format("{}/{}/oauth2/v2.0/token", endpoint, percent_encode(identity.tenant_id)));
  if (!url) return fail(Code::invalid, "bus_token_endpoint: " + url.error().message);
  if (!url->secure && !is_local(*url)) return fail(Code::invalid, "bus_token_endpoint: a client secret is sent over https only");
  return TokenRequest{.url = *std::move(url),
                      .headers = {{"Content-Type", "application/x-www-form-urlencoded"}},
                      .form = fmt::format("client_id={}&client_secret={}&grant_type=client_credentials&scope={}.default", percent_encode(identity.client_id),
                                          percent_encode(identity.client_secret), percent_encode(resource))};
}

// Azure's endpoints say numbers as texts, or as numbers.
std::optional<std::int64_t> number_of(JsonView value) {
  if (!value) return std::nullopt;
  if (value.kind() == JsonKind::integer) return value.integer();
  if (value.kind() != JsonKind::string) return std::nullopt;
  const std::string_view text = value.string();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// By the sooner of both: a token that its endpoint kept for a while is older than `expires_in` says.
std::optional<std::int64_t> seconds_left(JsonView answer, Time now) {
  auto left = number_of(answer.find("expires_in"));
  const std::int64_t today = to_millis(now) / 1000;
  if (const auto until = number_of(answer.find("expires_on"))) {
    const std::int64_t left_by_date = std::clamp<std::int64_t>(*until, 0, today + lasts_max) - today;
    left = std::min(left.value_or(left_by_date), left_by_date);
  }
  return left;
}

void hide(std::string& text, const std::string& secret) {
  if (secret.empty()) return;
  for (auto at = text.find(secret); at != text.npos; at = text.find(secret, at + 3)) text.replace(at, secret.size(), "***");
}

std::unexpected<Error> refused(const Identity& identity, unsigned status, JsonView answer) {
  std::string why;
  for (const char* key : {"error", "error_description"})
    if (const JsonView text = answer ? answer.find(key) : JsonView{}; text && text.kind() == JsonKind::string)
      why += (why.empty() ? "" : ": ") + std::string(text.string());
  for (const std::string& secret : {identity.client_secret, percent_encode(identity.client_secret), identity.header}) hide(why, secret);
  std::ranges::replace_if(why, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return fail(Code::unavailable, fmt::format("the token endpoint answers {}{}{}", status, why.empty() ? "" : ": ", clean_text(why, 500)));
}

}  // namespace

Result<TokenRequest> token_request(const Identity& identity) {
  return identity.kind == Identity::Kind::managed ? managed_request(identity) : secret_request(identity);
}

Result<IdentityToken> read_token(const Identity& identity, unsigned status, std::string_view body, Time now) {
  const auto document = JsonDocument::parse(body);
  const bool is_object = document && document->root().kind() == JsonKind::object;
  const JsonView answer = is_object ? document->root() : JsonView{};
  if (status != 200) return refused(identity, status, answer);
  const JsonView text = answer ? answer.find("access_token") : JsonView{};
  if (!text || text.kind() != JsonKind::string || text.string().empty() || text.string().size() > token_bytes_max || !is_header_text(text.string()))
    return fail(Code::unavailable, "the token endpoint answers without a token");
  const auto seconds = seconds_left(answer, now);
  if (!seconds || *seconds <= 0) return fail(Code::unavailable, "the token endpoint answers with a token that has expired, or does not say when it will");
  const Duration lasts = std::chrono::seconds{std::min(*seconds, lasts_max)};
  return IdentityToken{.text = std::string(text.string()), .expires = now + lasts, .renew_at = now + lasts - std::min<Duration>(lasts / 3, renewed_before)};
}

}  // namespace baton::bus
