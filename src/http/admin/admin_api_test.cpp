#include "http/admin/admin_api.hpp"

#include <gtest/gtest.h>

#include "http/api/server_fixture.hpp"
#include "ports/shared_access.hpp"

namespace baton::http {
namespace {

using message::EntityType;

class AdminApi : public ServerTest {
 protected:
  AdminApi() { options_.api = &admin_api(); }

  static EntityInfo entity(const std::string& path, EntityType type = EntityType::queue) {
    EntityInfo info;
    info.entity.path = path;
    info.entity.entity_type = type;
    return info;
  }

  // An engine that has `found` wherever it looks.
  void know(EntityInfo found) {
    inbox_.answer([found](const Command& command) -> std::optional<Reply> {
      if (const auto* change = std::get_if<ChangeEntity>(&command)) {
        EntityInfo changed = found;
        changed.entity.path = change->key.path;
        changed.settings = change->settings;
        return EntitiesReply{{changed}};
      }
      return EntitiesReply{{found}};
    });
  }
  void refuse(Refusal refusal) {
    inbox_.answer([refusal](const Command&) -> std::optional<Reply> { return Refused{refusal, "because", {}}; });
  }
  ClientResponse put(const std::string& path, const std::string& described, const Client::Headers& headers = {}) {
    return ask("PUT", path + "?api-version=2021-05", "<entry><content>" + described + "</content></entry>", headers, "application/atom+xml");
  }
  // The header of who knows the key.
  Client::Headers signed_by(const std::string& id, const std::string& key, Duration until = std::chrono::minutes{5}) {
    return {{"Authorization", sign_shared_access(url() + "/orders", id, key, clock_.now() + until)}};
  }
  Client::Headers signed_for(const std::string& resource) {
    return {{"Authorization", sign_shared_access(resource, "k1", "secret", clock_.now() + std::chrono::minutes{5})}};
  }
  void add_key(Role role, std::optional<workflow::Tenant> tenant = {}) {
    Token token{.token_id = "k1", .token_hash = "h", .label = "", .role = role, .tenant = std::move(tenant), .created_at = clock_.now(), .revoked_at = {}, .bus_key = "secret"};
    EXPECT_TRUE(tokens_.add(token));
    options_.access = Access::required;
  }
};

TEST_F(AdminApi, a_put_makes_an_entity) {
  know(entity("orders"));
  start();
  const auto response = put("/orders", "<QueueDescription><MaxDeliveryCount>3</MaxDeliveryCount></QueueDescription>");
  EXPECT_EQ(response.status, 201);
  EXPECT_TRUE(response.body.contains("<id>" + url() + "/orders</id>")) << response.body;
  EXPECT_TRUE(response.body.contains("<MaxDeliveryCount>3</MaxDeliveryCount>")) << response.body;
  const auto command = inbox_.wait_for<ChangeEntity>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->what, ChangeEntity::What::create);
  EXPECT_EQ(command->key.tenant.value, "default");
}

TEST_F(AdminApi, a_put_with_if_match_changes_what_it_says) {
  EntityInfo before = entity("orders");
  before.settings.deliveries_max = 7;
  know(before);
  start();
  const auto response = put("/orders", "<QueueDescription><LockDuration>PT9S</LockDuration></QueueDescription>", {{"If-Match", "*"}});
  EXPECT_EQ(response.status, 200);
  const auto command = inbox_.wait_for<ChangeEntity>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->what, ChangeEntity::What::update);
  EXPECT_EQ(command->settings.deliveries_max, 7);
  EXPECT_EQ(command->settings.lock_time, std::chrono::seconds{9});
}

TEST_F(AdminApi, a_description_must_fit_its_path) {
  know(entity("orders"));
  start();
  EXPECT_EQ(put("/orders", "<SubscriptionDescription/>").status, 400);
  EXPECT_EQ(put("/t/Subscriptions/s", "<QueueDescription/>").status, 400);
  EXPECT_EQ(put("/orders", "<TopicDescription/>", {{"If-Match", "*"}}).status, 400);
  EXPECT_EQ(put("/orders", "<RuleDescription/>").status, 400);
  EXPECT_EQ(put("/t/Subscriptions/s/Rules/r", "<QueueDescription/>").status, 400);
  EXPECT_TRUE(inbox_.all<ChangeEntity>().empty());
}

