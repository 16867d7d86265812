#include "caller/egress.hpp"

#include <gtest/gtest.h>

namespace baton::caller {
namespace {

using Texts = std::vector<std::string>;

Egress policy(const Texts& allow, const Texts& deny = {}) {
  auto made = Egress::parse(allow, deny);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : Egress{};
}

bool allows(const Egress& egress, const std::string& address, std::string_view host = "host.example") {
  const auto parsed = IpAddress::parse(address);
  EXPECT_TRUE(parsed) << address;
  return parsed && egress.allows(host, *parsed);
}

TEST(Egress, TheMachineAndItsNeighbourhoodAreDeniedByDefault) {
  for (const char* address :
       {"127.0.0.1", "127.255.255.255", "0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "224.0.0.1",
        "239.255.255.255", "255.255.255.255", "::", "::1", "fe80::1", "febf::1", "fec0::1", "ff02::1",
        "fd00:ec2::254", "100.100.100.200", "168.63.129.16",
        // mapped, compatible, NAT64, 6to4 and Teredo
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::127.0.0.1", "::169.254.169.254",
        "64:ff9b::7f00:1", "64:ff9b::169.254.169.254", "64:ff9b:1::127.0.0.1",
        "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:e000:1::", "2001:0:1:2:3:4:80ff:fffe"})
    EXPECT_FALSE(allows({}, address)) << address;
}

TEST(Egress, TheRestIsAllowedByDefault) {
  for (const char* address :
       {"1.1.1.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "126.255.255.255", "128.0.0.1",
        "169.253.1.1", "169.255.1.1", "223.255.255.255", "2606:4700::1111", "fd00::1", "::ffff:10.0.0.1",
        "64:ff9b::1.1.1.1", "2002:101:101::", "2001:db8::1", "fe00::1"})
    EXPECT_TRUE(allows({}, address)) << address;
}

TEST(Egress, AllowWinsOverTheDefaultAndDenyOverAll) {
  const auto egress =
      policy({"127.0.0.0/8, ::1", "localhost"}, {"127.0.0.66/32 10.0.0.0/9", "*.internal", "evil.example"});
  EXPECT_TRUE(allows(egress, "127.0.0.1"));
  EXPECT_TRUE(allows(egress, "::ffff:127.0.0.1"));
  EXPECT_TRUE(allows(egress, "::1"));
  EXPECT_FALSE(allows(egress, "127.0.0.66"));
  EXPECT_FALSE(allows(egress, "::ffff:127.0.0.66"));
  EXPECT_FALSE(allows(egress, "127.0.0.66", "localhost"));
  EXPECT_FALSE(allows(egress, "169.254.169.254", "localhost")) << "a name may lead anywhere";
  EXPECT_FALSE(allows(egress, "169.254.169.254"));
  EXPECT_FALSE(allows(egress, "10.127.255.255"));
  EXPECT_TRUE(allows(egress, "10.128.0.0"));
  EXPECT_FALSE(allows(egress, "64:ff9b::10.0.0.1"));
  EXPECT_FALSE(allows(egress, "2002:a00:1::"));
  EXPECT_FALSE(allows(egress, "64:ff9b::127.0.0.1")) << "what is hidden in a tunnel is not what was allowed";
  EXPECT_FALSE(allows(egress, "1.1.1.1", "db.internal"));
  EXPECT_FALSE(allows(egress, "1.1.1.1", "a.db.internal"));
  EXPECT_TRUE(allows(egress, "1.1.1.1", "internal"));
  EXPECT_TRUE(allows(egress, "1.1.1.1", "notinternal"));
  EXPECT_FALSE(allows(egress, "127.0.0.1", "evil.example"));
  EXPECT_TRUE(egress.denies_host("evil.example"));
  EXPECT_FALSE(egress.denies_host("good.example"));
}

TEST(Egress, OfAllThatIsDeniedWhatIsAllowedIsLeft) {
  const auto egress = policy({"api.example", "10.1.0.0/16"}, {"all, 10.1.9.0/24"});
  EXPECT_TRUE(allows(egress, "1.1.1.1", "api.example"));
  EXPECT_FALSE(allows(egress, "1.1.1.1", "other.example"));
  EXPECT_TRUE(allows(egress, "10.1.2.3"));
  EXPECT_FALSE(allows(egress, "10.1.9.3"));
  EXPECT_FALSE(allows(egress, "10.1.9.3", "api.example"));
  EXPECT_FALSE(allows(egress, "169.254.169.254", "api.example"));
  EXPECT_FALSE(allows(egress, "127.0.0.1", "api.example"));
  EXPECT_TRUE(allows(policy({"localhost"}, {}), "127.0.0.1", "localhost"));
  EXPECT_FALSE(allows(policy({}, {}), "127.0.0.1", "localhost"));
  EXPECT_FALSE(Egress::parse(Texts{"all"}, {}));
}

TEST(Egress, MetadataServicesAreDeniedInAllTheirForms) {
  for (const char* address :
       {"169.254.169.254", "::ffff:169.254.169.254", "::ffff:0:169.254.169.254", "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254", "2002:a9fe:a9fe::", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "2001:db8::5efe:169.254.169.254",
        "2001:db8::200:5efe:169.254.169.254"})
    EXPECT_FALSE(allows(policy({"a.example"}, {}), address, "a.example")) << address;
}

TEST(Egress, ANetworkIsOfOneFamilyAndHasAnyNumberOfBits) {
  EXPECT_FALSE(allows(policy({}, {"0.0.0.0/0"}), "1.1.1.1"));
  EXPECT_TRUE(allows(policy({}, {"0.0.0.0/0"}), "2606:4700::1111"));
  EXPECT_FALSE(allows(policy({}, {"::/0"}), "2606:4700::1111"));
  EXPECT_TRUE(allows(policy({}, {"::/0"}), "1.1.1.1"));
  EXPECT_TRUE(allows(policy({"[::1]"}), "::1"));
  EXPECT_FALSE(allows(policy({}, {"2001:db8::/33"}), "2001:db8:7fff::1"));
  EXPECT_TRUE(allows(policy({}, {"2001:db8::/33"}), "2001:db8:8000::1"));
  EXPECT_FALSE(allows(policy({}, {"10.1.2.3/8"}), "10.9.9.9"));
}

TEST(Egress, NamesAreOfAnyCase) {
  EXPECT_TRUE(policy({}, {"Evil.Example."}).denies_host("evil.example"));
  EXPECT_TRUE(policy({}, {"*.Evil.example"}).denies_host("x.evil.example"));
}

TEST(Egress, ASlipInARuleIsTold) {
  for (const char* rule : {"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "::/129", "127.1",
                           "2130706433", "010.0.0.1", "http://x", "x:80", "a b*", "*", "*.", ".x",
                           "fe80::1%eth0", "b\xc3\xbc", "a/8", "::ffff:10.0.0.0/104"}) {
    const Texts texts{rule};
    EXPECT_FALSE(Egress::parse(texts, {})) << rule;
    EXPECT_FALSE(Egress::parse({}, texts)) << rule;
  }
  EXPECT_TRUE(Egress::parse(Texts{"", " , "}, {}));
}

}  // namespace
}  // namespace baton::caller
