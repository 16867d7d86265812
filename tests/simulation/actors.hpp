// The engine's neighbours: clients that submit, repeat and cancel; workers that work, stall, die and come
// back from the dead.
#pragma once

#include <map>
#include <string>

#include "tests/simulation/world.hpp"

namespace baton::simulation {

// Submits a few jobs one after another. With a key it repeats a submit until it is answered; without one it
// never does.
class Client {
 public:
  Client(World& world, int number, int jobs) : world_(world), number_(number), jobs_(jobs) {}
  void start();

 private:
  void next_job();
  void submit(const std::string& key, const std::string& workflow_id, const Json& input);
  void meddle(const workflow::JobId& job_id);

  World& world_;
  const int number_;
  const int jobs_;
  int submitted_ = 0;
  std::map<std::string, bool> answered_;
};

// Polls one queue for ever. What it does with a task depends on the handler and on chance.
class Worker {
 public:
  Worker(World& world, int number, std::string queue, bool modern)
      : world_(world), name_("worker-" + std::to_string(number)), queue_(std::move(queue)), modern_(modern) {}
  void start() { poll(); }
  // The built-in worker lives in the engine's process.
  void engine_died() {
    if (queue_ == workflow::builtin_queue) die();
  }

 private:
  void poll();
  void on_tasks(const PollReply& reply);
  void work_on(const Handout& task);
  void note(const Handout& task);
  void beat();
  void report(const Handout& task, const ReportResult& result);
  void die();

  World& world_;
  const std::string name_;
  const std::string queue_;
  const bool modern_;  // heartbeats and echoes leases; otherwise it knows only the plain result body
  std::uint64_t life_ = 0;
  std::uint64_t polls_ = 0;
  std::map<std::string, std::string> running_;  // task id → lease
  bool beating_ = false;
};

}  // namespace baton::simulation
