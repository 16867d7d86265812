#include "tests/simulation/message_workload.hpp"

#include <algorithm>
#include <array>

#include "tests/simulation/message_rules.hpp"

namespace baton::simulation {

using message::EntityType;
using message::Settings;
using namespace std::chrono_literals;

namespace {

constexpr std::array message_tenants{"default", "acme"};
constexpr std::array queues{"plain", "strict", "short", "fast", "passing"};
constexpr std::string_view selective = "some", passing = "passing";  // subscriptions

EntityKey subscription(const Tenant& tenant, std::string_view name) { return {tenant, message::subscription_path(topic_path, name)}; }

std::string own_queue(const Tenant& tenant) { return "own-" + tenant.value; }

bool is_undecided(const Reply& reply) {
  const auto* refused = std::get_if<Refused>(&reply);
  return refused && (refused->refusal == Refusal::store_unavailable || refused->refusal == Refusal::store_full);
}

}  // namespace

MessageWorkload::MessageWorkload(World& world)
    : world_(world), random_(world.random_), calm_(world.calm_), database_(world.database_), ledger_(world.database_, world.clock_) {
  ledger_.timers_may_be_put_off(world.faults_.row_held > 0 || world.faults_.refuses_rows);
  const auto set = [&](const std::string& path) -> Settings& {
    Settings& settings = settings_[path];
    settings.lock_time = within(5'000, 15'000);
    return settings;
  };
  set("plain").deliveries_max = static_cast<std::int32_t>(random_.between(1, 4));
  Settings& strict = set("strict");
  strict.detects_duplicates = true;
  strict.history_time = within(20'000, 90'000);
  strict.deliveries_max = 2;
  Settings& brief = set("short");
  brief.time_to_live = within(2'000, 20'000);
  brief.dead_letter_on_expiry = true;
  set("fast").time_to_live = within(5'000, 60'000);
  set("passing").detects_duplicates = random_.chance(0.5);
  set("own");
  set(std::string(topic_path)).detects_duplicates = random_.chance(0.5);
  Settings& copies = set("subscription");
  copies.deliveries_max = 3;
  if (random_.chance(0.3)) copies.time_to_live = within(5'000, 30'000);
  copies.dead_letter_on_expiry = random_.chance(0.5);
}

MessageWorkload::~MessageWorkload() = default;

void MessageWorkload::start() {
  sending_ends_ = world_.clock_.time + within(60'000, 150'000);
  set_up();
  for (const char* tenant : message_tenants) {
    const auto senders = random_.between(1, 3);
    for (std::int64_t i = 0; i < senders; ++i) {
      ++under_way_;
      after(within(0, 5'000), [this, tenant = Tenant{tenant}] { sender(tenant); });
    }
    after(within(1'000, 20'000), [this, tenant = Tenant{tenant}] { intrude(tenant); });
  }
  add_receivers();
  after(within(5'000, 20'000), [this] { administrate(); });
  after(within(1'000, 20'000), [this] { look_after(); });
}

bool MessageWorkload::at_rest() const {
  if (!is_late() || under_way_ > 0 || !database_.bus.messages.empty()) return false;
  return std::ranges::none_of(database_.bus.entities, [](const auto& entry) {
    return entry.second.path.empty() || entry.second.path.ends_with(passing);
  });
}

void MessageWorkload::tidy_up() {
  if (is_late()) remove_passing();
}

const message::Entity* MessageWorkload::find(const EntityKey& key) const {
  for (const auto& [id, row] : database_.bus.entities)
    if (row.tenant_id == key.tenant && row.path == key.path) return &row;
  return nullptr;
}

const message::Message* MessageWorkload::any_message(const std::function<bool(const message::Message&)>& is_wanted) {
  std::vector<const message::Message*> found;
  for (const auto& [key, row] : database_.bus.messages)
    if (is_wanted(row)) found.push_back(&row);
  return found.empty() ? nullptr : found[random_.below(found.size())];
}

void MessageWorkload::send_surely(const Command& command, const Then& then, int tries) {
  auto is_answered = std::make_shared<bool>(false);
  send(command, [is_answered, then](const Reply& reply) {
    if (is_undecided(reply) || *is_answered) return;
    *is_answered = true;
    then(reply);
  });
  after(within(800, 4'000), [this, command, then, tries, is_answered] {
    if (*is_answered) return;
    if (tries > 0) return send_surely(command, then, tries - 1);
    *is_answered = true;
    then(Refused{Refusal::store_unavailable, "nobody answers", {}});
  });
}

// ---- entities

void MessageWorkload::ensure(const EntityKey& key, EntityType type, const Settings& settings, std::vector<message::RuleDescription> rules) {
  if (find(key)) return;
  send(ChangeEntity{ChangeEntity::What::create, key, type, settings, std::move(rules)});
}

// What is not there is made, again and again: some of it is deleted, and subscriptions come after their topic.
void MessageWorkload::set_up() {
  if (is_late()) return;
  for (const char* name : message_tenants) {
    const Tenant tenant{name};
    for (const char* path : queues) ensure({tenant, path}, EntityType::queue, settings_.at(path));
    ensure({tenant, own_queue(tenant)}, EntityType::queue, settings_.at("own"));
    ensure({tenant, std::string(topic_path)}, EntityType::topic, settings_.at(std::string(topic_path)));
    if (!find({tenant, std::string(topic_path)})) continue;
    const Settings& settings = settings_.at("subscription");
    ensure(subscription(tenant, audit_name), EntityType::subscription, settings);
    ensure(subscription(tenant, selective), EntityType::subscription, settings, {description_of("red"), description_of("act")});
    ensure(subscription(tenant, passing), EntityType::subscription, settings, {description_of("label")});
  }
  after(within(500, 2'000), [this] { set_up(); });
}

void MessageWorkload::administrate() {
  if (at_rest()) return;
  if (is_late())  // until it has arrived
    remove_passing();
  else
    change_something(Tenant{message_tenants[random_.below(message_tenants.size())]});
  after(within(2'000, 15'000), [this] { administrate(); });
}

void MessageWorkload::change_something(const Tenant& tenant) {
  using What = ChangeRule::What;
  const auto rule = known_rules[random_.below(known_rules.size())].name;
  switch (random_.below(7)) {
    case 0: return send(ChangeRule{What::add, subscription(tenant, selective), description_of(rule)});
    case 1: return send(ChangeRule{What::replace, subscription(tenant, selective), description_of(rule)});
    case 2: return send(ChangeRule{What::remove, subscription(tenant, selective), description_of(rule)});
    case 3: {
      Settings changed = settings_.at("plain");
      changed.lock_time = within(5'000, 20'000);
      changed.deliveries_max = static_cast<std::int32_t>(random_.between(1, 4));
      return send(ChangeEntity{ChangeEntity::What::update, {tenant, "plain"}, EntityType::queue, changed, {}});
    }
    case 4: return send(ChangeEntity{ChangeEntity::What::remove, subscription(tenant, passing), EntityType::subscription, {}, {}});
    case 5: return send(ListEntities{tenant, EntityType::queue, "", 0, 100});
    default: return send(ChangeEntity{ChangeEntity::What::remove, {tenant, std::string(passing)}, EntityType::queue, {}, {}});
  }
}

void MessageWorkload::remove_passing() {
  for (const char* name : message_tenants) {
    const Tenant tenant{name};
    const EntityKey queue{tenant, std::string(passing)}, copies = subscription(tenant, passing);
    if (find(queue)) send(ChangeEntity{ChangeEntity::What::remove, queue, EntityType::queue, {}, {}});
    if (find(copies)) send(ChangeEntity{ChangeEntity::What::remove, copies, EntityType::subscription, {}, {}});
  }
}

// ---- senders

NewMessage MessageWorkload::new_message(const EntityKey& to) {
  const std::int64_t number = ++next_number_;
  NewMessage made;
  made.message_id = "id-" + std::to_string(random_.chance(0.1) ? random_.between(1, number) : number);
  made.content = Bytes{to.path + "#" + std::to_string(number)};
  if (random_.chance(0.2)) made.annotations = Bytes{std::string("\0\xff", 2)};
  if (random_.chance(0.2)) made.time_to_live = within(1'000, 40'000);
  if (random_.chance(0.2)) made.scheduled_for = world_.clock_.now() + within(-2'000, 25'000);
  if (to.path == topic_path) made.envelope = envelope_of(number, made.message_id);
  return made;
}

// One command after another. What is not answered is said again: whoever detects duplicates has it once.
void MessageWorkload::sender(const Tenant& tenant) {
  if (is_late()) return void(--under_way_);
  const auto which = random_.below(8);
  EntityKey to{tenant, which < 5 ? std::string(queues[which]) : which == 5 ? own_queue(tenant) : std::string(topic_path)};
  const auto next = [this, tenant] { after(within(50, 9'000), [this, tenant] { sender(tenant); }); };
  const bool is_there = find(to) && (to.path != topic_path || find(subscription(tenant, audit_name)));
  if (!is_there) return next();
  SendMessages command{to, {}};
  const auto transfers = random_.chance(0.2) ? 2 : 1;
  for (int t = 0; t < transfers; ++t) {
    auto& transfer = command.transfers.emplace_back();
    for (std::int64_t n = random_.chance(0.2) ? random_.between(2, 6) : 1; n > 0; --n) transfer.push_back(new_message(to));
  }
  send_surely(command, [this, command, next](const Reply& reply) {
    if (const auto* answer = std::get_if<SentReply>(&reply)) sent(command, *answer);
    next();
  });
}

// Some are called back before their time.
void MessageWorkload::sent(const SendMessages& command, const SentReply& reply) {
  for (std::size_t t = 0; t < reply.transfers.size(); ++t)
    for (std::size_t i = 0; reply.transfers[t] && i < reply.transfers[t]->size(); ++i) {
      const std::int64_t number = (*reply.transfers[t])[i];
      if (number == 0 || !command.transfers[t][i].scheduled_for || !random_.chance(0.4)) continue;
      after(within(0, 15'000), [this, to = command.to, number] { send(CancelScheduled{to, {number}}); });
    }
}

}  // namespace baton::simulation
