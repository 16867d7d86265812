// Why a batch, a member or a step does not go on, in one sentence: what people ask first when nothing moves.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/runbook/machine/holds.hpp"
#include "http/api/batch_reads.hpp"
#include "http/api/no_worker.hpp"
#include "http/api/routes.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render_runbook.hpp"

namespace baton::http {

namespace {

using namespace runbook;

struct Reason {
  std::string word;     // for programs
  std::string message;  // for people
  std::optional<Time> since, until;
};

struct Why {
  std::string status;
  std::vector<Reason> reasons;  // the first is the answer
};

// A batch with what its parts wait for.
struct BatchState {
  BatchSummary summary;
  std::vector<PhaseExecution> phases;  // in the order of their times
  std::vector<Count> counts;
  std::vector<ExecutionView> inits;
  std::vector<Hold> holds;  // open
  std::vector<Retrying> retrying;
};

bool is_before(const PhaseExecution& a, const PhaseExecution& b) {
  return std::pair(-a.offset_minutes, a.id) < std::pair(-b.offset_minutes, b.id);
}

Result<BatchState> read_state(Reads& reads, std::int64_t id) {
  BatchState state;
  TRY_ASSIGN(state.summary, known_batch(reads, id));
  TRY_ASSIGN(state.phases, reads.phases(id));
  std::ranges::sort(state.phases, is_before);
  TRY_ASSIGN(state.counts, reads.counts(id));
  TRY_ASSIGN(state.inits, reads.inits(id));
  TRY_ASSIGN(state.holds, reads.holds(id));
  std::erase_if(state.holds, [](const Hold& hold) { return hold.status != HoldStatus::open; });
  TRY_ASSIGN(state.retrying, reads.retrying(id));
  return state;
}

std::string in_words(const PhaseExecution& phase) { return "phase '" + phase.phase_name + "'"; }
std::string in_words(const Execution& step) { return "step '" + step.step_name + "'"; }

std::string because(const std::optional<std::string>& text) { return text && !text->empty() ? ": " + *text : ""; }

std::string answers_in_words(HoldKind kind) {
  std::string words;
  for (const Answer& answer : answers_of(kind)) words += (words.empty() ? "" : ", ") + std::string(answer.word);
  return words;
}

Reason reason_of(const Hold& hold) {
  return {"held",
          fmt::format("hold-{} waits for an answer ({}) since {}: {}", hold.id, answers_in_words(hold.kind),
                      to_iso(hold.opened_at), hold.message),
          hold.opened_at, hold.answer_by};
}

std::optional<Reason> reason_of_pause(const Batch& batch) {
  if (!batch.paused_at) return std::nullopt;
  return Reason{"paused",
                "the batch is paused" + (batch.paused_by ? " by " + *batch.paused_by : std::string()) + " since " +
                    to_iso(*batch.paused_at) + because(batch.paused_reason),
                batch.paused_at, {}};
}

Reason reason_of(const NoWorker& queue) { return {"no_worker", describe(queue), queue.since, {}}; }

const NoWorker* find(const std::vector<NoWorker>& queues, const std::string& queue) {
  const auto found = std::ranges::find(queues, queue, [](const NoWorker& each) { return each.backlog.queue; });
  return found == queues.end() ? nullptr : &*found;
}

// ---- steps

Reason reason_of_end(const ExecutionView& view) {
  const Execution& row = view.execution;
  const std::string at = row.completed_at ? " at " + to_iso(*row.completed_at) : "";
  const std::string what = in_words(row) + " ";
  switch (row.status) {
    case StepStatus::succeeded: return {"ended", what + "succeeded" + at, row.completed_at, {}};
    case StepStatus::cancelled:
      return {"cancelled", what + "was cancelled" + at + because(row.error_message), row.completed_at, {}};
    case StepStatus::poll_timeout:
      return {"failed", what + "did not come to an end in its time" + at + because(row.error_message), row.completed_at, {}};
    case StepStatus::rolled_back:
      return {"failed", what + "failed and was rolled back" + at + because(row.error_message), row.completed_at, {}};
    default: return {"failed", what + "failed" + at + because(row.error_message), row.completed_at, {}};
  }
}

// One that has begun, or waits for its next attempt. None: it has not, and others come first.
std::optional<Reason> reason_of_job(const ExecutionView& view, const Batch& batch, const std::vector<NoWorker>& queues) {
  const Execution& row = view.execution;
  const std::string what = in_words(row) + " ";
  if (row.job_state == JobState::leased)
    return Reason{"running",
                  fmt::format("{}is with worker '{}' since {}, delivery {}", what, row.leased_by.value_or("?"),
                              to_iso(row.leased_at.value_or(row.dispatched_at.value_or(Time{}))), row.delivery_count),
                  row.leased_at, row.lease_until};
  if (const auto paused = reason_of_pause(batch); paused && row.status != StepStatus::polling) return paused;
  if (row.job_state == JobState::limited)
    return Reason{"limited", what + "waits for max_parallel, or for its window", row.queued_at, {}};
  if (row.job_state == JobState::queued || row.job_state == JobState::parked) {
    if (const NoWorker* queue = find(queues, row.worker_id)) return reason_of(*queue);
    const auto since = row.queued_at ? " since " + to_iso(*row.queued_at) : "";
    return Reason{"queued", fmt::format("{}waits for its turn in queue '{}'{}", what, row.worker_id, since), row.queued_at, {}};
  }
  if (row.status == StepStatus::polling) {
    const Time last = row.last_polled_at.value_or(row.poll_started_at.value_or(Time{}));
    const Time next = last + std::chrono::seconds{row.poll_interval_sec.value_or(0)};
    return Reason{"polling",
                  fmt::format("{}has been started and is asked again and again whether it is done, {} times so far, the "
                              "next at {}",
                              what, row.poll_count, to_iso(next)),
                  row.poll_started_at, next};
  }
  if (row.retry_after)
    return Reason{"retry_later",
                  fmt::format("attempt {} of {} of {}failed; the next one is due at {}{}", row.retry_count,
                              row.max_retries.value_or(row.retry_count) + 1, what, to_iso(*row.retry_after),
                              because(row.error_message)),
                  {}, row.retry_after};
  if (row.status == StepStatus::dispatched)
    return Reason{"running", what + "was given out" + (row.dispatched_at ? " at " + to_iso(*row.dispatched_at) : ""),
                  row.dispatched_at, {}};
  return std::nullopt;
}

// ---- phases

std::optional<Reason> reason_of(const PhaseExecution& phase, const BatchState& state, Time now) {
  const std::string what = in_words(phase) + " ";
  if (is_terminal(phase.status)) return std::nullopt;
  if (phase.status == PhaseStatus::dispatched) {
    if (phase.walk == Walk::held) return Reason{"waits_for_init", what + "waits for the init steps", phase.dispatched_at, {}};
    return std::nullopt;
  }
  if (!phase.due_at) return Reason{"by_hand", what + "begins by hand: 'baton batch advance'", {}, {}};
  if (*phase.due_at > now) return Reason{"not_due", what + "is not due until " + to_iso(*phase.due_at), {}, phase.due_at};
  switch (phase.waits_for) {
    case PhaseWait::phases_before: {
      std::string before;
      for (const PhaseExecution& other : state.phases)
        if (is_before(other, phase) && !is_terminal(other.status)) before += (before.empty() ? "" : ", ") + in_words(other);
      return Reason{"phases_before", what + "waits until " + (before.empty() ? "those before it" : before) + " ended",
                    phase.due_at, {}};
    }
    case PhaseWait::required_phase: return Reason{"required_phase", what + "waits for the phase that it requires", phase.due_at, {}};
    case PhaseWait::answer:
      for (const Hold& hold : state.holds)
        if (hold.phase_execution_id == phase.id) return reason_of(hold);
      return Reason{"held", what + "waits for an answer", phase.due_at, {}};
    case PhaseWait::batch_held: return Reason{"held", what + "waits because its batch is held", phase.due_at, {}};
    case PhaseWait::batch_paused: return Reason{"paused", what + "waits because its batch is paused", phase.due_at, {}};
    case PhaseWait::none: break;
  }
  return Reason{"begins", what + "is about to begin", phase.due_at, {}};
}

std::int64_t open_of(const BatchState& state, std::string_view lane, std::int64_t phase_id) {
  std::int64_t n = 0;
  for (const Count& count : state.counts) {
    const auto status = step_status(count.status);
    if (count.lane == lane && count.phase_execution_id == phase_id && status && !is_terminal(*status)) n += count.n;
  }
  return n;
}

Reason reason_of_progress(const PhaseExecution& phase, const BatchState& state) {
  const std::int64_t open = open_of(state, "step", phase.id) + open_of(state, "catch_up", phase.id);
  std::string message = fmt::format("{} runs since {}: {} of its steps are open", in_words(phase),
                                    to_iso(phase.dispatched_at.value_or(Time{})), open);
  for (const Retrying& retrying : state.retrying)
    if (retrying.phase_execution_id == phase.id)
      message += fmt::format(", {} of them wait for their next attempt{}", retrying.n,
                             retrying.next ? ", the first at " + to_iso(*retrying.next) : "");
  return {"running", message, phase.dispatched_at, {}};
}

// ---- batches

Why explain(const BatchState& state, const std::vector<NoWorker>& queues, Time now) {
  const Batch& batch = state.summary.batch;
  Why why{.status = std::string(outcome_of(state.summary))};
  auto& reasons = why.reasons;
  if (is_terminal(batch.status)) {
    const std::string at = batch.completed_at ? " since " + to_iso(*batch.completed_at) : "";
    reasons.push_back({"ended", "it is " + why.status + at + because(batch.error_message), batch.completed_at, {}});
    return why;
  }
  for (const Hold& hold : state.holds) reasons.push_back(reason_of(hold));
  if (auto paused = reason_of_pause(batch)) reasons.push_back(*std::move(paused));
  for (const NoWorker& queue : queues) reasons.push_back(reason_of(queue));
  if (batch.importing) reasons.push_back({"importing", "its members are still being added", batch.detected_at, {}});
  for (const ExecutionView& init : state.inits) {
    if (is_terminal(init.execution.status)) continue;
    if (auto reason = reason_of_job(init, batch, queues)) reasons.push_back({"init", "init " + reason->message, reason->since, {}});
  }
  std::vector<Reason> later;
  for (const PhaseExecution& phase : state.phases) {
    if (is_terminal(phase.status)) continue;
    if (auto reason = reason_of(phase, state, now))
      (reason->word == "not_due" || reason->word == "by_hand" ? later : reasons).push_back(*std::move(reason));
    else
      reasons.push_back(reason_of_progress(phase, state));
  }
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> beside{
      {{"rollback", "rollback steps"}, {"removal", "steps of removals"}}};
  for (const auto& [lane, what] : beside)
    if (const std::int64_t open = open_of(state, lane, 0); open > 0)
      reasons.push_back({"running", fmt::format("{} {} are open", open, what), {}, {}});
  std::ranges::move(later, std::back_inserter(reasons));
  std::vector<std::string> seen;  // what a phase and its hold say is one thing
  std::erase_if(reasons, [&](const Reason& reason) {
    if (std::ranges::find(seen, reason.message) != seen.end()) return true;
    seen.push_back(reason.message);
    return false;
  });
  if (reasons.empty()) reasons.push_back({"begins", "it is about to go on", {}, {}});
  return why;
}

// ---- steps and members in their batch

struct MemberState {
  Member member;
  std::vector<ExecutionView> steps;
};

const PhaseExecution* phase_of(const BatchState& state, const ExecutionView& step) {
  const auto found = std::ranges::find(state.phases, step.phase_execution_id, [](const PhaseExecution& phase) {
    return std::optional(phase.id);
  });
  return found == state.phases.end() ? nullptr : &*found;
}

// In the order in which the member comes to them.
std::vector<ExecutionView> in_order(std::vector<ExecutionView> steps, const BatchState& state) {
  std::ranges::stable_sort(steps, {}, [&](const ExecutionView& step) {
    const PhaseExecution* phase = phase_of(state, step);
    return std::tuple(phase ? -phase->offset_minutes : 0, phase ? phase->id : 0, step.execution.step_index);
  });
  return steps;
}

Reason reason_of_step(const ExecutionView& step, const BatchState& state, const MemberState* of,
                      const std::vector<NoWorker>& queues, Time now) {
  const Execution& row = step.execution;
  if (is_terminal(row.status)) return reason_of_end(step);
  if (auto reason = reason_of_job(step, state.summary.batch, queues)) return *std::move(reason);
  const PhaseExecution* phase = phase_of(state, step);
  if (of && of->member.hold_id)
    for (const Hold& hold : state.holds)
      if (hold.id == of->member.hold_id) return reason_of(hold);
  if (phase)
    if (auto reason = reason_of(*phase, state, now)) return *std::move(reason);
  for (const ExecutionView& other : of ? in_order(of->steps, state) : std::vector<ExecutionView>{}) {
    if (other.ref == step.ref) break;
    if (is_terminal(other.execution.status)) continue;
    const PhaseExecution* before = phase_of(state, other);
    const auto first = reason_of_job(other, state.summary.batch, queues);
    const bool same = phase && before && phase->id == before->id;
    const std::string comes = same || !before ? in_words(other.execution) + " comes before it"
                                              : in_words(*before) + " has not ended for it";
    return {same ? "steps_before" : "phases_before", comes + (first ? ": " + first->message : ""), {}, {}};
  }
  if (phase && phase->walk != Walk::none)
    return {"starting", "the members of " + in_words(*phase) + " are being gone through", phase->dispatched_at, {}};
  if (phase && row.step_index > phase->current_index)
    return {"lockstep", fmt::format("all members come through step {} of {} first", phase->current_index + 1, in_words(*phase)), {}, {}};
  if (auto paused = reason_of_pause(state.summary.batch)) return *std::move(paused);
  return {"its_turn_comes", in_words(row) + " waits for its turn", {}, {}};
}

Why explain(const MemberState& of, const BatchState& state, const std::vector<NoWorker>& queues, Time now) {
  const Member& member = of.member;
  Why why{.status = std::string(name(member.status))};
  if (member.status == MemberStatus::removed) {
    const std::string to = member.moved_to ? fmt::format("it was moved to batch {}", *member.moved_to)
                                           : "it was removed" + (member.removed_by ? " by " + *member.removed_by : "");
    why.reasons.push_back({member.moved_to ? "moved" : "removed",
                           to + (member.removed_at ? " at " + to_iso(*member.removed_at) : ""), member.removed_at, {}});
    return why;
  }
  const auto steps = in_order(of.steps, state);
  const auto told = [&](const ExecutionView& step, Reason reason) {
    const PhaseExecution* phase = phase_of(state, step);
    reason.message = fmt::format("{}step-{}: {}", phase ? in_words(*phase) + ", " : "", step.ref.id, reason.message);
    why.reasons.push_back(std::move(reason));
  };
  if (member.status == MemberStatus::failed) {
    for (const ExecutionView& step : steps)
      if (is_failure(step.execution.status)) told(step, reason_of_end(step));
    std::ranges::stable_sort(why.reasons, std::greater{}, &Reason::since);
    if (why.reasons.empty()) why.reasons.push_back({"failed", "it failed", member.failed_at, {}});
    return why;
  }
  for (const ExecutionView& step : steps) {
    if (is_terminal(step.execution.status)) continue;
    told(step, reason_of_step(step, state, &of, queues, now));
    break;
  }
  if (!why.reasons.empty()) return why;
  // Nothing of it is under way: it waits with its batch.
  for (const PhaseExecution& phase : state.phases)
    if (auto reason = reason_of(phase, state, now)) {
      why.reasons.push_back(*std::move(reason));
      break;
    }
  if (why.reasons.empty()) why = {why.status, explain(state, queues, now).reasons};
  return why;
}

// ---- answers

Response answer(std::string_view key, const std::string& id, const Why& why) {
  auto response = json_response(200, "{");
  auto& out = response.body;
  append_members(out, key, id, "status", why.status, "reason", why.reasons.front().word, "summary",
                 why.reasons.front().message);
  append_list(out, "reasons", why.reasons, [](std::string& to, const Reason& reason) {
    append_object(to, "reason", reason.word, "message", reason.message, "since", reason.since, "until", reason.until);
  });
  out += '}';
  return response;
}

// By its id, else by its key.
Result<std::optional<Member>> find_member(Reads& reads, std::int64_t batch_id, const std::string& text) {
  if (const auto id = to_integer(text); id && *id > 0) {
    TRY_ASSIGN(auto member, reads.member(*id));
    if (member && member->batch_id == batch_id) return member;
  }
  return reads.member_by_key(batch_id, text);
}

}  // namespace

Task<Response> explain_batch(Context& context) {
  const std::int64_t id = captured_id(context.request);
  auto query = [id](Reads& reads) { return read_state(reads, id); };
  auto state = co_await context.read(std::move(query));
  if (!state) co_return batch_problem(context.request, state.error());
  auto queues = co_await no_workers_of_batch(context, id);
  if (!queues) co_return std::move(queues.error());
  co_return answer("id", context.request.captures[0], explain(*state, *queues, context.services.clock.now()));
}

Task<Response> explain_member(Context& context) {
  struct Found {
    BatchState state;
    std::optional<MemberState> of;
  };
  const std::string& text = context.request.captures[1];
  if (!is_printable(text, 1000)) co_return problem(404, "member_not_found", "there is no such member");
  auto query = [id = captured_id(context.request), text](Reads& reads) -> Result<Found> {
    Found found;
    TRY_ASSIGN(found.state, read_state(reads, id));
    TRY_ASSIGN(auto member, find_member(reads, id, text));
    if (!member) return found;
    found.of.emplace(MemberState{*std::move(member), {}});
    TRY_ASSIGN(found.of->steps, reads.steps_of_member(found.of->member.id));
    return found;
  };
  auto found = co_await context.read(std::move(query));
  if (!found) co_return batch_problem(context.request, found.error());
  if (!found->of)
    co_return problem(404, "member_not_found",
                      fmt::format("batch '{}' has no member '{}'", context.request.captures[0], text));
  auto queues = co_await no_workers_of_batch(context, found->state.summary.batch.id);
  if (!queues) co_return std::move(queues.error());
  co_return answer("member_key", found->of->member.member_key,
                   explain(*found->of, found->state, *queues, context.services.clock.now()));
}

template <RowType type>
Task<Response> explain_execution(Context& context) {
  struct Found {
    std::optional<ExecutionView> step;
    BatchState state;
    std::optional<MemberState> of;
  };
  auto query = [ref = Ref{type, captured_id(context.request)}](Reads& reads) -> Result<Found> {
    Found found;
    TRY_ASSIGN(found.step, reads.execution(ref));
    if (!found.step) return found;
    TRY_ASSIGN(found.state, read_state(reads, found.step->batch_id));
    if (!found.step->batch_member_id) return found;
    TRY_ASSIGN(auto member, reads.member(*found.step->batch_member_id));
    if (!member) return found;
    found.of.emplace(MemberState{*std::move(member), {}});
    if (type == RowType::step) {
      TRY_ASSIGN(found.of->steps, reads.steps_of_member(found.of->member.id));
    }
    return found;
  };
  auto found = co_await context.read(std::move(query));
  const auto unknown = [&] {
    return problem(404, "step_not_found", fmt::format("no {} '{}'", name(type), context.request.captures[0]));
  };
  if (!found) co_return found.error().code == Code::not_found ? unknown() : problem(found.error());
  if (!found->step) co_return unknown();
  auto queues = co_await no_workers_of_batch(context, found->step->batch_id);
  if (!queues) co_return std::move(queues.error());
  Why why{.status = std::string(name(found->step->execution.status))};
  why.reasons.push_back(reason_of_step(*found->step, found->state, found->of ? &*found->of : nullptr, *queues,
                                       context.services.clock.now()));
  co_return answer("id", context.request.captures[0], why);
}

template Task<Response> explain_execution<RowType::step>(Context&);
template Task<Response> explain_execution<RowType::init>(Context&);
template Task<Response> explain_execution<RowType::cleanup>(Context&);

}  // namespace baton::http
