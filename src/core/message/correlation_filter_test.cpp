#include "core/message/correlation_filter.hpp"

#include <gtest/gtest.h>

namespace baton::message::correlation_filter_test {
namespace {

Envelope order() {
  Envelope envelope;
  envelope.correlation_id = "high";
  envelope.label = "red";
  envelope.properties = {{"Color", std::string("red")}, {"version", std::int64_t{2}}, {"nothing", Null{}}};
  return envelope;
}

TEST(CorrelationFilter, ComparesEachFieldThatIsSet) {
  using Field =
      std::pair<std::optional<std::string> CorrelationFilter::*, std::optional<std::string> Envelope::*>;
  const Field fields[] = {{&CorrelationFilter::correlation_id, &Envelope::correlation_id},
                          {&CorrelationFilter::message_id, &Envelope::message_id},
                          {&CorrelationFilter::to, &Envelope::to},
                          {&CorrelationFilter::reply_to, &Envelope::reply_to},
                          {&CorrelationFilter::label, &Envelope::label},
                          {&CorrelationFilter::session_id, &Envelope::session_id},
                          {&CorrelationFilter::reply_to_session_id, &Envelope::reply_to_session_id},
                          {&CorrelationFilter::content_type, &Envelope::content_type}};
  for (const auto& [wanted, found] : fields) {
    CorrelationFilter filter;
    filter.*wanted = "x";
    Envelope envelope;
    EXPECT_FALSE(filter.matches(envelope));
    envelope.*found = "X";
    EXPECT_FALSE(filter.matches(envelope));
    envelope.*found = "x";
    EXPECT_TRUE(filter.matches(envelope));
  }
}

TEST(CorrelationFilter, AllThatIsSetMustBeEqual) {
  CorrelationFilter filter;
  filter.label = "red";
  filter.correlation_id = "high";
  EXPECT_TRUE(filter.matches(order()));
  filter.properties["color"] = "red";
  EXPECT_TRUE(filter.matches(order()));
  filter.to = "x";
  EXPECT_FALSE(filter.matches(order()));
}

TEST(CorrelationFilter, ComparesPropertiesByValueAndType) {
  const auto matches = [](std::string name, Value value) {
    CorrelationFilter filter;
    filter.properties.emplace(std::move(name), std::move(value));
    return filter.matches(order());
  };
  EXPECT_TRUE(matches("Color", "red"));
  EXPECT_TRUE(matches("COLOR", "red"));
  EXPECT_FALSE(matches("Color", "Red"));
  EXPECT_FALSE(matches("missing", "red"));
  EXPECT_TRUE(matches("version", std::int64_t{2}));
  EXPECT_TRUE(matches("version", 2.0));
  EXPECT_FALSE(matches("version", "2"));
  EXPECT_FALSE(matches("nothing", Null{}));
}

TEST(CorrelationFilter, WithoutConditionsSelectsEverything) {
  EXPECT_TRUE(CorrelationFilter{}.empty());
  EXPECT_TRUE(CorrelationFilter{}.matches({}));
}

TEST(CorrelationFilter, KnowsWhenItIsNothingButAnEquality) {
  CorrelationFilter filter;
  filter.properties["workerid"] = "x";
  EXPECT_EQ(filter.equality("WorkerId"), "x");
  EXPECT_EQ(filter.equality("Other"), std::nullopt);
  filter.label = "a";
  EXPECT_EQ(filter.equality("WorkerId"), std::nullopt);
  CorrelationFilter number;
  number.properties["WorkerId"] = std::int64_t{5};
  EXPECT_EQ(number.equality("WorkerId"), std::nullopt);
}

}  // namespace
}  // namespace baton::message::correlation_filter_test
