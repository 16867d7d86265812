#include "core/runbook/machine/rows.hpp"

#include <array>

namespace baton::runbook {
namespace {

// Other programs write Pending or PENDING: on the database of the contract those are the same word.
template <class Enum, std::size_t n>
std::optional<Enum> find_word(const std::array<std::string_view, n>& words, std::string_view word) {
  for (std::size_t i = 0; i < n; ++i)
    if (words[i] == word) return static_cast<Enum>(i);
  for (std::size_t i = 0; i < n; ++i)
    if (equal_ignoring_case(words[i], word)) return static_cast<Enum>(i);
  return std::nullopt;
}

using Words = std::string_view;
constexpr std::array<Words, 6> batch_words{"detected", "init_dispatched", "active", "completed", "failed", "cancelled"};
constexpr std::array<Words, 3> member_words{"active", "removed", "failed"};
constexpr std::array<Words, 6> phase_words{"pending", "dispatched", "completed", "failed", "skipped", "superseded"};
constexpr std::array<Words, 8> step_words{"pending", "dispatched",   "polling",     "succeeded",
                                          "failed",  "poll_timeout", "rolled_back", "cancelled"};
constexpr std::array<Words, 5> job_words{"none", "queued", "leased", "parked", "limited"};
constexpr std::array<Words, 8> walk_words{"none", "held", "start", "advance", "stop", "again", "cancel", "resume"};
constexpr std::array<Words, 2> cleanup_words{"rollback", "removal"};
constexpr std::array<Words, 6> phase_wait_words{"none",          "batch_held",     "batch_paused",
                                                "phases_before", "required_phase", "answer"};
constexpr std::array<Words, 7> hold_kind_words{"removals", "moves", "late_batch", "late_phase", "required", "gate", "threshold"};
constexpr std::array<Words, 3> hold_status_words{"open", "answered", "obsolete"};
constexpr std::array<Words, 2> overlap_words{"allow", "wait"};
constexpr std::array<Words, 3> open_batches_words{"keep", "ignore", "rerun"};
constexpr std::array<Words, 7> type_words{"none", "step", "init", "cleanup", "phase", "batch", "runbook"};

template <class Enum, std::size_t n>
constexpr std::string_view word(const std::array<std::string_view, n>& words, Enum value) {
  return words[static_cast<std::size_t>(value)];
}

}  // namespace

std::string_view name(BatchStatus status) { return word(batch_words, status); }
std::string_view name(MemberStatus status) { return word(member_words, status); }
std::string_view name(PhaseStatus status) { return word(phase_words, status); }
std::string_view name(StepStatus status) { return word(step_words, status); }
std::string_view name(JobState state) { return word(job_words, state); }
std::string_view name(Walk walk) { return word(walk_words, walk); }
std::string_view name(CleanupKind kind) { return word(cleanup_words, kind); }
std::string_view name(PhaseWait wait) { return word(phase_wait_words, wait); }
std::string_view name(HoldKind kind) { return word(hold_kind_words, kind); }
std::string_view name(HoldStatus status) { return word(hold_status_words, status); }
std::string_view name(PhaseOverlap overlap) { return word(overlap_words, overlap); }
std::string_view name(OpenBatches how) { return word(open_batches_words, how); }
std::string_view name(RowType type) { return word(type_words, type); }
std::optional<BatchStatus> batch_status(std::string_view name) { return find_word<BatchStatus>(batch_words, name); }
std::optional<MemberStatus> member_status(std::string_view name) { return find_word<MemberStatus>(member_words, name); }
std::optional<PhaseStatus> phase_status(std::string_view name) { return find_word<PhaseStatus>(phase_words, name); }
std::optional<StepStatus> step_status(std::string_view name) { return find_word<StepStatus>(step_words, name); }
std::optional<JobState> job_state(std::string_view name) { return find_word<JobState>(job_words, name); }
std::optional<Walk> walk(std::string_view name) { return find_word<Walk>(walk_words, name); }
std::optional<CleanupKind> cleanup_kind(std::string_view name) { return find_word<CleanupKind>(cleanup_words, name); }
std::optional<PhaseWait> phase_wait(std::string_view name) { return find_word<PhaseWait>(phase_wait_words, name); }
std::optional<HoldKind> hold_kind(std::string_view name) { return find_word<HoldKind>(hold_kind_words, name); }
std::optional<HoldStatus> hold_status(std::string_view name) { return find_word<HoldStatus>(hold_status_words, name); }
std::optional<PhaseOverlap> phase_overlap(std::string_view name) { return find_word<PhaseOverlap>(overlap_words, name); }
std::optional<OpenBatches> open_batches(std::string_view name) { return find_word<OpenBatches>(open_batches_words, name); }
std::optional<RowType> row_type(std::string_view name) { return find_word<RowType>(type_words, name); }

Json result_of_skip(const std::string& by, bool is_poll_step) {
  return Json{std::string("{") + (is_poll_step ? "\"complete\":true," : "") + "\"skipped_by\":" + quoted(by) + "}"};
}

bool is_result_of_skip(std::string_view result_json) {
  return result_json.starts_with(R"({"skipped_by":)") || result_json.starts_with(R"({"complete":true,"skipped_by":)");
}

}  // namespace baton::runbook
