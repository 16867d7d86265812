#include "cli/commands/runbook_impact.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::string difference_text(const Fields& change) {
  const std::string where = printable(change.text("where")), what = change.text("change");
  if (what != "changed") return fmt::format("  {} is {}\n", where, what);
  const auto value = [&](std::string_view key) {
    const std::string text = one_line(change.text(key));
    return text.empty() ? std::string("nothing") : text;
  };
  return fmt::format("  {}: {} was {}, is {}\n", where, change.text("field"), value("from"), value("to"));
}

std::string when_text(const Fields& phase, Time now) {
  if (phase.flag("at_once")) return "at once";
  const auto due = time_of(phase, "due_at");
  return due ? fmt::format("at {} UTC ({})", minute_text(*due), relative(*due, now)) : "by hand";
}

std::string phase_impact_text(const Fields& phase, Time now) {
  const std::string name = printable(phase.text("phase_name")), what = phase.text("what");
  const std::int64_t version = phase.number("version");
  if (what == "goes_on") return fmt::format("{} goes on in version {}", name, version);
  if (what == "stays") return fmt::format("{} stays in version {}", name, version);
  if (what == "superseded") return fmt::format("{} of version {} is replaced", name, version);
  if (what == "skipped") return fmt::format("{} is skipped", name);
  return fmt::format("{} {} {}", name, what == "begins_again" ? "BEGINS AGAIN" : "begins", when_text(phase, now));
}

std::string members_text(const Fields& batch) {
  std::string names;
  const auto keys = batch.items("member_keys");
  for (const Fields& key : keys) names += (names.empty() ? "" : ", ") + printable(key.whole());
  const std::int64_t count = batch.number("member_count");
  if (count > static_cast<std::int64_t>(keys.size())) names += ", …";
  return counted(count, "member") + (names.empty() ? "" : " (" + names + ")");
}

std::string open_batch_text(const Fields& batch, std::int64_t version, Time now) {
  const auto start = time_of(batch, "batch_start_time");
  std::string text = fmt::format("\nbatch {}, {}, {}, ", batch.number("batch_id"),
                                 start ? "T " + minute_text(*start) + " UTC" : "by hand", members_text(batch));
  const bool has_begun = batch.flag("has_begun");
  text += has_begun ? fmt::format("has begun in version {}\n", batch.number("runbook_version"))
                    : fmt::format("has not begun: it goes over to version {}\n", version);
  for (const Fields& answer : batch.items("answers")) {
    const std::string word = answer.text("answer");
    // What has not begun has nothing to begin again, so that two of the answers are the same.
    if (!has_begun && word == "rerun") continue;
    std::string phases;
    for (const Fields& phase : answer.items("phases")) phases += (phases.empty() ? "" : "; ") + phase_impact_text(phase, now);
    text += fmt::format("  {:<6}  {}\n", word, phases);
  }
  return text;
}

int show_one(Remote& remote, const RemoteOptions& options, const std::string& file) {
  auto text = read_file(file);
  if (!text) {
    complain(text.error().message);
    return exit_usage;
  }
  const auto answer = remote.post("/api/v1/runbooks/impact", *std::move(text), "application/yaml");
  if (!answer) return refuse(options, answer.error());
  const Fields impact(answer->body);
  if (is_invalid_definition(impact) && !options.as_json) {
    print_diagnostics(file, impact, Diagnostic::Level::error);
    return exit_usage;
  }
  const int code = tell(options, answer, [&](const Fields&) { fmt::print("{}", impact_text(impact, now())); });
  return is_invalid_definition(impact) ? static_cast<int>(exit_usage) : code;
}

}  // namespace

std::string impact_text(const Fields& impact, Time now) {
  const std::string name = printable(impact.text("name"));
  const std::int64_t version = impact.number("version");
  if (impact.flag("unchanged")) return fmt::format("{} version {} is this very text: nothing would change\n", name, version);
  if (!impact.has("current_version")) return fmt::format("{} is not published yet: no batch is open\n", name);
  std::string text = fmt::format("{} version {}, against version {}\n", name, version, impact.number("current_version"));
  const auto changes = impact.items("changes");
  if (changes.empty()) text += "  what it does is the same\n";
  for (const Fields& change : changes) text += difference_text(change);
  const auto batches = impact.items("open_batches");
  if (batches.empty()) text += "\nno batch is open\n";
  for (const Fields& batch : batches) text += open_batch_text(batch, version, now);
  if (impact.flag("are_more")) text += "\nmore batches are open than are shown\n";
  return text;
}

int show_impact(const RemoteOptions& options, const std::vector<std::string>& files) {
  Remote remote(options);
  int worst = exit_ok;
  for (const std::string& file : files) worst = std::max(worst, show_one(remote, options, file));
  return worst;
}

}  // namespace baton::cli
