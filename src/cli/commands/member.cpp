// `baton member …`: those whom a batch is about.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>

#include "cli/commands/input.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/commands/targets.hpp"
#include "cli/request.hpp"
#include "cli/terminal/gauge.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::int64_t batch_id = 0;
  std::string member;             // a key or an id
  std::vector<std::string> keys;  // of several
  bool all = false;
  std::string status, cursor, by, reason, csv;
  int limit = 0;
};
using Shared = std::shared_ptr<Options>;

std::string members_target(const Options& options) { return batch_target(options.batch_id) + "/members"; }

int list(const Options& options) {
  const Listing listing{.target = Target(members_target(options))
                                      .with("status", options.status)
                                      .with("key", options.member)
                                      .with("limit", options.limit)
                                      .with("cursor", options.cursor)
                                      .text(),
                        .key = "members",
                        .heading = {"MEMBER", "KEY", "STATUS", "ADDED", "FAILED", "REMOVED"},
                        .none = "No members."};
  return list_page(options.remote, listing, [](const Fields& member) -> Row {
    const std::string status = member.text("status") + (member.flag("catching_up") ? ", catching up" : "");
    return {std::to_string(member.number("id")),
            member.text("member_key"),
            status,
            member.text("added_at"),
            member.text("failed_at"),
            member.text("removed_at")};
  });
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The id of the member of that key, 0 when there is none.
Result<std::int64_t> find_member(Remote& remote, const Options& options) {
  const auto answer = remote.get(Target(members_target(options)).with("key", options.member).text());
  if (!answer) return std::unexpected(answer.error());
  if (!answer->ok()) return fail(Code::not_found, describe_problem(answer->status, answer->body));
  const auto found = Fields(answer->body).items("members");
  return found.empty() ? 0 : found.front().number("id");
}

using PhaseNames = std::map<std::int64_t, std::string>;

// The steps of a member know their phases by id only.
PhaseNames phase_names(Remote& remote, const Options& options) {
  PhaseNames names;
  const auto answer = remote.get(batch_target(options.batch_id) + "/phases");
  if (!answer || !answer->ok()) return names;
  for (const Fields& phase : Fields(answer->body).items("phases"))
    names[phase.number("id")] = phase.text("phase_name");
  return names;
}

Row row_of(const Fields& step, const PhaseNames& phases) {
  const auto phase = phases.find(step.number("phase_execution_id"));
  const std::string part = phase == phases.end() ? "" : phase->second;
  return {part.empty() ? step.text("sequence") : part,
          job_of(step),
          step.text("step_name"),
          step.flag("skipped") ? "skipped" : step.text("status"),
          std::to_string(step.number("retry_count") + 1),
          step.text("worker_id"),
          step.text("leased_by"),
          step.text("completed_at"),
          one_line(step.text("error_message"))};
}

void print_member(const Fields& member, const PhaseNames& phases) {
  const bool colour = has_colour(stdout);
  const std::string status = member.text("status");
  print_field("member", std::to_string(member.number("id")));
  print_field("key", printable(member.text("member_key")));
  print_field("batch", std::to_string(member.number("batch_id")));
  print_field("status", paint(status, colour_of_status(status), colour) +
                            (member.flag("catching_up") ? ", catching up" : ""));
  print_field("added", member.text("added_at"));
  print_field("failed", member.text("failed_at"));
  print_field("removed", member.text("removed_at"));
  if (member.has("data_json")) print_field("data", printable(member.document("data_json")));
  if (member.has("worker_data_json")) print_field("outputs", printable(member.document("worker_data_json")));
  std::vector<Row> rows{{"PHASE", "JOB", "STEP", "STATUS", "ATTEMPT", "QUEUE", "WORKER", "ENDED", "ERROR"}};
  for (const std::string_view list : {"steps", "cleanups"})
    for (const Fields& step : member.items(list)) rows.push_back(row_of(step, phases));
  if (rows.size() > 1) fmt::print("\n{}", table(rows));
}

int tell_member(Remote& remote, const Options& options, const Result<Answer>& answer) {
  return tell(options.remote, answer,
              [&](const Fields& member) { print_member(member, phase_names(remote, options)); });
}

// What looks like an id is taken for one first; a key of digits is found all the same.
int show(const Options& options) {
  Remote remote(options.remote);
  if (is_number(options.member)) {
    const auto answer = remote.get(members_target(options) + "/" + options.member);
    if (!answer || answer->status != 404) return tell_member(remote, options, answer);
  }
  const auto id = find_member(remote, options);
  if (!id) return refuse(options.remote, id.error());
  if (*id == 0) {
    complain(fmt::format("batch {} has no member '{}'; `baton member list {}` has them", options.batch_id,
                         printable(options.member), options.batch_id));
    return exit_failed;
  }
  return tell_member(remote, options, remote.get(fmt::format("{}/{}", members_target(options), *id)));
}

// What a change of members comes to: "Retried 12 members; 3 were left out:", and a line for each reason.
void print_change(const Fields& reply, std::string_view done) {
  const std::int64_t left_out = reply.number("left_out");
  const auto phases = reply.items("phases");
  for (const Fields& phase : phases) fmt::print("Phase '{}' goes on from where it failed.\n", printable(phase.whole()));
  if (!phases.empty()) return;
  fmt::print("{} {}", done, counted(reply.number("count"), "member"));
  if (const std::string note = reply.text("note"); !note.empty()) fmt::print(": {}", printable(note));
  const auto reasons = reply.items("left_out_because");
  if (left_out > 0) fmt::print("; {} {} left out", grouped(left_out), left_out == 1 ? "was" : "were");
  fmt::print("{}\n", reasons.empty() ? "." : ":");
  for (const Fields& each : reasons) {
    const auto keys = each.items("member_keys");
    fmt::print("  {} ({}): ", printable(each.text("message")), grouped(each.number("count")));
    for (std::size_t i = 0; i < keys.size(); ++i) fmt::print("{}{}", i > 0 ? ", " : "", printable(keys[i].whole()));
    fmt::print("{}\n", each.number("count") > static_cast<std::int64_t>(keys.size()) ? ", …" : "");
  }
}

// A change that changed nobody has failed, as one that the server refuses.
int tell_change(const Options& options, const Result<Answer>& answer, std::string_view done) {
  const int code = tell(options.remote, answer, [&](const Fields& reply) { print_change(reply, done); });
  if (code != exit_ok) return code;
  const Fields reply(answer->body);
  return reply.number("count") == 0 && reply.items("phases").empty() ? exit_failed : exit_ok;
}

int add(const Options& options) {
  auto text = read_file(options.csv);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  const std::string target = Target(members_target(options)).with("by", options.by).with("reason", options.reason).text();
  return tell_change(options, Remote(options.remote).post(target, *std::move(text), "text/csv"), "Added");
}

int change(const Options& options, const std::string& verb, std::string_view done, bool all = false) {
  const std::string body =
      json_object_of_given("member_keys", options.keys, "all", all, "by", options.by, "reason", options.reason).text;
  return tell_change(options, Remote(options.remote).post(members_target(options) + ":" + verb, body, "application/json"),
                     done);
}

int remove(const Options& options) { return change(options, "remove", "Removed"); }

int retry(const Options& options) {
  if (options.keys.empty() && !options.all) {
    complain(
        "say whom to retry: KEY, or --all for every failed member of the batch (in lockstep, for the phases "
        "that failed)");
    return exit_usage;
  }
  return change(options, "retry", "Retried", options.all);
}

// What looks like an id is taken for one first; the server does the same.
int why(const Options& options) {
  return get(options.remote, members_target(options) + "/" + escaped(options.member) + "/why", [](const Fields& body) {
    print_why("member " + printable(body.text("member_key")), body);
  });
}

Parser add_one(Parser member, Action& chosen, const Shared& options, const std::string& name,
               const std::string& help, int (*act)(const Options&)) {
  Parser command = add_command(member, chosen, options, name, help, act);
  add_batch_id(command, "BATCH", options->batch_id);
  return command;
}

void add_looks(Parser member, Action& chosen, const Shared& options) {
  Parser all = add_one(member, chosen, options, "list", "List the members of a batch", list);
  all.add_option("--status", options->status, "active, failed or removed")
      .one_of({"active", "failed", "removed"});
  all.add_option("--key", options->member, "only the member of that key");
  all.add_option("--limit", options->limit, "members on one page; default 100").range(1, 1000);
  all.add_option("--cursor", options->cursor, "where the page before ended");
  all.footer("Example:\n  baton member list 42 --status failed");
  add_one(member, chosen, options, "show", "Print a member, its data and its steps", show)
      .add_option("MEMBER", options->member, "its key or its id")
      .required();
}

void add_why(Parser member, Action& chosen, const Shared& options) {
  add_one(member, chosen, options, "why", "Say in a sentence why a member does not go on", why)
      .add_option("MEMBER", options->member, "its key or its id")
      .required();
}

}  // namespace

