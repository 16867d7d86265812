// What running programs say before they end: lines of their log, progress, checkpoints. Each task has an
// outbox with one request under way at most. Logs and progress are sent a few times a second, checkpoints at
// once and in order. A server that does not know a kind of note is not told it again for a while; reports of
// a job that can have none are dropped, which is said once. On the agent's thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.hpp"
#include "cli/agent/line.hpp"
#include "cli/agent/task.hpp"

namespace baton::cli::agent {

class Notes {
 public:
  struct Listener {
    std::function<void(const std::string& key)> gone;         // the server says that the task is not ours
    std::function<void(const std::string& message)> trouble;  // for the log
  };
  Notes(const ServerAccess& server, Mailbox& mailbox, Timers& timers, std::size_t log_bytes_max,
        Listener listener);

  void open(const Task& task);
  void add_log(const std::string& key, std::string_view line);
  // A line of the report descriptor: {"progress": …, "message": …} or {"checkpoint": …}.
  void add_report(const std::string& key, std::string_view line);
  // Sends what is left and calls `then`, at once if nothing is. A result comes after the notes, because once
  // it is accepted they would be refused.
  void close(const std::string& key, std::function<void()> then);
  void drop(const std::string& key);

 private:
  enum NoteKind : std::size_t { checkpoint, log, progress, kinds };
  struct Outbox {
    std::string head;                     // {"task_id":…,"lease":…
    std::size_t line = 0;                 // its connection
    std::deque<Json> checkpoints;         // rendered
    std::deque<Json> logs;                // rendered lines
    std::string progress;                 // rendered; only the last one counts
    std::size_t log_bytes = 0;
    bool log_is_full = false;
    bool has_complained = false;  // of a report that is none
    bool takes_reports = true;    // false: the server keeps neither progress nor checkpoints of such a job
    bool is_sending = false;
    bool is_scheduled = false;
    int refusals = 0;  // in a row
    Clock::time_point last_sent{};
    std::function<void()> then;  // set: it is closed
  };
  struct Request {
    NoteKind kind{};
    std::string body;
    std::size_t items = 0;  // how many entries of the outbox it takes out when it is done
  };

  [[nodiscard]] Outbox* find(const std::string& key);
  void schedule(const std::string& key, Outbox& outbox);
  void send(const std::string& key);
  [[nodiscard]] bool pick(Outbox& outbox, Request& request);
  void on_answer(const std::string& key, const Request& request, const Answered& answer);
  void retry_later(const std::string& key, milliseconds wait);
  void forget(Outbox& outbox, const Request& request);
  void stop_reports(Outbox& outbox, const std::string& key, const Answered& answer);
  void add_log_entry(Outbox& outbox, std::string_view line);

  Timers& timers_;
  std::size_t log_bytes_max_;
  Listener listener_;
  std::unordered_map<std::string, Outbox> outboxes_;
  std::array<Clock::time_point, kinds> off_until_{};
  bool has_said_no_reports_ = false;
  std::size_t opened_ = 0;
  std::vector<std::unique_ptr<Line>> lines_;
};

}  // namespace baton::cli::agent
