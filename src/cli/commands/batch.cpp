// `baton batch …`: the batches of runbooks on a server, and what people do to them.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/subcommand.hpp"
#include "cli/commands/targets.hpp"
#include "cli/reconnect.hpp"
#include "cli/request.hpp"
#include "cli/terminal/batch_view.hpp"
#include "cli/terminal/batch_watch.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::int64_t batch_id = 0;
  std::string runbook, status, csv, cursor;
  std::string phase, by, reason, reconnect;
  int limit = 0;
  int version = 0;
  bool all = false, as_csv = false;
};
using Shared = std::shared_ptr<Options>;

std::string status_of(const Fields& batch) {
  return (batch.has("outcome") ? batch.text("outcome") : batch.text("status")) + (batch.flag("importing") ? ", importing" : "") +
         (batch.has("paused_at") ? ", paused" : "");
}

int list(const Options& options) {
  const Listing listing{.target = Target("/api/v1/batches")
                                      .with("runbook", options.runbook)
                                      .with("status", options.status)
                                      .with("limit", options.limit)
                                      .with("cursor", options.cursor)
                                      .text(),
                        .key = "batches",
                        .heading = {"BATCH", "RUNBOOK", "VERSION", "STATUS", "T", "DETECTED", "ENDED"},
                        .none = "No batches."};
  return list_page(options.remote, listing, [](const Fields& batch) -> Row {
    const std::string start = batch.text("batch_start_time");
    return {std::to_string(batch.number("id")),
            batch.text("runbook_name"),
            std::to_string(batch.number("runbook_version")),
            status_of(batch),
            start.empty() ? "by hand" : start,
            batch.text("detected_at"),
            batch.text("completed_at")};
  });
}

std::string said(const Tally& tally) {
  return tally.total() == 0 ? "" : fmt::format("{} %: {}", tally.percent(), fmt::join(words(tally), ", "));
}

void print_phases(const BatchView& view, Time now) {
  std::vector<Row> rows{{"PHASE", "VERSION", "OFFSET", "DUE", "", "STATUS", "MEMBERS", "STEPS"}};
  for (const PhaseView& phase : view.phases) {
    const std::string members =
        phase.members > 0 ? fmt::format("{} of {}", grouped(phase.members_done), grouped(phase.members)) : "";
    rows.push_back({phase.label, std::to_string(phase.version), offset_text(phase.offset_minutes),
                    phase.due_at ? minute_text(*phase.due_at) : "by hand",
                    phase.due_at ? relative(*phase.due_at, now) : "",
                    phase.outcome + (phase.waits_for.empty() ? "" : ", waits for " + phase.waits_for), members,
                    said(phase.steps)});
  }
  if (rows.size() > 1) fmt::print("\n{}", table(rows));
}

void print_batch(const Fields& batch, Time now) {
  const BatchView view = read_batch(batch);
  const bool colour = has_colour(stdout);
  print_field("batch", std::to_string(view.id));
  print_field("runbook", fmt::format("{} version {}", printable(view.runbook), view.version));
  print_field("status", paint(status_of(batch), colour_of_status(view.outcome), colour));
  print_field("error", one_line(view.error));
  print_field("T", view.start ? fmt::format("{} ({})", to_iso(*view.start), relative(*view.start, now))
                              : "none: phases begin by hand");
  print_field("detected", at_and_by(batch.text("detected_at"), batch.text("created_by")));
  const std::string paused = at_and_by(batch.text("paused_at"), view.paused_by);
  print_field("paused", paused + (paused.empty() || view.paused_reason.empty() ? "" : ": " + one_line(view.paused_reason)));
  for (const HoldView& hold : view.holds) {
    print_field("needs you", paint(fmt::format("{}: {}", hold.id, one_line(hold.message)), Colour::yellow, colour));
    fmt::print("{:<10} {}\n", "", hold.command());
  }
  for (const std::string& queue : view.no_worker) print_field("no worker", paint(one_line(queue), Colour::red, colour));
  print_field("ended", batch.text("completed_at"));
  print_field("members", fmt::format("{} active, {} failed, {} removed", grouped(view.active),
                                     grouped(view.failed), grouped(view.removed)));
  if (view.held_removals > 0)
    print_field("held", fmt::format("{} members would leave; see 'baton batch approve-removals --help'",
                                    grouped(view.held_removals)));
  print_field("init", said(view.init));
  print_field("catch-up", said(view.catch_up));
  print_field("rollbacks", said(view.rollbacks));
  print_field("removals", said(view.removals));
  print_phases(view, now);
}

