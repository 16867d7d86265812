#include "http/admin/atom.hpp"

#include <fmt/format.h>

#include "http/admin/entity_xml.hpp"
#include "http/admin/rule_xml.hpp"

namespace baton::http::admin {
namespace {

constexpr std::string_view entry_type = "application/atom+xml;type=entry;charset=utf-8";
constexpr std::string_view feed_type = "application/atom+xml;type=feed;charset=utf-8";
constexpr std::string_view error_type = "application/xml; charset=utf-8";

// What an entry says of the thing that its content describes.
struct Heading {
  std::string path;  // of the thing
  std::string title;
  Time created, updated;
};

Heading heading_of(const EntityInfo& info) {
  const auto subscription = message::split_subscription_path(info.entity.path);
  return {info.entity.path, subscription ? subscription->subscription : info.entity.path, info.entity.created_at, info.entity.updated_at};
}

Heading heading_of(const EntityInfo& subscription, const message::RuleDescription& rule) {
  return {subscription.entity.path + "/Rules/" + rule.name, rule.name, rule.created_at, rule.created_at};
}

// Answers where what it describes goes.
pugi::xml_node add_entry(pugi::xml_node parent, const std::string& base, const Heading& heading) {
  const pugi::xml_node entry = add(parent, "entry");
  set(entry, "xmlns", atom_namespace);
  const std::string url = base + "/" + heading.path;
  add(entry, "id", url);
  add(entry, "title", heading.title);
  set(entry.last_child(), "type", "text");
  add(entry, "published", to_iso(heading.created));
  add(entry, "updated", to_iso(heading.updated));
  set(add(entry, "link"), "rel", "self");
  set(entry.last_child(), "href", url);
  const pugi::xml_node content = add(entry, "content");
  set(content, "type", "application/xml");
  return content;
}

Response respond(int status, std::string_view type, const pugi::xml_document& document) {
  Response response;
  response.status = status;
  response.content_type = type;
  response.body = write(document);
  return response;
}

void add_link(pugi::xml_node feed, const char* rel, const std::string& href) {
  const pugi::xml_node link = add(feed, "link");
  set(link, "rel", rel);
  set(link, "href", href);
}

pugi::xml_node begin_feed(pugi::xml_document& document, const Request& request, const Page& page) {
  const std::string url = base_of(request) + request.path;
  const pugi::xml_node feed = add(document, "feed");
  set(feed, "xmlns", atom_namespace);
  add(feed, "id", url);
  // The SDK for JavaScript looks for the next one only where there are two.
  add_link(feed, "self", fmt::format("{}?$skip={}&$top={}", url, page.skip, page.top));
  if (page.are_more) add_link(feed, "next", fmt::format("{}?$skip={}&$top={}", url, page.skip + page.top, page.top));
  return feed;
}

// As the SDKs understand them: 403 is a quota to them unless it says what else.
int status_for(Refusal refusal) {
  switch (refusal) {
    case Refusal::entity_not_found:
    case Refusal::message_not_found: return 404;
    case Refusal::entity_exists: return 409;
    case Refusal::quota_exceeded:
    case Refusal::not_possible: return 403;
    case Refusal::overloaded:
    case Refusal::stopping:
    case Refusal::store_unavailable: return 503;
    case Refusal::store_full: return 507;
    case Refusal::row_unreadable: return 500;
    default: return 400;
  }
}

}  // namespace

std::string base_of(const Request& request) { return "http://" + (request.host.empty() ? std::string("localhost") : request.host); }

Response entity_entry(int status, const Request& request, const EntityInfo& info) {
  pugi::xml_document document;
  add_description(add_entry(document, base_of(request), heading_of(info)), info);
  return respond(status, entry_type, document);
}

Response rule_entry(int status, const Request& request, const EntityInfo& subscription, const message::RuleDescription& rule) {
  pugi::xml_document document;
  add_rule(add_entry(document, base_of(request), heading_of(subscription, rule)), rule);
  return respond(status, entry_type, document);
}

Response namespace_entry(const Request& request, Time created, Time changed) {
  pugi::xml_document document;
  const pugi::xml_node info = add(add_entry(document, base_of(request), {"$namespaceinfo", "baton", created, changed}), "NamespaceInfo");
  set(info, "xmlns", bus_namespace);
  set(info, "xmlns:i", instance_namespace);
  add(info, "CreatedTime", to_iso(created));
  add(info, "MessagingSKU", "Standard");
  add(info, "ModifiedTime", to_iso(changed));
  add(info, "Name", "baton");
  add(info, "NamespaceType", "Messaging");
  return respond(200, entry_type, document);
}

Response entity_feed(const Request& request, const Page& page, const std::vector<EntityInfo>& entities) {
  pugi::xml_document document;
  const pugi::xml_node feed = begin_feed(document, request, page);
  for (const EntityInfo& each : entities) add_description(add_entry(feed, base_of(request), heading_of(each)), each);
  return respond(200, feed_type, document);
}

Response rule_feed(const Request& request, const Page& page, const EntityInfo& subscription, const std::vector<message::RuleDescription>& rules) {
  pugi::xml_document document;
  const pugi::xml_node feed = begin_feed(document, request, page);
  for (const auto& each : rules) add_rule(add_entry(feed, base_of(request), heading_of(subscription, each)), each);
  return respond(200, feed_type, document);
}

Response error(int status, std::string_view detail) {
  pugi::xml_document document;
  const pugi::xml_node root = add(document, "Error");
  add(root, "Code", status);
  add(root, "Detail", std::string(detail));
  auto response = respond(status, error_type, document);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

Response error(const Refused& refused) {
  const int status = status_for(refused.refusal);
  return error(status, refused.refusal == Refusal::not_possible ? "SubCode=40301. " + refused.message : refused.message);
}

}  // namespace baton::http::admin
