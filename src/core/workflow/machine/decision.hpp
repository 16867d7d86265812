// One decision about one job: the run, the time and what was decided so far at hand, so that the steps of the state
// machine read as sentences. Private to the machine; what may happen is said in machine.hpp.
#pragma once

#include <string>

#include "core/workflow/machine/machine.hpp"
#include "core/workflow/machine/scope.hpp"

namespace baton::workflow {

class Decision {
 public:
  Decision(Run& run, const Policy& policy, Time now, Decided& decided)
      : run_(run), policy_(policy), now_(now), decided_(decided) {}

  void event(EventType type, const NodeState* node = nullptr, OptionalJson data = std::nullopt);
  void set_status(Slot& slot, NodeStatus to);

  // ---- along the edges ----
  void edge_fired(NodeIndex i);
  void edge_dead(NodeIndex i);
  void resolved(NodeIndex i);  // no incoming edge is open, or one is enough
  void make_ready(NodeIndex i);
  void complete(NodeRef ref, OptionalJson output);
  void skip(NodeIndex i);

  // ---- tasks ----
  void dispatch(NodeRef ref);
  void enqueue(Slot& slot);
  void attempt_failed(NodeRef ref, const std::string& error);
  void fail(NodeRef ref, const std::string& error);

  // ---- the other types ----
  void choose_branch(NodeIndex i);
  void begin_wait(NodeIndex i);
  void ask_for_approval(NodeIndex i);
  void settle_approval(NodeIndex i, bool approved, const std::string& by, const std::string& comment);

  // ---- fan_out and fan_in: fan_out.cpp ----
  void begin_fan_out(NodeIndex i);
  void expand(NodeIndex i);         // the next chunk of children
  void item_ended(NodeIndex i);     // one of its children has
  void begin_sweep(Slot& fan_out);  // a walk over its children
  void sweep(NodeIndex i);          // the next chunk of it
  void gather(NodeIndex i);

  // ---- the job ----
  void start_job();
  void cancel_rest();
  void cancel_after_failure();
  void settle();  // ends the job when nothing of it is left to run
  void end(JobStatus status, EventType type, OptionalJson data = std::nullopt);
  void reopen(Slot& slot);  // a node that has ended is to run again

  [[nodiscard]] bool is_paused() const { return run_.job.paused_at.has_value(); }
  [[nodiscard]] bool may_give_out() const;  // tasks, to workers
  [[nodiscard]] RunScope scope() { return {run_, policy_.environment, decided_}; }

 private:
  [[nodiscard]] bool put_off(Slot& slot);
  void park(Slot& slot);
  [[nodiscard]] bool needs_params(NodeRef ref);
  bool resolve_params(NodeRef ref, RunScope& scope);
  void dispatch(NodeRef ref, RunScope& scope);
  void revive(NodeRef child);
  [[nodiscard]] std::expected<Expansion, std::string> source_of(NodeIndex i);
  [[nodiscard]] const Branch* branch_taken(NodeIndex i, std::string& error);
  [[nodiscard]] std::optional<Time> wait_ends(const Node& node, std::string& error);
  [[nodiscard]] Json outputs();

  Run& run_;
  const Policy& policy_;
  const Time now_;
  Decided& decided_;
};

[[nodiscard]] inline std::string as_text(std::int64_t number) { return std::to_string(number); }
// {"error": …}
[[nodiscard]] Json error_data(const std::string& error);

}  // namespace baton::workflow
