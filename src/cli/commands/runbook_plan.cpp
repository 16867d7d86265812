#include "cli/commands/runbook_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/input.hpp"
#include "cli/commands/publish.hpp"
#include "cli/commands/targets.hpp"
#include "cli/request.hpp"
#include "cli/terminal/batch_view.hpp"
#include "cli/terminal/gauge.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

std::string start_text(const Fields& batch, Time now) {
  const auto start = time_of(batch, "batch_start_time");
  return start ? fmt::format("T {} UTC ({})", minute_text(*start), relative(*start, now))
               : "no T: phases begin by hand";
}

// "{{Id}}, {{Name}}"
std::string variables(const Fields& step, std::string_view key) {
  std::string all;
  for (const Fields& name : step.items(key))
    all += fmt::format("{}{{{{{}}}}}", all.empty() ? "" : ", ", printable(name.whole()));
  return all;
}

std::size_t widest(const std::vector<Fields>& items, std::string_view key) {
  std::size_t columns = 0;
  for (const Fields& each : items) columns = std::max(columns, columns_of(each.text(key)));
  return columns;
}

std::string padded(const std::string& text, std::size_t columns) {
  const std::string clean = printable(text);
  return clean + std::string(columns - std::min(columns, columns_of(clean)), ' ');
}

// Each with its function, queue and parameters; what is unknown stands on a line of its own.
std::string steps_text(const std::vector<Fields>& steps, const std::string& indent, bool colour) {
  std::string text;
  const std::size_t columns = widest(steps, "step_name");
  for (const Fields& step : steps) {
    text += fmt::format("{}{}  {} on {}  {}\n", indent, padded(step.text("step_name"), columns),
                        printable(step.text("function_name")), printable(step.text("worker_id")),
                        printable(step.document("params")));
    const std::string below = indent + std::string(columns + 2, ' ');
    if (const std::string later = variables(step, "from_earlier_steps"); !later.empty())
      text += below +
              paint(later + (later == "{{_batch_id}}" ? " is known when the batch is made"
                                                      : " comes from an earlier step"),
                    Colour::dim, colour) +
              '\n';
    if (const std::string unknown = variables(step, "unresolved"); !unknown.empty())
      text += below + paint("! " + unknown + " is unknown: the step would fail", Colour::red, colour) + '\n';
  }
  return text;
}

std::string phases_text(const Fields& batch, Time now, bool colour) {
  std::string text;
  const auto phases = batch.items("phases");
  const std::size_t columns = widest(phases, "phase_name");
  for (const Fields& phase : phases) {
    const auto due = time_of(phase, "due_at");
    text += fmt::format("  {}  {:<7}  ", padded(phase.text("phase_name"), columns),
                        offset_text(phase.number("offset_minutes")));
    text += due ? fmt::format("{}  {}", minute_text(*due), relative(*due, now)) : "by hand";
    text += "  " + counted(phase.number("step_count"), "step");
    if (phase.flag("overdue")) text += "  " + paint("past due: begins at once", Colour::yellow, colour);
    text += '\n';
  }
  return text;
}

std::string member_text(const Fields& member, bool colour) {
  std::string text = fmt::format("\n  {}\n", printable(member.text("member_key")));
  for (const Fields& phase : member.items("phases")) {
    text += fmt::format("    {}\n", printable(phase.text("phase_name")));
    text += steps_text(phase.items("steps"), "      ", colour);
  }
  return text;
}

std::string batch_text(const Fields& batch, Time now, bool colour) {
  const std::int64_t count = batch.number("member_count");
  std::string text = fmt::format("\nbatch of {}, {}\n", counted(count, "member"), start_text(batch, now));
  if (const auto init = batch.items("init_steps"); !init.empty())
    text += "  init, once for the batch\n" + steps_text(init, "    ", colour);
  text += phases_text(batch, now, colour);
  const auto members = batch.items("members");
  for (const Fields& member : members) text += member_text(member, colour);
  const auto left = count - static_cast<std::int64_t>(members.size());
  if (left > 0)
    text += fmt::format("\n  {}{} not shown\n", counted(left, members.empty() ? "member" : "more member"),
                        left == 1 ? " is" : " are");
  return text;
}

// "80 members: ada@contoso.example, bob@contoso.example, …"; an init step is nobody's.
std::string whom(const Fields& unknown) {
  const std::int64_t count = unknown.number("count");
  const auto keys = unknown.items("member_keys");
  if (keys.empty()) return counted(count, "time");
  std::string text = counted(count, "member") + ":";
  for (std::size_t i = 0; i < keys.size(); ++i) text += (i > 0 ? ", " : " ") + printable(keys[i].whole());
  return text + (count > static_cast<std::int64_t>(keys.size()) ? ", …" : "");
}

