// `baton runbook …`: runbooks on disk and on a server.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/checked_file.hpp"
#include "cli/commands/publish.hpp"
#include "cli/commands/runbook_impact.hpp"
#include "cli/commands/runbook_plan.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/commands/targets.hpp"
#include "cli/request.hpp"
#include "cli/terminal/gauge.hpp"
#include "cli/terminal/output.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::vector<std::string> files;
  std::string name;
  std::string overdue_behavior;
  std::string open_batches;
  std::string state;  // on or off
  bool rerun_init = false;
  bool yaml = false;
  int version = 0;
  int limit = 0;
};
using Shared = std::shared_ptr<Options>;

// What is said about a runbook, with the nearest name when there is none of that name.
int tell_runbook(const Options& options, Remote& remote, const Result<Answer>& answer, const Show& show) {
  const int code = tell(options.remote, answer, show);
  if (!options.remote.as_json && answer && Fields(answer->body).text("code") == "runbook_not_found")
    suggest(remote, runbook_names, options.name);
  return code;
}

int validate(const Options& options) {
  std::vector<CheckedFile> files;
  for (const std::string& path : options.files) files.push_back(check_runbook(path));
  return print_checked(files, options.remote.as_json);
}

struct OpenBatches {
  std::int64_t timed = 0, by_hand = 0;
  bool are_more = false;  // than were counted
};

// As far as one page of each status tells.
OpenBatches open_batches(Remote& remote, const std::string& runbook) {
  OpenBatches open;
  for (const std::string_view status : {"detected", "init_dispatched", "active"}) {
    const auto answer = remote.get(
        Target("/api/v1/batches").with("runbook", runbook).with("status", status).with("limit", 200).text());
    if (!answer || !answer->ok()) continue;
    const Fields page(answer->body);
    for (const Fields& batch : page.items("batches"))
      ++(batch.has("batch_start_time") ? open.timed : open.by_hand);
    open.are_more |= page.has("next_cursor");
  }
  return open;
}

// A new version is for open batches too, which is easily forgotten.
void tell_transition(const Options& options, Remote& remote, const Fields& row) {
  const OpenBatches open = open_batches(remote, row.text("name"));
  const std::int64_t all = open.timed + open.by_hand;
  if (all == 0) return;
  const std::string how = row.text("open_batches");
  std::string text = fmt::format("{}{} {} over to version {}", open.are_more ? "more than " : "",
                                 counted(all, "open batch"), all == 1 ? "goes" : "go", row.number("version"));
  if (how == "keep") text += ", unless it has begun: then it finishes on its version";
  if (how == "ignore") text += "; what is past due or has begun before is left out";
  if (how == "rerun" && open.timed > 0) text += "; phases that are past due run again";
  if (how == "rerun" && open.by_hand > 0) text += "; in batches by hand all phases wait for 'baton batch advance' again";
  if (options.rerun_init) text += "; init steps run again";
  fmt::print("{}\n", text);
}

// Nothing was said of open batches that have begun: here is what each answer would do.
void tell_choice(const std::string& file, const Fields& refused) {
  if (refused.text("code") != "open_batches") return;
  if (refused.has("impact")) fmt::print("{}\n", impact_text(Fields(refused.document("impact")), now()));
  fmt::print("Nothing is published yet. Say what becomes of batches that have begun:\n"
             "  baton runbook publish {0} --open-batches keep    they finish on their version\n"
             "  baton runbook publish {0} --open-batches ignore  the new version for what is not due yet and has not begun\n"
             "  baton runbook publish {0} --open-batches rerun   what is past due begins again\n",
             file);
}

int publish(const Options& options) {
  const std::string target = Target("/api/v1/runbooks")
                                 .with("open_batches", options.open_batches)
                                 .with("overdue_behavior", options.overdue_behavior)
                                 .with("rerun_init", options.rerun_init ? "true" : "")
                                 .text();
  const bool has_options = options.rerun_init || !options.overdue_behavior.empty() || !options.open_batches.empty();
  return publish_files(
      options.remote, options.files, target, "name",
      [&](Remote& remote, const Fields& row, bool is_new) {
        if (is_new && row.flag("in_transition")) tell_transition(options, remote, row);
        if (!is_new && has_options)
          fmt::print("nothing changed: --rerun-init, --open-batches and --overdue-behavior only count for a new version\n");
      },
      options.remote.as_json ? WhenRefused() : tell_choice);
}

int impact(const Options& options) { return show_impact(options.remote, options.files); }

std::string on_or_off(bool on) { return on ? "on" : "off"; }

