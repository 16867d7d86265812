#include "cli/agent/agent.hpp"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>

#include "base/json_write.hpp"
#include "base/time.hpp"
#include "cli/commands/commands.hpp"
#include "cli/remote.hpp"
#include "cli/terminal/output.hpp"
#include "http/json/json_body.hpp"

namespace baton::cli::agent {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds poll_wait = 30s;
constexpr milliseconds beat_again = 1s;   // after one that failed
constexpr std::size_t batch_max = 1'000;  // tasks in a poll or a heartbeat

// What a signal handler may touch.
std::atomic<int> signals{0};
std::atomic<const worker::Runner*> to_wake{nullptr};

// How long before the timeout a program is told to end, so that we can still report it.
milliseconds margin_of(std::int64_t timeout_seconds) {
  return std::clamp(milliseconds{timeout_seconds * 50}, milliseconds{100}, milliseconds{1'000});
}

std::string now_text() {
  return to_iso(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()));
}

}  // namespace

template <class... Args>
void Agent::say(fmt::format_string<Args...> format, Args&&... args) {
  if (options_.is_quiet) return;
  fmt::print(stderr, "{} {}\n", now_text(), printable(fmt::format(format, std::forward<Args>(args)...)));
}

void Agent::warn(std::string_view message) {
  fmt::print(stderr, "{} baton: {}\n", now_text(), printable(message));
}

Agent::Agent(AgentOptions options)
    : options_(std::move(options)),
      functions_(options_.functions),
      runner_(*this, options_.environment, options_.limits),
      mailbox_([this] { runner_.wake(); }),
      notes_(options_.server, mailbox_, timers_, options_.log_bytes_max,
             {.gone = [this](const std::string& key) { cancel(key); },
              .trouble = [this](const std::string& message) { warn(message); }}),
      results_(options_.server, mailbox_, timers_, options_.name,
               {.settled = [this](const std::string& key) { settle(key); },
                .trouble = [this](const std::string& message) { warn(message); }}),
      beats_(options_.server, mailbox_) {
  for (const auto& name : options_.queues) {
    queues_.push_back(std::make_unique<Queue>());
    queues_.back()->name = name;
    queues_.back()->line = std::make_unique<Line>(options_.server, mailbox_);
  }
}

Agent::~Agent() {
  to_wake = nullptr;
  std::error_code ignored;
  if (!scratch_.empty()) std::filesystem::remove_all(scratch_, ignored);
}

int Agent::run() {
  watch_signals();
  timers_.after(options_.beat_every, [this] { beat(); });
  if (getpid() == 1) reap_orphans();
  poll_all();
  while (!exit_code_) {
    check_end();
    if (exit_code_) break;
    runner_.turn(timers_.until_next(1s));
    mailbox_.open_all();
    timers_.run_due();
    start_waiting();
    poll_all();  // here, so that all slots of one turn are asked for at once
    if (const int count = signals; count != signals_seen_) on_signals(count);
  }
  runner_.kill_all();
  return *exit_code_;
}

Agent::Held* Agent::find(const std::string& key) {
  const auto found = held_.find(key);
  return found == held_.end() ? nullptr : &found->second;
}

// ---- asking ----

void Agent::poll_all() {
  for (const auto& queue : queues_) poll(*queue);
}

void Agent::poll(Queue& queue) {
  const std::size_t busy = running_.size() + waiting_.size();
  if (is_draining_ || queue.is_polling || busy >= options_.concurrency) return;
  // With several queues each asks for its share only, and asks again while there is room: a queue that has
  // work can fill all slots although the polls of the others are still waiting. If those then bring tasks
  // too, these wait for a slot.
  const std::size_t free = options_.concurrency - busy;
  const std::size_t share = std::min((free + queues_.size() - 1) / queues_.size(), batch_max);
  queue.is_polling = true;
  // Whoever ends when idle must have heard of the server by then.
  const milliseconds wait =
      options_.idle_exit ? std::min(poll_wait, milliseconds{*options_.idle_exit} / 2) : poll_wait;
  queue.line->post(
      fmt::format("/api/v1/workers/{}/jobs:poll", escaped(queue.name)),
      json_object("worker", options_.name, "max", share, "wait_ms", wait.count(), "heartbeat", true).text,
      poll_wait + 15s, [this, &queue](const Answered& answer) { on_polled(queue, answer); });
}

void Agent::on_polled(Queue& queue, const Answered& answer) {
  queue.is_polling = false;
  auto tasks = answer && answer->status == 200 ? read_tasks(answer->body)
                                               : Result<std::vector<Task>>(fail(Code::unavailable, ""));
  if (tasks) {
    if (!queue.pauses.is_fresh()) warn(fmt::format("queue {}: the server answers again", queue.name));
    queue.pauses.reset();
    was_answered_ = true;
    for (Task& task : *tasks) take(std::move(task));
    return;
  }
  if (is_draining_) return;
  if (!was_answered_ && answer && !is_passing(answer)) {
    complain(fmt::format("queue {}: {}", queue.name, describe(answer)));
    return end(exit_failed);
  }
  if (queue.pauses.is_fresh()) warn(fmt::format("queue {}: {}", queue.name, describe(answer)));
  queue.is_polling = true;
  timers_.after(queue.pauses.next(), [this, &queue] {
    queue.is_polling = false;
    poll(queue);
  });
}

void Agent::take(Task task) {
  const std::string key = task.key();
  if (held_.contains(key)) return;
  Held held{.task = std::move(task), .begun = Clock::now()};
  if (const auto seconds = held.task.timeout_seconds; seconds > 0) {
    const auto over = Clock::now() + std::chrono::seconds{seconds};
    held.deadline = timers_.at(over - margin_of(seconds), [this, key] { on_deadline(key); });
  }
  held_.emplace(key, std::move(held));
  waiting_.push_back(key);
}

void Agent::beat() {
  std::vector<std::string> keys;
  std::vector<Json> tasks;
  const auto send = [&] {
    if (keys.empty()) return;
    ++beats_out_;
    beats_.post("/api/v1/workers/heartbeat",
                json_object("worker", options_.name, "tasks", std::exchange(tasks, {})).text,
                options_.beat_every, [this, keys](const Answered& answer) { on_beat(keys, answer); });
    keys.clear();
  };
  for (const auto& [key, held] : held_) {
    if (held.stop == Stop::cancelled || held.is_settled) continue;
    tasks.push_back(json_object("task_id", held.task.task_id, "lease", held.task.lease));
    keys.push_back(key);
    if (keys.size() == batch_max) send();
  }
  send();
  if (beats_out_ == 0) timers_.after(options_.beat_every, [this] { beat(); });
}

void Agent::on_beat(const std::vector<std::string>& keys, const Answered& answer) {
  const bool ok = answer && answer->status == 200;
  const auto document = http::JsonDocument::parse(ok ? answer->body : "{}");
  const auto list = document && document->root().kind() == http::JsonKind::object
                        ? document->root().find("cancelled")
                        : http::JsonView{};
  if (list && list.kind() == http::JsonKind::array) {
    for (const auto& item : list.items()) {
      if (item.kind() != http::JsonKind::string) continue;
      const std::string prefix = std::string(item.string()) + ' ';
      // Only what this heartbeat named: the task may have come back to us since, with a new lease.
      for (const auto& key : keys)
        if (key.starts_with(prefix)) cancel(key);
    }
  }
  beat_failed_ = beat_failed_ || !ok;
  if (--beats_out_ > 0) return;
  timers_.after(std::exchange(beat_failed_, false) ? beat_again : options_.beat_every, [this] { beat(); });
}

// ---- doing ----

void Agent::start_waiting() {
  while (!waiting_.empty() && running_.size() < options_.concurrency) {
    Held* held = find(waiting_.front());
    waiting_.pop_front();
    if (held != nullptr && !held->is_reported && held->stop == Stop::no) start(*held);
  }
}

void Agent::start(Held& held) {
  held.begun = Clock::now();
  auto command = functions_.find(held.task.handler);
  if (!command) return report(held, failure(command.error().message));
  const auto checkpoint = write_checkpoint(held);
  if (!checkpoint) return report(held, failure(checkpoint.error().message));
  const auto started = runner_.start({.command = std::move(*command),
                                      .variables = variables_of(held.task, options_.server.url, *checkpoint),
                                      .input = std::move(held.task.params.text)});
  if (!started) return report(held, failure(started.error().message));
  held.ticket = *started;
  running_.emplace(held.ticket, held.task.key());
  notes_.open(held.task);
  say("started {} ({})", held.task.task_id, held.task.handler);
}

void Agent::on_deadline(const std::string& key) {
  Held* held = find(key);
  if (held == nullptr || held->is_reported) return;
  held->deadline.reset();
  if (held->ticket == 0) return report(*held, timed_out(held->task, "it found no free slot"));
  held->stop = Stop::timed_out;
  runner_.terminate(held->ticket);
  // One that does not end by being told so is reported without waiting for its end: in a moment the server
  // would find it overdue by itself.
  held->last_word = timers_.after(margin_of(held->task.timeout_seconds) / 2, [this, key] {
    Held* late = find(key);
    if (late == nullptr) return;
    late->last_word.reset();
    if (!late->is_reported) report(*late, timed_out(late->task, ""));
  });
}

// The server has taken it from us: end the program and say nothing.
void Agent::cancel(const std::string& key) {
  Held* held = find(key);
  if (held == nullptr || held->is_reported || held->stop == Stop::cancelled) return;
  say("cancelled {}: not ours any more", held->task.task_id);
  held->stop = Stop::cancelled;
  if (held->ticket == 0) return forget(key);
  runner_.terminate(held->ticket);
}

void Agent::report(Held& held, const Outcome& outcome) {
  held.is_reported = true;
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - held.begun);
  if (outcome.completed)
    say("completed {} in {} ms", held.task.task_id, took.count());
  else
    say("failed {} after {} ms: {}", held.task.task_id, took.count(), outcome.error);
  const std::string key = held.task.key();
  notes_.close(key, [this, key, outcome, took] {
    if (const Held* ready = find(key)) results_.add(ready->task, outcome, took);
  });
}

