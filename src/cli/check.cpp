// `baton check`: whether a database is what it says it is. It only reads, beside a running server or without one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "core/call/call.hpp"
#include "ports/reads.hpp"
#include "server/config.hpp"
#include "store/open.hpp"

namespace baton::cli {
namespace {

struct Options {
  server::Values where;  // data, store, config as given
  bool replay = false;
};

struct Found {
  std::size_t calls = 0, events = 0, wrong = 0;
};

// The events of each service call, folded anew, must come to the very row that lists are made from.
Result<Found> replay(Reads& reads) {
  constexpr std::size_t page = 1'000, told_max = 20;
  Found found;
  call::CallKey after;
  while (true) {
    TRY_ASSIGN(const auto calls, reads.all_calls(after, page));
    for (const call::Call& stored : calls) {
      TRY_ASSIGN(const auto events, reads.call_events(stored.key()));
      const auto folded = call::fold(events);
      ++found.calls;
      found.events += events.size();
      if (folded && *folded == stored) continue;
      // A call that a server changes while we look is looked at once more.
      TRY_ASSIGN(const auto now, reads.service_call(stored.key()));
      TRY_ASSIGN(const auto all, reads.call_events(stored.key()));
      if (const auto again = call::fold(all); again && now && *again == *now) continue;
      if (++found.wrong <= told_max)
        complain(fmt::format("service call {} of tenant {}: {}", stored.service_call_id.value, stored.tenant_id.value,
                             folded ? "its row is not what its events come to" : "its events cannot be folded"));
    }
    if (calls.size() < page) return found;
    after = calls.back().key();
  }
}

int check(const Options& options) {
  const auto config = server::load_config(options.where, server::process_environment());
  if (!config) {
    complain(fmt::format("{}", fmt::join(config.error(), "\nbaton: ")));
    return exit_usage;
  }
  auto reads = store::make_reads(config->store);
  if (!reads) {
    complain(reads.error().message);
    return exit_failed;
  }
  const auto found = replay(**reads);
  if (!found) {
    complain(found.error().message);
    return exit_failed;
  }
  fmt::print("{} service calls, {} events: {}\n", found->calls, found->events,
             found->wrong == 0 ? "every row is what its events come to" : fmt::format("{} are wrong", found->wrong));
  return found->wrong == 0 ? 0 : exit_failed;
}

}  // namespace

void add_check(CLI::App& app, Action& chosen) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("check", "Check a database: --replay folds all events of service calls anew");
  command->add_flag("--replay", options->replay, "compare what the events come to with what is stored")->required();
  for (const std::string key : {"data", "store", "config"})
    command->add_option_function<std::string>("--" + key, [options, key](const std::string& value) { options->where[key] = value; },
                                              "as of `baton serve`");
  command->callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace baton::cli
