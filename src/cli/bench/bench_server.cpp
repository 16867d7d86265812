#include "cli/bench/bench_server.hpp"

#include <csignal>
#include <fstream>

#include "cli/bench/wire.hpp"
#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
#include "server/config.hpp"

namespace baton::cli::bench {

Result<> BenchServer::start(const std::string& store, const std::pair<std::string, std::string>& definition,
                            const std::vector<std::string>& more) {
  TRY(directory.make());
  arguments = {"serve",    "--store",     store.empty() ? server::sqlite_url(directory.path()) : store,
               "--listen", "127.0.0.1:0", "--log-level",
               "warn"};
  if (!definition.first.empty()) {
    const auto definitions = directory.path() / "definitions";
    std::filesystem::create_directory(definitions);
    std::ofstream(definitions / definition.first) << definition.second;
    arguments.insert(arguments.end(), {"--definitions", definitions.string()});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return begin();
}

Result<> BenchServer::restart() {
  process.stop(SIGKILL);
  return begin();
}

Result<> BenchServer::begin() {
  TRY(process.start(arguments));
  TRY_ASSIGN(url, process.read_line());
  client = std::make_unique<http::Client>(url);
  return {};
}

int finish(const Result<>& done) {
  if (done) return exit_ok;
  complain(done.error().message);
  return was_interrupted() ? exit_interrupted : exit_failed;
}

}  // namespace baton::cli::bench
