// One look at the data source of a runbook: reads it, finds out what has changed, and asks the engine for it,
// in chunks, each after the answer to the one before.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/metrics.hpp"
#include "core/runbook/members/members.hpp"
#include "ports/clock.hpp"
#include "ports/commands.hpp"
#include "ports/data_source.hpp"
#include "ports/reads.hpp"

namespace baton::scheduler {

// What the owner may want to log; from any thread of the scheduler.
using Log = std::function<void(const std::string& runbook, const std::string& message, bool is_error)>;

// What is known of the data table of a runbook: a cache, for the rows that need not be sent.
struct Sent {
  std::int64_t runbook_id = 0;
  std::chrono::steady_clock::time_point all_at;
  std::unordered_map<std::string, std::uint64_t> rows;  // hashes, by key
};

// What all looks share; safe to use by several of them at once.
struct LookTools {
  Inbox& inbox;
  DataSources& sources;
  const Clock& clock;
  const Log& log;
  metrics::Counter& syncs;
  metrics::Counter& failures;
  const std::atomic<bool>& stopping;
};

class Look {
 public:
  Look(const LookTools& with, Reads& reads, const runbook::Runbook& row,
       const runbook::Definition& definition, Sent& sent)
      : with_(with), reads_(reads), row_(row), definition_(definition), sent_(sent) {}

  // False: something failed, perhaps the reads.
  [[nodiscard]] bool run();

 private:
  template <class Answer>
  Result<Answer> ask_for(Command command);
  template <class Answer>
  Result<> tell(Command command);
  [[nodiscard]] Result<NoteSync> apply(const std::vector<runbook::SourceMember>& members);
  [[nodiscard]] Result<> join(const runbook::Diff::Joins& joins,
                              const std::vector<runbook::SourceMember>& members);
  [[nodiscard]] Result<> leave(const std::vector<runbook::MemberRef>& leavers);
  [[nodiscard]] Result<> write_data(const std::vector<runbook::SourceMember>& members);
  [[nodiscard]] Result<> finish_imports();
  [[nodiscard]] Result<std::vector<runbook::KnownMember>> known_members();

  const LookTools& with_;
  Reads& reads_;
  const runbook::Runbook& row_;
  const runbook::Definition& definition_;
  Sent& sent_;
};

}  // namespace baton::scheduler
