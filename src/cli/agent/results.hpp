// The results that the server has not yet accepted or refused. They are kept until it has, in batches, one
// request at a time. On the agent's thread.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "cli/agent/line.hpp"
#include "cli/agent/task.hpp"

namespace baton::cli::agent {

class Results {
 public:
  struct Listener {
    std::function<void(const std::string& key)> settled;      // accepted or refused: it is over
    std::function<void(const std::string& message)> trouble;  // for the log
  };
  Results(const ServerAccess& server, Mailbox& mailbox, Timers& timers, std::string worker, Listener listener);

  void add(Task task, const Outcome& outcome, milliseconds took);
  [[nodiscard]] std::size_t size() const { return waiting_.size() + sent_.size(); }

 private:
  struct Entry {
    Task task;
    std::string body;
    bool is_substitute = false;  // for a result that the server could not read
  };

  void send();
  void on_answer(const Answered& answer);
  void settle_each(const std::string& body);  // leaves in sent_ what is to be sent again
  void put_back();                            // what was sent, in front of the rest
  void send_later();                          // the same, after a pause
  void replace_refused(const Answered& answer);

  Timers& timers_;
  std::string worker_;
  Listener listener_;
  std::deque<Entry> waiting_;
  std::vector<Entry> sent_;
  std::size_t singles_ = 0;  // so many are sent one by one, to find the one that spoils a batch
  bool is_busy_ = false;     // a request or a pause is under way
  Pauses pauses_;
  Line line_;
};

}  // namespace baton::cli::agent