TEST_F(AdminApi, a_delete_says_what_it_deletes) {
  know(entity("events", EntityType::topic));
  start();
  EXPECT_EQ(ask("DELETE", "/events").status, 200);
  const auto command = inbox_.wait_for<ChangeEntity>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->what, ChangeEntity::What::remove);
  EXPECT_EQ(command->type, EntityType::topic);
}

TEST_F(AdminApi, refusals_are_errors_that_the_sdks_understand) {
  start();
  for (const auto& [refusal, status] : {std::pair{Refusal::entity_not_found, 404}, {Refusal::entity_exists, 409}, {Refusal::invalid_input, 400},
                                        {Refusal::quota_exceeded, 403}, {Refusal::overloaded, 503}}) {
    refuse(refusal);
    const auto response = put("/orders", "<QueueDescription/>");
    EXPECT_EQ(response.status, status);
    EXPECT_EQ(response.body, "<Error><Code>" + std::to_string(status) + "</Code><Detail>because</Detail></Error>");
  }
  refuse(Refusal::not_possible);
  EXPECT_TRUE(ask("GET", "/orders").body.contains("SubCode=40301"));
}

TEST_F(AdminApi, a_list_is_a_feed_with_a_link_to_what_follows) {
  inbox_.answer([](const Command& command) -> std::optional<Reply> {
    EntitiesReply reply;
    const auto& list = std::get<ListEntities>(command);
    for (std::size_t i = list.skip; i < std::min<std::size_t>(list.skip + list.max, 3); ++i) reply.entities.push_back(entity("q" + std::to_string(i)));
    return reply;
  });
  start();
  const auto first = ask("GET", "/$Resources/Queues?api-version=2021-05&%24skip=0&%24top=2");
  EXPECT_TRUE(first.body.contains("/q1</id>") && !first.body.contains("/q2</id>")) << first.body;
  EXPECT_TRUE(first.body.contains("href=\"" + url() + "/$Resources/Queues?$skip=2&amp;$top=2\"")) << first.body;
  const auto second = ask("GET", "/$Resources/Queues?$skip=2&$top=2");
  EXPECT_TRUE(second.body.contains("/q2</id>") && !second.body.contains("rel=\"next\"")) << second.body;
  EXPECT_EQ(ask("GET", "/$Resources/Queues?$skip=-1").status, 400);
}

TEST_F(AdminApi, rules_are_those_of_their_subscription) {
  EntityInfo subscription = entity("t/Subscriptions/s", EntityType::subscription);
  subscription.rules = {{.name = "Big", .filter = message::SqlText{"a > 1", {}}, .action = {}}, {.name = "small", .filter = message::TrueFilter{}, .action = {}}};
  know(subscription);
  start();
  EXPECT_TRUE(ask("GET", "/t/Subscriptions/s/Rules/big").body.contains("<SqlExpression>a &gt; 1</SqlExpression>"));
  EXPECT_EQ(ask("GET", "/t/Subscriptions/s/Rules/other").status, 404);
  const auto all = ask("GET", "/t/subscriptions/s/rules/");
  EXPECT_TRUE(all.body.contains("/t/Subscriptions/s/Rules/Big</id>") && all.body.contains("/Rules/small</id>")) << all.body;
  EXPECT_EQ(put("/t/Subscriptions/s/Rules/small", R"(<RuleDescription><Name>else</Name></RuleDescription>)").status, 201);
  const auto command = inbox_.wait_for<ChangeRule>();
  ASSERT_TRUE(command);
  EXPECT_EQ(command->rule.name, "small") << "the path names it";
}

TEST_F(AdminApi, who_knows_a_key_acts_with_its_role_and_tenant) {
  add_key(Role::operator_, workflow::Tenant{"acme"});
  know(entity("orders"));
  start();
  EXPECT_EQ(put("/orders", "<QueueDescription/>", signed_by("k1", "secret")).status, 201);
  EXPECT_EQ(inbox_.wait_for<ChangeEntity>()->key.tenant.value, "acme");
}

