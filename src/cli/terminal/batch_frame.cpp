#include "cli/terminal/batch_frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

constexpr Duration pace_window = std::chrono::seconds{10};
constexpr std::size_t failures_max = 5, holds_max = 3;
constexpr std::size_t bar_min = 10, bar_max = 40;

using Lines = std::vector<std::string>;

// A line under construction: what does not fit is cut, colours take no room.
class Line {
 public:
  explicit Line(const Screen& screen) : left_(screen.columns), colour_(screen.colour) {}

  Line& add(std::string_view text, Colour colour = Colour::none) {
    const std::string part = cut(printable(text), left_);
    left_ -= columns_of(part);
    if (!part.empty()) text_ += paint(part, colour, colour_);
    return *this;
  }
  // In a column of its own.
  Line& add(std::string_view text, std::size_t columns, Colour colour = Colour::none) {
    const std::string part = cut(printable(text), columns);
    add(part, colour);
    return add(std::string(columns - columns_of(part), ' '));
  }
  Line& add_bar(const Tally& tally, std::size_t columns) {
    text_ += bar(tally, columns, colour_);
    left_ -= columns;
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  std::string text_;
  std::size_t left_;
  bool colour_;
};

void append(Lines& lines, const Lines& more) { lines.insert(lines.end(), more.begin(), more.end()); }

// What waits for an answer, and how it is given.
Lines hold_lines(const BatchView& batch, const Screen& screen) {
  Lines lines;
  for (const HoldView& hold : batch.holds) {
    if (lines.size() == 2 * holds_max) {
      lines.push_back(Line(screen).add("more waits for you: 'baton needs-you'", Colour::yellow).text());
      break;
    }
    lines.push_back(Line(screen).add(fmt::format("{}: {}", hold.id, one_line(hold.message)), Colour::yellow).text());
    lines.push_back(Line(screen).add("  " + hold.command(), Colour::yellow).text());
  }
  return lines;
}

Lines head(const BatchView& batch, Time now, const Screen& screen) {
  Line title(screen);
  title.add(fmt::format("batch {}  {} version {}  ", batch.id, batch.runbook, batch.version));
  title.add(batch.outcome, colour_of_status(batch.outcome));
  if (batch.is_importing) title.add(", members are being added");
  Lines lines{title.text()};
  if (batch.start)
    lines.push_back(
        Line(screen)
            .add(fmt::format("T {} UTC, {}", minute_text(*batch.start), relative(*batch.start, now)))
            .text());
  else
    lines.push_back(Line(screen).add("no T: phases begin with 'baton batch advance'").text());
  if (batch.paused_at) {
    const std::string by = batch.paused_by.empty() ? "" : " by " + batch.paused_by;
    const std::string why = batch.paused_reason.empty() ? "" : ": " + one_line(batch.paused_reason);
    lines.push_back(Line(screen)
                        .add(fmt::format("paused{}, {}{}", by, relative(*batch.paused_at, now), why), Colour::yellow)
                        .text());
  }
  append(lines, hold_lines(batch, screen));
  for (const std::string& queue : batch.no_worker)
    lines.push_back(Line(screen).add(one_line(queue), Colour::red).text());
  if (!batch.error.empty()) lines.push_back(Line(screen).add(one_line(batch.error), Colour::red).text());
  return lines;
}

// "  [####....]  62 %  6,200 ok  31 failed": as many of the words as leave room for the bar.
std::string progress(const Tally& tally, const Screen& screen, const std::string& more = "") {
  auto said = words(tally);
  if (!more.empty()) said.push_back(more);
  const auto room = [&] {
    std::size_t used = 2 + 2 + 7;  // indent, brackets, percent
    for (const std::string& each : said) used += 2 + columns_of(each);
    return screen.columns > used ? screen.columns - used : 0;
  };
  while (!said.empty() && room() < bar_min) said.pop_back();
  Line line(screen);
  line.add("  [").add_bar(tally, std::min(room(), bar_max)).add(fmt::format("]  {:>3} %", tally.percent()));
  for (const std::string& each : said)
    line.add("  ").add(each, each.ends_with("failed") ? Colour::red : Colour::none);
  return line.text();
}

struct Block {
  Lines lines;
  bool has_ended = false;
};

Block block_of(const PhaseView& phase, std::size_t name_columns, Time now, const Screen& screen) {
  Line line(screen);
  line.add(phase.label, name_columns).add("  ");
  line.add(phase.status, 10, colour_of_status(phase.outcome)).add("  ");
  if (phase.due_at)
    line.add(minute_text(*phase.due_at) + "  " + relative(*phase.due_at, now));
  else
    line.add("by hand");
  if (phase.is_walking) line.add("  (starting)", Colour::blue);
  Block block{.lines = {line.text()}, .has_ended = phase.has_ended()};
  if (phase.outcome != phase.status) block.lines.push_back(Line(screen).add("  " + phase.outcome, Colour::red).text());
  if (!phase.waits_for.empty())
    block.lines.push_back(Line(screen).add("  waits for " + phase.waits_for, Colour::yellow).text());
  if (phase.steps.total() > 0) {
    const bool shows_members = phase.members > 0 && !block.has_ended;
    block.lines.push_back(progress(
        phase.steps, screen,
        shows_members ? fmt::format("{} of {} members", grouped(phase.members_done), grouped(phase.members)) : ""));
  }
  return block;
}

// The init steps, few and soon done: a bar only while they run or when something failed.
Block block_of(const Tally& init, std::size_t name_columns, const Screen& screen) {
  Line line(screen);
  line.add("init", name_columns).add("  ");
  if (init.succeeded == init.total())
    return {.lines = {line.add(words(init).front()).text()}, .has_ended = true};
  return {.lines = {line.text(), progress(init, screen)}, .has_ended = init.open() == 0};
}

std::vector<Block> blocks_of(const BatchView& batch, Time now, const Screen& screen) {
  std::size_t name_columns = 4;
  for (const PhaseView& phase : batch.phases) name_columns = std::max(name_columns, columns_of(phase.label));
  name_columns = std::min(name_columns, screen.columns / 3);
  std::vector<Block> blocks;
  if (batch.init.total() > 0) blocks.push_back(block_of(batch.init, name_columns, screen));
  for (const PhaseView& phase : batch.phases)
    if (phase.status != "superseded") blocks.push_back(block_of(phase, name_columns, now, screen));
  return blocks;
}

std::string estimate(const BatchView& batch, double per_second, const Screen& screen) {
  Tally under_way = batch.init;
  for (const PhaseView& phase : batch.phases)
    if (phase.status == "dispatched") under_way += phase.steps;
  if (under_way.open() == 0 || batch.has_ended()) return "";
  // Nobody knows when it goes on.
  if (batch.paused_at || batch.is_held || !batch.no_worker.empty()) return "";
  Line line(screen);
  line.add("pace     ");
  if (per_second <= 0) return line.add("no step has ended lately").text();
  const auto rest = std::chrono::duration<double>(static_cast<double>(under_way.open()) / per_second);
  const auto left = std::chrono::duration_cast<Duration>(std::min(rest, std::chrono::duration<double>(1e8)));
  line.add(fmt::format("{:.{}f} steps/s", per_second, per_second < 10 ? 1 : 0));
  return line.add(fmt::format(", what has begun ends in about {}", span_text(left))).text();
}

Lines tail(const BatchView& batch, std::optional<double> per_second, const Screen& screen) {
  Line members(screen);
  members.add(fmt::format("members  {} active", grouped(batch.active)));
  members.add(fmt::format("  {} failed", grouped(batch.failed)),
              batch.failed > 0 ? Colour::red : Colour::none);
  members.add(fmt::format("  {} removed", grouped(batch.removed)));
  Lines lines{members.text()};
  const auto beside = [&](std::string_view name, const Tally& tally) {
    if (tally.total() > 0)
      lines.push_back(Line(screen).add(name, 9).add(fmt::format("{}", fmt::join(words(tally), "  "))).text());
  };
  if (batch.held_removals > 0)
    lines.push_back(
        Line(screen)
            .add(fmt::format("{} members would leave: 'baton batch approve-removals {}', or mend the source",
                             grouped(batch.held_removals), batch.id),
                 Colour::yellow)
            .text());
  beside("catch-up", batch.catch_up);
  beside("rollback", batch.rollbacks);
  beside("removal", batch.removals);
  const std::string pace = per_second ? estimate(batch, *per_second, screen) : "";
  if (!pace.empty()) lines.push_back(pace);
  return lines;
}

std::size_t height(const std::vector<Block>& blocks) {
  std::size_t lines = 0;
  for (const Block& block : blocks) lines += block.lines.size();
  return lines;
}

// Leaves out what has ended, the oldest first, and then what is farthest away, until the rest fits; a line
// says how much was left out.
Lines fitted(std::vector<Block> blocks, std::size_t rows, const Screen& screen) {
  std::size_t ended = 0, later = 0;
  const auto used = [&] { return height(blocks) + (ended > 0 ? 1 : 0) + (later > 0 ? 1 : 0); };
  while (used() > rows && !blocks.empty() && blocks.front().has_ended) {
    blocks.erase(blocks.begin());
    ++ended;
  }
  while (used() > rows && blocks.size() > 1) {
    blocks.pop_back();
    ++later;
  }
  Lines lines;
  const auto left_out = [&](std::size_t number, std::string_view what) {
    if (number > 0)
      lines.push_back(Line(screen).add(fmt::format("({} more {})", number, what), Colour::dim).text());
  };
  left_out(ended, "that ended");
  for (const Block& block : blocks) lines.insert(lines.end(), block.lines.begin(), block.lines.end());
  left_out(later, "to come");
  return lines;
}

}  // namespace

