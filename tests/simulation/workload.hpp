// A kind of load in a simulated world: who makes it, and what is promised about it. A world has one of them
// or several (World::World draws which); the faults are around all.
#pragma once

#include "engine/kinds/kinds.hpp"
#include "engine/options.hpp"
#include "ports/commands.hpp"
#include "ports/store.hpp"

namespace baton::simulation {

struct EngineOptions {
  engine::WriterOptions writer;
  engine::KindsOptions kinds;
};

class Workload {
 public:
  virtual ~Workload() = default;

  // --- setup
  virtual void set_options(EngineOptions&) {}
  [[nodiscard]] virtual Duration storm_lasts() const = 0;  // how long there are faults
  [[nodiscard]] virtual Duration calm_lasts() const = 0;   // how long it may take to come to its end without them

  // --- start: from now on there is load
  virtual void start() = 0;
  virtual void engine_started() {}
  virtual void engine_died() {}
  virtual void tidy_up() {}  // now and then; when the faults are over, what waits for a person gets one
  [[nodiscard]] virtual bool at_rest() const = 0;

  // --- check; each throws Violation
  virtual void arrived(const Command&) {}
  virtual void answered(const Command&, const Reply&) {}  // before the answer leaves
  virtual void given_back(const TaskLease&) {}            // an answer with this task was lost, and noticed
  virtual void before_commit(const WriteSet&) {}
  // Another program has changed a row after it was loaded: the commit may collide.
  [[nodiscard]] virtual bool may_collide() const { return false; }
  virtual void committed(const WriteSet&) {}
  virtual void check_touched() {}  // after a turn of the engine
  virtual void check_all() {}      // everything has come to its end
};

}  // namespace baton::simulation
