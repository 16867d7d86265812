#include "core/message/envelope.hpp"

#include <gtest/gtest.h>

namespace baton::message {
namespace {

TEST(Properties, AreFoundInAnyCaseTheExactSpellingFirst) {
  const Properties properties{{"color", std::int64_t{1}},
                              {"Color", std::int64_t{2}},
                              {"a", std::int64_t{3}},
                              {"color2", std::int64_t{4}}};
  EXPECT_EQ(find_property(properties, "color")->second, Value(std::int64_t{1}));
  EXPECT_EQ(find_property(properties, "Color")->second, Value(std::int64_t{2}));
  EXPECT_EQ(find_property(properties, "COLOR")->second, Value(std::int64_t{2}));
  EXPECT_EQ(find_property(properties, "A")->second, Value(std::int64_t{3}));
  EXPECT_EQ(find_property(properties, "colo"), properties.end());
}

TEST(SystemProperty, IsFoundInAnyCase) {
  ASSERT_TRUE(find_system_property("mESSAGEid"));
  EXPECT_EQ(find_system_property("messageid")->name(), "MessageId");
  EXPECT_EQ(find_system_property("message_id"), nullptr);
  for (const SystemProperty& each : system_properties()) EXPECT_EQ(find_system_property(each.name()), &each);
}

TEST(SystemProperty, IsReadAndSetByItsType) {
  Envelope envelope;
  for (const SystemProperty& each : system_properties()) {
    EXPECT_TRUE(is_null(each.get(envelope))) << each.name();
    EXPECT_FALSE(each.set(envelope, true)) << each.name();
  }
  EXPECT_EQ(envelope, Envelope{});
  EXPECT_TRUE(find_system_property("Subject")->set(envelope, std::string("a")));
  EXPECT_EQ(find_system_property("Label")->get(envelope), Value("a"));
  EXPECT_TRUE(find_system_property("Label")->set(envelope, Null{}));
  EXPECT_EQ(envelope, Envelope{});
}

TEST(SystemProperty, IsReadOnlyWhenTheBrokerGivesIt) {
  for (const char* const name :
       {"SequenceNumber", "EnqueuedTimeUtc", "ExpiresAtUtc", "DeliveryCount", "LockToken", "LockedUntilUtc",
        "Size", "State", "DeadLetterSource", "EnqueuedSequenceNumber"})
    EXPECT_FALSE(find_system_property(name)->settable()) << name;
  for (const char* const name : {"MessageId", "CorrelationId", "To", "ReplyTo", "Label", "SessionId",
                                 "ReplyToSessionId", "ContentType", "TimeToLive"})
    EXPECT_TRUE(find_system_property(name)->settable()) << name;
}

}  // namespace
}  // namespace baton::message
