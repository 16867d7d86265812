// The settings of `baton serve`. Each one has one name everywhere: key body_max is --body-max, BATON_BODY_MAX
// and `body_max:` in the file of --config. The command line wins over the environment, the environment over
// the file, the file over the defaults.
//
// Names that other orchestrators have for the same thing (Orchestrator__SqlConnectionString) are taken from
// the environment too, so that a deployment need not be renamed: the weakest source above the defaults.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bus/broker/broker_address.hpp"

namespace baton::server {

struct Listen {
  std::string host = "127.0.0.1";  // without brackets
  std::uint16_t port = 8080;       // 0: the system picks one
  [[nodiscard]] bool is_loopback() const;
  friend bool operator==(const Listen&, const Listen&) = default;
};

enum class LogFormat { automatic, text, json };

struct Config {
  std::filesystem::path data = "baton-data";
  std::string store;  // sqlite:PATH or postgres://…; load_config fills it in from data
  Listen listen;
  std::optional<Listen> amqp;         // the endpoint for AMQP; none: there is none
  std::optional<Listen> amqp_admin;   // its management API; none: there is none
  std::string bus_events_topic = "orchestrator-events", bus_jobs_topic = "worker-jobs", bus_results_topic = "worker-results";
  std::string bus_events_subscription = "orchestrator", bus_results_subscription = "orchestrator";  // of the external broker
  std::optional<bus::BrokerAddress> bus;         // the external broker, complete; none: there is none
  // What `bus` is made of, if no address with a key or a password was given.
  std::optional<bus::BrokerAddress> bus_namespace;
  std::optional<bus::Identity::Kind> bus_identity_kind;
  bus::Identity bus_identity;
  bool bus_websocket = false;
  std::vector<std::string> bus_pools, bus_queues;  // what workers behind it get
  std::string bus_ca;                              // whom it is trusted by, instead of the system's; PEM
  std::size_t bus_lock_seconds = 60;  // of a job that was received
  bool bus_auto_pools = true;         // who receives from a subscription worker-ID that is not there makes it
  std::filesystem::path definitions;  // empty: none
  bool without_log = false;  // a log of the SQLite database that is missing is not missed, in this start
  bool insecure = false;
  bool builtin = true;
  bool adopt = false;     // take over at start what another orchestrator has given out
  bool scheduler = true;  // off: an external one writes batches and members, and sends messages
  bool calls = true;  // off: service calls are taken, and made by nobody
  std::vector<std::string> egress_allow, egress_deny;  // where service calls may go
  std::size_t calls_max = 1'024;         // places for those under way
  std::size_t calls_per_origin = 128;     // of these, to one scheme, host and port
  std::size_t calls_connect_seconds = 10;
  std::size_t calls_drain_seconds = 10;  // for those under way when the server is stopped
  std::size_t calls_first_byte_seconds = 0;  // 0: only the whole has a limit
  std::string calls_ca;                  // trusted beside the system's; PEM
  std::vector<std::string> env;  // names of variables that expressions may see
  std::string log_level = "info";
  LogFormat log_format = LogFormat::automatic;
  std::size_t body_max = std::size_t{4} << 20;  // bytes of one request
  std::size_t connections_max = 16'000;
  std::size_t inbox_max = 16'384;  // commands waiting for the engine
  std::size_t lease_seconds = 30;  // of workers that heartbeat
  // What the connections that runbooks name stand for. Only a file can say it, as `connections: {NAME:
  // value}`: values may hold passwords, which the command line would show to everybody, and which the
  // environment has by the name itself.
  std::map<std::string, std::string, std::less<>> connections;
  // When a turn of the engine is logged, and when the server is not ready. Not settings: a test need not wait for
  // seconds.
  std::chrono::milliseconds turn_slow{1'000}, turn_stalled{5'000};
  // What the log should tell: which names of others were used, and which have nothing to set.
  std::vector<std::string> notes;
};

struct Setting {
  std::string_view key;
  std::string_view argument;  // how help names the value: DIR; empty for a switch
  std::string_view help;
  Result<> (*set)(Config&, std::string_view value);
  bool is_secret = false;  // only the environment says it, and nobody shows it
};

// All of them, in the order of the help. "config" itself is not one.
[[nodiscard]] std::span<const Setting> settings();
[[nodiscard]] std::string option_name(std::string_view key);       // body_max: --body-max
[[nodiscard]] std::string environment_name(std::string_view key);  // body_max: BATON_BODY_MAX

using Values = std::map<std::string, std::string, std::less<>>;  // by key
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

[[nodiscard]] Environment process_environment();
// What the name of a connection stands for: the configured one, else the environment variable of that name. Our
// own settings are not for runbooks: BATON_STORE is the database with everybody's tokens.
[[nodiscard]] Environment connections(const Config& config, Environment environment);

// Everything that is wrong, each line naming where it was said: "--listen: …", "BATON_LISTEN: …", "FILE:3:5:
// error: …".
using ConfigErrors = std::vector<std::string>;

// command_line may name "config". A file is read only when it or BATON_CONFIG says so.
[[nodiscard]] std::expected<Config, ConfigErrors> load_config(const Values& command_line,
                                                              const Environment& environment);

// Without a usual port there must be one in the text.
[[nodiscard]] Result<Listen> parse_listen(std::string_view text, std::optional<std::uint16_t> usual_port = std::nullopt);
inline constexpr std::uint16_t usual_amqp_port = 5672, usual_amqp_admin_port = 5300;
// The store's address as it may be shown: a password becomes ***.
[[nodiscard]] std::string without_password(std::string_view url);
[[nodiscard]] std::string sqlite_url(const std::filesystem::path& data);

}  // namespace baton::server
