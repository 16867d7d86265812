// `baton bus …`: queues, topics and subscriptions of the AMQP endpoint, and a look at their messages.
#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/commands/targets.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"
#include "core/message/settings.hpp"
#include "core/workflow/definition/span.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string type, path, topic, lock, ttl, detect_duplicates, delete_when_idle, metadata;
  std::vector<std::string> rules;
  std::vector<std::size_t> sequence_numbers;
  std::int64_t from = 1;
  int max = 20, deliveries = 0, size_mb = 0;
  bool dead = false, body = false, all = false, dead_on_expiry = false;
};
using Shared = std::shared_ptr<Options>;

constexpr const char* entities_target = "/api/v1/bus/entities";

std::string entity_target(const std::string& path, const std::string& rest = {}) { return fmt::format("{}/{}{}", entities_target, escaped(path), rest); }
std::string entity_target(const Options& options, const std::string& rest = {}) { return entity_target(options.path, rest); }

// Of TOPIC/NAME the path of that subscription; others as they are.
std::string subscription_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos || message::split_subscription_path(path)) return path;
  return message::subscription_path(path.substr(0, slash), path.substr(slash + 1));
}

// For a subscription TOPIC/NAME is enough, unless a queue or a topic is called so.
std::string found_path(const Options& options) {
  const std::string subscription = subscription_of(options.path);
  if (subscription == options.path) return options.path;
  Remote remote(options.remote);
  const auto is_missing = [&](const std::string& path) {
    const auto answer = remote.get(entity_target(path));
    return answer && answer->status == 404;
  };
  return is_missing(options.path) && !is_missing(subscription) ? subscription : options.path;
}

template <int (*act)(const Options&)>
int named(const Options& options) {
  Options found = options;
  found.path = found_path(options);
  return act(found);
}

std::string amount(const Fields& fields, std::string_view key) { return std::to_string(fields.number(key)); }

// --- list

// All pages of one list; the exit code if there is none.
struct Gathered {
  std::vector<Fields> entities;
  int code = exit_ok;
};

