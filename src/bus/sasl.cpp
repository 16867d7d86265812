#include "bus/sasl.hpp"

#include <proton/sasl.h>
#include <proton/sasl_plugin.h>

#include <string_view>

#include "bus/connection.hpp"

namespace baton::bus {
namespace {

Sasl& context_of(pn_transport_t* transport) { return *static_cast<Sasl*>(pnx_sasl_get_context(transport)); }

// authorization NUL user NUL password
std::optional<std::string> password_of(std::string_view plain) {
  const auto first = plain.find('\0');
  const auto second = first == plain.npos ? first : plain.find('\0', first + 1);
  if (second == plain.npos) return std::nullopt;
  return std::string(plain.substr(second + 1));
}

void process_init(pn_transport_t* transport, const char* mechanism, const pn_bytes_t* said) {
  const std::string_view chosen = text_of(mechanism);
  bool is_taken = chosen == "ANONYMOUS" || chosen == "MSSBCBS" || chosen == "EXTERNAL";
  if (chosen == "PLAIN") {
    context_of(transport).password = password_of(said ? text_of(*said) : "");
    is_taken = context_of(transport).password.has_value();
  }
  if (is_taken) pnx_sasl_set_succeeded(transport, "client", "client");
  else pnx_sasl_set_failed(transport);
  pnx_sasl_set_desired_state(transport, SASL_POSTED_OUTCOME);
}

bool init_server(pn_transport_t* transport) {
  pnx_sasl_set_desired_state(transport, SASL_POSTED_MECHANISMS);
  return true;
}

const pnx_sasl_implementation implementation{
    .free = [](pn_transport_t*) {},
    .list_mechanisms = [](pn_transport_t*) -> const char* { return "MSSBCBS ANONYMOUS PLAIN EXTERNAL"; },
    .init_server = init_server,
    .init_client = [](pn_transport_t*) { return false; },
    .prepare_write = [](pn_transport_t*) {},
    .process_init = process_init,
    .process_response = [](pn_transport_t* transport, const pn_bytes_t*) {  // nobody was asked anything
      pnx_sasl_set_failed(transport);
      pnx_sasl_set_desired_state(transport, SASL_POSTED_OUTCOME);
    },
    .process_mechanisms = [](pn_transport_t*, const char*) { return false; },
    .process_challenge = [](pn_transport_t*, const pn_bytes_t*) {},
    .process_outcome = [](pn_transport_t*, const pn_bytes_t*) {},
    .can_encrypt = [](pn_transport_t*) { return false; },
    .max_encrypt_size = [](pn_transport_t*) -> ssize_t { return 0; },
    .encode = [](pn_transport_t*, pn_bytes_t, pn_bytes_t*) -> ssize_t { return 0; },
    .decode = [](pn_transport_t*, pn_bytes_t, pn_bytes_t*) -> ssize_t { return 0; },
};

}  // namespace

void use_sasl(pn_transport_t* transport, Sasl& sasl) {
  (void)pn_sasl(transport);
  pnx_sasl_set_implementation(transport, &implementation, &sasl);
}

}  // namespace baton::bus
