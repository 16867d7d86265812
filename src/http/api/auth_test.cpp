// Who may do what, and for whom.
#include "http/api/auth.hpp"

#include "http/api/routes.hpp"
#include "http/api/server_fixture.hpp"

namespace baton::http {
namespace {

class AuthTest : public ServerTest {
 protected:
  void SetUp() override {
    options_.access = Access::required;
    add("admin", Role::admin);
    add("operator", Role::operator_);
    add("viewer", Role::viewer);
    add("worker", Role::worker);
    add("acme", Role::operator_, "acme");
    agree();
  }
  void add(const std::string& token, Role role, std::optional<std::string> tenant = {}) {
    Token stored;
    stored.token_id = token;
    stored.token_hash = token_hash(token);
    stored.role = role;
    if (tenant) stored.tenant = workflow::Tenant{*tenant};
    EXPECT_TRUE(tokens_.add(stored));
  }
  static Client::Headers as(const std::string& token) { return {{"Authorization", "Bearer " + token}}; }
};

// What each role may reach is written here once more, by hand, so that a slip in the table is seen.
TEST_F(AuthTest, each_role_reaches_its_routes_and_no_other) {
  start();
  const std::map<std::string, std::string> allowed = {
      {"POST /api/v1/jobs", "admin operator"},
      {"GET /api/v1/jobs", "admin operator viewer"},
      {"GET /api/v1/jobs/{job_id}", "admin operator viewer"},
      {"GET /api/v1/jobs/{job_id}/timeline", "admin operator viewer"},
      {"GET /api/v1/jobs/{job_id}/why", "admin operator viewer"},
      {"GET /api/v1/bus/broker", "admin operator viewer"},
      {"POST /api/v1/jobs/{job_id}/cancel", "admin operator"},
      {"POST /api/v1/jobs/{job_id}/pause", "admin operator"},
      {"POST /api/v1/jobs/{job_id}/resume", "admin operator"},
      {"POST /api/v1/jobs/{job_id}/retry", "admin operator"},
      {"POST /api/v1/jobs/{job_id}/rerun", "admin operator"},
      {"GET /api/v1/jobs/{job_id}/nodes/{node_id}", "admin operator viewer"},
      {"GET /api/v1/jobs/{job_id}/nodes/{node_id}/items", "admin operator viewer"},
      {"GET /api/v1/jobs/{job_id}/nodes/{node_id}/logs", "admin operator viewer"},
      {"POST /api/v1/jobs/{job_id}/nodes/{node_id}/approve", "admin operator"},
      {"POST /api/v1/jobs/{job_id}/nodes/{node_id}/reject", "admin operator"},
      {"GET /api/v1/approvals", "admin operator viewer"},
      {"GET /api/v1/dead-letters", "admin operator viewer"},
      {"POST /api/v1/dead-letters/{task_id}/replay", "admin operator"},
      {"GET /api/v1/workers", "admin operator viewer"},
      {"POST /api/v1/workflows", "admin operator"},
      {"GET /api/v1/workflows", "admin operator viewer"},
      {"POST /api/v1/workflows/validate", "admin operator viewer"},
      {"GET /api/v1/workflows/{workflow_id}", "admin operator viewer"},
      {"POST /api/v1/workers/{queue}/jobs:poll", "admin worker"},
      {"POST /api/v1/workers/heartbeat", "admin worker"},
      {"POST /api/v1/callbacks/task-progress", "admin worker"},
      {"POST /api/v1/callbacks/task-checkpoint", "admin worker"},
      {"POST /api/v1/callbacks/task-log", "admin worker"},
      {"POST /api/v1/callbacks/task-result", "admin worker"},
      {"POST /api/v1/callbacks/task-results", "admin worker"},
      {"POST /api/v1/callbacks/worker-result", "admin worker"},
      {"POST /api/v1/events", "admin operator"},
      {"POST /api/v1/runbooks", "admin operator"},
      {"GET /api/v1/runbooks", "admin operator viewer"},
      {"POST /api/v1/runbooks/validate", "admin operator viewer"},
      {"POST /api/v1/runbooks/plan", "admin operator"},
      {"GET /api/v1/runbooks/{name}", "admin operator viewer"},
      {"GET /api/v1/runbooks/{name}/versions", "admin operator viewer"},
      {"GET /api/v1/runbooks/{name}/preview", "admin operator viewer"},
      {"POST /api/v1/runbooks/{name}/activate", "admin operator"},
      {"POST /api/v1/runbooks/{name}/deactivate", "admin operator"},
      {"POST /api/v1/runbooks/{name}/automation", "admin operator"},
      {"POST /api/v1/runbooks/{name}/batches", "admin operator"},
      {"GET /api/v1/batches", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}", "admin operator viewer"},
      {"POST /api/v1/batches/{batch_id}/advance", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/pause", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/resume", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/cancel", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/approve-removals", "admin operator"},
      {"POST /api/v1/tenants/{tenant}/service-calls", "admin operator"},
      {"POST /api/v1/tenants/{tenant}/service-calls:batch", "admin operator"},
      {"GET /api/v1/tenants/{tenant}/service-calls", "admin operator viewer"},
      {"GET /api/v1/tenants/{tenant}/service-calls/{service_call_id}", "admin operator viewer"},
      {"POST /api/v1/tenants/{tenant}/service-calls/{service_call_id}/cancel", "admin operator"},
      {"POST /api/v1/tenants/{tenant}/service-calls/{service_call_id}/reschedule", "admin operator"},
      {"POST /api/v1/tenants/{tenant}/service-calls/{service_call_id}/repeat", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/members", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/members:remove", "admin operator"},
      {"POST /api/v1/batches/{batch_id}/members:retry", "admin operator"},
      {"GET /api/v1/batches/{batch_id}/events", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/members/{member_id}/why", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/report", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/why", "admin operator viewer"},
      {"GET /api/v1/cleanups/{cleanup_id}/why", "admin operator viewer"},
      {"GET /api/v1/inits/{init_id}/why", "admin operator viewer"},
      {"GET /api/v1/needs-you", "admin operator viewer"},
      {"GET /api/v1/steps/{step_id}/why", "admin operator viewer"},
      {"POST /api/v1/needs-you/{need_id}/answer", "admin operator"},
      {"POST /api/v1/runbooks/impact", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/members", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/members/{member_id}", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/matrix", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/failures", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/phases", "admin operator viewer"},
      {"GET /api/v1/batches/{batch_id}/cleanups", "admin operator viewer"},
      {"GET /api/v1/phases/{phase_id}/steps", "admin operator viewer"},
      {"GET /api/v1/steps/{step_id}", "admin operator viewer"},
      {"GET /api/v1/steps/{step_id}/logs", "admin operator viewer"},
      {"POST /api/v1/steps/{step_id}/retry", "admin operator"},
      {"POST /api/v1/steps/{step_id}/skip", "admin operator"},
      {"POST /api/v1/steps/{step_id}/cancel", "admin operator"},
      {"GET /api/v1/inits/{init_id}", "admin operator viewer"},
      {"GET /api/v1/inits/{init_id}/logs", "admin operator viewer"},
      {"POST /api/v1/inits/{init_id}/retry", "admin operator"},
      {"POST /api/v1/inits/{init_id}/skip", "admin operator"},
      {"POST /api/v1/inits/{init_id}/cancel", "admin operator"},
      {"GET /api/v1/cleanups/{cleanup_id}", "admin operator viewer"},
      {"GET /api/v1/cleanups/{cleanup_id}/logs", "admin operator viewer"},
      {"POST /api/v1/cleanups/{cleanup_id}/retry", "admin operator"},
      {"POST /api/v1/cleanups/{cleanup_id}/skip", "admin operator"},
      {"POST /api/v1/cleanups/{cleanup_id}/cancel", "admin operator"},
      {"GET /api/v1/bus/entities", "admin operator viewer"},
      {"POST /api/v1/bus/entities", "admin operator"},
      {"GET /api/v1/bus/entities/{path}", "admin operator viewer"},
      {"POST /api/v1/bus/entities/{path}", "admin operator"},
      {"POST /api/v1/bus/entities/{path}/delete", "admin operator"},
      {"POST /api/v1/bus/entities/{path}/rules", "admin operator"},
      {"POST /api/v1/bus/entities/{path}/rules/{rule}", "admin operator"},
      {"POST /api/v1/bus/entities/{path}/rules/{rule}/delete", "admin operator"},
      {"GET /api/v1/bus/entities/{path}/messages", "admin operator viewer"},
      {"POST /api/v1/bus/entities/{path}/dead-letters:replay", "admin operator"},
      {"GET /api/v1/stream", "admin operator viewer"},
      {"GET /metrics", "admin operator viewer"},
  };
  for (const auto& route : routes()) {
    if (route.permission == Permission::none) continue;
    const auto key = std::string(route.method) + " " + std::string(route.pattern);
    ASSERT_TRUE(allowed.contains(key)) << key;
    // A stream that is let in would not end.
    const std::string target = std::string(route.pattern) + (route.answer == "events" ? "?topic=none" : "");
    for (const std::string role : {"admin", "operator", "viewer", "worker"}) {
      const auto response = ask(route.method, target, {}, as(role));
      const bool may = allowed.at(key).find(role) != std::string::npos;
      EXPECT_EQ(response.status == 403, !may) << role << " " << key << " " << response.status;
      EXPECT_NE(response.status, 401);
    }
    const auto nobody = ask(route.method, target);
    EXPECT_EQ(nobody.status, 401) << key;
    EXPECT_NE(nobody.header("WWW-Authenticate"), nullptr);
  }
}

TEST_F(AuthTest, health_needs_no_token) {
  start();
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
  EXPECT_EQ(ask("GET", "/readyz").status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/openapi.json").status, 200);
}

TEST_F(AuthTest, wrong_and_revoked_tokens_are_401_in_open_mode_too) {
  options_.access = Access::open;
  EXPECT_EQ(tokens_.revoke("viewer", Time{}), true);
  start();
  EXPECT_EQ(ask("GET", "/api/v1/jobs").status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, as("nonsense")).status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, as("viewer")).status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, {{"Authorization", "Basic eDp5"}}).status, 401);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, as("admin")).status, 200);
}