TEST_F(AdminApi, a_viewer_reads_and_changes_nothing) {
  add_key(Role::viewer);
  know(entity("orders"));
  start();
  EXPECT_EQ(ask("GET", "/orders", "", signed_by("k1", "secret")).status, 200);
  EXPECT_EQ(put("/orders", "<QueueDescription/>", signed_by("k1", "secret")).status, 401);
  EXPECT_EQ(ask("DELETE", "/orders", "", signed_by("k1", "secret")).status, 401);
}

TEST_F(AdminApi, who_does_not_know_a_key_is_refused) {
  add_key(Role::admin);
  know(entity("orders"));
  start();
  for (const auto& headers : {Client::Headers{}, signed_by("k1", "other"), signed_by("k2", "secret"), signed_by("k1", "secret", -std::chrono::minutes{1}),
                              Client::Headers{{"Authorization", "SharedAccessSignature nonsense"}}, Client::Headers{{"Authorization", "Bearer nobody"}}}) {
    const auto response = ask("GET", "/orders", "", headers);
    EXPECT_EQ(response.status, 401);
    EXPECT_TRUE(response.body.starts_with("<Error><Code>401</Code>")) << response.body;
  }
  EXPECT_EQ(inbox_.count(), 0U);
}

TEST_F(AdminApi, a_signature_opens_its_path_and_what_lies_below) {
  add_key(Role::admin);
  know(entity("orders"));
  start();
  const auto status = [&](const std::string& resource, const std::string& path) { return ask("GET", path, "", signed_for(resource)).status; };
  for (const char* path : {"/events", "/Events?api-version=2021-05", "/%65vents", "/events/Subscriptions/audit"}) EXPECT_EQ(status(url() + "/events", path), 200) << path;
  for (const char* path : {"/orders", "/events2", "/event", "/$Resources/Topics", "/$namespaceinfo"}) EXPECT_EQ(status(url() + "/events", path), 401) << path;
  for (const std::string& resource : {url(), url() + "/", url() + "/$Resources/Queues?api-version=2021-05&$skip=0", url() + "/%24Resources/Queues"})
    EXPECT_EQ(status(resource, "/$Resources/Queues?$top=9"), 200) << resource;
}

TEST_F(AdminApi, without_tokens_a_signature_is_not_looked_at) {
  know(entity("orders"));
  start();
  EXPECT_EQ(ask("GET", "/orders", "", signed_by("any", "any")).status, 200);
  EXPECT_EQ(ask("GET", "/orders", "", {{"Authorization", "SharedAccessSignature x"}, {"Origin", "http://evil.example"}}).status, 401);
}

TEST_F(AdminApi, health_needs_no_key_and_is_no_queue) {
  add_key(Role::admin);
  start();
  EXPECT_EQ(ask("GET", "/health").status, 200);
  EXPECT_EQ(ask("GET", "/health?api-version=2021-05").status, 401);
}

TEST_F(AdminApi, what_is_not_there_says_so) {
  start();
  EXPECT_EQ(ask("GET", "/$Resources/Others").status, 404);
  EXPECT_EQ(ask("POST", "/orders", "x").status, 405);
  EXPECT_EQ(ask("DELETE", "/$Resources/Queues").status, 405);
}

TEST_F(AdminApi, an_error_is_xml_whatever_the_path) {
  start();
  inbox_.answer([](const Command& command) -> std::optional<Reply> { return Refused{Refusal::entity_not_found, std::get<FindEntity>(command).key.path, {}}; });
  EXPECT_EQ(ask("GET", "/q%01").body, "<Error><Code>404</Code><Detail>q\xEF\xBF\xBD</Detail></Error>");
}

TEST_F(AdminApi, a_body_that_is_too_large_is_refused_in_xml) {
  options_.body_bytes_max = 1'000;
  start();
  const auto response = put("/orders", std::string(2'000, ' '));
  EXPECT_EQ(response.status, 413);
  EXPECT_TRUE(response.body.starts_with("<Error>")) << response.body;
}

}  // namespace
}  // namespace baton::http