int show(const Options& options) {
  return get(options.remote, batch_target(options.batch_id),
             [](const Fields& batch) { print_batch(batch, now()); });
}

int create(const Options& options) {
  const Target target = Target(runbook_target(options.runbook) + "/batches")
                            .with("version", options.version)
                            .with("by", options.by);
  return post_file(options.remote, target.text(), options.csv, "text/csv", [](const Fields& batch) {
    const std::int64_t id = batch.number("id");
    fmt::print("{}\n", id);
    fmt::print(stderr, "{}; 'baton batch advance {}' begins its first phase.\n",
               counted(batch.number("member_count"), "member"), id);
  });
}

int change(const Options& options, const std::string& verb, const std::string& done) {
  const std::string body =
      json_object_of_given("phase", options.phase, "by", options.by, "reason", options.reason).text;
  return post(options.remote, batch_target(options.batch_id) + "/" + verb, body, [&](const Fields& batch) {
    const std::string now_it_is = status_of(batch);
    const std::string note = batch.text("note");
    if (!batch.flag("changed"))
      fmt::print("Nothing to do: batch {} is {}.\n", options.batch_id, now_it_is);
    else
      fmt::print("{} batch {}; it is {}.\n",
                 note.empty() ? done : fmt::format("Began phase '{}' of", printable(note)), options.batch_id,
                 now_it_is);
  });
}

int advance(const Options& o) { return change(o, "advance", "Advanced"); }
int pause(const Options& o) { return change(o, "pause", "Paused"); }
int resume(const Options& o) { return change(o, "resume", "Resumed"); }
int cancel(const Options& o) { return change(o, "cancel", "Cancelled"); }
int approve_removals(const Options& o) { return change(o, "approve-removals", "Approved what would leave"); }

int events(const Options& options) {
  return each_page(options.remote, batch_target(options.batch_id) + "/events", 0, [](const Fields& page) {
    for (const Fields& event : page.items("events"))
      fmt::print("{} {} {}\n", event.text("created_at"), event.text("event_type"),
                 one_line(event.text("message")));
  });
}

int why(const Options& options) {
  return get(options.remote, batch_target(options.batch_id) + "/why", [&](const Fields& body) {
    print_why(fmt::format("batch {}", options.batch_id), body);
  });
}