TEST_F(AuthTest, a_revoked_token_is_dead_within_the_cache_time) {
  options_.token_cache_time = std::chrono::milliseconds{50};
  start();
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, as("viewer")).status, 200);
  EXPECT_EQ(tokens_.revoke("viewer", Time{}), true);
  std::this_thread::sleep_for(std::chrono::milliseconds{60});
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, as("viewer")).status, 401);
}

TEST_F(AuthTest, pages_of_other_sites_cannot_use_an_open_server) {
  options_.access = Access::open;
  start();
  const auto host = url().substr(7);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, {{"Origin", "https://evil.example"}}).status, 403);
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, {{"Origin", "null"}}).status, 403);
  // A name made to point to this machine: the origin is the host, and still it is somebody else's page.
  for (const char* says : {"Origin: http://evil.example", "Sec-Fetch-Site: same-origin"}) {
    RawConnection page(port_);
    page.send(std::string("GET /api/v1/jobs HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n") + says +
              "\r\n\r\n");
    EXPECT_NE(page.read_all().find(" 403 "), std::string::npos) << says;
  }
  EXPECT_EQ(ask("GET", "/api/v1/jobs", {}, {{"Origin", "http://" + host}}).status, 200);
}

// DNS rebinding: a page's own name is made to point here, and a plain GET of it has no origin.
TEST_F(AuthTest, an_open_server_on_loopback_answers_to_its_own_names_only) {
  options_.access = Access::open;
  start();
  const auto status = [&](const std::string& host, const std::string& more = "") {
    RawConnection connection(port_);
    connection.send("GET /api/v1/jobs HTTP/1.1\r\nHost: " + host + "\r\n" + more +
                    "Connection: close\r\n\r\n");
    const std::string seen = connection.read_all();
    return seen.substr(seen.find(' ') + 1, 3) +
           (seen.find("the Host must be localhost") == seen.npos ? "" : " host");
  };
  for (const char* own :
       {"localhost", "LocalHost:8080", "127.0.0.1:1", "127.1.2.3", "[::1]", "[::1]:8080", ""})
    EXPECT_EQ(status(own), "200") << own;
  for (const char* strange : {"evil.example", "evil.example:8080", "127.evil.example",
                              "localhost.evil.example", "localhost:evil.example", ":8080", "10.0.0.1",
                              "[::2]:8080", "a:b"})
    EXPECT_EQ(status(strange), "403 host") << strange;
  EXPECT_EQ(status("evil.example", "Authorization: Bearer viewer\r\n"), "200");
}