void add_member(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser member = app.add_subcommand("member", "Look at the members of a batch, add, retry and remove them");
  member.require_subcommand(1);
  member.footer(
      "`add`, `retry` and `remove` say whom they left out, and why.\n"
      "Exit codes: 0 done, also if some were left out; 1 nothing was done.");
  add_looks(member, chosen, options);
  add_why(member, chosen, options);
  const std::string by_help = "who does it; kept with the batch";
  const auto add_who = [&](Parser command) {
    command.add_option("--by", options->by, by_help);
    command.add_option("--reason", options->reason, "kept with the batch");
  };
  Parser in = add_one(member, chosen, options, "add", "Add members to a batch; they catch up on what has begun", add);
  add_who(in);
  in.add_option("--csv", options->csv, "the members, with a heading; - is standard input")
      .type_name("FILE")
      .required();
  Parser again =
      add_one(member, chosen, options, "retry", "Let failed members go on from what failed", retry);
  const Option whom = again.add_option("KEY", options->keys, "the members' keys");
  again.add_flag("--all", options->all, "every failed member of the batch").excludes(whom);
  add_who(again);
  again.footer(
      "Examples:\n  baton member retry 42 ada@contoso.example\n  baton member retry 42 --all --by ada");
  Parser out =
      add_one(member, chosen, options, "remove",
              "Take members out: what is left of them is cancelled, then on_member_removed runs", remove);
  out.add_option("KEY", options->keys, "the members' keys").required();
  add_who(out);
}

}  // namespace baton::cli
