#include "ports/shared_access.hpp"

#include <gtest/gtest.h>

namespace baton {
namespace {

// Made with openssl: printf 'sb%%3a%%2f%%2fh%%2fq\n1800000000' | openssl dgst -sha256 -hmac key -binary | base64
constexpr std::string_view token =
    "SharedAccessSignature sr=sb%3a%2f%2fh%2fq&sig=SIGNATURE&se=1800000000&skn=root";

std::string with_signature(std::string_view signature) {
  std::string text(token);
  return text.replace(text.find("SIGNATURE"), 9, signature);
}

TEST(SharedAccessSignatures, are_those_of_the_key) {
  const auto access = parse_shared_access(with_signature("MJGCteQWXiX03BdE0P%2fYITc98myAcDNxwWJxd4nJd4Y%3d"));
  ASSERT_TRUE(access);
  EXPECT_EQ(access->key_name, "root");
  EXPECT_EQ(to_millis(access->expires), 1'800'000'000'000);
  EXPECT_TRUE(is_signed_with(*access, "key"));
  EXPECT_FALSE(is_signed_with(*access, "kez"));
  EXPECT_FALSE(is_signed_with(*access, ""));
}

TEST(SharedAccessSignatures, do_not_outlive_a_changed_expiry) {
  auto access = parse_shared_access(with_signature("MJGCteQWXiX03BdE0P%2fYITc98myAcDNxwWJxd4nJd4Y%3d"));
  ASSERT_TRUE(access);
  access->expires += std::chrono::seconds{1};
  EXPECT_FALSE(is_signed_with(*access, "key"));
}

TEST(SharedAccessSignatures, that_lack_something_are_none) {
  for (const char* text : {"", "Bearer x", "SharedAccessSignature ", "SharedAccessSignature sr=a&sig=b&se=1", "SharedAccessSignature sr=a&sig=b&se=x&skn=k",
                           "SharedAccessSignature sr=a&sig=%zz&se=1&skn=k", "SharedAccessSignature sr", "SharedAccessSignature sr=a&sig=b&se=-1&skn=k"})
    EXPECT_FALSE(parse_shared_access(text)) << text;
}

}  // namespace
}  // namespace baton