void Pace::note(Time at, std::int64_t ended) {
  // What is retried by hand has not ended any more: begin anew rather than go backwards.
  if (!notes_.empty() && ended < notes_.back().ended) notes_.clear();
  notes_.push_back({at, ended});
  while (notes_.size() > 2 && at - notes_[1].at >= pace_window) notes_.pop_front();
}

std::optional<double> Pace::per_second() const {
  if (notes_.empty()) return std::nullopt;
  const std::chrono::duration<double> time = notes_.back().at - notes_.front().at;
  if (time < std::chrono::seconds{1}) return std::nullopt;
  return static_cast<double>(notes_.back().ended - notes_.front().ended) / time.count();
}

Lines failure_lines(std::string_view failures_json, std::size_t lines_max, const Screen& screen) {
  Lines lines;
  const Fields page(failures_json);
  for (const Fields& each : page.items("failures")) {
    if (lines.size() == lines_max) break;
    std::string part = each.text("sequence");  // of a rollback or a removal
    if (part.empty()) part = each.text("type") == "init" ? "init" : each.text("phase_name");
    const std::string member = each.text("member_key");
    Line line(screen);
    line.add("  " + (part.empty() ? "" : part + "/") + each.text("step_name") + "  ");
    if (!member.empty()) line.add(member + "  ", Colour::dim);
    lines.push_back(line.add(one_line(each.text("error_message")), Colour::red).text());
  }
  return lines;
}