void gather(Remote& remote, const Options& options, const std::string& type, const std::string& topic, Gathered& into) {
  std::string cursor;
  do {
    const auto answer = remote.get(Target(entities_target).with("type", type).with("topic", topic).with("limit", 1'000).with("cursor", cursor).text());
    if (!answer) into.code = refuse(options.remote, answer.error());
    else if (!answer->ok()) into.code = refuse(options.remote, *answer);
    if (into.code != exit_ok) return;
    const Fields page(answer->body);
    for (Fields& each : page.items("entities")) into.entities.push_back(std::move(each));
    cursor = page.text("next_cursor");
  } while (!cursor.empty());
}

// Each topic with its subscriptions behind it.
Gathered gather_all(const Options& options) {
  Remote remote(options.remote);
  Gathered all;
  if (!options.topic.empty()) {
    gather(remote, options, "subscription", options.topic, all);
    return all;
  }
  if (options.type.empty() || options.type == "queue") gather(remote, options, "queue", "", all);
  if (options.type == "queue" || all.code != exit_ok) return all;
  Gathered topics;
  gather(remote, options, "topic", "", topics);
  all.code = topics.code;
  for (Fields& topic : topics.entities) {
    const std::string path = topic.text("path");
    if (options.type != "subscription") all.entities.push_back(std::move(topic));
    if (options.type != "topic" && all.code == exit_ok) gather(remote, options, "subscription", path, all);
  }
  return all;
}

int list(const Options& options) {
  const Gathered all = gather_all(options);
  if (all.code != exit_ok) return all.code;
  if (options.remote.as_json) {
    std::vector<Json> documents;
    for (const Fields& each : all.entities) documents.push_back({each.whole()});
    print_json(json_object("entities", documents).text);
    return exit_ok;
  }
  const auto count = [](const Fields& entity, const Fields& counts, std::string_view key) {
    return amount(counts, key) + (entity.flag("counts_are_at_least") ? "+" : "");
  };
  std::vector<Row> rows{{"PATH", "TYPE", "STATUS", "ACTIVE", "DEAD", "SCHEDULED", "DEFERRED", "BYTES"}};
  for (const Fields& each : all.entities) {
    const Fields counts(each.document("counts"));
    rows.push_back({each.text("path"), each.text("type"), each.text("status"), count(each, counts, "active"), count(each, counts, "dead"), amount(counts, "scheduled"),
                    amount(counts, "deferred"), amount(each, "bytes")});
  }
  fmt::print("{}", rows.size() == 1 ? "None.\n" : table(rows));
  return exit_ok;
}

// --- show

std::string seconds(const Fields& entity, std::string_view key, const std::string& none) {
  return entity.has(key) ? entity.document(key) + " s" : none;
}

std::string age_of(const std::string& since) {
  const auto time = from_iso(since);
  if (!time) return "";
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(now() - *time).count();
  return fmt::format("{} ({} s ago)", since, std::max<std::int64_t>(age, 0));
}

std::string filter_of(const Fields& rule) {
  if (rule.has("sql")) {
    const Fields sql(rule.document("sql"));
    return sql.text("expression") + (sql.has("parameters") ? " with " + sql.document("parameters") : "");
  }
  if (rule.has("correlation")) return rule.document("correlation");
  return rule.flag("false") ? "no message" : "every message";
}

void print_entity(const Fields& entity) {
  const bool is_topic = entity.text("type") == "topic";
  const Fields counts(entity.document("counts"));
  print_field("path", printable(entity.text("path")));
  print_field("type", entity.text("type") + (entity.flag("reserved") ? ", baton's own" : ""));
  print_field("status", entity.text("status"));
  const char* more = entity.flag("counts_are_at_least") ? " or more" : "";
  if (entity.has("pool"))
    print_field("pool", fmt::format("{}: {}{} jobs wait, {}{} are dead letters (see baton dead-letter list)", printable(entity.text("pool")), counts.number("active"),
                                    more, counts.number("dead"), more));
  else
    print_field("messages", fmt::format("{} active, {} dead, {} scheduled, {} deferred; {} bytes", counts.number("active"), counts.number("dead"),
                                      counts.number("scheduled"), counts.number("deferred"), entity.number("bytes")));
  print_field("oldest", age_of(entity.text("oldest_enqueued_at")));
  if (!is_topic) print_field("lock", seconds(entity, "lock_seconds", ""));
  if (!is_topic) print_field("deliveries", fmt::format("at most {}", entity.number("deliveries_max")));
  print_field("to live", seconds(entity, "time_to_live_seconds", "for ever") + (entity.flag("dead_letter_on_expiry") ? ", then a dead letter" : ""));
  if (entity.flag("detects_duplicates")) print_field("duplicates", "of the last " + seconds(entity, "history_seconds", "") + " are dropped");
  print_field("size", fmt::format("at most {} MB", entity.number("size_max_mb")));
  print_field("idle", entity.has("delete_when_idle_seconds") ? "deleted after " + seconds(entity, "delete_when_idle_seconds", "") : "");
  print_field("metadata", printable(entity.text("user_metadata")));
  print_field("created", entity.text("created_at"));
  print_field("updated", entity.text("updated_at"));
  print_field("accessed", entity.text("accessed_at"));
  if (is_topic) print_field("subscribed", amount(entity, "subscriptions"));
  for (const Fields& rule : entity.items("rules")) {
    const std::string action = rule.has("action") ? "; then " + Fields(rule.document("action")).text("expression") : "";
    print_field("rule", printable(rule.text("name") + ": " + filter_of(rule) + action));
  }
}

int show(const Options& options) { return get(options.remote, entity_target(options), print_entity); }

// --- the external broker

std::string since_or(const Fields& of, std::string_view yes, std::string_view no, std::string_view flag) {
  return fmt::format("{} since {}", of.flag(flag) ? yes : no, of.text("since"));
}

void print_broker(const Fields& broker) {
  print_field("broker", printable(broker.text("address")));
  print_field("state", since_or(broker, "connected", "away", "connected"));
  if (broker.has("trouble")) print_field("trouble", one_line(broker.text("trouble")) + ", at " + broker.text("trouble_at"));
  std::vector<Row> links{{"LINK", "DIRECTION", "QUEUE", "STATE", "LAST TROUBLE"}};
  for (const Fields& link : broker.items("links"))
    links.push_back({link.text("address"), link.text("direction"), link.text("queue"), since_or(link, "open", "closed", "open"), one_line(link.text("trouble"))});
  if (links.size() > 1) fmt::print("\n{}", table(links));
  std::vector<Row> rejected{{"REJECTED", "BY", "SOURCE", "MESSAGE ID", "REASON", "DESCRIPTION"}};
  for (const Fields& message : broker.items("rejected"))
    rejected.push_back({message.text("at"), message.text("rejected_by"), message.text("source"), message.text("message_id"), one_line(message.text("reason")),
                        one_line(message.text("description"))});
  if (rejected.size() > 1) fmt::print("\n{}", table(rejected));
}

int broker(const Options& options) { return get(options.remote, "/api/v1/bus/broker", print_broker); }

// --- create and delete

// What is said explicitly must mean something: 0 would be taken for nothing said.
std::string check_some_span(const std::string& text) {
  if (auto wrong = check_span(text); !wrong.empty()) return wrong;
  return workflow::read_span(text)->count() > 0 ? "" : fmt::format("'{}' is no time at all", text);
}

double seconds_of(const std::string& span) {
  const auto duration = workflow::read_span(span);
  return duration ? static_cast<double>(duration->count()) / 1'000 : 0;
}

std::string creation(const Options& options) {
  std::string body = "{";
  append_members(body, "type", options.type, "path", options.type == "subscription" ? subscription_of(options.path) : options.path);
  append_given(body, "lock_seconds", seconds_of(options.lock), "time_to_live_seconds", seconds_of(options.ttl), "delete_when_idle_seconds",
               seconds_of(options.delete_when_idle), "deliveries_max", options.deliveries, "size_max_mb", options.size_mb, "user_metadata", options.metadata,
               "dead_letter_on_expiry", options.dead_on_expiry);
  if (!options.detect_duplicates.empty()) append_members(body, "detects_duplicates", true, "history_seconds", seconds_of(options.detect_duplicates));
  if (!options.rules.empty()) {
    std::vector<Json> rules;
    for (const std::string& rule : options.rules)
      rules.push_back(json_object("name", rules.empty() ? "$Default" : fmt::format("rule-{}", rules.size() + 1), "sql", json_object("expression", rule)));
    append_member(body, "rules", rules);
  }
  return body + "}";
}

int create(const Options& options) {
  return post(options.remote, entities_target, creation(options),
              [](const Fields& entity) { fmt::print("{} {} is there.\n", entity.text("type"), printable(entity.text("path"))); });
}

int erase(const Options& options) {
  return post(options.remote, entity_target(options, "/delete"), "{}", [&](const Fields&) { fmt::print("{} is deleted.\n", printable(options.path)); });
}

// --- messages

std::string messages_target(const Options& options, bool dead, std::int64_t after) {
  Target target(entity_target(options, "/messages"));
  target.with("dead", dead ? "true" : "").with("full", options.body ? "true" : "").with("limit", options.max);
  return target.with("after", after > 0 ? std::to_string(after) : "").text();
}

// A page may be short because its messages are large, so that only a look behind it tells.
void say_how_to_go_on(Options options, bool dead, std::int64_t last) {
  options.max = 1;
  options.body = false;
  const auto next = Remote(options.remote).get(messages_target(options, dead, last));
  if (next && next->ok() && !Fields(next->body).items("messages").empty()) fmt::print(stderr, "More: add --from {}\n", last + 1);
}

std::string body_of(const Fields& message) {
  if (message.has("content_base64")) return message.text("content_base64");
  return message.text("body_type") == "json" ? message.document("body") : message.text("body");
}

int list_messages(const Options& options, bool dead, Row heading, const Fill& fill) {
  if (options.body) heading.emplace_back("BODY");
  const Listing listing{.target = messages_target(options, dead, options.from - 1), .key = "messages", .heading = std::move(heading)};
  const auto with_body = [&](const Fields& message) {
    Row row = fill(message);
    if (options.body) row.push_back(cut(one_line(body_of(message)), 100));
    return row;
  };
  return get(options.remote, listing.target, [&](const Fields& page) {
    print_page(page, listing, with_body);
    if (!page.items("messages").empty()) say_how_to_go_on(options, dead, page.number("next_after"));
  });
}

int peek(const Options& options) {
  return list_messages(options, options.dead, {"SEQUENCE", "STATE", "ENQUEUED", "DELIVERIES", "LOCKED UNTIL", "SIZE", "MESSAGE ID"}, [](const Fields& message) -> Row {
    return {amount(message, "sequence_number"), message.text("state"), message.text("enqueued_at"), amount(message, "delivery_count"),
            message.text("locked_until"), amount(message, "size"), message.text("message_id")};
  });
}

int dead_letters(const Options& options) {
  return list_messages(options, true, {"SEQUENCE", "ENQUEUED", "DELIVERIES", "MESSAGE ID", "REASON", "DESCRIPTION"}, [](const Fields& message) -> Row {
    return {amount(message, "sequence_number"), message.text("enqueued_at"), amount(message, "delivery_count"), message.text("message_id"),
            one_line(message.text("dead_letter_reason")), one_line(message.text("dead_letter_description"))};
  });
}

// --- replay

// Those that are there at the beginning: one that dies again has a new number, and would be replayed for ever.
int replay_all(const Options& options) {
  Remote remote(options.remote);
  const auto entity = remote.get(entity_target(options));
  if (!entity) return refuse(options.remote, entity.error());
  if (!entity->ok()) return refuse(options.remote, *entity);
  const std::int64_t up_to = Fields(entity->body).number("last_sequence_number");
  std::int64_t replayed = 0, after = 0;
  for (bool are_more = true; are_more;) {
    const std::string body = json_object("max", 1'000, "after", after, "up_to", up_to).text;
    const auto answer = remote.post(entity_target(options, "/dead-letters:replay"), body, "application/json");
    if (!answer) return refuse(options.remote, answer.error());
    if (!answer->ok()) return refuse(options.remote, *answer);
    const Fields done(answer->body);
    replayed += done.number("replayed");
    after = done.number("next_after");
    are_more = done.flag("are_more");
  }
  if (options.remote.as_json) print_json(json_object("replayed", replayed).text);
  else fmt::print("{} replayed.\n", replayed);
  return exit_ok;
}

int replay(const Options& options) {
  if (options.all) return replay_all(options);
  if (options.sequence_numbers.empty()) {
    complain("say which: --sequence N, or --all");
    return exit_usage;
  }
  return post(options.remote, entity_target(options, "/dead-letters:replay"), json_object("sequence_numbers", options.sequence_numbers).text,
              [](const Fields& done) { fmt::print("{} replayed.\n", done.number("replayed")); });
}

// --- what is typed

Parser add_named(Parser bus, Action& chosen, const Shared& options, const std::string& name, const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(bus, chosen, options, name, help, act);
  command.add_option("NAME", options->path, "a queue, a topic, or a subscription as TOPIC/NAME").required();
  return command;
}

void add_span(Parser command, const std::string& name, std::string& into, const std::string& help) {
  command.add_option(name, into, help + "; seconds, or as 1h30m").type_name("SPAN").check(check_some_span);
}

void add_create(Parser bus, Action& chosen, const Shared& options) {
  Parser command = add_command(bus, chosen, options, "create", "Make a queue, a topic or a subscription", create);
  command.add_option("TYPE", options->type, "queue, topic or subscription").required().one_of({"queue", "topic", "subscription"});
  command.add_option("NAME", options->path, "of a subscription TOPIC/NAME").required();
  command.add_option("--rule", options->rules, "of a subscription: SQL that selects messages; more than one: any of them; default every message")
      .type_name("SQL");
  add_span(command, "--lock", options->lock, "how long a receiver has a message; default 1m");
  add_span(command, "--ttl", options->ttl, "how long messages live; default for ever");
  command.add_flag("--dead-letter-on-expiry", options->dead_on_expiry, "what has lived that long becomes a dead letter");
  command.add_option("--max-deliveries", options->deliveries, "then a message becomes a dead letter; default 10").range(1, 2'000);
  add_span(command, "--detect-duplicates", options->detect_duplicates, "drop messages with an id that came within that time");
  add_span(command, "--delete-when-idle", options->delete_when_idle, "delete it when nobody has used it for so long");
  command.add_option("--max-size", options->size_mb, "MB of all its messages; default 1024").range(1, 1 << 20);
  command.add_option("--metadata", options->metadata, "a text that is kept with it");
  command.footer(
      "Examples:\n"
      "  baton bus create queue orders --lock 30s --ttl 7d --detect-duplicates 10m\n"
      "  baton bus create topic events\n"
      "  baton bus create subscription events/audit --rule \"sys.Label = 'order' AND total > 100\"");
}

void add_page_options(Parser command, const Shared& options) {
  command.add_option("--from", options->from, "the first sequence number; default 1").range(1.0, 9e15);
  command.add_option("--max", options->max, "messages, fewer when they are large; default 20").range(1, 200);
  command.add_flag("--body", options->body, "with what they say");
}

}  // namespace

void add_bus(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser bus = app.add_subcommand("bus", "Queues, topics and subscriptions of the AMQP endpoint, and their messages");
  bus.require_subcommand(1);
  Parser all = add_command(bus, chosen, options, "list", "List queues, topics and subscriptions", list);
  const Option type = all.add_option("--type", options->type, "only these: queue, topic or subscription").one_of({"queue", "topic", "subscription"});
  all.add_option("--topic", options->topic, "only the subscriptions of this topic").excludes(type);
  (void)add_command(bus, chosen, options, "broker", "Print how the connection to the external broker is, and what was rejected last", broker);
  (void)add_named(bus, chosen, options, "show", "Print settings, counts, rules and the age of the oldest message", named<show>);
  add_create(bus, chosen, options);
  (void)add_named(bus, chosen, options, "delete", "Delete one with its messages, a topic with its subscriptions", named<erase>);
  Parser looks = add_named(bus, chosen, options, "peek", "Look at messages without receiving them", named<peek>);
  looks.add_flag("--dead", options->dead, "those of the dead-letter queue");
  add_page_options(looks, options);
  add_page_options(add_named(bus, chosen, options, "dead-letters", "List dead letters and why they are some", named<dead_letters>), options);
  Parser again = add_named(bus, chosen, options, "replay", "Send dead letters back to where they came from", named<replay>);
  const Option each = again.add_option("--sequence", options->sequence_numbers, "the sequence number of one; more than one is fine").type_name("N");
  again.add_flag("--all", options->all, "all that no receiver has").excludes(each);
}

}  // namespace baton::cli
