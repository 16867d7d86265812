// What the rows of one job must say of each other after every commit. Pure: it is given the rows.
#pragma once

#include <map>

#include "core/workflow/definition/definition.hpp"
#include "store/check/check.hpp"

namespace baton::store {

[[nodiscard]] inline std::string job_text(const workflow::JobId& id) { return "job " + id.value; }
[[nodiscard]] inline std::string node_text(const workflow::JobId& id, const std::string& node_id) {
  return "node " + node_id + " of job " + id.value;
}

class JobCheck {
 public:
  // Without a definition, which is then told by whoever looked for it, what depends on it is not looked at.
  JobCheck(const workflow::Job& job, std::shared_ptr<const workflow::Definition> definition, const TellFinding& tell);

  // In the order of their keys. Whether it is a task, or a child of a fan-out, which is one too.
  bool add(const workflow::NodeState& node);
  // One that cannot be read: nothing can be counted.
  void skip() { is_counted_ = false; }
  void finish();

 private:
  struct Children {
    std::int32_t count = 0, done = 0, failed = 0, open = 0;
    bool has_gap = false;
  };
  void add_child(const workflow::NodeState& node);
  void check_waiting(const workflow::NodeState& node, const workflow::Node& definition, const workflow::NodeState* parent) const;
  void check_fan_out(const workflow::Node& definition, const workflow::NodeState& node, const Children& children) const;
  void check_counts() const;
  void tell(const std::string& problem) const { tell_(job_text(job_.job_id), problem); }
  void tell(const workflow::NodeState& node, const std::string& problem) const {
    tell_(node_text(node.job_id, node.node_id), problem);
  }

  const workflow::Job& job_;
  const std::shared_ptr<const workflow::Definition> definition_;
  const TellFinding& tell_;
  std::vector<std::optional<workflow::NodeState>> nodes_;  // by their index in the definition
  std::map<workflow::NodeIndex, Children> children_;       // by their fan-out
  std::int32_t active_ = 0, failed_ = 0;
  bool is_counted_ = true;
};

// The events of one job, in the order in which they are stored.
class EventCheck {
 public:
  EventCheck(const workflow::JobId& job_id, const TellFinding& tell) : job_id_(job_id), tell_(tell) {}
  void add(const workflow::Event& event);
  void skip() { is_whole_ = false; }  // some cannot be read
  void finish() const;

 private:
  const workflow::JobId& job_id_;
  const TellFinding& tell_;
  std::optional<std::int64_t> last_;
  bool is_whole_ = true;
};

}  // namespace baton::store
