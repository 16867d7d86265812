// Queues, topics and subscriptions of the AMQP endpoint: list, show, make, change, delete; a look at their messages; dead
// letters back to where they came from.
#include <algorithm>

#include "http/api/bus_body.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/pool_counts.hpp"
#include "http/json/render_bus.hpp"

namespace baton::http {
namespace {

EntityKey entity_key(const Context& context, std::string path) { return {context.request.tenant, std::move(path)}; }
EntityKey entity_key(const Context& context) { return entity_key(context, context.request.captures[0]); }

using Found = std::expected<EntityInfo, Refused>;

Task<Found> ask_about_one(Context& context, Command command) {
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return std::unexpected(std::move(reply.error()));
  if (reply->entities.empty()) co_return std::unexpected(Refused{Refusal::entity_not_found, "there is no such queue, topic or subscription", {}});
  co_return std::move(reply->entities.front());
}

Task<Response> answer_with_entity(Context& context, Command command, int status) {
  const auto found = co_await ask_about_one(context, std::move(command));
  if (!found) co_return problem(found.error());
  auto response = json_response(status, {});
  append_entity(response.body, *found);
  if (status == 201) response.headers.emplace_back("Location", "/api/v1/bus/entities/" + percent_encode(found->entity.path));
  co_return response;
}

Task<Response> answer_deleted(Context& context, Command command) {
  const auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  co_return json_response(200, R"({"deleted":true})");
}

// The first one that waits for a receiver; how old it is tells whether somebody keeps up.
Task<std::optional<Time>> oldest_of(Context& context, const EntityInfo& info) {
  if (info.counters.active == 0) co_return std::nullopt;
  PeekMessages command{.from = entity_key(context), .dead = false, .first = 0, .max = 1, .lane = message::Lane::active};
  const auto reply = co_await tell<MessagesReply>(context, std::move(command));
  if (!reply || reply->messages.empty()) co_return std::nullopt;
  co_return reply->messages.front()->enqueued_at;
}

}  // namespace

Task<Response> list_bus_entities(Context& context) {
  const Request& request = context.request;
  std::vector<FieldError> errors;
  const auto* type_text = request.argument("type");
  const auto type = message::entity_type(type_text ? *type_text : "queue");
  if (!type) errors.push_back({"type", "must be queue, topic or subscription"});
  const auto* topic = request.argument("topic");
  if (type == message::EntityType::subscription && !topic) errors.push_back({"topic", "must say whose subscriptions"});
  const auto limit = static_cast<std::size_t>(query_integer(request, "limit", 100, {1, 1'000}, errors));
  const auto skip = static_cast<std::size_t>(query_integer(request, "cursor", 0, {0, 1'000'000'000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  ListEntities command{.tenant = request.tenant, .type = *type, .topic = topic ? *topic : "", .skip = skip, .max = limit + 1};
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  std::optional<std::string> cursor;
  if (reply->entities.size() > limit) {
    reply->entities.resize(limit);
    cursor = std::to_string(skip + limit);
  }
  const auto counted = co_await count_pools(context, reply->entities);
  if (!counted) co_return problem(counted.error());
  auto response = json_response(200, "{");
  append_list(response.body, "entities", reply->entities, [](std::string& to, const EntityInfo& each) { append_entity(to, each); });
  append_member(response.body, "next_cursor", cursor);
  response.body += '}';
  co_return response;
}

// Whatever goes through it is of one tenant.
Task<Response> show_broker(Context& context) {
  const BrokerState* broker = context.services.options.broker;
  if (!broker || context.request.tenant.value != "default")
    co_return problem(404, "not_found", "there is no external broker: the settings bus or bus_namespace name one");
  auto response = json_response(200, {});
  append_broker(response.body, broker->view());
  co_return response;
}

Task<Response> show_bus_entity(Context& context) {
  FindEntity command{entity_key(context)};
  auto found = co_await ask_about_one(context, std::move(command));
  if (!found) co_return problem(found.error());
  const auto oldest = co_await oldest_of(context, *found);
  std::vector<EntityInfo> shown{*std::move(found)};
  const auto counted = co_await count_pools(context, shown);
  if (!counted) co_return problem(counted.error());
  auto response = json_response(200, {});
  append_entity(response.body, shown.front(), ObjectEnd::open);
  append_member(response.body, "oldest_enqueued_at", oldest);
  response.body += '}';
  co_return response;
}

Task<Response> create_bus_entity(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  const auto type = message::entity_type(fields.required_text("type", 20));
  if (!type && errors.empty()) fields.wrong("type", "must be queue, topic or subscription");
  std::string path = fields.required_text("path", 400);
  ChangeEntity command{.what = ChangeEntity::What::create,
                       .key = entity_key(context, std::move(path)),
                       .type = type.value_or(message::EntityType::queue),
                       .settings = read_settings(document->root(), {}, {"type", "path", "rules"}, fields),
                       .rules = read_rules(document->root(), fields)};
  const bool is_subscription = message::split_subscription_path(command.key.path).has_value();
  if (type && is_subscription != (*type == message::EntityType::subscription))
    fields.wrong("path", is_subscription ? "names a subscription" : "of a subscription must be TOPIC/Subscriptions/NAME");
  if (!is_subscription && !command.rules.empty()) fields.wrong("rules", "are those of a subscription");
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  auto response = co_await answer_with_entity(context, std::move(command), 201);
  co_return response;
}

// What is not said stays as it is.
Task<Response> change_bus_entity(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  FindEntity question{entity_key(context)};
  const auto found = co_await ask_about_one(context, std::move(question));
  if (!found) co_return problem(found.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  ChangeEntity command{.what = ChangeEntity::What::update,
                       .key = entity_key(context),
                       .type = found->entity.entity_type,
                       .settings = read_settings(document->root(), found->settings, {}, fields),
                       .rules = {}};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  auto response = co_await answer_with_entity(context, std::move(command), 200);
  co_return response;
}

Task<Response> delete_bus_entity(Context& context) {
  FindEntity question{entity_key(context)};
  const auto found = co_await ask_about_one(context, std::move(question));
  if (!found) co_return problem(found.error());
  ChangeEntity command{.what = ChangeEntity::What::remove, .key = entity_key(context), .type = found->entity.entity_type, .settings = {}, .rules = {}};
  auto response = co_await answer_deleted(context, std::move(command));
  co_return response;
}

Task<Response> add_bus_rule(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  auto rule = read_rule(document->root());
  if (!rule) co_return problem("the rule is invalid", {{"", rule.error()}});
  ChangeRule command{.what = ChangeRule::What::add, .subscription = entity_key(context), .rule = *std::move(rule)};
  auto response = co_await answer_with_entity(context, std::move(command), 200);
  co_return response;
}

Task<Response> replace_bus_rule(Context& context) {
  auto document = parse_object(context.request);
  if (!document) co_return std::move(document.error());
  auto rule = read_rule(document->root());
  if (!rule) co_return problem("the rule is invalid", {{"", rule.error()}});
  if (!message::same_name(rule->name, context.request.captures[1])) co_return problem("the rule is invalid", {{"name", "must be that of the path"}});
  ChangeRule command{.what = ChangeRule::What::replace, .subscription = entity_key(context), .rule = *std::move(rule)};
  auto response = co_await answer_with_entity(context, std::move(command), 200);
  co_return response;
}

Task<Response> delete_bus_rule(Context& context) {
  ChangeRule command{.what = ChangeRule::What::remove, .subscription = entity_key(context), .rule = {.name = context.request.captures[1]}};
  auto response = co_await answer_deleted(context, std::move(command));
  co_return response;
}

Task<Response> peek_bus_messages(Context& context) {
  const Request& request = context.request;
  std::vector<FieldError> errors;
  const bool is_dead = query_boolean(request, "dead", errors).value_or(false);
  const bool is_full = query_boolean(request, "full", errors).value_or(false);
  const std::int64_t after = query_integer(request, "after", 0, {0, INT64_MAX - 1}, errors);
  const std::int64_t limit = query_integer(request, "limit", 20, {1, 200}, errors);
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  PeekMessages command{.from = entity_key(context), .dead = is_dead, .first = after + 1, .max = static_cast<std::uint32_t>(limit)};
  const auto reply = co_await tell<MessagesReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  auto response = json_response(200, "{");
  append_list(response.body, "messages", reply->messages,
              [&](std::string& to, const auto& each) { append_message(to, *each, is_full ? Documents::all : Documents::none); });
  append_member(response.body, "next_after", reply->messages.empty() ? after : reply->messages.back()->sequence_number);
  response.body += '}';
  co_return response;
}

Task<Response> replay_bus_dead_letters(Context& context) {
  auto document = parse_object(context.request, true);
  if (!document) co_return std::move(document.error());
  std::vector<FieldError> errors;
  Fields fields(document->root(), "", errors);
  refuse_others(document->root(), {"sequence_numbers", "max", "after", "up_to"}, fields);
  const std::int64_t after = fields.integer("after", {0, INT64_MAX - 1}).value_or(0);
  ReplayDeadLetters command{.from = entity_key(context),
                            .sequence_numbers = fields.ids("sequence_numbers", numbers_max),
                            .max = static_cast<std::uint32_t>(fields.integer("max", {1, replays_max}).value_or(100)),
                            .first = after + 1,
                            .up_to = fields.integer("up_to", {0, INT64_MAX}).value_or(INT64_MAX)};
  if (!errors.empty()) co_return problem("the request has invalid fields", errors);
  const auto reply = co_await tell<ReplayedReply>(context, std::move(command));
  if (!reply) co_return problem(reply.error());
  co_return json_response(200, json_object("replayed", reply->replayed, "are_more", reply->are_more, "next_after", std::max(reply->last, after)).text);
}

}  // namespace baton::http
