#include "cli/terminal/batch_watch.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <map>
#include <set>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/commands/targets.hpp"
#include "cli/reconnect.hpp"
#include "cli/request.hpp"
#include "cli/terminal/batch_frame.hpp"
#include "cli/terminal/output.hpp"
#include "http/wire/client.hpp"

namespace baton::cli {
namespace {

constexpr std::chrono::milliseconds look_every{500}, redraw_every{1'000};
constexpr std::size_t failures_shown = 5;
constexpr std::size_t batches_max = 100;  // that are followed at once

// Wrapping is off while a picture is drawn, so that a line that is wider than it seems stays one line.
constexpr std::string_view wrap_off = "\x1b[?7l", wrap_on = "\x1b[?7h";

// The picture ends below its last line, so there is nothing to put right but what may be half drawn.
void on_signal(int) {
  constexpr std::string_view clean = "\x1b[0m\x1b[?7h\n";
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, clean.data(), clean.size());
  _exit(exit_interrupted);
}

void watch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Screen measure() {
  Screen screen{.colour = has_colour(stdout)};
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    screen.columns = std::max<std::size_t>(size.ws_col, 20);
    screen.rows = size.ws_row;
  }
  return screen;
}

// Shows what is known of a batch, again and again.
class View {
 public:
  virtual ~View() = default;
  virtual void show(const std::string& batch_json, const std::string& failures_json) = 0;
  // The server does not answer, or, with an empty text, is back.
  virtual void trouble(const std::string& message) { Reconnecting::tell_on_stderr(message); }
  virtual void end(const std::string&) {}                // with the last failures
  virtual void show_all(const std::vector<std::string>& batches_json) = 0;
};

class Picture : public View {
 public:
  Picture() { watch_signals(); }

  void show(const std::string& batch_json, const std::string& failures_json) override {
    const Time at = now();
    pace_.note(at, read_batch(Fields(batch_json)).steps().ended());
    last_ = frame(batch_json, failures_json, pace_.per_second(), at, measure());
    draw(last_);
  }
  void show_all(const std::vector<std::string>& batches_json) override {
    last_ = frame_of_several(batches_json, now(), measure());
    draw(last_);
  }
  void trouble(const std::string& message) override {
    if (message.empty()) return;  // it is drawn anew at once
    auto lines = last_;
    const Screen screen = measure();
    if (lines.size() + 1 >= screen.rows && !lines.empty()) lines.pop_back();
    lines.push_back(
        paint(cut("still trying: " + one_line(message), screen.columns), Colour::yellow, screen.colour));
    draw(lines);
  }

 private:
  // All in one write: what was there is written over, the rest of each line and what is below erased.
  void draw(const std::vector<std::string>& lines) {
    std::string out{wrap_off};
    if (drawn_ > 0) out += fmt::format("\r\x1b[{}A", drawn_);
    for (const std::string& line : lines) out += line + "\x1b[K\n";
    out.append("\x1b[J").append(wrap_on);
    fmt::print("{}", out);
    std::fflush(stdout);
    drawn_ = lines.size();
  }

  Pace pace_;
  std::vector<std::string> last_;
  std::size_t drawn_ = 0;
};

class Log : public View {
 public:
  void show(const std::string& batch_json, const std::string&) override {
    const BatchView batch = read_batch(Fields(batch_json));
    say(batch.id, status_line(batch));
  }
  void show_all(const std::vector<std::string>& batches_json) override {
    for (const std::string& json : batches_json) show(json, "");
  }
  void end(const std::string& failures_json) override {
    for (const std::string& line : failure_lines(failures_json, failures_shown, {.columns = 200}))
      fmt::print("{}\n", line);
  }

 private:
  void say(std::int64_t batch_id, std::string line) {
    std::string& last = last_[batch_id];
    if (line == last) return;
    fmt::print("{} {}\n", to_iso(now()), line);
    std::fflush(stdout);
    last = std::move(line);
  }
  std::map<std::int64_t, std::string> last_;  // of each batch
};

class Silent : public View {
 public:
  void show(const std::string&, const std::string&) override {}
  void show_all(const std::vector<std::string>&) override {}
};

std::unique_ptr<View> choose_view(const RemoteOptions& options) {
  if (options.as_json) return std::make_unique<Silent>();
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view{term} == "dumb";
  if (isatty(STDOUT_FILENO) == 1 && !dumb) return std::make_unique<Picture>();
  return std::make_unique<Log>();
}

// Tells when a batch has changed. It is asked once for each look at the batch.
class BatchChanges {
 public:
  BatchChanges(const RemoteOptions& options, std::int64_t batch_id)
      : events_(client(options)), target_(fmt::format("/api/v1/stream?topic=batch:{}", batch_id)) {}

