#include "http/admin/xml.hpp"

#include <gtest/gtest.h>

#include <string>

#include "http/admin/entity_xml.hpp"
#include "http/admin/rule_xml.hpp"
#include "http/admin/target.hpp"

namespace baton::http::admin {
namespace {

using namespace std::chrono_literals;
using message::EntityType;

std::string entry_with(const std::string& described) {
  return R"(<entry xmlns="http://www.w3.org/2005/Atom"><updated>2026-01-01T00:00:00Z</updated><content type="application/xml">)" + described + "</content></entry>";
}

std::expected<Description, std::string> described(const std::string& xml, const message::Settings& before = {}) {
  const auto entry = parse_entry(entry_with(xml));
  if (!entry) return std::unexpected(entry.error());
  return read_description(entry->described, before);
}

std::expected<message::RuleDescription, std::string> rule_of(const std::string& inside) {
  const auto entry = parse_entry(entry_with(R"(<RuleDescription xmlns:p4="http://www.w3.org/2001/XMLSchema-instance">)" + inside + "</RuleDescription>"));
  if (!entry) return std::unexpected(entry.error());
  return read_rule(entry->described);
}

std::string written(const message::RuleDescription& rule) {
  pugi::xml_document document;
  add_rule(document, rule);
  return write(document);
}

TEST(AdminXml, what_xml_cannot_carry_is_replaced) {
  pugi::xml_document document;
  set(add(document, "a"), "b", "\x1b");
  add(document.first_child(), "c", std::string("x\0\x01\xEF\xBF\xBFy", 7));
  const std::string text = write(document);
  EXPECT_EQ(text, "<a b=\"\xEF\xBF\xBD\"><c>x\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDy</c></a>");
}

TEST(AdminXml, a_plain_queue_has_the_defaults) {
  const auto queue = described(R"(<QueueDescription xmlns="x"/>)");
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->type, EntityType::queue);
  EXPECT_EQ(queue->settings, message::Settings{});
}

TEST(AdminXml, a_description_is_read_with_whatever_prefixes) {
  const auto queue = described(
      R"(<a:QueueDescription xmlns:a="x"><a:LockDuration>PT30S</a:LockDuration><a:MaxDeliveryCount> 3 </a:MaxDeliveryCount><a:DefaultMessageTimeToLive>P7D</a:DefaultMessageTimeToLive>)"
      R"(<a:RequiresDuplicateDetection>True</a:RequiresDuplicateDetection><a:Status>SendDisabled</a:Status><a:UserMetadata>a &lt;b&gt;&#228;</a:UserMetadata>)"
      R"(<a:AutoDeleteOnIdle>P10675199DT2H48M5.4775807S</a:AutoDeleteOnIdle></a:QueueDescription>)");
  ASSERT_TRUE(queue) << queue.error();
  EXPECT_EQ(queue->settings.lock_time, 30s);
  EXPECT_EQ(queue->settings.deliveries_max, 3);
  EXPECT_EQ(queue->settings.time_to_live, std::chrono::days{7});
  EXPECT_TRUE(queue->settings.detects_duplicates);
  EXPECT_EQ(queue->settings.availability, message::Availability::send_disabled);
  EXPECT_EQ(queue->settings.user_metadata, "a <b>ä");
  EXPECT_FALSE(queue->settings.delete_when_idle);
}

TEST(AdminXml, what_a_description_leaves_out_stays) {
  message::Settings before;
  before.deliveries_max = 7;
  before.detects_duplicates = true;
  const auto queue = described("<QueueDescription><LockDuration>PT10S</LockDuration></QueueDescription>", before);
  ASSERT_TRUE(queue);
  EXPECT_EQ(queue->settings.deliveries_max, 7);
  EXPECT_TRUE(queue->settings.detects_duplicates);
  EXPECT_EQ(queue->settings.lock_time, 10s);
}

TEST(AdminXml, what_would_be_silently_wrong_is_refused) {
  for (const char* element : {"<RequiresSession>true</RequiresSession>", "<EnablePartitioning>true</EnablePartitioning>", "<ForwardTo>sb://h/q2</ForwardTo>",
                              "<ForwardDeadLetteredMessagesTo>q2</ForwardDeadLetteredMessagesTo>", "<MaxMessageSizeInKilobytes>2048</MaxMessageSizeInKilobytes>",
                              "<AuthorizationRules><AuthorizationRule/></AuthorizationRules>", "<LockDuration>1 minute</LockDuration>",
                              "<MaxDeliveryCount>many</MaxDeliveryCount>", "<Status>Sleeping</Status>", "<RequiresDuplicateDetection>2</RequiresDuplicateDetection>"})
    EXPECT_FALSE(described(std::string("<QueueDescription>") + element + "</QueueDescription>")) << element;
}

TEST(AdminXml, what_has_no_meaning_here_is_taken) {
  const auto topic = described(
      "<TopicDescription><EnablePartitioning>false</EnablePartitioning><EnableExpress>true</EnableExpress><SupportOrdering>true</SupportOrdering>"
      "<EnableBatchedOperations>false</EnableBatchedOperations><ForwardTo/><AuthorizationRules/><SomethingNew>1</SomethingNew></TopicDescription>");
  ASSERT_TRUE(topic) << topic.error();
  EXPECT_EQ(topic->type, EntityType::topic);
}

TEST(AdminXml, a_new_subscription_may_have_its_first_rule) {
  const auto subscription = described(
      R"(<SubscriptionDescription><DefaultRuleDescription><Filter i:type="SqlFilter"><SqlExpression>a = 1</SqlExpression></Filter></DefaultRuleDescription></SubscriptionDescription>)");
  ASSERT_TRUE(subscription) << subscription.error();
  ASSERT_EQ(subscription->rules.size(), 1U);
  EXPECT_EQ(subscription->rules[0].name, "$Default");
  EXPECT_EQ(std::get<message::SqlText>(subscription->rules[0].filter).expression, "a = 1");
}

TEST(AdminXml, what_is_no_entry_is_refused_and_never_expanded) {
  for (const std::string& body :
       {std::string(), std::string("text"), std::string("<entry>"), std::string("<feed/>"), std::string("<entry/>"), std::string("<entry><content/></entry>"),
        std::string("<entry>\0</entry>", 16), std::string("<entry>\xff</entry>")})
    EXPECT_FALSE(parse_entry(body)) << body;
  const auto entry = parse_entry(R"(<!DOCTYPE e [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "yyyy">]>)" + entry_with("<Q><UserMetadata>&x;&y;</UserMetadata></Q>"));
  if (entry) {
    EXPECT_EQ(text_of(find(entry->described, "UserMetadata")), "&x;&y;");
  }
}

TEST(AdminXml, deep_xml_is_read_without_recursion) {
  std::string deep;
  for (int i = 0; i < 80'000; ++i) deep += "<a>";
  EXPECT_FALSE(parse_entry(deep));
  std::string whole = "<Q>";
  for (int i = 0; i < 30'000; ++i) whole += "<a>";
  for (int i = 0; i < 30'000; ++i) whole += "</a>";
  EXPECT_TRUE(parse_entry(entry_with(whole + "</Q>")));
}

TEST(AdminXml, an_entity_is_written_as_the_sdks_read_it) {
  EntityInfo info;
  info.entity.entity_type = EntityType::queue;
  info.entity.path = "orders";
  info.counters.active = 3;
  info.counters.dead = 1;
  pugi::xml_document document;
  add_description(document, info);
  const std::string xml = write(document);
  EXPECT_TRUE(xml.contains("<LockDuration>PT1M</LockDuration>")) << xml;
  EXPECT_TRUE(xml.contains("<DefaultMessageTimeToLive>P10675199DT2H48M5.4775807S</DefaultMessageTimeToLive>")) << xml;
  EXPECT_TRUE(xml.contains("<MessageCount>4</MessageCount>")) << xml;
  EXPECT_TRUE(xml.contains("<d2p1:ActiveMessageCount>3</d2p1:ActiveMessageCount>")) << xml;
  EXPECT_FALSE(xml.contains("SupportOrdering")) << "by it a topic is known";
}

TEST(AdminXml, every_description_reads_back_as_it_was_written) {
  for (const EntityType type : {EntityType::queue, EntityType::topic, EntityType::subscription}) {
    EntityInfo info;
    info.entity.entity_type = type;
    info.settings.time_to_live = 90'061'250ms;
    info.settings.delete_when_idle = 1h;
    info.settings.availability = message::Availability::disabled;
    info.settings.user_metadata = "<&>";
    if (type == EntityType::topic) info.settings.size_max_mb = 2'048;
    pugi::xml_document document;
    add_description(document, info);
    const auto read = described(write(document));
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read->type, type);
    EXPECT_EQ(read->settings, info.settings);
  }
}

TEST(AdminXml, a_sql_rule_is_read_with_its_parameters) {
  const auto rule = rule_of(
      R"(<Filter p4:type="SqlFilter"><SqlExpression>a = @p AND b = @q</SqlExpression><Parameters>)"
      R"(<KeyValueOfstringanyType><Key>@p</Key><Value p4:type="l28:double" xmlns:l28="x">1</Value></KeyValueOfstringanyType>)"
      R"(<KeyValueOfstringanyType><Key>@q</Key><Value p4:type="l28:string" xmlns:l28="x"> </Value></KeyValueOfstringanyType></Parameters></Filter>)"
      R"(<Action p4:type="SqlRuleAction"><SqlExpression>SET c = 1</SqlExpression></Action><Name>r</Name>)");
  ASSERT_TRUE(rule) << rule.error();
  EXPECT_EQ(rule->name, "r");
  const auto& sql = std::get<message::SqlText>(rule->filter);
  EXPECT_EQ(sql.parameters.at("@p"), message::Value{1.0});
  EXPECT_EQ(sql.parameters.at("@q"), message::Value{std::string(" ")});
  ASSERT_TRUE(rule->action);
  EXPECT_EQ(rule->action->expression, "SET c = 1");
}

TEST(AdminXml, a_rule_of_every_kind_reads_back_as_it_was_written) {
  message::CorrelationFilter correlation;
  correlation.label = "order";
  correlation.correlation_id = "c & d";
  correlation.properties = {{"n", std::int64_t{7}}, {"big", std::int64_t{1} << 62}, {"real", 1.5}, {"yes", true}, {"text", std::string("x")},
                            {"at", from_iso("2026-01-02T03:04:05Z").value()}, {"long", Duration{90s}}};
  std::vector<message::RuleDescription> rules(4);
  rules[1].filter = message::FalseFilter{};
  rules[2].filter = message::SqlText{"a < @p", {{"@p", std::int64_t{3}}}};
  rules[3].filter = correlation;
  rules[3].action = message::SqlText{"REMOVE a", {}};
  for (message::RuleDescription& rule : rules) {
    rule.name = "r";
    const auto entry = parse_entry(entry_with(written(rule)));
    ASSERT_TRUE(entry) << entry.error();
    const auto read = read_rule(entry->described);
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(message::to_json(std::vector{*read}).text, message::to_json(std::vector{rule}).text);
  }
}

TEST(AdminXml, values_have_the_types_that_the_sdk_for_java_script_knows) {
  message::RuleDescription rule{.name = "r", .filter = message::SqlText{"1=1", {{"a", std::int64_t{1}}, {"b", std::int64_t{1} << 40}}}, .action = {}};
  const std::string xml = written(rule);
  EXPECT_TRUE(xml.contains(R"(<Value i:type="d6p1:int" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">1</Value>)")) << xml;
  EXPECT_TRUE(xml.contains(R"(i:type="d6p1:double" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">1099511627776</Value>)")) << xml;
}

TEST(AdminXml, a_rule_that_cannot_be_understood_is_refused) {
  for (const char* inside : {R"(<Filter p4:type="SqlFilter"/>)", R"(<Filter p4:type="SqlFilter"><SqlExpression> </SqlExpression></Filter>)", R"(<Filter p4:type="OtherFilter"/>)",
                             R"(<Action p4:type="OtherAction"/>)", R"(<Action p4:type="SqlRuleAction"/>)",
                             R"(<Filter p4:type="CorrelationFilter"><Properties><K><Value p4:type="x:int">1</Value></K></Properties></Filter>)",
                             R"(<Filter p4:type="CorrelationFilter"><Properties><K><Key>a</Key><Value p4:type="x:int">one</Value></K></Properties></Filter>)",
                             R"(<Filter p4:type="CorrelationFilter"><Properties><K><Key>a</Key><Value p4:type="x:double">INF</Value></K></Properties></Filter>)",
                             R"(<Filter p4:type="CorrelationFilter"><Properties><K><Key>a</Key><Value p4:type="x:base64Binary">AA==</Value></K></Properties></Filter>)"})
    EXPECT_FALSE(rule_of(inside)) << inside;
}

TEST(AdminTarget, is_found_in_whatever_case) {
  using enum Target::What;
  const auto what = [](std::string_view path) { return parse_target(path).value().what; };
  EXPECT_EQ(what("/$Resources/Queues"), queues);
  EXPECT_EQ(what("/%24resources/topics"), topics);
  EXPECT_EQ(what("/$namespaceinfo"), namespace_info);
  EXPECT_EQ(what("/orders"), entity);
  EXPECT_EQ(what("/events/Subscriptions/"), subscriptions);
  EXPECT_EQ(what("/events/subscriptions"), subscriptions);
  EXPECT_EQ(parse_target("/a/b/subscriptions/s")->path, "a/b/Subscriptions/s");
  EXPECT_EQ(what("/events/Subscriptions/s/Rules/"), rules);
  const auto one = parse_target("/events/Subscriptions/s/rules/%24Default");
  EXPECT_EQ(one->what, rule);
  EXPECT_EQ(one->path, "events/Subscriptions/s");
  EXPECT_EQ(one->rule, "$Default");
}

TEST(AdminTarget, may_have_slashes_in_its_name) {
  EXPECT_EQ(parse_target("/a/b/c")->path, "a/b/c");
  EXPECT_EQ(parse_target("/a%2Fb")->path, "a/b");
  EXPECT_EQ(parse_target("/mysubscriptions/x")->path, "mysubscriptions/x");
}

TEST(AdminTarget, may_be_nothing) {
  for (const char* path : {"", "/", "x", "/%zz", "/$Resources/Others", "//Subscriptions/"}) EXPECT_FALSE(parse_target(path)) << path;
}

}  // namespace
}  // namespace baton::http::admin