TEST_F(AuthTest, a_server_for_the_network_answers_to_every_name) {
  options_.access = Access::open;
  options_.loopback = false;
  start();
  RawConnection connection(port_);
  connection.send("GET /api/v1/jobs HTTP/1.1\r\nHost: baton.example\r\nConnection: close\r\n\r\n");
  EXPECT_NE(connection.read_all().find("200 OK"), std::string::npos);
}

TEST_F(AuthTest, tenants_do_not_see_each_other) {
  add_jobs({job("a", workflow::JobStatus::running, "acme"), job("d")});
  start();
  EXPECT_EQ(ask("GET", "/api/v1/jobs/a", {}, as("acme")).status, 200);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/d", {}, as("acme")).status, 404);
  EXPECT_EQ(ask("GET", "/api/v1/jobs/a", {}, as("viewer")).status, 404);
  auto headers = as("viewer");
  headers.emplace_back("Baton-Tenant", "acme");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/a", {}, headers).status, 200);
  headers = as("acme");
  headers.emplace_back("Baton-Tenant", "default");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/d", {}, headers).status, 403);
  headers = as("viewer");
  headers.emplace_back("Baton-Tenant", "a b");
  EXPECT_EQ(ask("GET", "/api/v1/jobs/d", {}, headers).status, 422);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", R"({"workflow_id":"w"})", as("acme")).status, 201);
  EXPECT_EQ(inbox_.wait_for<SubmitJob>()->tenant.value, "acme");
}