std::string csv_cell(std::string text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_line(const Fields& member) {
  std::string phases;
  for (const Fields& phase : member.items("phases_done")) phases += (phases.empty() ? "" : ";") + phase.whole();
  std::string line;
  for (const std::string_view key : {"member_key", "status", "outcome", "first_at", "last_at"})
    line += csv_cell(member.text(key)) + ",";
  line += csv_cell(std::move(phases));
  for (const std::string_view key : {"failed_phase", "failed_step", "error"}) line += "," + csv_cell(member.text(key));
  return line;
}

// Page by page: nobody needs to hold a batch of 100,000. With --json a line for each member too.
int report(const Options& options) {
  Remote remote(options.remote);
  if (!options.remote.as_json)
    fmt::print("member_key,status,outcome,first_at,last_at,phases_done,failed_phase,failed_step,error\n");
  for (std::int64_t after = 0;;) {
    const auto answer = remote.get(fmt::format("{}/report?limit=1000&after={}", batch_target(options.batch_id), after));
    if (!answer) return refuse(options.remote, answer.error());
    if (!answer->ok()) return refuse(options.remote, *answer);
    const Fields page(answer->body);
    const auto members = page.items("members");
    if (members.empty()) return exit_ok;
    for (const Fields& member : members)
      fmt::print("{}\n", options.remote.as_json ? compact(member.whole()) : csv_line(member));
    after = page.number("next_after");
  }
}

int watch(const Options& options) {
  const bool several = options.all || !options.runbook.empty();
  if (several == (options.batch_id != 0)) {
    complain("say which batch to watch: its ID, or --runbook NAME, or --all");
    return exit_usage;
  }
  if (several) return watch_batches(options.remote, options.runbook, options.reconnect);
  return watch_batch(options.remote, options.batch_id, options.reconnect);
}

// A command for one batch.
Parser add_one(Parser batch, Action& chosen, const Shared& options, const std::string& name,
               const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(batch, chosen, options, name, help, act);
  add_batch_id(command, "ID", options->batch_id);
  return command;
}

void add_looks(Parser batch, Action& chosen, const Shared& options) {
  Parser all = add_command(batch, chosen, options, "list", "List batches, newest first", list);
  all.add_option("--runbook", options->runbook, "only of this runbook");
  all.add_option("--status", options->status,
                 "detected, init_dispatched, active, completed, failed or cancelled")
      .one_of({"detected", "init_dispatched", "active", "completed", "failed", "cancelled"});
  all.add_option("--limit", options->limit, "batches on one page").range(1, 200);
  all.add_option("--cursor", options->cursor, "where the page before ended");
  all.footer("Example:\n  baton batch list --runbook contoso-mailboxes --status active");
  (void)add_one(batch, chosen, options, "show", "Print a batch and its phases", show);
  (void)add_one(batch, chosen, options, "events", "Print what has happened to a batch", events);
  (void)add_one(batch, chosen, options, "why", "Say in a sentence why a batch does not go on", why);
  Parser lines = add_one(batch, chosen, options, "report", "Print what became of each member, as CSV", report);
  lines.add_flag("--csv", options->as_csv, "as CSV, which is the default; with --json an object on each line");
  lines.footer("Example:\n  baton batch report 42 --csv > wave-1.csv");
  Parser follows = add_command(batch, chosen, options, "watch", "Follow a batch to its end, live", watch);
  follows.add_option("ID", options->batch_id, "the batch").range(1, 2'147'483'647);
  follows.add_option("--runbook", options->runbook, "all open batches of this runbook, on one screen");
  follows.add_flag("--all", options->all, "all open batches, on one screen");
  add_reconnect_option(follows, options->reconnect);
  follows.footer(
      "On a terminal one picture is kept up to date; elsewhere a line is printed for each change.\n"
      "Exit codes: 0 completed, 5 completed and some members failed, 1 failed or cancelled, 6 the server\n"
      "could not be reached or could not serve. Of several batches the worst.");
}

}  // namespace

void add_batch(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser batch = app.add_subcommand("batch", "Watch and steer the batches of runbooks");
  batch.require_subcommand(1);
  add_looks(batch, chosen, options);
  Parser by_hand =
      add_command(batch, chosen, options, "create",
                  "Make a batch from a CSV file, whose phases begin by hand; prints its id", create);
  by_hand.add_option("RUNBOOK", options->runbook, "the runbook's name").required();
  by_hand.add_option("--csv", options->csv, "the members, with a heading; - is standard input")
      .type_name("FILE")
      .required();
  by_hand.add_option("--version", options->version, "of the runbook; default the active one")
      .range(1, 1'000'000'000);
  by_hand.add_option("--by", options->by, "who does it; kept with the batch");
  by_hand.footer("Example:\n  baton batch create contoso-mailboxes --csv wave-3.csv --by ada");
  const auto changes = [&](const std::string& name, const std::string& help, int (*act)(const Options&)) {
    Parser command = add_one(batch, chosen, options, name, help, act);
    command.add_option("--by", options->by, "who does it; kept with the batch");
    command.add_option("--reason", options->reason, "kept with the batch");
    return command;
  };
  changes("advance", "Begin a phase now, whenever it is due", advance)
      .add_option("--phase", options->phase, "which; default the next one");
  (void)changes("pause", "Pause a batch: what runs goes on, nothing new is handed out", pause);
  (void)changes("resume", "Let a paused batch go on", resume);
  (void)changes("cancel", "Cancel a batch: what has not ended is given up", cancel);
  changes("approve-removals", "Let the members leave that the data source no longer has", approve_removals)
      .footer(
          "When more members would leave at once than the runbook's max_removal_percent allows, they are "
          "held\n"
          "until somebody approves, or until the source has them again.");
}

}  // namespace baton::cli