int list(const Options& options) {
  return list_all(
      options.remote,
      {.target = "/api/v1/runbooks?limit=200",
       .key = "runbooks",
       .heading = {"RUNBOOK", "VERSION", "ACTIVE", "AUTOMATION", "PUBLISHED", "SOURCE READ", "ERROR"},
       .none = "No runbook is published yet; see `baton runbook publish --help`."},
      [](const Fields& each) -> Row {
        return {each.text("name"),
                std::to_string(each.number("version")),
                each.flag("is_active") ? "yes" : "no",
                on_or_off(each.flag("automation_enabled")),
                each.text("created_at"),
                each.text("last_synced_at"),
                one_line(each.text("last_error"))};
      });
}

int versions(const Options& options) {
  Remote remote(options.remote);
  const Listing listing{.target = runbook_target(options.name) + "/versions",
                        .key = "versions",
                        .heading = {"VERSION", "ACTIVE", "PUBLISHED", "OVERDUE", "RERUN INIT", "DATA TABLE"}};
  return tell_runbook(options, remote, remote.get(listing.target), [&](const Fields& page) {
    print_page(page, listing, [](const Fields& each) -> Row {
      return {std::to_string(each.number("version")),
              each.flag("is_active") ? "yes" : "no",
              each.text("created_at"),
              each.text("overdue_behavior"),
              each.flag("rerun_init") ? "yes" : "no",
              each.text("data_table_name")};
    });
  });
}

void add_rows(std::vector<Row>& rows, const std::string& part, const std::string& offset,
              const std::vector<runbook::Step>& steps) {
  for (const runbook::Step& step : steps) {
    const bool is_first = &step == &steps.front();
    rows.push_back({is_first ? part : "", is_first ? offset : "", step.name, step.worker_id, step.function,
                    step.poll ? span_text(step.poll->interval) : "", step.on_failure});
  }
}

// What the text of a runbook says, as far as it can be read.
void print_definition(const std::string& yaml) {
  const auto definition = runbook::parse(yaml, runbook::Strictness::stored).definition;
  if (!definition) {
    fmt::print("\nIts text has errors; see `baton runbook show --yaml` and `baton runbook validate`.\n");
    return;
  }
  print_field("about", one_line(definition->description));
  print_field("order", definition->progression == runbook::Progression::lockstep ? "lockstep" : "per_member");
  const runbook::DataSource& source = definition->data_source;
  print_field("source",
              fmt::format("{}, every {}, T {}", printable(source.connection), span_text(source.interval),
                          source.immediate ? "at once" : "from " + printable(source.batch_time_column)));
  std::vector<Row> rows{{"PHASE", "OFFSET", "STEP", "WORKER", "FUNCTION", "POLL", "ON FAILURE"}};
  add_rows(rows, "(init)", "", definition->init);
  for (const runbook::Phase& phase : definition->phases)
    add_rows(rows, phase.name, offset_text(phase.offset_minutes), phase.steps);
  for (const auto& [name, steps] : definition->rollbacks) add_rows(rows, "(" + name + ")", "", steps);
  add_rows(rows, "(removal)", "", definition->on_member_removed);
  fmt::print("\n{}", table(rows));
}

void print_runbook(const Fields& row) {
  print_field("runbook", fmt::format("{} version {}{}", printable(row.text("name")), row.number("version"),
                                     row.flag("is_active") ? "" : ", not active"));
  print_field("published", row.text("created_at"));
  print_field("automation", on_or_off(row.flag("automation_enabled")));
  print_field("read", row.text("last_synced_at"));
  print_field("error", one_line(row.text("last_error")));
  print_field("since", row.text("last_error_at"));
  for (const Fields& held : row.items("held_removals"))
    print_field("held",
                fmt::format("{} members would leave batch {}, which has {} active ones; see 'baton batch approve-removals'",
                            held.number("leaving"), held.number("batch_id"), held.number("active")));
  if (row.flag("in_transition")) print_field("note", "open batches are going over to this version");
  print_definition(row.text("yaml_content"));
}

int show(const Options& options) {
  Remote remote(options.remote);
  const auto answer =
      remote.get(Target(runbook_target(options.name)).with("version", options.version).text());
  return tell_runbook(options, remote, answer, [&](const Fields& row) {
    if (options.yaml)
      print_text(row.text("yaml_content"));
    else
      print_runbook(row);
  });
}

int change(const Options& options, const Target& target, std::string body) {
  Remote remote(options.remote);
  const auto answer = remote.post(target.text(), std::move(body), "application/json");
  return tell_runbook(options, remote, answer, [](const Fields& row) {
    fmt::print("{}{} version {} is {}active, its automation is {}.\n",
               row.flag("changed") ? "" : "Nothing to do: ", printable(row.text("name")),
               row.number("version"), row.flag("is_active") ? "" : "not ",
               on_or_off(row.flag("automation_enabled")));
  });
}