std::string unknown_text(const Fields& plan, bool colour) {
  std::string text;
  for (const Fields& each : plan.items("unresolved")) {
    const std::string phase = each.text("phase_name");
    text += fmt::format("  {}/{}: {{{{{}}}}}, {}\n", phase.empty() ? "init" : printable(phase),
                        printable(each.text("step_name")), printable(each.text("variable")), whom(each));
  }
  if (text.empty()) return "";
  return "\n" + paint("Unknown variables, whose steps would fail:", Colour::red, colour) + "\n" + text;
}

// The body of the request; the error is for the person.
Result<std::string> request_of(const PlanOptions& options, bool is_file) {
  std::string body = "{";
  append_member(body, "limit", options.members);
  if (is_file) {
    TRY_ASSIGN(const std::string yaml, read_utf8_file(options.what));
    append_member(body, "yaml", yaml);
  } else {
    append_member(body, "runbook", options.what);
  }
  if (!options.csv.empty()) {
    TRY_ASSIGN(const std::string csv, read_utf8_file(options.csv));
    append_member(body, "csv", csv);
  }
  append_given(body, "batch_start_time", options.start);
  return body + "}";
}

// Whether a word names a file rather than a runbook: it is there, or it looks like a path.
bool is_file(const std::string& what) {
  std::error_code error;
  return what == "-" || what.find('/') != std::string::npos || what.ends_with(".yaml") ||
         what.ends_with(".yml") || std::filesystem::is_regular_file(what, error);
}

}  // namespace

std::string plan_text(const Fields& plan, Time now, bool colour) {
  const auto batches = plan.items("batches");
  const std::int64_t version = plan.number("version");
  std::string text = fmt::format("{}{}: {} in {}\n", printable(plan.text("name")),
                                 version > 0 ? fmt::format(" version {}", version) : ", not published",
                                 counted(plan.number("member_count"), "member"),
                                 counted(static_cast<std::int64_t>(batches.size()), "batch"));
  if (const std::string note = plan.text("note"); !note.empty())
    text += paint("note: " + printable(note), Colour::yellow, colour) + '\n';
  for (const Fields& batch : batches) text += batch_text(batch, now, colour);
  return text + unknown_text(plan, colour);
}

int plan_runbook(const PlanOptions& options) {
  const bool from_file = is_file(options.what);
  auto body = request_of(options, from_file);
  if (!body) {
    complain(body.error().message);
    return exit_usage;
  }
  Remote remote(options.remote);
  const auto answer = remote.post("/api/v1/runbooks/plan", *std::move(body), "application/json");
  if (!answer) return refuse(options.remote, answer.error());
  const Fields plan(answer->body);
  if (is_invalid_definition(plan) && !options.remote.as_json) {
    print_diagnostics(options.what, plan, Diagnostic::Level::error);
    return exit_usage;
  }
  const int code = tell(options.remote, answer, [&](const Fields&) {
    print_diagnostics(options.what, plan, Diagnostic::Level::warning);
    fmt::print("{}", plan_text(plan, now(), has_colour(stdout)));
  });
  if (is_invalid_definition(plan)) return exit_usage;
  if (!from_file && !options.remote.as_json && plan.text("code") == "runbook_not_found")
    suggest(remote, runbook_names, options.what);
  return code == exit_ok && !plan.items("unresolved").empty() ? exit_failed : code;
}

std::string preview_text(const Fields& preview) {
  std::vector<Row> rows;
  std::int64_t shown = 0;
  for (const Fields& batch : preview.items("batches")) {
    const auto start = time_of(batch, "batch_start_time");
    for (const Fields& member : batch.items("members")) {
      const auto data = member.members("data");
      if (rows.empty()) {
        rows.push_back({"T", "MEMBER"});
        for (const auto& [column, value] : data) rows.front().push_back(column);
      }
      Row row{start ? minute_text(*start) : "by hand", member.text("member_key")};
      for (const auto& [column, value] : data) row.push_back(one_line(value.whole()));
      rows.push_back(std::move(row));
      ++shown;
    }
  }
  const std::int64_t total = preview.number("member_count");
  const std::string more = shown < total ? fmt::format(", the first {} shown", grouped(shown)) : "";
  return table(rows) + fmt::format("{}{}{}\n", rows.empty() ? "" : "\n", counted(total, "member"), more);
}

}  // namespace baton::cli
