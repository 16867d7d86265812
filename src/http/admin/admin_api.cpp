#include "http/admin/admin_api.hpp"

#include <spdlog/spdlog.h>

#include "base/json_document.hpp"
#include "http/admin/atom.hpp"
#include "http/admin/handlers.hpp"
#include "http/api/routes.hpp"
#include "ports/shared_access.hpp"

namespace baton::http {
namespace admin {
namespace {

// By Target::What, and then the rest.
constexpr std::string_view patterns[] = {"/$namespaceinfo",
                                         "/$Resources/Queues",
                                         "/$Resources/Topics",
                                         "/{topic}/Subscriptions",
                                         "/{topic}/Subscriptions/{subscription}/Rules",
                                         "/{entity}",
                                         "/{topic}/Subscriptions/{subscription}/Rules/{rule}",
                                         "/health"};
constexpr int health_route = 7;
static_assert(static_cast<int>(Target::What::rule) + 2 == std::size(patterns));

// --- who asks

// Every refusal is 401, also that of a role: SDKs take 403 for a quota.
Response refuse_access(std::string_view detail) { return error(401, detail); }

// A refusal of the other API, in the form of this one.
Response as_error(const Response& refusal) {
  const auto document = JsonDocument::parse(refusal.body);
  const JsonView detail = document ? document->root().find("detail") : JsonView{};
  const std::string text = detail && detail.kind() == JsonKind::string ? std::string(detail.string()) : "refused";
  return error(refusal.status == 403 ? 401 : refusal.status == 422 ? 400 : refusal.status, text);
}

bool is_shared_access(const Request& request) {
  return request.authorization && request.authorization->starts_with("SharedAccessSignature");
}

// Whoever does not know the key hears the same, whatever it is that is wrong.
Task<Checked> check_signature(Context& context, Permission permission) {
  Request& request = context.request;
  const auto access = parse_shared_access(*request.authorization);
  if (!access) co_return refuse_access("the shared access signature is malformed");
  if (access->expires <= context.services.clock.now()) co_return refuse_access("the shared access signature has expired");
  auto query = [id = access->key_name](Reads& reads) { return reads.token_by_id(id); };
  const auto found = co_await context.read(std::move(query), ReadPool::Of::others);
  if (!found) co_return error(503, "the store is not reachable at the moment");
  const std::optional<Token>& token = *found;
  if (!token || token->revoked_at || !token->bus_key || !is_signed_with(*access, *token->bus_key))
    co_return refuse_access("InvalidSignature: The token has an invalid signature.");
  if (!covers(scope_of(access->resource), request.path))
    co_return refuse_access("the shared access signature is for another path than " + request.path);
  request.role = token->role;
  if (!allows(token->role, permission)) co_return refuse_access("the role '" + std::string(name(token->role)) + "' may not do this");
  if (const auto refused = decide_tenant(request, token->tenant)) co_return as_error(*refused);
  co_return std::nullopt;
}

// SDKs sign whether or not there are keys: where no token is needed, the signature is not looked at.
Task<Checked> let_in(Context& context, Permission permission) {
  Request& request = context.request;
  const bool is_open = context.services.options.access == Access::open;
  if (is_shared_access(request) && !is_open) {
    auto refused = co_await check_signature(context, permission);
    co_return refused;
  }
  if (is_shared_access(request)) request.authorization.reset();
  auto refused = co_await authorize(context, permission);
  if (refused) co_return as_error(*refused);
  co_return std::nullopt;
}

// --- what is asked

using Act = Task<Response> (*)(Context&, const Target&);
struct Verbs {
  Act get = nullptr, put = nullptr, remove = nullptr;
};

Verbs verbs_of(Target::What what) {
  using enum Target::What;
  switch (what) {
    case namespace_info: return {.get = [](Context& context, const Target&) { return show_namespace(context); }};
    case queues:
    case topics:
    case subscriptions: return {.get = list_entities};
    case rules: return {.get = list_rules};
    case entity: return {.get = show_entity, .put = put_entity, .remove = delete_entity};
    case rule: return {.get = show_rule, .put = put_rule, .remove = delete_rule};
  }
  return {};
}

Act act_of(const Request& request, const Verbs& verbs) {
  if (request.method == "GET") return verbs.get;
  if (request.method == "PUT") return verbs.put;
  if (request.method == "DELETE") return verbs.remove;
  return nullptr;
}

// A queue may be called so too: SDKs say which version of the API they mean.
bool asks_for_health(const Request& request) { return request.method == "GET" && request.path == "/health" && !request.query.contains("api-version"); }

Task<Response> handle_admin(Context& context, int& route) {
  Request& request = context.request;
  if (asks_for_health(request)) {
    route = health_route;
    co_return json_response(200, R"({"status":"healthy","message":"Service is healthy."})");
  }
  const auto target = parse_target(request.path);
  if (!target) co_return error(404, "there is nothing at " + request.path);
  route = static_cast<int>(target->what);
  const Act act = act_of(request, verbs_of(target->what));
  if (!act) co_return error(405, request.method + " is not possible here");
  auto refused = co_await let_in(context, request.method == "GET" ? Permission::read : Permission::publish);
  if (refused) co_return *std::move(refused);
  auto arguments = parse_query(request.query);
  if (!arguments) co_return error(400, "the query has a malformed % escape");
  request.arguments = *std::move(arguments);
  auto response = co_await act(context, *target);
  co_return response;
}

Task<Response> dispatch_admin(Context& context, int& route) {
  std::string what;
  try {
    auto response = co_await handle_admin(context, route);
    co_return response;
  } catch (const std::exception& failed) {
    what = failed.what();
  }
  spdlog::error("request {} failed: {}", context.request.request_id, what);
  co_return error(500, "something went wrong; the log has more under the request id " + context.request.request_id);
}

}  // namespace
}  // namespace admin

const Api& admin_api() {
  static const Api api{.labels = "listener=\"amqp_admin\"",
                       .patterns = {std::begin(admin::patterns), std::end(admin::patterns)},
                       .dispatch = admin::dispatch_admin,
                       .refuse = [](int status, std::string_view, std::string_view detail) {
                         return admin::error(status, status == 413 ? "the body is larger than any description" : detail);
                       }};
  return api;
}

}  // namespace baton::http
