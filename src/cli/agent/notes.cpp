#include "cli/agent/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "base/json_write.hpp"
#include "base/time.hpp"
#include "http/json/json_body.hpp"

namespace baton::cli::agent {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t lines_max = 4;   // connections; programs that log a lot share them
constexpr milliseconds pause = 250ms;  // between two requests for one task
constexpr milliseconds answer_time = 15s;
constexpr std::size_t log_lines_in_request_max = 500;
constexpr std::size_t checkpoints_max = 1'000;  // that wait; then the oldest, long superseded, goes
constexpr int refusals_max = 3;
constexpr auto off_time = 5min;  // a server may be replaced by one that knows more
constexpr std::array targets{"/api/v1/callbacks/task-checkpoint", "/api/v1/callbacks/task-log",
                             "/api/v1/callbacks/task-progress"};

Time now() { return std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()); }

}  // namespace

Notes::Notes(const ServerAccess& server, Mailbox& mailbox, Timers& timers, std::size_t log_bytes_max,
             Listener listener)
    : timers_(timers), log_bytes_max_(log_bytes_max), listener_(std::move(listener)) {
  for (std::size_t i = 0; i < lines_max; ++i) lines_.push_back(std::make_unique<Line>(server, mailbox));
}

void Notes::open(const Task& task) {
  Outbox outbox;
  outbox.head = '{';
  append_members(outbox.head, "task_id", task.task_id, "lease", task.lease);
  outbox.line = opened_++ % lines_.size();
  outboxes_.insert_or_assign(task.key(), std::move(outbox));
}

Notes::Outbox* Notes::find(const std::string& key) {
  const auto found = outboxes_.find(key);
  return found == outboxes_.end() ? nullptr : &found->second;
}

void Notes::drop(const std::string& key) { outboxes_.erase(key); }

void Notes::add_log_entry(Outbox& outbox, std::string_view line) {
  outbox.logs.push_back(json_object("stream", "stderr", "text", line, "at", now()));
}

void Notes::add_log(const std::string& key, std::string_view line) {
  Outbox* outbox = find(key);
  if (outbox == nullptr || outbox->log_is_full || Clock::now() < off_until_[log]) return;
  outbox->log_bytes += line.size() + 1;
  outbox->log_is_full = outbox->log_bytes > log_bytes_max_;
  add_log_entry(*outbox, outbox->log_is_full
                             ? fmt::format("... the log is cut here, at {} bytes", log_bytes_max_)
                             : std::string(line));
  schedule(key, *outbox);
}

void Notes::add_report(const std::string& key, std::string_view line) {
  Outbox* outbox = find(key);
  if (outbox == nullptr || line.empty() || !outbox->takes_reports) return;
  const auto document = http::JsonDocument::parse(line);
  const auto root = document ? document->root() : http::JsonView{};
  const bool is_object = root && root.kind() == http::JsonKind::object;
  const auto point = is_object ? root.find("checkpoint") : http::JsonView{};
  const auto value = is_object ? root.find("progress") : http::JsonView{};
  const auto message = is_object ? root.find("message") : http::JsonView{};
  const bool is_number =
      value && (value.kind() == http::JsonKind::integer || value.kind() == http::JsonKind::real);
  if (!point && !is_number) {
    if (!std::exchange(outbox->has_complained, true))
      listener_.trouble(fmt::format("{}: not a report: {}", key, baton::quoted(line.substr(0, 200))));
    return;
  }
  const auto note = [&](std::string_view kind, const Json& what, const http::JsonView& text = {}) {
    std::string body = outbox->head;
    append_member(body, kind, what);
    if (text && text.kind() == http::JsonKind::string) append_member(body, "message", text.json());
    return Json{body + '}'};
  };
  if (point) outbox->checkpoints.push_back(note("checkpoint", point.json()));
  if (outbox->checkpoints.size() > checkpoints_max)  // the first one may be on its way
    outbox->checkpoints.erase(outbox->checkpoints.begin() + 1);
  if (is_number) outbox->progress = note("progress", value.json(), message).text;
  if (point) return send(key);
  schedule(key, *outbox);
}

void Notes::close(const std::string& key, std::function<void()> then) {
  Outbox* outbox = find(key);
  if (outbox == nullptr) return then();
  outbox->then = std::move(then);
  send(key);
}

