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

TEST(SharedAccessSignatures, open_what_they_are_for_and_what_lies_below) {
  const std::string scope = scope_of("sb%3a%2f%2fh%2fTeam%2fQ%2f");
  EXPECT_EQ(scope, "team/q");
  for (const char* address : {"team/q", "/Team/Q", "amqps://h/team/q/$management", "team%2Fq", "team/q/subscriptions/s"}) EXPECT_TRUE(covers(scope, address)) << address;
  for (const char* address : {"", "team", "team/q2", "team/qs/q", "q", "team/q?x"}) EXPECT_FALSE(covers(scope, address)) << address;
}

TEST(SharedAccessSignatures, of_a_whole_namespace_open_everything) {
  for (const char* resource : {"", "sb%3a%2f%2fh", "sb%3A%2F%2Fh%2F", "https%3A%2F%2Fh%2F%3Fapi-version%3D2021-05"}) {
    EXPECT_EQ(scope_of(resource), "") << resource;
    EXPECT_TRUE(covers(scope_of(resource), "any/thing")) << resource;
  }
}

TEST(SharedAccessSignatures, of_a_request_are_for_its_path_without_the_query) {
  EXPECT_EQ(scope_of("https%3A%2F%2Fh%2Ft%2Fsubscriptions%2Fs%2Frules%2F%2524Default%3Fapi-version%3D2021-05"), "t/subscriptions/s/rules/$default");
  EXPECT_EQ(scope_of("https%3A%2F%2Fh%2F%25zz"), "$nothing") << "rather than everything";
}

}  // namespace
}  // namespace baton