void Agent::settle(const std::string& key) {
  if (Held* held = find(key)) held->is_settled = true;
  forget(key);
}

void Agent::forget(const std::string& key) {
  const auto found = held_.find(key);
  if (found == held_.end() || found->second.ticket != 0) return;  // its program is still being ended
  Held& held = found->second;
  if (held.deadline) timers_.cancel(*held.deadline);
  if (held.last_word) timers_.cancel(*held.last_word);
  notes_.drop(key);
  held_.erase(found);
}

Result<std::string> Agent::write_checkpoint(Held& held) {
  if (!held.task.checkpoint) return std::string{};
  if (scratch_.empty()) {
    std::error_code error;
    std::string name = (std::filesystem::temp_directory_path(error) / "baton-worker-XXXXXX").string();
    if (error || mkdtemp(name.data()) == nullptr)
      return fail(Code::unavailable, "cannot make a directory for checkpoints like " + name);
    scratch_ = name;
  }
  held.checkpoint = scratch_ / std::to_string(++checkpoints_);
  std::ofstream file(held.checkpoint, std::ios::binary);
  file << held.task.checkpoint->text;
  if (!file.flush()) return fail(Code::unavailable, "cannot write " + held.checkpoint.string());
  return held.checkpoint.string();
}

// ---- from the runner ----

