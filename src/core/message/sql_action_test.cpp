#include "core/message/sql_action.hpp"

#include <gtest/gtest.h>

namespace baton::message::sql_action_test {
namespace {

Envelope order() {
  Envelope envelope;
  envelope.message_id = "m-1";
  envelope.label = "order";
  envelope.properties = {{"Quantity", std::int64_t{10}}, {"weight", 2.5}, {"priority", std::string("high")}};
  return envelope;
}

Envelope changed(std::string_view text, const Properties& parameters = {}) {
  const auto action = SqlAction::parse(text, parameters);
  EXPECT_TRUE(action) << text << ": " << describe(action.error(), text);
  if (!action) return {};
  auto envelope = action->apply(order(), [number = 0]() mutable { return "id-" + std::to_string(++number); });
  EXPECT_TRUE(envelope) << text << ": " << describe(envelope.error(), text);
  return envelope ? *std::move(envelope) : Envelope{};
}

void expect_refused(std::string_view text, std::string_view at, std::string_view message) {
  const auto action = SqlAction::parse(text);
  ASSERT_FALSE(action) << text;
  EXPECT_EQ(text.substr(action.error().offset), at) << text;
  EXPECT_TRUE(action.error().message.contains(message)) << action.error().message;
}

TEST(SqlAction, SetsAndRemovesProperties) {
  Envelope expected = order();
  expected.properties["Quantity"] = std::int64_t{5};
  expected.properties.erase("priority");
  expected.correlation_id = "low";
  EXPECT_EQ(changed("SET quantity = quantity / 2; REMOVE priority;SET sys.CorrelationId = 'low';"), expected);
}

TEST(SqlAction, StatementsAreSeparatedByASemicolonACommaOrNothing) {
  for (const std::string_view text :
       {"SET a = 1; SET b = 2", "set a = 1, set b = 2", "SET a = 1 SET b = 2", "SET a = 1;SET b = 2;"}) {
    const Envelope envelope = changed(text);
    EXPECT_EQ(envelope.properties.at("a"), Value(std::int64_t{1})) << text;
    EXPECT_EQ(envelope.properties.at("b"), Value(std::int64_t{2})) << text;
  }
}

TEST(SqlAction, AStatementSeesWhatThoseBeforeItDid) {
  EXPECT_EQ(changed("SET a = 1; SET a = a + 1; SET b = a * 10").properties.at("b"), Value(std::int64_t{20}));
  EXPECT_EQ(changed("REMOVE priority; SET found = priority").properties.at("found"), Value(Null{}));
  EXPECT_EQ(changed("SET sys.Label = 'a'; SET b = sys.Subject").properties.at("b"), Value("a"));
}

TEST(SqlAction, AnExistingSpellingStays) {
  const Envelope envelope = changed("SET QUANTITY = 1");
  EXPECT_EQ(envelope.properties.size(), 3u);
  EXPECT_EQ(envelope.properties.at("Quantity"), Value(std::int64_t{1}));
}

TEST(SqlAction, AnIntegerBecomesADoubleWhereOneWas) {
  EXPECT_EQ(changed("SET weight = 3").properties.at("weight"), Value(3.0));
  EXPECT_EQ(changed("SET weight = 'heavy'").properties.at("weight"), Value("heavy"));
  EXPECT_EQ(changed("SET quantity = 2.5").properties.at("Quantity"), Value(2.5));
}

TEST(SqlAction, WhatIsUnknownSetsNull) {
  EXPECT_EQ(changed("SET a = missing + 1").properties.at("a"), Value(Null{}));
  EXPECT_EQ(changed("SET sys.Label = missing").label, std::nullopt);
}

TEST(SqlAction, RemovingWhatIsNotThereChangesNothing) {
  EXPECT_EQ(changed("REMOVE missing"), order());
  EXPECT_EQ(changed("REMOVE sys.To"), order());
  EXPECT_EQ(changed("REMOVE sys.Label").label, std::nullopt);
}

TEST(SqlAction, EachNewIdIsAnother) {
  const Envelope envelope = changed("SET a = newid(); SET sys.MessageId = newid()");
  EXPECT_EQ(envelope.properties.at("a"), Value("id-1"));
  EXPECT_EQ(envelope.message_id, "id-2");
}

TEST(SqlAction, TakesParameters) {
  const Envelope envelope = changed("SET sys.TimeToLive = @ttl; SET at = @at", {{"@ttl", Duration(5)}, {"@at", from_millis(7)}});
  EXPECT_EQ(envelope.time_to_live, Duration(5));
  EXPECT_EQ(envelope.properties.at("at"), Value(from_millis(7)));
}

TEST(SqlAction, SaysWhereTheTextIsWrong) {
  expect_refused("", "", "expected SET or REMOVE");
  expect_refused("UPDATE a = 1", "UPDATE a = 1", "expected SET or REMOVE");
  expect_refused("SET a = 1;;", ";", "expected SET or REMOVE");
  expect_refused("SET a = 1,", "", "unexpected the end of the text");
  expect_refused("SET a", "", "expected '='");
  expect_refused("SET a = ", "", "expected a value");
  expect_refused("SET a = 1 = 2", "= 2", "expected SET or REMOVE");
  expect_refused("SET a = (1 = 2)", "(1 = 2)", "expected a value, found a condition");
  expect_refused("SET 5 = 1", "5 = 1", "expected the name of a property");
  expect_refused("SET sys.Colour = 1", "Colour = 1", "there is no system property");
  expect_refused("SET sys.SequenceNumber = 1", "sys.SequenceNumber = 1",
                 "sys.SequenceNumber cannot be changed");
  expect_refused("REMOVE sys.ScheduledEnqueueTimeUtc", "sys.ScheduledEnqueueTimeUtc", "cannot be changed");
  expect_refused("REMOVE sys.EnqueuedTimeUtc", "sys.EnqueuedTimeUtc", "cannot be changed");
  expect_refused("REMOVE a b", "b", "expected SET or REMOVE");
}

TEST(SqlAction, HasAtMost32Statements) {
  std::string text;
  for (int i = 0; i < 32; ++i) text += "SET a=1;";
  EXPECT_TRUE(SqlAction::parse(text));
  EXPECT_FALSE(SqlAction::parse(text + "SET a=1"));
  EXPECT_FALSE(SqlAction::parse("SET a='" + std::string(1'024, 'a') + "'"));
}

TEST(SqlAction, AStatementThatFailsSaysWhere) {
  const auto failure = [](std::string_view text) {
    return describe(SqlAction::parse(text)->apply(order()).error(), text);
  };
  EXPECT_EQ(failure("SET a = 1; SET b = 1 / 0"), "at character 22: division by zero");
  EXPECT_EQ(failure("SET sys.Label = 5"), "at character 9: the value is not of the type of sys.Label");
}

TEST(SqlAction, TextDoesNotGrowWithoutEnd) {
  std::string text = "SET a = 'aaaaaaaaaa';";
  for (int i = 0; i < 30; ++i) text += "SET a=a+a;";
  EXPECT_TRUE(SqlAction::parse(text)->apply(order()).error().message.contains("longer than"));
}

}  // namespace
}  // namespace baton::message::sql_action_test
