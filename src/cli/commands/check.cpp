// `baton check`: whether a database is what it says it is. It only reads, beside a running server or without
// one; but for --rebuild, which writes rows anew and is the writer meanwhile.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/terminal/output.hpp"
#include "core/call/call.hpp"
#include "ports/reads.hpp"
#include "server/config.hpp"
#include "server/partition.hpp"
#include "store/open.hpp"

namespace baton::cli {
namespace {

struct Options {
  server::Values where;  // data, store, config as given
  bool replay = false, rebuild = false;
};

struct Found {
  std::size_t calls = 0, events = 0, wrong = 0, rebuilt = 0;
};

struct Stream {
  std::string problem;  // empty: there is none
  std::size_t events = 0;
  bool can_be_rebuilt = false;
};

// The events of a service call, folded anew, must come to the very row that lists are made from, and to its
// tags; and there must be a request to be sent.
Result<Stream> look_at(Reads& reads, const call::CallKey& key) {
  Stream stream;
  const auto row = reads.call_row(key);
  if (!row && row.error().code != Code::invalid) return std::unexpected(row.error());
  const auto read = reads.call_events(key);
  if (!read && read.error().code != Code::invalid) return std::unexpected(read.error());
  const auto events = read.value_or(std::vector<call::EventRow>{});
  TRY_ASSIGN(const auto request, reads.call_request(key));
  const auto folded = call::fold(events);
  stream.events = events.size();
  stream.can_be_rebuilt = folded.has_value();
  if (!read)
    stream.problem = read.error().message;
  else if (events.empty())
    stream.problem = "it has no events";
  else if (!folded)
    stream.problem = "its events cannot be folded";
  else if (!row)
    stream.problem = row.error().message;
  else if (!*row)
    stream.problem = "it has events, but no row";
  else if (*folded != **row)
    stream.problem = "its row is not what its events come to";
  else if (!request)
    stream.problem = "its request is missing";
  if (!stream.problem.empty()) return stream;
  for (const std::string& tag : call::read_tags(*folded)) {
    TRY_ASSIGN(const bool is_there, reads.has_tag(key, tag));
    if (!is_there) stream.problem = "it is not found by its tag '" + tag + "'";
  }
  return stream;
}

// Rows and tags are made from events, so they can be made again. One transaction for each call: nobody else
// writes.
class Rebuilder {
 public:
  [[nodiscard]] Result<> open(const std::string& url) {
    TRY_ASSIGN(store_, store::make_store(url));
    TRY_ASSIGN(const auto state, store_->open(server::only_partition));
    last_commit_ = state.last_commit;
    return {};
  }
  [[nodiscard]] bool is_open() const { return store_ != nullptr; }
  [[nodiscard]] Result<> rebuild(const call::CallKey& key) {
    TRY_ASSIGN(auto loaded, store_->load(call::LoadRequest{.streams = {key}}));
    WriteSet writes;
    for (const call::Call& call : loaded.calls)
      for (const std::string& tag : call::read_tags(call))
        writes.calls.tags_new.push_back({key.tenant, tag, key.id});
    writes.calls.calls_rebuilt = std::move(loaded.calls);
    TRY(store_->commit(writes, last_commit_ + 1));
    ++last_commit_;
    return {};
  }

 private:
  std::unique_ptr<Store> store_;
  std::int64_t last_commit_ = 0;
};

Result<Found> replay(Reads& reads, Rebuilder& rebuilder) {
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
      if (rebuilder.is_open() && !stream.problem.empty() && stream.can_be_rebuilt) {
        const std::string was = stream.problem;
        TRY(rebuilder.rebuild(key));
        TRY_ASSIGN(stream, look_at(reads, key));
        if (stream.problem != was) ++found.rebuilt;
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
  Rebuilder rebuilder;
  if (options.rebuild) {
    if (const auto opened = rebuilder.open(config->store); !opened) {
      complain(opened.error().message);
      return exit_failed;
    }
  }
  auto reads = store::make_reads(config->store);
  if (!reads) {
    complain(reads.error().message);
    return exit_failed;
  }
  const auto found = replay(**reads, rebuilder);
  if (!found) {
    complain(found.error().message);
    return exit_failed;
  }
  if (options.rebuild) fmt::print("{} service calls were written anew from their events\n", found->rebuilt);
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
  command.add_flag("--rebuild", options->rebuild,
                   "write rows and tags that differ anew from the events; no server may be running");
  for (const std::string key : {"data", "store", "config"})
    command.add_option(
        "--" + key, [options, key](const std::string& value) { options->where[key] = value; },
        "as of `baton serve`");
  command.callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace baton::cli
