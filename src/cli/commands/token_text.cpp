#include "cli/commands/token_text.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <array>
#include <string_view>

#include "base/result.hpp"
#include "http/wire/text.hpp"

namespace baton::cli {
namespace {

template <std::size_t size>
std::array<unsigned char, size> random_bytes() {
  std::array<unsigned char, size> bytes{};
  ENSURE(RAND_bytes(bytes.data(), size) == 1);
  return bytes;
}

}  // namespace

std::string new_token_text() {
  const auto secret = random_bytes<32>();
  return "baton_" + base64url({reinterpret_cast<const char*>(secret.data()), secret.size()});
}

std::string new_bus_key() {
  const auto secret = random_bytes<32>();
  return base64({reinterpret_cast<const char*>(secret.data()), secret.size()});
}

std::string new_token_id() { return fmt::format("{:02x}", fmt::join(random_bytes<6>(), "")); }

}  // namespace baton::cli