Lines frame(std::string_view batch_json, std::string_view failures_json,
            std::optional<double> steps_per_second, Time now, const Screen& screen) {
  const Fields fields(batch_json);
  const BatchView batch = read_batch(fields);
  const std::size_t rows = std::max<std::size_t>(screen.rows, 8) - 1;  // the cursor stands below
  Lines lines = head(batch, now, screen);
  const Lines below = tail(batch, steps_per_second, screen);
  const std::vector<Block> blocks = blocks_of(batch, now, screen);
  const std::size_t fixed = lines.size() + below.size() + 2;  // blank lines
  const std::size_t left = rows > fixed ? rows - fixed : 0;
  // Failures have the room that the phases leave, but at least one of them is shown if there is any.
  const std::size_t spare = left > height(blocks) ? left - height(blocks) : 0;
  const std::size_t shown = std::clamp<std::size_t>(spare > 2 ? spare - 2 : 0, 1, failures_max);
  const Lines failures = failure_lines(failures_json, shown, screen);
  const std::size_t failure_rows = failures.empty() ? 0 : failures.size() + 2;
  lines.emplace_back();
  append(lines, fitted(blocks, left > failure_rows ? left - failure_rows : 0, screen));
  lines.emplace_back();
  append(lines, below);
  if (!failures.empty()) {
    lines.emplace_back();
    lines.push_back(Line(screen).add("latest failures").text());
    append(lines, failures);
  }
  if (lines.size() > rows) lines.resize(rows);
  return lines;
}

