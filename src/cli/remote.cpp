#include "cli/remote.hpp"

#include <fmt/format.h>
#include <cstdlib>

#include <chrono>
#include <optional>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/fields.hpp"
#include "cli/terminal/output.hpp"
#include "http/wire/client.hpp"
#include "http/wire/text.hpp"

namespace baton::cli {

namespace {

constexpr std::string_view default_server = "http://127.0.0.1:8080";

// What the command line says, else the environment. The commands of a group share their options, and the
// parser would let the environment of one overrule the command line of another; so it is asked here.
std::optional<std::string> chosen(const std::optional<std::string>& option, const char* variable) {
  if (option) return option;
  if (const char* value = std::getenv(variable); value && *value) return value;
  return std::nullopt;
}

}  // namespace

struct Remote::State {
  explicit State(const ServerAccess& to) : client(to.url, to.token, to.tenant) {}

  Result<Answer> request(std::string_view method, std::string_view target, std::string body,
                         std::string_view content_type, const Headers& headers) {
    auto response = client.request(method, target, std::move(body), content_type, headers, request_time);
    if (response) return Answer{response->status, std::move(response->body)};
    Error error = std::move(response.error());
    if (error.code == Code::unavailable)
      error.message += "\n  --server or BATON_SERVER names another server.";
    return std::unexpected(std::move(error));
  }

  static constexpr std::chrono::seconds request_time{60};  // longer than any long poll of ours
  http::Client client;
};

Remote::Remote(const RemoteOptions& options) : state_(std::make_unique<State>(server_access(options))) {}
Remote::~Remote() = default;

Result<Answer> Remote::get(std::string_view target) {
  return state_->request("GET", target, {}, "application/json", {});
}

Result<Answer> Remote::post(std::string_view target, std::string body, std::string_view content_type,
                            const Headers& headers) {
  return state_->request("POST", target, std::move(body), content_type, headers);
}

bool Remote::was_connected() const { return state_->client.was_connected(); }

ServerAccess server_access(const RemoteOptions& options) {
  return {.url = chosen(options.server, "BATON_SERVER").value_or(std::string(default_server)),
          .token = chosen(options.token, "BATON_TOKEN"),
          .tenant = chosen(options.tenant, "BATON_TENANT")};
}

void add_server_options(Parser command, RemoteOptions& options) {
  command
      .add_option("--server", options.server,
                  "the server's URL (BATON_SERVER); default " + std::string(default_server))
      .type_name("URL");
  command.add_option("--token", options.token, "access token (BATON_TOKEN)").type_name("TOKEN");
  command.add_option("--tenant", options.tenant, "whose data (BATON_TENANT); default the token's tenant")
      .type_name("TENANT");
}

void add_remote_options(Parser command, RemoteOptions& options) {
  add_server_options(command, options);
  command.add_flag("--json", options.as_json, "print the server's JSON");
}

std::string describe_problem(int status, std::string_view body) {
  const Fields problem(body);
  std::string text = one_line(problem.text("detail"));
  if (text.empty()) text = one_line(problem.text("title"));
  if (text.empty()) text = fmt::format("the server answered {}", status);
  for (const Fields& each : problem.items("errors")) {
    const std::string field = each.text("field");
    const std::string message = each.has("message") ? each.text("message") : each.whole();
    text += "\n  ";
    if (each.number("line") > 0) text += fmt::format("{}:{}: ", each.number("line"), each.number("column"));
    if (!field.empty()) text += printable(field) + ": ";
    text += printable(message);
    if (each.has("hint") && !each.text("hint").empty())
      text += fmt::format(" ({})", printable(each.text("hint")));
  }
  if (status == 401) text += "\n  Give a token with --token or BATON_TOKEN; `baton token create` makes one.";
  return text;
}

int refuse(const RemoteOptions& options, const Answer& answer) {
  if (options.as_json)
    print_json(answer.body.empty() ? "null" : answer.body);
  else
    complain(describe_problem(answer.status, answer.body));
  return answer.status >= 500 ? exit_unreachable : exit_failed;
}

int refuse(const RemoteOptions&, const Error& error) {
  complain(error.message);
  return error.code == Code::unavailable ? exit_unreachable : exit_failed;
}

std::string escaped(std::string_view text) { return percent_encode(text); }

void suggest(Remote& remote, const Names& names, std::string_view word) {
  const auto answer = remote.get(names.target);
  if (!answer || !answer->ok()) return;
  std::vector<std::string> known;
  const Fields page(answer->body);
  for (const Fields& each : page.items(names.list_key)) known.push_back(each.text(names.name_key));
  const std::string near = nearest(word, {known.begin(), known.end()});
  if (!near.empty()) complain(fmt::format("did you mean '{}'?", near));
}

}  // namespace baton::cli