  // Before a look, so that what changes after it is told.
  void begin() {
    looked_at_ = Clock::now();
    if (is_open_) return;
    const auto opened = events_.open(target_);
    is_open_ = opened && opened->status == 200;
  }
  // Until there is something new, at most twice a second; false: this time is over without.
  bool wait(std::chrono::milliseconds within) {
    const bool told = is_open_ ? next(within) : true;
    // What comes at the same time is seen by the same look. Without a stream this is when to look.
    while (told && is_open_ && next(left())) {
    }
    if (told) std::this_thread::sleep_for(left());
    return told;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static http::Client client(const RemoteOptions& options) {
    ServerAccess to = server_access(options);
    return http::Client(std::move(to.url), std::move(to.token), std::move(to.tenant));
  }
  [[nodiscard]] std::chrono::milliseconds left() const {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - looked_at_);
    return std::max(look_every - since, std::chrono::milliseconds{0});
  }
  // Something has happened; the end of the stream is something too.
  bool next(std::chrono::milliseconds within) {
    const auto event = events_.next(within);
    if (!event) is_open_ = false;
    return !event || event->has_value();
  }

  http::EventStream events_;
  const std::string target_;
  bool is_open_ = false;
  Clock::time_point looked_at_;
};

}  // namespace

namespace {

int exit_of(const BatchView& batch) {
  if (batch.status != "completed") return exit_failed;
  return batch.outcome == "completed" ? exit_ok : exit_with_failures;
}

// The ids of the batches that have not ended, in the order of their making; those that are known stay.
Result<Answer> find_open(Reconnecting& remote, const std::string& runbook, std::set<std::int64_t>& ids) {
  Result<Answer> answer;
  for (const char* status : {"detected", "init_dispatched", "active"}) {
    answer = remote.get(Target("/api/v1/batches").with("runbook", runbook).with("status", status).with("limit", 200).text());
    if (!answer || !answer->ok()) return answer;
    for (const Fields& batch : Fields(answer->body).items("batches"))
      if (ids.size() < batches_max) ids.insert(batch.number("id"));
  }
  return answer;
}

}  // namespace

int watch_batches(const RemoteOptions& options, const std::string& runbook, const std::string& reconnect) {
  const auto view = choose_view(options);
  Reconnecting remote(options, reconnect, [&](const std::string& trouble) { view->trouble(trouble); });
  std::set<std::int64_t> ids;
  while (true) {
    const auto open = find_open(remote, runbook, ids);
    if (!open) return refuse(options, open.error());
    if (!open->ok()) return refuse(options, *open);
    std::vector<std::string> batches;
    bool have_ended = true;
    int code = exit_ok;
    for (const std::int64_t id : ids) {
      auto batch = remote.get(batch_target(id));
      if (!batch) return refuse(options, batch.error());
      if (!batch->ok()) return refuse(options, *batch);
      const BatchView seen = read_batch(Fields(batch->body));
      have_ended = have_ended && seen.has_ended();
      if (const int its = exit_of(seen); its == exit_failed || code == exit_ok) code = its;
      batches.push_back(std::move(batch->body));
    }
    view->show_all(batches);
    if (have_ended) {
      if (options.as_json) print_json(fmt::format("[{}]", fmt::join(batches, ",")));
      if (ids.empty() && !options.as_json) fmt::print("No batch is open.\n");
      return code;
    }
    std::this_thread::sleep_for(redraw_every);
  }
}

int watch_batch(const RemoteOptions& options, std::int64_t batch_id, const std::string& reconnect) {
  const auto view = choose_view(options);
  Reconnecting remote(options, reconnect, [&](const std::string& trouble) { view->trouble(trouble); });
  BatchChanges changes(options, batch_id);
  const std::string target = batch_target(batch_id);
  const std::string failures_target = fmt::format("{}/failures?limit={}", target, failures_shown);
  while (true) {
    changes.begin();
    const auto batch = remote.get(target);
    if (!batch) return refuse(options, batch.error());
    if (!batch->ok()) return refuse(options, *batch);
    const auto failures = remote.get(failures_target);
    const std::string failed = failures && failures->ok() ? failures->body : "{}";
    view->show(batch->body, failed);
    const BatchView seen = read_batch(Fields(batch->body));
    if (seen.has_ended()) {
      view->end(failed);
      if (options.as_json) print_json(batch->body);
      return exit_of(seen);
    }
    // Times that are shown go on though nothing changes.
    while (!changes.wait(redraw_every)) view->show(batch->body, failed);
  }
}

}  // namespace baton::cli
