// What the engine remembers between the chunks of a fan-out or a fan_in, so that each of them does not begin
// by reading everything again. Never the truth: what is lost here is found again from the store. Bounded.
#pragma once

#include <map>

#include "core/workflow/run.hpp"
#include "ports/store.hpp"

namespace baton::engine {

class Progressions {
 public:
  // Gives a run what is known about it, before it is decided.
  void lend(workflow::Run& run, workflow::NodeIndex node);
  // After the commit: keeps what the next chunk needs.
  void keep(const workflow::JobId& job_id, workflow::Run& run);
  // After any commit that did not surely succeed.
  void forget() { known_.clear(); }
  [[nodiscard]] std::int32_t gathered(const NodeKey& key) const;  // the item at which a fan_in is
  [[nodiscard]] bool has_expansion(const NodeKey& key) const;

 private:
  static constexpr std::size_t known_max = 64;
  struct Known {
    workflow::Expansion expansion;
    std::optional<workflow::Gathering> gathering;
  };
  std::map<NodeKey, Known> known_;
};

}  // namespace baton::engine
