// `baton check`: whether a database is what it says it is. It only reads, beside a running server or without
// one.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
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

struct Stream {
  std::string problem;  // empty: there is none
  std::size_t events = 0;
};

// The events of a service call, folded anew, must come to the very row that lists are made from, and to its
// tags; and there must be a request to be sent.
Result<Stream> look_at(Reads& reads, const call::CallKey& key) {
  Stream stream;
  TRY_ASSIGN(const auto row, reads.service_call(key));
  TRY_ASSIGN(const auto events, reads.call_events(key));
  TRY_ASSIGN(const auto request, reads.call_request(key));
  const auto folded = call::fold(events);
  stream.events = events.size();
  if (events.empty())
    stream.problem = "it has no events";
  else if (!folded)
    stream.problem = "its events cannot be folded";
  else if (!row)
    stream.problem = "it has events, but no row";
  else if (*folded != *row)
    stream.problem = "its row is not what its events come to";
  else if (!request)
    stream.problem = "its request is missing";
  if (!stream.problem.empty()) return stream;
  for (const std::string& tag : call::read_tags(*row)) {
    TRY_ASSIGN(const bool is_there, reads.has_tag(key, tag));
    if (!is_there) stream.problem = "it is not found by its tag '" + tag + "'";
  }
  return stream;
}

Result<Found> replay(Reads& reads) {
  constexpr std::size_t page = 1'000, told_max = 20;
  Found found;
  call::CallKey after;
  while (true) {
    TRY_ASSIGN(const auto keys, reads.call_keys(after, page));
    for (const call::CallKey& key : keys) {
      TRY_ASSIGN(auto stream, look_at(reads, key));
      // A call that a server changes while we look is looked at again.
      for (int looks = 0; looks < 3 && !stream.problem.empty(); ++looks) {
        TRY_ASSIGN(stream, look_at(reads, key));
      }
      ++found.calls;
      found.events += stream.events;
      if (!stream.problem.empty() && ++found.wrong <= told_max)
        complain(
            fmt::format("service call {} of tenant {}: {}", key.id.value, key.tenant.value, stream.problem));
    }
    if (keys.size() < page) break;
    after = keys.back();
  }
  TRY_ASSIGN(const std::int64_t strays, reads.count_stray_rows());
  if (strays > 0) {
    ++found.wrong;
    complain(fmt::format("{} tags or idempotency keys belong to no call", strays));
  }
  return found;
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
  fmt::print(
      "{} service calls, {} events: {}\n", found->calls, found->events,
      found->wrong == 0 ? "every row is what its events come to" : fmt::format("{} are wrong", found->wrong));
  return found->wrong == 0 ? 0 : exit_failed;
}

}  // namespace

void add_check(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command =
      app.add_subcommand("check", "Check a database: --replay folds all events of service calls anew");
  command.add_flag("--replay", options->replay, "compare what the events come to with what is stored")
      .required();
  for (const std::string key : {"data", "store", "config"})
    command.add_option(
        "--" + key, [options, key](const std::string& value) { options->where[key] = value; },
        "as of `baton serve`");
  command.callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace baton::cli
