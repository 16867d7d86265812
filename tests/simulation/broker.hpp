// A broker elsewhere, as ADR 0038 has it: a publisher in the server takes tasks as a worker does and sends them there; the
// broker loses connections and confirmations, rejects, gives back, and delivers what it has late, twice and in any order;
// workers behind it report without a lease, and their results come back in the same way.
//
// The broker and its workers outlive the server; the publisher does not. What it has not been told of then is published
// again when its lease has run out.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/world.hpp"

namespace baton::simulation {

class Broker {
 public:
  enum class Outcome { accepted, rejected, released };
  using OnOutcome = std::function<void(Outcome)>;

  explicit Broker(World& world) : world_(world), detects_duplicates_(world.random_.chance(0.5)) {}

  // Of a task, without its lease. The answer may never come; then the connection is lost, sooner or later.
  void publish(const Handout& task, OnOutcome on_outcome, std::function<void()> on_lost);

 private:
  void deliver(const Handout& task);  // to a worker
  void work_on(const Handout& task);
  void report(const ReportResult& result);  // to the server, until it is accepted

  World& world_;
  const bool detects_duplicates_;
  std::set<std::string> known_;  // task ids that it has had
};

class Publisher {
 public:
  Publisher(World& world, Broker& broker, std::string queue) : world_(world), broker_(broker), queue_(std::move(queue)) {}
  void engine_started();
  void engine_died();

 private:
  void poll();
  void publish(const Handout& task);
  void conclude(const TaskLease& task, Broker::Outcome outcome);
  void lose_connection();
  void renew();
  void settle(const TaskLease& task, SettleTask::How how);
  void give_back(std::vector<TaskLease> tasks);
  // Unless the server dies before.
  void if_alive(Duration delay, std::function<void()> act);

  World& world_;
  Broker& broker_;
  const std::string queue_;
  const Duration lease_time_{world_.random_.between(2'000, 20'000)};
  std::uint64_t life_ = 0;
  std::uint64_t connection_ = 0;
  std::map<std::string, TaskLease> unconfirmed_;  // by task id
  bool renewing_ = false;
};

}  // namespace baton::simulation