void Notes::schedule(const std::string& key, Outbox& outbox) {
  if (outbox.is_sending || outbox.is_scheduled) return;
  outbox.is_scheduled = true;
  // Not at once even the first time: what is said within a moment goes out together.
  timers_.after(pause, [this, key] {
    Outbox* found = find(key);
    if (found == nullptr) return;
    found->is_scheduled = false;
    send(key);
  });
}

bool Notes::pick(Outbox& outbox, Request& request) {
  const bool may_log = outbox.then || Clock::now() >= outbox.last_sent + pause;
  const auto now = Clock::now();
  if (now < off_until_[checkpoint]) outbox.checkpoints.clear();
  if (now < off_until_[log]) outbox.logs.clear();
  if (now < off_until_[progress]) outbox.progress.clear();
  if (!outbox.checkpoints.empty()) {
    request = {checkpoint, outbox.checkpoints.front().text, 1};
  } else if (!outbox.logs.empty() && may_log) {
    request = {log, outbox.head, std::min(outbox.logs.size(), log_lines_in_request_max)};
    append_member(request.body, "lines", outbox.logs | std::views::take(request.items));
    request.body += '}';
  } else if (!outbox.progress.empty() && may_log) {
    request = {progress, std::exchange(outbox.progress, {}), 0};
  } else {
    return false;
  }
  return true;
}

void Notes::send(const std::string& key) {
  Outbox* outbox = find(key);
  if (outbox == nullptr || outbox->is_sending) return;
  Request request;
  if (pick(*outbox, request)) {
    outbox->is_sending = true;
    std::string body = request.body;
    request.body = request.kind == progress ? std::move(request.body) : "";
    lines_[outbox->line]->post(
        targets[request.kind], std::move(body), answer_time,
        [this, key, request](const Answered& answer) { on_answer(key, request, answer); });
  } else if (outbox->then) {
    const auto then = std::move(outbox->then);
    outboxes_.erase(key);
    then();
  } else if (!outbox->logs.empty() || !outbox->progress.empty()) {
    schedule(key, *outbox);
  }
}

void Notes::on_answer(const std::string& key, const Request& request, const Answered& answer) {
  Outbox* outbox = find(key);
  if (outbox == nullptr) return;
  outbox->is_sending = false;
  if (request.kind != checkpoint) outbox->last_sent = Clock::now();
  // Without any answer the result would not get through either. With one, notes are not worth waiting for.
  if (is_passing(answer) && (!answer || ++outbox->refusals < refusals_max)) {
    if (request.kind == progress && outbox->progress.empty()) outbox->progress = request.body;
    return retry_later(key, answer ? pause : 1s);
  }
  outbox->refusals = 0;
  if (request.kind != log && answer && answer->status == 409 &&
      answer->body.find("not_possible") != std::string::npos) {
    stop_reports(*outbox, key, answer);
    return send(key);
  }
  if (answer && answer->status == 409) {
    const auto then = std::move(outbox->then);
    outboxes_.erase(key);
    listener_.gone(key);
    if (then) then();
    return;
  }
  if (answer && answer->status == 404 && answer->body.find("task_not_found") == std::string::npos)
    off_until_[request.kind] = Clock::now() + off_time;
  else if (!answer || answer->status >= 300)
    listener_.trouble(fmt::format("a note on {} is dropped: {}", key, describe(answer)));
  forget(*outbox, request);
  send(key);
}

void Notes::retry_later(const std::string& key, milliseconds wait) {
  find(key)->is_sending = true;  // nothing may overtake it
  timers_.after(wait, [this, key] {
    Outbox* found = find(key);
    if (found == nullptr) return;
    found->is_sending = false;
    send(key);
  });
}

void Notes::forget(Outbox& outbox, const Request& request) {
  auto& entries = request.kind == checkpoint ? outbox.checkpoints : outbox.logs;
  const std::size_t done = std::min(request.items, entries.size());
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(done));
}

// The job is still ours and goes on.
void Notes::stop_reports(Outbox& outbox, const std::string& key, const Answered& answer) {
  outbox.takes_reports = false;
  outbox.checkpoints.clear();
  outbox.progress.clear();
  if (!std::exchange(has_said_no_reports_, true))
    listener_.trouble(
        fmt::format("{}: its reports, and those of others like it, are dropped: {}", key, describe(answer)));
}

}  // namespace baton::cli::agent
