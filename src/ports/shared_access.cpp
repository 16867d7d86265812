#include "ports/shared_access.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/base64.hpp"
#include "base/text.hpp"
#include "base/url.hpp"

namespace baton {
namespace {

constexpr std::string_view signed_with = "SharedAccessSignature ";

std::string signature_of(std::string_view text, std::string_view key) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
       digest.data(), &size);
  return base64({reinterpret_cast<const char*>(digest.data()), size});
}

std::string plain_path(std::string_view address) { return lower(percent_decode(path_of(address)).value_or("$nothing")); }

}  // namespace

std::optional<SharedAccess> parse_shared_access(std::string_view token) {
  if (!token.starts_with(signed_with) || token.size() > 8192) return std::nullopt;
  token.remove_prefix(signed_with.size());
  SharedAccess access;
  std::string expires;
  while (!token.empty()) {
    const auto end = std::min(token.find('&'), token.size());
    const std::string_view field = token.substr(0, end);
    token.remove_prefix(std::min(end + 1, token.size()));
    const auto equals = field.find('=');
    if (equals == field.npos) return std::nullopt;
    const std::string_view name = field.substr(0, equals), value = field.substr(equals + 1);
    const auto plain = percent_decode(value);
    if (!plain) return std::nullopt;
    if (name == "sr") access.resource = value;
    if (name == "sig") access.signature = *plain;
    if (name == "se") expires = *plain;
    if (name == "skn") access.key_name = *plain;
  }
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(expires.data(), expires.data() + expires.size(), seconds);
  const bool is_time = error == std::errc{} && end == expires.data() + expires.size() && seconds > 0 && seconds < 253'402'300'800;
  if (!is_time || access.resource.empty() || access.signature.empty() || access.key_name.empty()) return std::nullopt;
  access.expires = from_millis(seconds * 1000);
  return access;
}

bool is_signed_with(const SharedAccess& access, std::string_view key) {
  const std::string signed_text = access.resource + "\n" + std::to_string(to_millis(access.expires) / 1000);
  const std::string expected = signature_of(signed_text, key);
  return expected.size() == access.signature.size() &&
         CRYPTO_memcmp(expected.data(), access.signature.data(), expected.size()) == 0;
}

std::string sign_shared_access(std::string_view resource, std::string_view key_name, std::string_view key, Time expires) {
  const std::string signed_resource = percent_encode(resource), until = std::to_string(to_millis(expires) / 1000);
  const std::string signature = signature_of(signed_resource + "\n" + until, key);
  return std::string(signed_with) + "sr=" + signed_resource + "&sig=" + percent_encode(signature) + "&se=" + until + "&skn=" + percent_encode(key_name);
}

std::string_view path_of(std::string_view address) {
  if (const auto colon = address.find("://"); colon != address.npos) {
    address.remove_prefix(colon + 3);
    address.remove_prefix(std::min(address.find('/'), address.size()));
  }
  while (address.starts_with('/')) address.remove_prefix(1);
  while (address.ends_with('/')) address.remove_suffix(1);
  return address;
}

// The address is escaped as a whole, and its path may have escapes of its own.
std::string scope_of(std::string_view resource) {
  const std::string address = percent_decode(resource).value_or("$nothing");
  return plain_path(std::string_view(address).substr(0, address.find('?')));
}

bool covers(std::string_view scope, std::string_view address) {
  const std::string path = plain_path(address);
  return scope.empty() || path == scope || path.starts_with(std::string(scope) + "/");
}

}  // namespace baton
