// The jobs that were decided about last, as they are stored: what a worker says next needs nothing from the store.
// A batch takes a run out, and gives it back when its changes are durable; after any commit that did not surely
// succeed all are forgotten. Only baton writes these tables, so what is here is what is there. Bounded: what was
// not touched for the longest time goes first.
#pragma once

#include <list>
#include <unordered_map>

#include "core/workflow/machine/run.hpp"

namespace baton::engine {

class HotRuns {
 public:
  explicit HotRuns(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // The run, which is not here any more then; none: it is not known.
  [[nodiscard]] std::optional<workflow::Run> take(std::string_view job_id);
  // A run whose changes are durable. One that is large by itself is not kept.
  void keep(workflow::Run run);
  void forget();

 private:
  struct Entry {
    workflow::Run run;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // the one that was kept last is last
  void drop(Entries::iterator entry);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> by_job_;  // named by the id that the entry holds
};

}  // namespace baton::engine
