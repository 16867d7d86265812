#include "http/admin/handlers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "http/admin/atom.hpp"
#include "http/admin/entity_xml.hpp"
#include "http/admin/rule_xml.hpp"
#include "http/json/answer.hpp"
#include "http/json/pool_counts.hpp"

namespace baton::http::admin {
namespace {

using message::EntityType;

constexpr std::size_t top_max = 100;  // of one page; .NET takes a page with fewer for the last

EntityKey key_of(const Context& context, const Target& target) { return {context.request.tenant, target.path}; }

Refused not_found(const std::string& path) {
  return {Refusal::entity_not_found, fmt::format("The messaging entity '{}' could not be found.", path), {}};
}

// One entity, of the answer to a command about it.
using Found = std::expected<EntityInfo, Refused>;
Found only_one(std::expected<EntitiesReply, Refused> reply, const std::string& path) {
  if (!reply) return std::unexpected(std::move(reply.error()));
  if (reply->entities.empty()) return std::unexpected(not_found(path));
  return std::move(reply->entities.front());
}

Task<Found> find_entity(Context& context, const Target& target) {
  FindEntity command{key_of(context, target)};
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  co_return only_one(std::move(reply), target.path);
}

std::expected<Page, std::string> page_of(const Request& request) {
  Page page{0, top_max, false};
  for (const auto& [key, value] : request.arguments) {
    const bool is_skip = equal_ignoring_case(key, "$skip"), is_top = equal_ignoring_case(key, "$top");
    if (!is_skip && !is_top) continue;
    const auto number = to_integer(value);
    if (!number || *number < 0 || *number > 1'000'000'000) return std::unexpected(key + " must be a number that is not negative");
    (is_skip ? page.skip : page.top) = static_cast<std::size_t>(*number);
  }
  page.top = std::clamp<std::size_t>(page.top, 1, top_max);
  return page;
}

const message::RuleDescription* find_rule(const EntityInfo& subscription, const std::string& name) {
  const auto found = std::ranges::find_if(subscription.rules, [&](const auto& each) { return message::same_name(each.name, name); });
  return found == subscription.rules.end() ? nullptr : &*found;
}

Response no_such_rule(const Target& target) { return error(not_found(target.path + "/Rules/" + target.rule)); }

bool names_subscription(const Target& target) { return message::split_subscription_path(target.path).has_value(); }

Task<Response> change(Context& context, ChangeEntity command, int status) {
  const std::string path = command.key.path;
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  const auto changed = only_one(std::move(reply), path);
  if (!changed) co_return error(changed.error());
  co_return entity_entry(status, context.request, *changed);
}

Task<Response> create_entity(Context& context, const Target& target, const Entry& entry) {
  auto read = read_description(entry.described, {});
  if (!read) co_return error(400, read.error());
  if (names_subscription(target) != (read->type == EntityType::subscription))
    co_return error(400, fmt::format("the path '{}' does not name what <{}> describes", target.path, entry.described.name()));
  ChangeEntity command{.what = ChangeEntity::What::create,
                       .key = key_of(context, target),
                       .type = read->type,
                       .settings = std::move(read->settings),
                       .rules = std::move(read->rules)};
  auto response = co_await change(context, std::move(command), 201);
  co_return response;
}

// What the description leaves out stays as it is: the entity is read first.
Task<Response> update_entity(Context& context, const Target& target, const Entry& entry) {
  const auto found = co_await find_entity(context, target);
  if (!found) co_return error(found.error());
  auto read = read_description(entry.described, found->settings);
  if (!read) co_return error(400, read.error());
  if (read->type != found->entity.entity_type)
    co_return error(400, fmt::format("'{}' is a {}, which <{}> does not describe", target.path, message::name(found->entity.entity_type), entry.described.name()));
  ChangeEntity command{.what = ChangeEntity::What::update,
                       .key = key_of(context, target),
                       .type = read->type,
                       .settings = std::move(read->settings),
                       .rules = {}};
  auto response = co_await change(context, std::move(command), 200);
  co_return response;
}

Response deleted() {
  Response response;
  response.content_type = "application/xml; charset=utf-8";
  return response;
}

}  // namespace

Task<Response> show_namespace(Context& context) {
  // The topics that baton makes for itself are there from the first start on.
  ListEntities command{.tenant = Tenant{"default"}, .type = EntityType::topic, .topic = {}, .skip = 0, .max = 1};
  const auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return error(reply.error());
  const Time created = reply->entities.empty() ? context.services.clock.now() : reply->entities.front().entity.created_at;
  co_return namespace_entry(context.request, created, created);
}

Task<Response> list_entities(Context& context, const Target& target) {
  auto page = page_of(context.request);
  if (!page) co_return error(400, page.error());
  const auto type = target.what == Target::What::queues   ? EntityType::queue
                    : target.what == Target::What::topics ? EntityType::topic
                                                          : EntityType::subscription;
  ListEntities command{.tenant = context.request.tenant, .type = type, .topic = target.path, .skip = page->skip, .max = page->top + 1};
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return error(reply.error());
  page->are_more = reply->entities.size() > page->top;
  if (page->are_more) reply->entities.resize(page->top);
  const auto counted = co_await count_pools(context, reply->entities);
  if (!counted) co_return error(503, counted.error().message);
  co_return entity_feed(context.request, *page, reply->entities);
}

Task<Response> list_rules(Context& context, const Target& target) {
  auto page = page_of(context.request);
  if (!page) co_return error(400, page.error());
  const auto found = co_await find_entity(context, target);
  if (!found) co_return error(found.error());
  const auto& all = found->rules;
  const std::size_t begin = std::min(page->skip, all.size()), end = std::min(begin + page->top, all.size());
  page->are_more = end < all.size();
  const std::vector<message::RuleDescription> shown(all.begin() + static_cast<std::ptrdiff_t>(begin), all.begin() + static_cast<std::ptrdiff_t>(end));
  co_return rule_feed(context.request, *page, *found, shown);
}

Task<Response> show_entity(Context& context, const Target& target) {
  auto found = co_await find_entity(context, target);
  if (!found) co_return error(found.error());
  std::vector<EntityInfo> shown{*std::move(found)};
  const auto counted = co_await count_pools(context, shown);
  if (!counted) co_return error(503, counted.error().message);
  co_return entity_entry(200, context.request, shown.front());
}

Task<Response> put_entity(Context& context, const Target& target) {
  const auto entry = parse_entry(context.request.body);
  if (!entry) co_return error(400, entry.error());
  if (context.request.if_match) {
    auto updated = co_await update_entity(context, target, *entry);
    co_return updated;
  }
  auto created = co_await create_entity(context, target, *entry);
  co_return created;
}

Task<Response> delete_entity(Context& context, const Target& target) {
  const auto found = co_await find_entity(context, target);
  if (!found) co_return error(found.error());
  ChangeEntity command{
      .what = ChangeEntity::What::remove, .key = key_of(context, target), .type = found->entity.entity_type, .settings = {}, .rules = {}};
  const auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return error(reply.error());
  co_return deleted();
}

Task<Response> show_rule(Context& context, const Target& target) {
  const auto found = co_await find_entity(context, target);
  if (!found) co_return error(found.error());
  const auto* rule = find_rule(*found, target.rule);
  if (!rule) co_return no_such_rule(target);
  co_return rule_entry(200, context.request, *found, *rule);
}

Task<Response> put_rule(Context& context, const Target& target) {
  const auto entry = parse_entry(context.request.body);
  if (!entry) co_return error(400, entry.error());
  if (local_name(entry->described.name()) != "RuleDescription") co_return error(400, fmt::format("<{}> does not describe a rule", entry->described.name()));
  auto rule = read_rule(entry->described);
  if (!rule) co_return error(400, rule.error());
  rule->name = target.rule;
  const bool replaces = context.request.if_match.has_value();
  ChangeRule command{.what = replaces ? ChangeRule::What::replace : ChangeRule::What::add, .subscription = key_of(context, target), .rule = *std::move(rule)};
  auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  const auto changed = only_one(std::move(reply), target.path);
  if (!changed) co_return error(changed.error());
  const auto* made = find_rule(*changed, target.rule);
  if (!made) co_return no_such_rule(target);  // somebody else has removed it meanwhile
  co_return rule_entry(replaces ? 200 : 201, context.request, *changed, *made);
}

Task<Response> delete_rule(Context& context, const Target& target) {
  ChangeRule command{.what = ChangeRule::What::remove, .subscription = key_of(context, target), .rule = {.name = target.rule}};
  const auto reply = co_await tell<EntitiesReply>(context, std::move(command));
  if (!reply) co_return error(reply.error());
  co_return deleted();
}

}  // namespace baton::http::admin
