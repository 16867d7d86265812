// `baton check`: whether a database is what it says it is. It only reads, beside a running server or without
// one; but for --rebuild, which writes rows anew and is the writer meanwhile.
#include <fmt/format.h>

#include <memory>

#include "base/json_write.hpp"
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
  bool replay = false, rebuild = false, as_json = false;
};

// What is wrong: for people the first of it, as it is found; for programs at the end.
class Findings {
 public:
  explicit Findings(bool as_json) : as_json_(as_json) {}

  void tell(const std::string& subject, const std::string& problem) {
    constexpr std::size_t told_max = 20, listed_max = 1'000;
    ++count_;
    if (as_json_ && count_ <= listed_max) list_.push_back(json_object("subject", subject, "problem", problem));
    if (!as_json_ && count_ <= told_max) complain(printable(subject + ": " + problem));
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<Json>& list() const { return list_; }

 private:
  const bool as_json_;
  std::size_t count_ = 0;
  std::vector<Json> list_;
};

struct Found {
  std::size_t calls = 0, events = 0, rebuilt = 0;
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
  [[nodiscard]] Result<> close() { return is_open() ? store_->close() : Result<>{}; }
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

Result<Found> replay(Reads& reads, Rebuilder& rebuilder, Findings& findings) {
  constexpr std::size_t page = 1'000;
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
      if (!stream.problem.empty())
        findings.tell(fmt::format("service call {} of tenant {}", key.id.value, key.tenant.value), stream.problem);
    }
    if (keys.size() < page) break;
    after = keys.back();
  }
  TRY_ASSIGN(const std::int64_t strays, reads.count_stray_rows());
  if (strays > 0) findings.tell("service calls", fmt::format("{} tags or idempotency keys belong to no call", strays));
  return found;
}

int failed(const Error& error) {
  complain(error.message);
  return exit_failed;
}

int check_calls(const Options& options, const std::string& url) {
  Rebuilder rebuilder;
  if (options.rebuild)
    if (const auto opened = rebuilder.open(url); !opened) return failed(opened.error());
  auto reads = store::make_reads(url);
  if (!reads) return failed(reads.error());
  Findings findings(options.as_json);
  const auto found = replay(**reads, rebuilder, findings);
  if (const auto closed = rebuilder.close(); !closed) complain(closed.error().message);  // the next start follows
  if (!found) return failed(found.error());
  const std::size_t wrong = findings.count();
  if (options.as_json) {
    print_json(json_object("consistent", wrong == 0, "wrong", wrong, "service_calls", found->calls, "events", found->events, "rebuilt",
                           found->rebuilt, "findings", findings.list())
                   .text);
    return wrong == 0 ? exit_ok : exit_failed;
  }
  if (options.rebuild) fmt::print("{} service calls were written anew from their events\n", found->rebuilt);
  fmt::print("{} service calls, {} events: {}\n", found->calls, found->events,
             wrong == 0 ? "every row is what its events come to" : fmt::format("{} are wrong", wrong));
  return wrong == 0 ? exit_ok : exit_failed;
}

int check_tables(const Options& options, const std::string& url) {
  Findings findings(options.as_json);
  const auto tell = [&](const std::string& subject, const std::string& problem) { findings.tell(subject, problem); };
  const auto found = store::check_database(url, server::only_partition, tell);
  if (!found) return failed(found.error());
  const std::size_t wrong = findings.count();
  if (options.as_json) {
    print_json(json_object("consistent", wrong == 0, "wrong", wrong, "followed", found->followed, "last_commit", found->last_commit,
                           "log_in_use", found->is_log_in_use, "jobs", found->jobs, "nodes", found->nodes, "events", found->events,
                           "task_results", found->task_results, "timers", found->timers, "findings", findings.list())
                   .text);
    return wrong == 0 ? exit_ok : exit_failed;
  }
  if (found->is_log_in_use) fmt::print("the log is in use by a server and was not looked at\n");
  fmt::print("the tables show commit {}, the journal goes on to {}\n", found->followed, found->last_commit);
  fmt::print("{} jobs, {} nodes, {} events, {} task results, {} timers: {}\n", found->jobs, found->nodes, found->events,
             found->task_results, found->timers, wrong == 0 ? "they agree" : wrong == 1 ? "one thing is wrong" : fmt::format("{} things are wrong", wrong));
  return wrong == 0 ? exit_ok : exit_failed;
}

int check(const Options& options) {
  const auto config = server::load_config(options.where, server::process_environment());
  if (!config) {
    complain(fmt::format("{}", fmt::join(config.error(), "\nbaton: ")));
    return exit_usage;
  }
  return options.replay ? check_calls(options, config->store) : check_tables(options, config->store);
}

}  // namespace

void add_check(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser command = app.add_subcommand("check", "Check a database: whether journal and tables of workflows agree");
  const Option replay = command.add_flag("--replay", options->replay,
                                         "check service calls instead: compare what their events come to with what is stored");
  command
      .add_flag("--rebuild", options->rebuild,
                "with --replay: write rows and tags that differ anew from the events; no server may be running")
      .needs(replay);
  command.add_flag("--json", options->as_json, "print JSON");
  for (const std::string key : {"data", "store", "config"})
    command.add_option(
        "--" + key, [options, key](const std::string& value) { options->where[key] = value; },
        "as of `baton serve`");
  command.footer(
      "Example:\n  baton check --data /var/lib/baton\n"
      "Exit codes: 0 all agree, 1 something is wrong, or the database cannot be read.");
  command.callback([options, &chosen] { chosen = [options] { return check(*options); }; });
}

}  // namespace baton::cli
