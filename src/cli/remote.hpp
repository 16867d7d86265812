// A server on the other end: the options that name it, requests to it, and its refusals in words.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "cli/commands/parser.hpp"

namespace baton::cli {

struct RemoteOptions {
  std::optional<std::string> server, token, tenant;  // none: the environment, else the default
  bool as_json = false;
};

// --server, --token and --tenant, with BATON_SERVER, BATON_TOKEN and BATON_TENANT behind them; the second
// adds
// --json.
void add_server_options(Parser command, RemoteOptions& options);
void add_remote_options(Parser command, RemoteOptions& options);

// Where the server is, and as whom it is asked.
struct ServerAccess {
  std::string url;
  std::optional<std::string> token, tenant;
};
// What the options and the environment come to.
[[nodiscard]] ServerAccess server_access(const RemoteOptions& options);

struct Answer {
  int status = 0;
  std::string body;
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

class Remote {
 public:
  explicit Remote(const RemoteOptions& options);
  ~Remote();

  // Any answer of the server is a success here, refusals too. Errors say what to do about them.
  [[nodiscard]] Result<Answer> get(std::string_view target);
  [[nodiscard]] Result<Answer> post(std::string_view target, std::string body, std::string_view content_type,
                                    const Headers& headers = {});
  // Whether the last request found a server, though it may have got no answer.
  [[nodiscard]] bool was_connected() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A problem+json body as lines for people: the detail, then each error.
[[nodiscard]] std::string describe_problem(int status, std::string_view body);

// Tells the problem (as JSON, if so asked) and answers the exit code.
[[nodiscard]] int refuse(const RemoteOptions& options, const Answer& answer);
[[nodiscard]] int refuse(const RemoteOptions& options, const Error& error);

// A path segment or a query value.
[[nodiscard]] std::string escaped(std::string_view text);

// Where the server lists the names of something.
struct Names {
  std::string_view target, list_key, name_key;
};
inline constexpr Names workflow_names{"/api/v1/workflows?limit=200", "workflows", "workflow_id"};
inline constexpr Names runbook_names{"/api/v1/runbooks?limit=200", "runbooks", "name"};
// Complains "did you mean 'x'?" if the server knows a name that is near.
void suggest(Remote& remote, const Names& names, std::string_view word);

}  // namespace baton::cli