TEST_F(AuthTest, a_result_is_bound_to_a_tenant_only_when_its_sender_is) {
  start();
  const std::string body = R"({"task_id":"t","status":"completed"})";
  EXPECT_EQ(ask("POST", "/api/v1/callbacks/task-result", body, as("worker")).status, 200);
  EXPECT_EQ(inbox_.wait_for<ReportResult>()->tenant, std::nullopt);
}

TEST(TokenCacheTest, forgets_in_time_and_never_grows_beyond_its_limit) {
  TokenCache cache(std::chrono::seconds{2}, 3);
  const auto now = std::chrono::steady_clock::now();
  cache.remember("a", Token{}, now);
  EXPECT_TRUE(cache.find("a", now)->token);
  EXPECT_FALSE(cache.find("a", now + std::chrono::seconds{2}));
  for (const auto* hash : {"b", "c", "d"}) cache.remember(hash, std::nullopt, now);
  EXPECT_FALSE(cache.find("a", now));
  EXPECT_FALSE(cache.find("d", now)->token);
}

TEST(TokenCacheTest, one_asks_again_while_the_others_go_on) {
  TokenCache cache(std::chrono::seconds{2});
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(cache.remember("a", Token{}, now), now + std::chrono::seconds{2});
  EXPECT_TRUE(cache.find("a", now + std::chrono::milliseconds{999}));
  EXPECT_FALSE(cache.find("a", now + std::chrono::seconds{1}));
  EXPECT_TRUE(cache.find("a", now + std::chrono::seconds{1}));
  EXPECT_FALSE(cache.find("a", now + std::chrono::seconds{2}));
}

TEST(TokenHashTest, is_the_sha_256) {
  EXPECT_EQ(token_hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace baton::http
