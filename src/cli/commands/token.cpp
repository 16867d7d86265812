// `baton token …`: access tokens, written straight to the store, so that the first one can be made before any
// server listens.
#include <fmt/format.h>

#include <memory>

#include "base/json.hpp"
#include "base/json_write.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/token_text.hpp"
#include "cli/terminal/output.hpp"
#include "http/api/auth.hpp"
#include "http/wire/text.hpp"
#include "ports/reads.hpp"
#include "server/config.hpp"
#include "server/system_clock.hpp"
#include "store/open.hpp"

namespace baton::cli {
namespace {

struct Options {
  server::Values where;  // data, store, config as given
  std::string role;
  std::string tenant;
  std::string label;
  std::string token_id;
  bool for_bus = false;
  bool as_json = false;
};
using Shared = std::shared_ptr<Options>;

int give_up(const Error& error) {
  complain(error.message);
  return exit_failed;
}

// The same settings as those of `serve`, so that both find the same store.
Result<std::string> store_url(const Options& options) {
  const auto config = server::load_config(options.where, server::process_environment());
  if (!config) return fail(Code::invalid, fmt::format("{}", fmt::join(config.error(), "\nbaton: ")));
  if (options.where.contains("store") || config->store != server::sqlite_url(config->data))
    return config->store;
  std::error_code error;
  std::filesystem::create_directories(config->data, error);
  if (error)
    return fail(Code::unavailable,
                fmt::format("cannot make the directory {}: {}", config->data.string(), error.message()));
  return config->store;
}

// `text` is the token itself, where it is shown.
Json to_json(const Token& token, const std::string& text = {}) {
  Json json{"{"};
  append_given(json.text, "token", text);
  if (!text.empty() && token.bus_key) append_member(json.text, "shared_access_key", *token.bus_key);
  append_members(json.text, "token_id", token.token_id, "role", name(token.role), "tenant",
                 token.tenant ? std::optional(token.tenant->value) : std::nullopt, "label", token.label,
                 "created_at", token.created_at, "revoked_at", token.revoked_at);
  json.text += '}';
  return json;
}

int create(const Options& options) {
  const auto url = store_url(options);
  if (!url) return give_up(url.error());
  auto admin = store::make_token_admin(*url);
  if (!admin) return give_up(admin.error());
  const std::string text = new_token_text();
  Token token{.token_id = new_token_id(),
              .token_hash = token_hash(text),
              .label = options.label,
              .role = *role(options.role),
              .tenant = std::nullopt,
              .created_at = server::SystemClock{}.now(),
              .revoked_at = std::nullopt,
              .bus_key = options.for_bus ? std::optional(new_bus_key()) : std::nullopt};
  if (!options.tenant.empty()) {
    if (!http::is_name(options.tenant, 100)) {
      complain("--tenant must match [A-Za-z0-9_.-]{1,100}");
      return exit_usage;
    }
    token.tenant = workflow::Tenant{options.tenant};
  }
  if (const auto added = (*admin)->add(token); !added) return give_up(added.error());
  if (options.as_json) {
    print_json(to_json(token, text).text);
    return exit_ok;
  }
  if (token.bus_key)
    fmt::print("Endpoint=sb://HOST:PORT;SharedAccessKeyName={};SharedAccessKey={};UseDevelopmentEmulator=true;\n", token.token_id,
               *token.bus_key);
  else
    fmt::print("{}\n", text);
  std::fflush(stdout);
  fmt::print(stderr,
             "{} {} for role {}{} was made. It is shown this once: keep it safe.\n"
             "A server that was started before there was any token requires one after its restart.\n",
             token.bus_key ? "Shared access key" : "Token", token.token_id, options.role,
             options.tenant.empty() ? "" : " of tenant " + printable(options.tenant));
  return exit_ok;
}

int list(const Options& options) {
  const auto url = store_url(options);
  if (!url) return give_up(url.error());
  // Opening for administration first brings the schema up to date, which reading alone does not.
  if (const auto admin = store::make_token_admin(*url); !admin) return give_up(admin.error());
  const auto reads = store::make_reads(*url);
  if (!reads) return give_up(reads.error());
  const auto tokens = (*reads)->tokens();
  if (!tokens) return give_up(tokens.error());
  if (options.as_json) {
    std::vector<Json> all;
    for (const Token& token : *tokens) all.push_back(to_json(token));
    print_json(json_object("tokens", all).text);
    return exit_ok;
  }
  std::vector<std::vector<std::string>> rows{{"ID", "ROLE", "TENANT", "LABEL", "CREATED", "REVOKED"}};
  for (const Token& token : *tokens)
    rows.push_back({token.token_id, std::string{name(token.role)},
                    token.tenant ? token.tenant->value : "(all)", token.label, to_iso(token.created_at),
                    token.revoked_at ? to_iso(*token.revoked_at) : ""});
  fmt::print("{}", table(rows));
  return exit_ok;
}

int revoke(const Options& options) {
  const auto url = store_url(options);
  if (!url) return give_up(url.error());
  auto admin = store::make_token_admin(*url);
  if (!admin) return give_up(admin.error());
  const auto revoked = (*admin)->revoke(options.token_id, server::SystemClock{}.now());
  if (!revoked) return give_up(revoked.error());
  if (!*revoked)
    return give_up({Code::not_found,
                    fmt::format("there is no live token '{}'; see `baton token list`", options.token_id)});
  if (options.as_json)
    print_json(json_object("token_id", options.token_id, "revoked", true).text);
  else
    fmt::print("Token {} is revoked.\n", options.token_id);
  return exit_ok;
}

Parser add_command(Parser parent, Action& chosen, const Shared& options, const std::string& name,
                   const std::string& help, int (*act)(const Options&)) {
  Parser command = parent.add_subcommand(name, help);
  for (const std::string key : {"data", "store", "config"})
    command.add_option(
        server::option_name(key), [options, key](const std::string& value) { options->where[key] = value; },
        "as for `baton serve`");
  command.add_flag("--json", options->as_json, "print JSON");
  command.callback([options, &chosen, act] { chosen = [options, act] { return act(*options); }; });
  return command;
}

}  // namespace

void add_token(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser token = app.add_subcommand("token", "Make, list and revoke access tokens");
  token.require_subcommand(1);
  Parser make =
      add_command(token, chosen, options, "create", "Make a token; it is printed this once", create);
  make.add_option("--role", options->role, "admin, operator, viewer or worker")
      .required()
      .one_of({"admin", "operator", "viewer", "worker"});
  make.add_option("--tenant", options->tenant, "only for this tenant; default all of them");
  make.add_option("--label", options->label, "whose it is, for the list");
  make.add_flag("--bus", options->for_bus, "a shared access key for the AMQP endpoint, printed as a connection string");
  make.footer("Example:\n  baton token create --role operator --label 'nightly import' --data ./baton-data");
  add_command(token, chosen, options, "list", "List tokens; the secrets are not stored", list);
  Parser end = add_command(token, chosen, options, "revoke", "End a token", revoke);
  end.add_option("ID", options->token_id, "the token's id, from `baton token list`").required();
  token.footer(
      "Tokens live in the server's store, found by --data, --store or --config as for\n"
      "`baton serve`. Once there is any token, every request needs one.");
}

}  // namespace baton::cli