namespace {

// Without the times and numbers that change at each look.
std::string said_of_queues(const BatchView& batch) {
  std::string said;
  for (const std::string& queue : batch.no_worker)
    said += (said.empty() ? "" : ", ") + one_line(queue.substr(0, queue.find_first_of(",:")));
  return said;
}

}  // namespace

Lines frame_of_several(const std::vector<std::string>& batches_json, Time now, const Screen& screen) {
  const std::size_t rows = std::max<std::size_t>(screen.rows, 8) - 1;
  Lines lines;
  std::size_t left_out = 0;
  for (const std::string& json : batches_json) {
    const BatchView batch = read_batch(Fields(json));
    Line title(screen);
    title.add(fmt::format("batch {}  {} v{}  ", batch.id, batch.runbook, batch.version));
    title.add(batch.outcome, colour_of_status(batch.outcome));
    if (batch.paused_at) title.add(", paused", Colour::yellow);
    if (batch.start) title.add(fmt::format("  T {}, {}", minute_text(*batch.start), relative(*batch.start, now)));
    Lines block{title.text()};
    append(block, hold_lines(batch, screen));
    for (const std::string& queue : batch.no_worker)
      block.push_back(Line(screen).add("  " + one_line(queue), Colour::red).text());
    for (const PhaseView& phase : batch.phases) {
      if (phase.status == "pending" && !phase.waits_for.empty())
        block.push_back(Line(screen).add(fmt::format("  {} waits for {}", phase.label, phase.waits_for), Colour::yellow).text());
      if (phase.status == "dispatched") {
        block.push_back(Line(screen).add("  " + phase.label).text());
        block.push_back(progress(phase.steps, screen));
      }
    }
    if (lines.size() + block.size() + 1 > rows)
      ++left_out;
    else
      append(lines, block);
  }
  if (left_out > 0)
    lines.push_back(Line(screen).add(fmt::format("({} more: the screen is full)", left_out), Colour::dim).text());
  return lines;
}

std::string status_line(const BatchView& batch) {
  std::string line = fmt::format("batch {} {}", batch.id, batch.outcome);
  if (batch.paused_at) {
    line += batch.paused_by.empty() ? ", paused" : ", paused by " + printable(batch.paused_by);
    if (!batch.paused_reason.empty()) line += ": " + one_line(batch.paused_reason);
  }
  for (const HoldView& hold : batch.holds) line += fmt::format(" | {}: {}", hold.id, one_line(hold.message));
  if (!batch.no_worker.empty()) line += " | " + said_of_queues(batch);
  for (const PhaseView& phase : batch.phases) {
    if (phase.status == "pending" && !phase.waits_for.empty())
      line += fmt::format(" | {} waits for {}", printable(phase.label), phase.waits_for);
    if (phase.status == "superseded" || phase.status == "pending") continue;
    line += fmt::format(" | {} {}", printable(phase.label), phase.outcome);
    if (!phase.has_ended()) line += fmt::format(" {} %", phase.steps.percent());
    if (phase.steps.failed > 0) line += fmt::format(", {} failed", grouped(phase.steps.failed));
    if (phase.steps.skipped > 0) line += fmt::format(", {} skipped", grouped(phase.steps.skipped));
  }
  line += fmt::format(" | members {} active", grouped(batch.active));
  if (batch.failed > 0) line += fmt::format(", {} failed", grouped(batch.failed));
  return line;
}

}  // namespace baton::cli