int activate(const Options& o) {
  return change(o, Target(runbook_target(o.name) + "/activate").with("version", o.version), "{}");
}
int deactivate(const Options& o) { return change(o, Target(runbook_target(o.name) + "/deactivate"), "{}"); }
int automation(const Options& o) {
  return change(o, Target(runbook_target(o.name) + "/automation"),
                json_object("enabled", o.state == "on").text);
}

int preview(const Options& options) {
  Remote remote(options.remote);
  const auto answer =
      remote.get(Target(runbook_target(options.name) + "/preview").with("limit", options.limit).text());
  return tell_runbook(options, remote, answer,
                      [](const Fields& rows) { fmt::print("{}", preview_text(rows)); });
}

Parser add_named(Parser runbook, Action& chosen, const Shared& options, const std::string& name,
                 const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(runbook, chosen, options, name, help, act);
  command.add_option("NAME", options->name, "the runbook's name").required();
  return command;
}

void add_version(Parser command, const Shared& options, const std::string& help) {
  command.add_option("--version", options->version, help).range(1, 1'000'000'000);
}

void add_files(Parser runbook, Action& chosen, const Shared& options) {
  Parser check = runbook.add_subcommand("validate", "Check runbooks without a server");
  check.add_option("FILE", options->files, "runbooks to check").required();
  check.add_flag("--json", options->remote.as_json, "print JSON");
  check.callback([options, &chosen] { chosen = [options] { return validate(*options); }; });
  check.footer("Exit codes: 0 all valid, 2 there are errors.");
  Parser put = add_command(runbook, chosen, options, "publish",
                           "Publish new versions; open batches go over to them, or keep theirs", publish);
  put.add_option("FILE", options->files, "runbooks; - is standard input").required();
  put.add_option("--open-batches", options->open_batches,
                 "what becomes of batches that have begun: keep, they finish on their version; ignore, the new one for what is "
                 "not due yet; rerun, what is past due begins again")
      .one_of({"keep", "ignore", "rerun"});
  put.add_option("--overdue-behavior", options->overdue_behavior, "the same as --open-batches, without keep")
      .one_of({"rerun", "ignore"});
  put.add_flag("--rerun-init", options->rerun_init, "open batches do their init steps again");
  put.footer("Example:\n  baton runbook publish contoso.yaml --open-batches keep");
  Parser foretell = add_command(runbook, chosen, options, "impact",
                                "Say what publishing would do to open batches, and what differs", impact);
  foretell.add_option("FILE", options->files, "runbooks; - is standard input").required();
}

void add_plan(Parser runbook, Action& chosen) {
  auto options = std::make_shared<PlanOptions>();
  Parser command = add_command(runbook, chosen, options, "plan",
                               "Say what would happen, and when, without storing anything", plan_runbook);
  command.add_option("RUNBOOK", options->what, "a file, - for standard input, or the name of a published one")
      .required();
  command.add_option("--members", options->members, "to show with their steps; default 5").range(1, 100);
  const Option csv = command.add_option("--csv", options->csv, "members to take instead of the data source's")
                         .type_name("FILE");
  command
      .add_option("--start", options->start,
                  "T of these members, as \"2026-01-31 22:00\" (UTC); default what the CSV says")
      .needs(csv);
  command.footer(
      "The server reads the data source now; the connection that the runbook names is a variable of\n"
      "the server's environment, not of this one.\n"
      "Exit codes: 0 every variable is known, 1 some are not, 2 the runbook has errors.\n"
      "Example:\n  baton runbook plan contoso.yaml --members 1");
}

}  // namespace

void add_runbook(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser runbook = app.add_subcommand("runbook", "Check, publish and plan runbooks");
  runbook.require_subcommand(1);
  add_files(runbook, chosen, options);
  add_command(runbook, chosen, options, "list", "List runbooks, the newest version of each", list);
  Parser one = add_named(runbook, chosen, options, "show", "Print a runbook", show);
  add_version(one, options, "default the active one");
  one.add_flag("--yaml", options->yaml, "its text as it was published");
  (void)add_named(runbook, chosen, options, "versions", "List the versions of a runbook", versions);
  add_plan(runbook, chosen);
  add_named(runbook, chosen, options, "preview", "Print the rows that the data source has now", preview)
      .add_option("--limit", options->limit, "rows to print; default 20")
      .range(1, 1000);
  add_version(add_named(runbook, chosen, options, "activate", "Make a version the active one", activate),
              options, "default the newest");
  (void)add_named(runbook, chosen, options, "deactivate", "Make no new batches; open ones go on", deactivate);
  add_named(runbook, chosen, options, "automation", "Look at the data source, or leave it alone", automation)
      .add_option("STATE", options->state, "on or off")
      .required()
      .one_of({"on", "off"});
}

}  // namespace baton::cli
