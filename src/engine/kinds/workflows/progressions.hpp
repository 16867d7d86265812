// What the engine remembers between the chunks of a fan-out or a fan_in, so that each of them does not begin
// by reading everything again. Never the truth: what is lost here is found again from the store. Bounded: the
// source of a fan-out that was not used for the longest time is dropped, and a fan_in begins only when few
// others are on their way, because dropping what one has gathered would make it begin again for ever.
#pragma once

#include <map>

#include "core/workflow/machine/run.hpp"
#include "ports/store.hpp"

namespace baton::engine {

class Progressions {
 public:
  explicit Progressions(std::size_t expansions_max) : expansions_max_(expansions_max) {}

  // Gives a run what is known about it, before it is decided.
  void lend(workflow::Run& run, workflow::NodeIndex node);
  // After the commit: keeps what the next chunk needs.
  void keep(const workflow::JobId& job_id, workflow::Run& run);
  void drop(const workflow::JobId& job_id);  // the job has ended
  // After any commit that did not surely succeed.
  void forget();
  [[nodiscard]] bool may_gather(const NodeKey& key) const;

 private:
  static constexpr std::size_t gatherings_max = 4;
  struct Source {
    workflow::Expansion expansion;
    std::uint64_t used = 0;
  };
  const std::size_t expansions_max_;
  std::uint64_t uses_ = 0;
  std::map<NodeKey, Source> sources_;
  std::map<NodeKey, workflow::Gathering> gatherings_;
};

}  // namespace baton::engine
