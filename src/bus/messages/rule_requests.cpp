#include "bus/messages/rule_requests.hpp"

#include <algorithm>

#include "bus/messages/rule_encoding.hpp"

namespace baton::bus {
namespace {

constexpr std::int64_t page_max = 100;

Outcome bad_request(std::string why) { return {400, std::move(why), "com.microsoft:argument-error"}; }

std::expected<Command, Outcome> change_of(bool is_addition, const EntityKey& subscription, const wire::Item& body) {
  const auto named = wire::find(body, "rule-name");
  const auto name = named ? wire::text_of(*named) : std::nullopt;
  if (!name || name->empty()) return std::unexpected(bad_request("'rule-name' is missing"));
  if (!is_addition)
    return ChangeRule{ChangeRule::What::remove, subscription, {.name = std::string(*name), .filter = message::TrueFilter{}, .action = {}, .created_at = {}}};
  const auto description = wire::find(body, "rule-description");
  if (!description) return std::unexpected(bad_request("'rule-description' is missing"));
  auto rule = read_rule(std::string(*name), *description);
  if (!rule) return std::unexpected(bad_request(std::move(rule.error())));
  return ChangeRule{ChangeRule::What::add, subscription, *std::move(rule)};
}

Answer page_of(const std::vector<message::RuleDescription>& rules, std::int64_t skip, std::int64_t top) {
  const auto from = static_cast<std::size_t>(std::clamp<std::int64_t>(skip, 0, static_cast<std::int64_t>(rules.size())));
  const std::size_t count = std::min(rules.size() - from, static_cast<std::size_t>(std::clamp<std::int64_t>(top, 0, page_max)));
  if (count == 0) return {{204, "there are no more rules"}, {}};
  Answer answer{{200, "OK"}, {}};
  wire::Writer writer(answer.body);
  writer.map([&] {
    writer.text("rules");
    writer.list([&] {
      for (std::size_t i = from; i < from + count; ++i) writer.map([&] { writer.text("rule-description"), write_rule(writer, rules[i]); });
    });
  });
  return answer;
}

}  // namespace

Outcome outcome_of(const Refused& refused) {
  const Condition condition = condition_of(refused);
  switch (refused.refusal) {
    case Refusal::entity_not_found:
    case Refusal::message_not_found: return {404, condition.description, condition.name};
    case Refusal::entity_exists: return {409, condition.description, condition.name};
    case Refusal::lock_lost: return {410, condition.description, condition.name};
    case Refusal::quota_exceeded: return {403, condition.description, condition.name};
    default: break;
  }
  if (may_pass(refused)) return {503, condition.description, condition.name};
  return bad_request(condition.description);
}

std::optional<wire::Item> body_of(const Request& request) {
  const auto sections = split(request.encoded);
  if (!sections || sections->body_type != value_section) return std::nullopt;
  std::string_view rest = sections->body;
  const auto section = wire::take(rest);
  const auto value = section ? wire::described(*section) : std::nullopt;
  return value && wire::is_map(value->value) ? std::optional(value->value) : std::nullopt;
}

bool take_rule_request(Client& client, const Principal& principal, const EntityKey& subscription, const Request& request,
                       const std::weak_ptr<void>& link, std::function<void(Answer)> answer) {
  const std::string operation = request.property("operation");
  const bool is_list = operation == "com.microsoft:enumerate-rules", is_addition = operation == "com.microsoft:add-rule";
  if (!is_list && !is_addition && operation != "com.microsoft:remove-rule") return false;
  const auto refuse = [&](Outcome why) { return answer({std::move(why), {}}), true; };
  const auto body = body_of(request);
  if (!body) return refuse(bad_request("the body is not a map"));
  const bool may_see = allows(principal.role, Permission::read) || allows(principal.role, Permission::work);
  if (is_list ? !may_see : !allows(principal.role, Permission::publish))
    return refuse({401, "the role of this key may not do that with rules", "amqp:unauthorized-access"});
  if (!is_list) {
    auto change = change_of(is_addition, subscription, *body);
    if (!change) return refuse(std::move(change.error()));
    client.submit(*std::move(change), link, [answer = std::move(answer)](const Reply& reply) {
      const auto* refused = std::get_if<Refused>(&reply);
      answer({refused ? outcome_of(*refused) : Outcome{200, "OK"}, {}});
    });
    return true;
  }
  const auto number = [&](const char* name, std::int64_t otherwise) {
    const auto item = wire::find(*body, name);
    return item ? wire::integer_of(*item).value_or(otherwise) : otherwise;
  };
  auto held = client.take_place();
  if (!held) return refuse(too_much);
  client.submit(FindEntity{subscription}, link,
                [held = std::move(held), answer = std::move(answer), skip = number("skip", 0), top = number("top", page_max)](const Reply& reply) {
                  const auto* refused = std::get_if<Refused>(&reply);
                  const auto* found = std::get_if<EntitiesReply>(&reply);
                  if (refused) return answer({outcome_of(*refused), {}});
                  answer(found && !found->entities.empty() ? page_of(found->entities.front().rules, skip, top) : page_of({}, 0, 0));
                });
  return true;
}

}  // namespace baton::bus
