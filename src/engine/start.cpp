// What the writer does once, when it starts, before anybody is served.
#include "engine/writer.hpp"

namespace baton::engine {
namespace {

// Hears what became of a command of the start.
struct AtStart final : Waiter {
  bool is_answered = false;
  std::optional<std::string> refused;  // why
  void deliver(Reply reply) override {
    is_answered = true;
    if (auto* no = std::get_if<Refused>(&reply)) refused = std::move(no->message);
  }
};

}  // namespace

// What each kind has to do.
Result<> Writer::start() {
  for (const auto& kind : kinds_) {
    while (true) {
      Effects effects;
      TRY_ASSIGN(auto commands, kind->at_start(store_, tasks_given_back(), effects));
      perform(std::move(effects));
      if (commands.empty()) break;
      TRY(run_at_start(std::move(commands)));
    }
  }
  return {};
}

// Nobody else repeats these. So those that are refused, because another program has their rows, are tried again as
// long as some of them succeed, the last ones first: patience may have ended before their turn. One that is not
// answered gives a task back, and waits in given_back_ for its next try.
Result<> Writer::run_at_start(std::vector<Command> commands) {
  constexpr int tries_min = 2;
  constexpr Duration lost_max{30'000};
  const Duration lost_before = lost_to_others_;
  std::vector<std::string> why;
  for (int tries = 0; !commands.empty(); ++tries) {
    std::vector<std::shared_ptr<AtStart>> heard;
    for (const Command& command : commands)
      own_items_.push_back({command, heard.emplace_back(std::make_shared<AtStart>())});
    run_own_items();
    if (away_) return fail(Code::unavailable, "the store was lost while the server started");
    std::vector<Command> refused;
    why.clear();
    bool helped = false;
    for (std::size_t i = commands.size(); i-- > 0;) {
      helped = helped || (heard[i]->is_answered && !heard[i]->refused);
      if (!heard[i]->refused) continue;
      refused.push_back(std::move(commands[i]));
      why.push_back(*std::move(heard[i]->refused));
    }
    commands = std::move(refused);
    if ((!helped && tries + 1 >= tries_min) || lost_to_others_ - lost_before >= lost_max) break;
  }
  for (std::size_t i = 0; options_.unreadable && i < commands.size(); ++i) {
    const Subject about = subject_of(commands[i]);
    options_.unreadable(std::string(name(about.type)) + " " + about.id + " was passed over at start: " + why[i]);
  }
  return {};
}

// A full batch puts off the rest of them, and no pause comes before the next one. Each decides one at least, unless
// timers fill it; what is left after that many has its turn among the commands of others.
void Writer::run_own_items() {
  for (std::size_t turns = own_items_.size(); turns > 0 && !away_ && !own_items_.empty(); --turns) {
    run({});
    finish_commit();
  }
}

// Tasks whose return waits for its next try.
std::vector<TaskLease> Writer::tasks_given_back() const {
  std::vector<TaskLease> tasks;
  for (const auto* items : {&own_items_, &given_back_})
    for (const Item& item : *items)
      if (const auto* back = std::get_if<ReturnTasks>(&item.command))
        tasks.insert(tasks.end(), back->tasks.begin(), back->tasks.end());
  return tasks;
}

}  // namespace baton::engine
