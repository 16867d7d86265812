#include "server/bus_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/message/settings.hpp"

namespace baton::server {

// As the engine takes them, but without slashes, which names of pools and of brokers elsewhere have not.
Result<> set_entity(std::string& name, std::string_view value, std::size_t length_max) {
  auto problem = message::problem_of_name(value, length_max);
  if (!problem && value.contains('/')) problem = "it has a '/'";
  if (problem) return fail(Code::invalid, fmt::format("'{}' is not a name on the bus: {}", value, *problem));
  name = value;
  return {};
}

Result<> set_entities(std::vector<std::string>& names, std::string_view value) {
  names.clear();
  while (!value.empty()) {
    const auto end = std::min(value.find(','), value.size());
    TRY(set_entity(names.emplace_back(), value.substr(0, end)));
    value.remove_prefix(std::min(end + 1, value.size()));
  }
  return {};
}

Result<> set_bus(Config& config, std::string_view value) {
  TRY_ASSIGN(config.bus, bus::parse_broker_address(value));
  return {};
}

Result<> set_bus_namespace(Config& config, std::string_view value) {
  TRY_ASSIGN(config.bus_namespace, bus::parse_namespace(value));
  return {};
}

Result<> set_bus_identity(Config& config, std::string_view value) {
  using Kind = bus::Identity::Kind;
  if (value != "managed" && value != "client_secret") return fail(Code::invalid, fmt::format("'{}' is neither managed nor client_secret", value));
  config.bus_identity_kind = value == "managed" ? Kind::managed : Kind::client_secret;
  return {};
}

Result<> set_bus_transport(Config& config, std::string_view value) {
  if (value != "tcp" && value != "websocket") return fail(Code::invalid, fmt::format("'{}' is neither tcp nor websocket", value));
  config.bus_websocket = value == "websocket";
  return {};
}

namespace {

constexpr std::string_view azure_client_id = "AZURE_CLIENT_ID", azure_tenant_id = "AZURE_TENANT_ID", azure_client_secret = "AZURE_CLIENT_SECRET",
                           azure_endpoint = "IDENTITY_ENDPOINT", azure_header = "IDENTITY_HEADER";

// They are the weakest: only what nobody has said is taken from them. Unlike other names they are there for whatever runs on Azure, so that
// they are not looked at unless a namespace needs an identity, and may differ from what was said.
class AzureNames {
 public:
  AzureNames(Config& config, const Environment& environment) : config_(config), environment_(environment) {}

  [[nodiscard]] bool has(std::string_view name) const { return !value(name).empty(); }
  void take(std::string& into, std::string_view name, std::string_view key) {
    if (!into.empty() || !has(name)) return;
    into = value(name);
    config_.notes.push_back(fmt::format("{} is taken as {}", name, environment_name(key)));
  }

 private:
  [[nodiscard]] std::string value(std::string_view name) const { return environment_(std::string(name)).value_or(""); }

  Config& config_;
  const Environment& environment_;
};

Result<bus::Identity> identity_of(Config& config, const Environment& environment) {
  using Kind = bus::Identity::Kind;
  AzureNames azure(config, environment);
  bus::Identity& identity = config.bus_identity;
  const bool has_secret = !identity.client_secret.empty() || (azure.has(azure_client_secret) && azure.has(azure_tenant_id) && azure.has(azure_client_id));
  identity.kind = config.bus_identity_kind.value_or(has_secret ? Kind::client_secret : Kind::managed);
  azure.take(identity.client_id, azure_client_id, "bus_client_id");
  if (identity.kind == Kind::client_secret) {
    azure.take(identity.tenant_id, azure_tenant_id, "bus_tenant_id");
    azure.take(identity.client_secret, azure_client_secret, "bus_client_secret");
  } else if (identity.endpoint.empty() && azure.has(azure_endpoint) && azure.has(azure_header)) {
    azure.take(identity.endpoint, azure_endpoint, "bus_token_endpoint");
    azure.take(identity.header, azure_header, "bus_identity_header");
  }
  TRY(bus::token_request(identity));
  return identity;
}

bool says_identity(const Config& config) {
  const bus::Identity& identity = config.bus_identity;
  return config.bus_identity_kind || !(identity.endpoint.empty() && identity.client_id.empty() && identity.client_secret.empty() &&
                                       identity.tenant_id.empty() && identity.header.empty());
}

}  // namespace

Result<> complete_bus(Config& config, const Environment& environment) {
  if (config.bus && config.bus_namespace)
    return fail(Code::invalid, "bus and bus_namespace both name the external broker: give bus if there is a key, else bus_namespace");
  if (config.bus_namespace) {
    config.bus = config.bus_namespace;
    TRY_ASSIGN(config.bus->identity, identity_of(config, environment));
  } else if (says_identity(config)) {
    return fail(Code::invalid, "bus_identity and what belongs to it are about a namespace of Service Bus without a key: say which with bus_namespace");
  }
  if (!config.bus && (config.bus_websocket || !config.bus_pools.empty() || !config.bus_queues.empty()))
    return fail(Code::invalid, "bus_pools, bus_queues and bus_transport are about an external broker, and there is none: say which with bus or bus_namespace");
  if (config.bus && config.bus_websocket) {
    config.bus->use_websocket();
    if (const auto url = config.bus->websocket_url(); !url) return fail(Code::invalid, "bus: " + url.error().message);
  }
  return {};
}

bool is_secret_of_azure(std::string_view name) { return name == azure_client_secret || name == azure_header; }

}  // namespace baton::server