void Agent::on_log(worker::Ticket ticket, std::string_view line) {
  if (const auto found = running_.find(ticket); found != running_.end()) notes_.add_log(found->second, line);
}

void Agent::on_report(worker::Ticket ticket, std::string_view line) {
  if (const auto found = running_.find(ticket); found != running_.end())
    notes_.add_report(found->second, line);
}

void Agent::on_end(worker::Ticket ticket, worker::Ending ending) {
  const auto found = running_.find(ticket);
  const std::string key = std::move(found->second);
  running_.erase(found);
  Held& held = held_.at(key);
  held.ticket = 0;
  std::error_code ignored;
  if (!held.checkpoint.empty()) std::filesystem::remove(held.checkpoint, ignored);
  if (held.deadline) timers_.cancel(*std::exchange(held.deadline, {}));
  if (held.last_word) timers_.cancel(*std::exchange(held.last_word, {}));
  if (held.is_reported) {
    if (held.is_settled) forget(key);
  } else if (held.stop == Stop::cancelled) {
    forget(key);
  } else if (held.stop == Stop::timed_out) {
    report(held, timed_out(held.task, ending.error_tail));
  } else {
    report(held, judge(ending, options_.limits.output_bytes));
  }
}

void Agent::reap_orphans() {
  runner_.reap_orphans();
  timers_.after(1s, [this] { reap_orphans(); });
}

// ---- ending ----

void Agent::watch_signals() {
  signals = 0;
  to_wake = &runner_;
  struct sigaction action{};
  action.sa_handler = [](int) {
    ++signals;
    if (const worker::Runner* runner = to_wake) runner->wake();
  };
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    struct sigaction before{};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);  // nohup stays nohup
  }
  std::signal(SIGPIPE, SIG_IGN);
}

void Agent::on_signals(int count) {
  const bool is_first = signals_seen_ == 0;
  signals_seen_ = count;
  if (is_first && count == 1) return drain();
  warn(fmt::format("ending at once; {} programs are killed", running_.size()));
  end(exit_interrupted);
}

void Agent::drain() {
  warn(fmt::format("asking for no more; {} programs have {} s to end, a second signal ends them at once",
                   running_.size(), options_.drain_time.count()));
  is_draining_ = true;
  // Who hangs up while waiting is given nothing.
  for (const auto& queue : queues_) queue->line->interrupt();
  timers_.after(options_.drain_time, [this] { give_up(); });
}

// What still runs is not reported: its lease runs out, and somebody else gets the task.
void Agent::give_up() {
  has_given_up_ = true;
  if (!running_.empty()) warn(fmt::format("{} programs have not ended in time", running_.size()));
  waiting_.clear();
  for (auto& [key, held] : held_) {
    if (held.ticket == 0) continue;
    held.stop = Stop::cancelled;
    runner_.terminate(held.ticket);
  }
}

void Agent::check_end() {
  if (!held_.empty()) last_busy_ = Clock::now();
  if (is_draining_ && held_.empty()) return end(has_given_up_ ? exit_failed : exit_ok);
  if (has_given_up_ && running_.empty()) {
    if (results_.size() > 0) warn(fmt::format("{} results could not be delivered", results_.size()));
    return end(exit_failed);
  }
  if (!options_.idle_exit || Clock::now() - last_busy_ < *options_.idle_exit) return;
  if (!was_answered_) complain(fmt::format("no answer from {}", options_.server.url));
  end(was_answered_ ? exit_ok : exit_failed);
}

void Agent::end(int exit_code) { exit_code_ = exit_code; }

}  // namespace baton::cli::agent
