#include "engine/kinds/workflows/hot_runs.hpp"

#include "base/result.hpp"

namespace baton::engine {

using namespace workflow;

std::optional<Run> HotRuns::take(std::string_view job_id) {
  const auto found = by_job_.find(job_id);
  if (found == by_job_.end()) return std::nullopt;
  const Entries::iterator entry = found->second;
  by_job_.erase(found);
  std::optional<Run> run{std::move(entry->run)};
  bytes_ -= entry->bytes;
  entries_.erase(entry);
  return run;
}

void HotRuns::keep(Run run) {
  const std::size_t bytes = run.bytes();
  if (bytes > bytes_max_ / 8) return;
  entries_.push_back({std::move(run), bytes});
  bytes_ += bytes;
  const auto last = std::prev(entries_.end());
  ENSURE(by_job_.emplace(last->run.job.job_id.value, last).second);  // whoever decides about a run has taken it
  while (bytes_ > bytes_max_) drop(entries_.begin());
}

void HotRuns::drop(Entries::iterator entry) {
  by_job_.erase(entry->run.job.job_id.value);
  bytes_ -= entry->bytes;
  entries_.erase(entry);
}

void HotRuns::forget() {
  by_job_.clear();
  entries_.clear();
  bytes_ = 0;
}

}  // namespace baton::engine
