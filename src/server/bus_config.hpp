// The settings about the bus: names of entities, and where an external broker is and who baton is there.
#pragma once

#include "server/config.hpp"

namespace baton::server {

inline constexpr std::size_t entity_name_max = 260, subscription_name_max = 50;
[[nodiscard]] Result<> set_entity(std::string& name, std::string_view value, std::size_t length_max = entity_name_max);
[[nodiscard]] Result<> set_entities(std::vector<std::string>& names, std::string_view value);
[[nodiscard]] Result<> set_bus(Config& config, std::string_view value);
[[nodiscard]] Result<> set_bus_namespace(Config& config, std::string_view value);
[[nodiscard]] Result<> set_bus_identity(Config& config, std::string_view value);
[[nodiscard]] Result<> set_bus_transport(Config& config, std::string_view value);

// What all of them say together becomes config.bus. Where nothing was said about the identity of a namespace, the names count that Azure's own
// libraries take from the environment (AZURE_CLIENT_ID and so on).
[[nodiscard]] Result<> complete_bus(Config& config, const Environment& environment);

// Such a name whose value is no business of runbooks.
[[nodiscard]] bool is_secret_of_azure(std::string_view name);

}  // namespace baton::server
