#include "server/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/diagnostic.hpp"
#include "base/yaml.hpp"
#include "server/bus_config.hpp"

namespace baton::server {
namespace {

constexpr std::size_t config_bytes_max = 1 << 20;

Result<> set_bool(bool& out, std::string_view value) {
  constexpr std::array yes{"on", "true", "yes", "1"};
  constexpr std::array no{"off", "false", "no", "0"};
  if (std::ranges::find(yes, value) != yes.end()) return out = true, Result<>{};
  if (std::ranges::find(no, value) != no.end()) return out = false, Result<>{};
  return fail(Code::invalid, fmt::format("'{}' is neither on nor off", value));
}

Result<> set_word(std::string& out, std::string_view value, const std::vector<std::string_view>& words) {
  if (std::ranges::find(words, value) != words.end()) return out = value, Result<>{};
  const std::string near = nearest(value, words);
  return fail(Code::invalid, fmt::format("'{}' is not one of {}{}", value, fmt::join(words, ", "),
                                         near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

// A whole number, with k, m or g (also KiB, MB, …) for powers of 1024.
Result<> set_count(std::size_t& out, std::string_view value, std::size_t least) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  std::string unit{end, value.data() + value.size()};
  std::ranges::transform(unit, unit.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (unit.ends_with("ib")) unit.resize(unit.size() - 2);
  if (unit.ends_with("b")) unit.resize(unit.size() - 1);
  const int shift = unit.empty() ? 0 : unit == "k" ? 10 : unit == "m" ? 20 : unit == "g" ? 30 : -1;
  if (error != std::errc{} || shift < 0)
    return fail(Code::invalid, fmt::format("'{}' is not a whole number (k, m and g may follow it)", value));
  if (number > (std::size_t{1} << 40 >> shift) || (number << shift) < least)
    return fail(Code::invalid, fmt::format("'{}' is out of range: at least {}, at most 2^40", value, least));
  out = number << shift;
  return {};
}

Result<> set_path(std::filesystem::path& out, std::string_view value) {
  if (value.empty()) return fail(Code::invalid, "a path must not be empty");
  out = value;
  return {};
}

Result<> set_store(Config& config, std::string_view value) {
  const bool known = (value.starts_with("sqlite:") && value.size() > 7) || value.starts_with("postgres://") ||
                     value.starts_with("postgresql://");
  // "Server=…;Database=…;Password=…", also with blanks: never shown, for it may hold a password anywhere.
  if (!known && value.contains('=') && !value.contains("://"))
    return fail(
        Code::invalid,
        "this is a connection string of SQL Server, which baton does not write to; give sqlite:PATH or postgres://USER@HOST/DATABASE "
        "as store instead, or a directory as data, and nothing here");
  if (!known)
    return fail(Code::invalid, fmt::format("'{}' is not a store: expected sqlite:PATH or "
                                           "postgres://USER@HOST/DATABASE",
                                           without_password(value)));
  config.store = value;
  return {};
}

Result<> set_listen(Config& config, std::string_view value) {
  TRY_ASSIGN(config.listen, parse_listen(value));
  return {};
}

Result<> set_amqp(Config& config, std::string_view value) {
  TRY_ASSIGN(config.amqp, parse_listen(value, usual_amqp_port));
  return {};
}

Result<> set_amqp_admin(Config& config, std::string_view value) {
  TRY_ASSIGN(config.amqp_admin, parse_listen(value, usual_amqp_admin_port));
  return {};
}

Result<> set_log_format(Config& config, std::string_view value) {
  std::string word;
  TRY(set_word(word, value, {"auto", "text", "json"}));
  config.log_format = word == "text"   ? LogFormat::text
                      : word == "json" ? LogFormat::json
                                       : LogFormat::automatic;
  return {};
}

Result<> set_names(std::vector<std::string>& to, std::string_view value) {
  to.clear();
  while (!value.empty()) {
    const auto end = std::min(value.find(','), value.size());
    const std::string_view name = value.substr(0, end);
    if (name.empty() || name.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != name.npos)
      return fail(Code::invalid, "must be names of environment variables with commas between them");
    to.emplace_back(name);
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return {};
}

Result<> add_text(std::vector<std::string>& out, std::string_view value) {
  out.emplace_back(value);
  return {};
}

constexpr std::array all_settings{
    Setting{"data", "DIR", "directory of the embedded database (DIR/baton.db); default ./baton-data",
            [](Config& c, std::string_view v) { return set_path(c.data, v); }},
    Setting{"store", "URL", "sqlite:PATH or postgres://USER@HOST/DATABASE, instead of --data", set_store},
    Setting{"without_log", "",
            "start once although the log of the SQLite database is missing, as for a copy that was made while a server ran",
            [](Config& c, std::string_view v) { return set_bool(c.without_log, v); }},
    Setting{"listen", "HOST:PORT", "where to listen; default 127.0.0.1:8080, port 0 picks a free one",
            set_listen},
    Setting{"amqp", "HOST[:PORT]", "an AMQP 1.0 endpoint for workers and schedulers of Azure Service Bus, as 127.0.0.1; its port is 5672 unless said; default none",
            set_amqp},
    Setting{"amqp_admin", "HOST[:PORT]", "its management API, for ServiceBusAdministrationClient; its port is 5300 unless said; default none",
            set_amqp_admin},
    Setting{"bus_events_topic", "NAME", "the topic of the endpoint to which schedulers send; default orchestrator-events",
            [](Config& c, std::string_view v) { return set_entity(c.bus_events_topic, v); }},
    Setting{"bus_jobs_topic", "NAME", "the topic whose subscriptions worker-ID are the pools of workers; default worker-jobs",
            [](Config& c, std::string_view v) { return set_entity(c.bus_jobs_topic, v); }},
    Setting{"bus_results_topic", "NAME", "the topic to which workers send results; default worker-results",
            [](Config& c, std::string_view v) { return set_entity(c.bus_results_topic, v); }},
    Setting{"bus", "URL", "an external broker: amqp://USER:PASSWORD@HOST, amqps://… or a connection string of Azure Service Bus; better in BATON_BUS, where nobody sees it",
            set_bus},
    Setting{"bus_namespace", "HOST", "a namespace of Azure Service Bus as the external broker, without a key: tokens of an identity are shown there",
            set_bus_namespace},
    Setting{"bus_identity", "KIND", "managed or client_secret; default client_secret if there is one, else managed", set_bus_identity},
    Setting{"bus_token_endpoint", "URL", "who hands out the tokens; default http://169.254.169.254, or https://login.microsoftonline.com for a client secret",
            [](Config& c, std::string_view v) { return c.bus_identity.endpoint = v, Result<>{}; }},
    Setting{"bus_client_id", "ID", "the application, or which managed identity if there is more than one",
            [](Config& c, std::string_view v) { return c.bus_identity.client_id = v, Result<>{}; }},
    Setting{"bus_tenant_id", "ID", "the tenant of the application",
            [](Config& c, std::string_view v) { return c.bus_identity.tenant_id = v, Result<>{}; }},
    Setting{"bus_client_secret", "SECRET", "the secret of the application",
            [](Config& c, std::string_view v) { return c.bus_identity.client_secret = v, Result<>{}; }, true},
    Setting{"bus_identity_header", "SECRET", "what the token endpoint of App Service or Container Apps wants to hear",
            [](Config& c, std::string_view v) { return c.bus_identity.header = v, Result<>{}; }, true},
    Setting{"bus_transport", "tcp|websocket", "how the external broker is spoken to; default tcp, websocket goes over HTTPS", set_bus_transport},
    Setting{"bus_pools", "NAMES", "pools whose jobs go to the topic of jobs on the external broker, with commas between them",
            [](Config& c, std::string_view v) { return set_entities(c.bus_pools, v); }},
    Setting{"bus_queues", "NAMES", "queues of workflows whose tasks go to queues of the same names there, with commas between them",
            [](Config& c, std::string_view v) { return set_entities(c.bus_queues, v); }},
    Setting{"bus_results_subscription", "NAME", "the subscription there from which baton takes results; default orchestrator",
            [](Config& c, std::string_view v) { return set_entity(c.bus_results_subscription, v, subscription_name_max); }},
    Setting{"bus_events_subscription", "NAME", "the subscription there from which baton takes what schedulers send; default orchestrator",
            [](Config& c, std::string_view v) { return set_entity(c.bus_events_subscription, v, subscription_name_max); }},
    Setting{"bus_ca", "FILE", "certificates (PEM) that the external broker is trusted by, instead of the system's",
            [](Config& c, std::string_view v) { return c.bus_ca = v, Result<>{}; }},
    Setting{"bus_lock_seconds", "N", "how long whoever receives a job over AMQP has it before the lock must be renewed; default 60",
            [](Config& c, std::string_view v) { return set_count(c.bus_lock_seconds, v, 1); }},
    Setting{"bus_auto_pools", "on|off", "a worker that receives from a subscription worker-ID which is not there makes it; default on",
            [](Config& c, std::string_view v) { return set_bool(c.bus_auto_pools, v); }},
    Setting{"definitions", "DIR", "publish the workflows of DIR (*.yaml and *.yml) at start",
            [](Config& c, std::string_view v) { return set_path(c.definitions, v); }},
    Setting{"insecure", "", "allow other hosts in without any token",
            [](Config& c, std::string_view v) { return set_bool(c.insecure, v); }},
    Setting{"builtin", "on|off", "built-in handlers echo, sleep, fail and flaky; default on",
            [](Config& c, std::string_view v) { return set_bool(c.builtin, v); }},
    Setting{"scheduler", "on|off",
            "the built-in scheduler of runbooks: data sources, phases and polls; default on",
            [](Config& c, std::string_view v) { return set_bool(c.scheduler, v); }},
    Setting{"adopt", "",
            "take over at start the steps that another orchestrator has left dispatched or polling, and the phases it has begun",
            [](Config& c, std::string_view v) { return set_bool(c.adopt, v); }},
    Setting{"calls", "on|off", "make the service calls that are due; default on",
            [](Config& c, std::string_view v) { return set_bool(c.calls, v); }},
    Setting{"egress_allow", "RULES",
            "where service calls may go although it is refused by default: CIDR, host or *.host, with commas between",
            [](Config& c, std::string_view v) { return add_text(c.egress_allow, v); }},
    Setting{"egress_deny", "RULES", "where they may not go; wins over egress_allow, but for the word all, which leaves only what is allowed",
            [](Config& c, std::string_view v) { return add_text(c.egress_deny, v); }},
    Setting{"calls_max", "N", "service calls under way at once, and so put in doubt by a crash; default 1024",
            [](Config& c, std::string_view v) { return set_count(c.calls_max, v, 1); }},
    Setting{"calls_per_origin", "N", "of these, to one scheme, host and port; default 128",
            [](Config& c, std::string_view v) { return set_count(c.calls_per_origin, v, 1); }},
    Setting{"calls_connect_seconds", "N", "for finding a name, connecting and TLS; default 10",
            [](Config& c, std::string_view v) { return set_count(c.calls_connect_seconds, v, 1); }},
    Setting{"calls_first_byte_seconds", "N", "until an answer begins; default 0: only the call's own timeout counts",
            [](Config& c, std::string_view v) { return set_count(c.calls_first_byte_seconds, v, 0); }},
    Setting{"calls_drain_seconds", "N", "how long a stop waits for service calls that are under way; default 10",
            [](Config& c, std::string_view v) { return set_count(c.calls_drain_seconds, v, 0); }},
    Setting{"calls_ca", "FILE", "certificates (PEM) that service calls trust beside the system's",
            [](Config& c, std::string_view v) { return c.calls_ca = v, Result<>{}; }},
    Setting{"env", "NAMES",
            "variables that expressions may see as env.NAME, with commas between them; default none",
            [](Config& c, std::string_view v) { return set_names(c.env, v); }},
    Setting{"log_level", "LEVEL", "trace, debug, info, warn, error or off; default info",
            [](Config& c, std::string_view v) {
              return set_word(c.log_level, v, {"trace", "debug", "info", "warn", "error", "off"});
            }},
    Setting{"log_format", "FORMAT",
            "auto, text or json; default auto: text on a terminal, JSON lines otherwise", set_log_format},
    Setting{"body_max", "BYTES", "largest request body; default 4m",
            [](Config& c, std::string_view v) { return set_count(c.body_max, v, 1024); }},
    Setting{"connections_max", "N", "connections at once; default 16000",
            [](Config& c, std::string_view v) { return set_count(c.connections_max, v, 1); }},
    Setting{"inbox_max", "N", "commands that may wait for the engine before it answers 503; default 16384",
            [](Config& c, std::string_view v) { return set_count(c.inbox_max, v, 1); }},
    Setting{"lease_seconds", "N",
            "how long a worker that heartbeats may be silent before its tasks go to others; default 30",
            [](Config& c, std::string_view v) { return set_count(c.lease_seconds, v, 1); }},
};

// The names that an orchestrator on Azure Service Bus has for its settings, and what they are here.
struct Alias {
  std::string_view name, key;
};
constexpr std::array aliases{
    Alias{"Orchestrator__SqlConnectionString", "store"},
    Alias{"Orchestrator__ServiceBusNamespace", "bus_namespace"},
    Alias{"Orchestrator__OrchestratorEventsTopicName", "bus_events_topic"},
    Alias{"Orchestrator__OrchestratorSubscriptionName", "bus_events_subscription"},
    Alias{"Orchestrator__WorkerJobsTopicName", "bus_jobs_topic"},
    Alias{"Orchestrator__WorkerResultsTopicName", "bus_results_topic"},
    Alias{"Orchestrator__WorkerResultsSubscriptionName", "bus_results_subscription"},
    Alias{"ServiceBusConnection__fullyQualifiedNamespace", "bus_namespace"},
};

const Setting* find_setting(std::string_view key) {
  const auto found = std::ranges::find(all_settings, key, &Setting::key);
  return found == all_settings.end() ? nullptr : &*found;
}

// Collects what every layer says; the weakest layer is applied first.
class Layers {
 public:
  void others_names(const Environment& environment);
  void file(const std::string& path);
  void environment(const Environment& environment);
  void command_line(const Values& values);
  std::expected<Config, ConfigErrors> finish(const Environment& environment);

 private:
  enum Strength { from_default, from_others_name, from_file, from_environment, from_command_line };
  Result<> apply(const Setting& setting, std::string_view value, Strength strength);
  void entry(const std::string& path, const yaml::Entry& entry);
  void connections(const std::string& path, const yaml::Node& node);

  Config config_;
  ConfigErrors errors_;
  Strength data_ = from_default;
  Strength store_ = from_default;
  Strength namespace_ = from_default;
};

Result<> Layers::apply(const Setting& setting, std::string_view value, Strength strength) {
  TRY(setting.set(config_, value));
  if (setting.key == "data") data_ = strength;
  if (setting.key == "store") store_ = strength;
  if (setting.key == "bus_namespace") namespace_ = strength;
  return {};
}

void Layers::file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  if (!in || std::filesystem::is_directory(path, error)) {
    errors_.push_back(fmt::format("{}: cannot read this configuration file", path));
    return;
  }
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto document = yaml::parse(text, {.bytes = config_bytes_max});
  if (!document) {
    for (const Diagnostic& wrong : document.error()) errors_.push_back(render(path, wrong));
    return;
  }
  if (document->kind == yaml::NodeKind::null) return;
  if (document->kind != yaml::NodeKind::mapping) {
    errors_.push_back(render(
        path,
        {.at = document->at, .code = "wrong_type", .message = "expected keys with values", .hint = {}}));
    return;
  }
  for (const yaml::Entry& each : document->entries) entry(path, each);
}

// The values are not in the errors: they may be secrets.
void Layers::connections(const std::string& path, const yaml::Node& node) {
  const auto wrong = [&](Position at, std::string message) {
    errors_.push_back(
        render(path, {.at = at, .code = "wrong_type", .message = std::move(message), .hint = {}}));
  };
  if (node.kind == yaml::NodeKind::null) return;
  if (node.kind != yaml::NodeKind::mapping) return wrong(node.at, "'connections' needs names with values");
  for (const yaml::Entry& each : node.entries) {
    if (!each.value.is_scalar() || each.value.kind == yaml::NodeKind::null || each.value.text.empty()) {
      wrong(each.value.at, fmt::format("connection '{}' needs a single value", each.key));
    } else {
      config_.connections[each.key] = each.value.text;
    }
  }
}

void Layers::entry(const std::string& path, const yaml::Entry& entry) {
  if (entry.key == "connections") return connections(path, entry.value);
  const auto wrong = [&](Position at, std::string code, std::string message, std::string hint = {}) {
    errors_.push_back(render(
        path, {.at = at, .code = std::move(code), .message = std::move(message), .hint = std::move(hint)}));
  };
  const Setting* setting = find_setting(entry.key);
  if (setting == nullptr) {
    std::vector<std::string_view> keys;
    for (const Setting& each : all_settings) keys.push_back(each.key);
    keys.push_back("connections");
    const std::string near = nearest(entry.key, keys);
    return wrong(entry.key_at, "unknown_key", fmt::format("unknown key '{}'", entry.key),
                 near.empty() ? fmt::format("known keys: {}", fmt::join(keys, ", "))
                              : fmt::format("did you mean '{}'?", near));
  }
  if (setting->is_secret)
    return wrong(entry.key_at, "invalid_value", fmt::format("'{}' is a secret: it is taken from {} only", entry.key, environment_name(entry.key)));
  if (!entry.value.is_scalar() || entry.value.kind == yaml::NodeKind::null)
    return wrong(entry.value.at, "wrong_type", fmt::format("'{}' needs a single value", entry.key));
  if (const auto done = apply(*setting, entry.value.text, from_file); !done)
    wrong(entry.value.at, "invalid_value", fmt::format("{}: {}", entry.key, done.error().message));
}

// Whoever says the same thing twice and differently in one place has made a mistake, which is not ours to
// settle.
void Layers::others_names(const Environment& environment) {
  for (const Alias& alias : aliases) {
    const auto value = environment(std::string(alias.name));
    if (!value || value->empty()) continue;
    std::string own = environment_name(alias.key);
    auto said = environment(own);
    const auto twin = std::ranges::find(aliases, alias.key, &Alias::key);  // the first that means the same
    if ((!said || said->empty()) && twin->name != alias.name) {
      own = twin->name;
      said = environment(own);
    }
    if (said && !said->empty() && *said != *value) {
      errors_.push_back(
          fmt::format("{} and {} are the same setting and differ: give one of them", alias.name, own));
    } else if (const auto done = apply(*find_setting(alias.key), *value, from_others_name); !done) {
      errors_.push_back(fmt::format("{}: {}", alias.name, done.error().message));
    } else {
      config_.notes.push_back(fmt::format("{} is taken as {}", alias.name, environment_name(alias.key)));
    }
  }
}

void Layers::environment(const Environment& environment) {
  for (const Setting& setting : all_settings) {
    const std::string name = environment_name(setting.key);
    const auto value = environment(name);
    if (!value || value->empty()) continue;  // an empty variable is an unset one
    if (const auto done = apply(setting, *value, from_environment); !done)
      errors_.push_back(fmt::format("{}: {}", name, done.error().message));
  }
}

void Layers::command_line(const Values& values) {
  for (const auto& [key, value] : values) {
    if (key == "config") continue;
    const Setting* setting = find_setting(key);
    ENSURE(setting != nullptr);
    if (const auto done = apply(*setting, value, from_command_line); !done)
      errors_.push_back(fmt::format("{}: {}", option_name(key), done.error().message));
  }
}

std::expected<Config, ConfigErrors> Layers::finish(const Environment& environment) {
  if (!errors_.empty()) return std::unexpected(std::move(errors_));
  // Both name the database: the one that was said more strongly decides, and on a tie the more explicit one.
  if (config_.store.empty() || data_ > store_) config_.store = sqlite_url(config_.data);
  if (config_.without_log && config_.store.starts_with("postgres"))
    return std::unexpected(ConfigErrors{"without_log is about the log beside a SQLite database; a PostgreSQL database has none"});
  if (config_.bus && namespace_ == from_others_name) {
    config_.notes.emplace_back("the namespace has no effect: bus names the broker");
    config_.bus_namespace.reset();
  }
  if (const auto done = complete_bus(config_, environment); !done) return std::unexpected(ConfigErrors{done.error().message});
  return std::move(config_);
}

}  // namespace

bool Listen::is_loopback() const {
  const bool is_ipv4 = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_ipv4 && host.starts_with("127."));
}

std::span<const Setting> settings() { return all_settings; }

std::string option_name(std::string_view key) {
  std::string name = fmt::format("--{}", key);
  std::ranges::replace(name, '_', '-');
  return name;
}

std::string environment_name(std::string_view key) {
  std::string name = fmt::format("BATON_{}", key);
  std::ranges::transform(name, name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Environment connections(const Config& config, Environment environment) {
  return [configured = config.connections,
          environment = std::move(environment)](const std::string& name) -> std::optional<std::string> {
    if (const auto found = configured.find(name); found != configured.end()) return found->second;
    const bool is_setting =
        name.starts_with("BATON_") || is_secret_of_azure(name) || std::ranges::find(aliases, name, &Alias::name) != aliases.end();
    if (is_setting) return std::nullopt;
    return environment(name);
  };
}

std::expected<Config, ConfigErrors> load_config(const Values& command_line, const Environment& environment) {
  Layers layers;
  layers.others_names(environment);
  if (const auto given = command_line.find("config"); given != command_line.end())
    layers.file(given->second);
  else if (const auto path = environment("BATON_CONFIG"); path && !path->empty())
    layers.file(*path);
  layers.environment(environment);
  layers.command_line(command_line);
  return layers.finish(environment);
}

Result<Listen> parse_listen(std::string_view text, std::optional<std::uint16_t> usual_port) {
  const auto wrong = [&](std::string_view why) {
    return fail(Code::invalid, fmt::format("'{}' is not HOST:PORT, such as 127.0.0.1:{} or [::1]:{}: {}", text, usual_port.value_or(8080),
                                           usual_port.value_or(8080), why));
  };
  const bool has_brackets = text.starts_with('[');
  const auto close = text.find(']');
  if (has_brackets && close == std::string_view::npos) return wrong("']' is missing");
  const auto colon = text.find(':', has_brackets ? close : 0);
  if (colon == std::string_view::npos && !usual_port) return wrong("the port is missing");
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (has_brackets && host.size() != close + 1) return wrong("only ':PORT' may be behind ']'");
  if (port.contains(':')) return wrong("an IPv6 address needs brackets");
  Listen listen{.host = std::string(has_brackets ? host.substr(1, close - 1) : host), .port = usual_port.value_or(0)};
  if (listen.host.empty()) return wrong("the host is missing; 0.0.0.0 means every interface");
  if (colon == std::string_view::npos) {
    const bool is_number = host.find_first_not_of("0123456789") == std::string_view::npos;
    return is_number ? wrong("the host is missing") : Result<Listen>(std::move(listen));
  }
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), listen.port);
  if (error != std::errc{} || end != port.data() + port.size()) return wrong("the port must be a number up to 65535");
  return listen;
}

std::string without_password(std::string_view url) {
  std::string shown{url};
  const auto scheme = shown.find("://");
  if (scheme == std::string::npos) return shown;
  const auto authority = scheme + 3;
  // The last @, because a password may hold an unescaped one: hiding too much is the safe side.
  if (const auto at = shown.rfind('@'); at != std::string::npos && at >= authority) {
    const auto colon = shown.find(':', authority);
    if (colon < at) shown.replace(colon + 1, at - colon - 1, "***");
  }
  for (const std::string_view key : {"password=", "sslpassword="}) {
    for (auto found = shown.find(key, authority); found != std::string::npos;
         found = shown.find(key, found + key.size())) {
      const auto from = found + key.size();
      const auto to = std::min(shown.find('&', from), shown.size());
      shown.replace(from, to - from, "***");
    }
  }
  return shown;
}

std::string sqlite_url(const std::filesystem::path& data) { return "sqlite:" + (data / "baton.db").string(); }

}  // namespace baton::server
