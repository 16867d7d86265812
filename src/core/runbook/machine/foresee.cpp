// What a message, a timer or a chunk is likely to need, so that it is loaded before, in bulk.
#include "base/result.hpp"
#include "core/runbook/machine/decision.hpp"

namespace baton::runbook {
namespace {

class Foresight {
 public:
  Foresight(Ledger& ledger, Needs& needs) : ledger_(ledger), needs_(needs) {}

  // True: it is known, and there may be something.
  bool want(Need need) {
    if (ledger_.knows(need)) return true;
    needs_.insert(std::move(need));
    return false;
  }

  void batch(std::int64_t id) {
    if (!want(need::Batch{id})) return;
    if (const auto* found = ledger_.batch(id)) want(need::Runbook{found->row.runbook_id});
  }
  void phase(std::int64_t id) {
    if (!want(need::Phase{id})) return;
    const auto* found = ledger_.phase(id);
    if (!found) return;
    batch(found->row.batch_id);
    want(need::CountsOf{found->row.batch_id, id});
  }
  void phase_due(std::int64_t id) {
    phase(id);
    if (!ledger_.knows(need::Phase{id})) return;
    const auto* found = ledger_.phase(id);
    if (!found || (found->row.walk != Walk::none && found->row.walk != Walk::held)) return;
    want(need::CountsOf{found->row.batch_id, 0});
    want(need::InitsOf{found->row.batch_id});
    want(need::PhasesOf{found->row.batch_id});
  }
  void step(std::int64_t id) {
    if (!want(need::Step{id})) return;
    const auto job = ledger_.job({RowType::step, id});
    if (!job) return;
    const std::int64_t phase_id = job->step->phase_execution_id;
    if (const StepPlace* place = around(id)) {
      want(need::CountsOf{place->batch_id, phase_id});
      want(need::PhasesOf{place->batch_id});  // the member may go on in another one
    }
    phase(phase_id);
    want(need::Member{job->step->batch_member_id});
    want(need::StepsAhead{job->step->batch_member_id, job->step->phase_execution_id});
  }
  // What a step belongs to, asked for together and not one after the other.
  const StepPlace* around(std::int64_t step_id) {
    const StepPlace* place = ledger_.place_of(step_id);
    if (!place) return nullptr;
    want(need::Batch{place->batch_id});
    want(need::Runbook{place->runbook_id});
    return place;
  }
  void init(std::int64_t id) {
    if (!want(need::Init{id})) return;
    if (const auto job = ledger_.job({RowType::init, id})) whole_batch(job->init->batch_id);
  }
  void cleanup(std::int64_t id) {
    if (!want(need::Cleanup{id})) return;
    const auto job = ledger_.job({RowType::cleanup, id});
    if (!job) return;
    const CleanupExecution& row = *job->cleanup;
    batch(row.batch_id);
    want(need::CountsOf{row.batch_id, 0});
    if (row.batch_member_id) want(need::Member{*row.batch_member_id});
    if (row.kind == CleanupKind::removal && row.batch_member_id) want(need::RemovalsOf{*row.batch_member_id});
    if (row.caused_by_init_id) {
      init(*row.caused_by_init_id);
      want(need::CleanupsOfInit{*row.caused_by_init_id});
    }
    if (row.caused_by_step_id) {
      step(*row.caused_by_step_id);
      want(need::CleanupsOfStep{*row.caused_by_step_id});
    }
  }
  void whole_batch(std::int64_t id) {
    batch(id);
    want(need::PhasesOf{id});
    want(need::InitsOf{id});
    want(need::CountsOf{id, 0});
  }

 private:
  Ledger& ledger_;
  Needs& needs_;
};

}  // namespace

void foresee(Ref ref, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  switch (ref.type) {
    case RowType::step: return see.step(ref.id);
    case RowType::init: return see.init(ref.id);
    case RowType::cleanup: return see.cleanup(ref.id);
    case RowType::phase: return see.phase_due(ref.id);
    case RowType::batch: return see.whole_batch(ref.id);
    case RowType::runbook: see.want(need::Runbook{ref.id}); return;
    case RowType::none: return;
  }
}

// A chunk of a walk: its members, and their steps.
void foresee_chunk(Ref ref, const Policy& policy, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  if (ref.type != RowType::phase && ref.type != RowType::batch) return;
  try {
    if (ref.type == RowType::phase) {
      const auto* phase = ledger.phase(ref.id);
      const auto* batch = phase ? ledger.batch(phase->row.batch_id) : nullptr;
      if (!batch) return;
      const Definition& definition = ledger.definition(batch->row, phase->row.runbook_version);
      const std::int32_t n = phase_chunk(phase->row, definition, policy);
      see.want(need::CountsOf{batch->row.id, 0});
      if (!see.want(need::MembersOf{batch->row.id, phase->row.walk_after, n})) return;
      for (const Slot<Member>* member : ledger.members_of(batch->row.id, phase->row.walk_after, n))
        see.want(need::StepsOf{member->row.id, ref.id});
    } else if (const auto* batch = ledger.batch(ref.id); batch && batch->row.walk == Walk::cancel) {
      const std::int32_t n = batch_chunk(batch->row, ledger, policy);
      if (!see.want(need::MembersOf{ref.id, batch->row.walk_after, n})) return;
      for (const Slot<Member>* member : ledger.members_of(ref.id, batch->row.walk_after, n))
        see.want(need::StepsOfMember{member->row.id});
    } else if (batch && batch->row.walk == Walk::resume) {
      see.want(need::ParkedSteps{ref.id, policy.chunk_members});
    }
  } catch (NotLoaded& missing) {
    needs.merge(missing.needs);
  } catch (const Unreadable&) {  // deciding will say so
  }
}

void foresee(const SchedulerMessage& message, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.want(need::RunbookNamed{message.runbook_name, message.runbook_version});
  std::visit(overloaded{
                 [&](const BatchInit&) { see.whole_batch(message.batch_id); },
                 [&](const PhaseDue& m) {
                   see.batch(message.batch_id);
                   see.phase_due(m.phase_execution_id);
                 },
                 [&](const MemberAdded& m) {
                   see.whole_batch(message.batch_id);
                   see.want(need::Member{m.batch_member_id});
                   see.want(need::StepsOfMember{m.batch_member_id});
                 },
                 [&](const MemberRemoved& m) {
                   see.whole_batch(message.batch_id);
                   see.want(need::Member{m.batch_member_id});
                   see.want(need::StepsOfMember{m.batch_member_id});
                   see.want(need::RemovalsOf{m.batch_member_id});
                 },
                 [&](const auto& m) {
                   see.batch(message.batch_id);
                   if (m.step_execution_id) see.step(*m.step_execution_id);
                   if (m.init_execution_id) see.init(*m.init_execution_id);
                 },
             },
             message.what);
}

void foresee_handout(Ref ref, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  if (ref.type == RowType::step && see.want(need::Step{ref.id})) {
    const auto job = ledger.job(ref);
    if (!job) return;
    see.around(ref.id);
    if (!see.want(need::Phase{job->step->phase_execution_id})) return;
    if (const auto* phase = ledger.phase(job->step->phase_execution_id)) see.batch(phase->row.batch_id);
  } else if (ref.type == RowType::init && see.want(need::Init{ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->init->batch_id);
  } else if (ref.type == RowType::cleanup && see.want(need::Cleanup{ref.id})) {
    if (const auto job = ledger.job(ref)) see.batch(job->cleanup->batch_id);
  }
}

// --- what people, the built-in scheduler and workers ask for

void foresee_job(std::string_view job_id, Ledger& ledger, Needs& needs) {
  if (const auto named = parse_job_id(job_id)) foresee(named->ref, ledger, needs);
}

void foresee_handout(std::string_view job_id, Ledger& ledger, Needs& needs) {
  if (const auto named = parse_job_id(job_id)) foresee_handout(named->ref, ledger, needs);
}

void foresee_version(std::int64_t runbook_id, Ledger& ledger, Needs& needs) {
  if (runbook_id != 0) Foresight(ledger, needs).want(need::Runbook{runbook_id});
}

void foresee_hold(std::int64_t id, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  if (!see.want(need::Hold{id})) return;
  const auto* hold = ledger.hold(id);
  if (!hold) return;
  see.whole_batch(hold->row.batch_id);
  see.want(need::HoldsOf{hold->row.batch_id});
}

void foresee_publish(const std::string& name, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.want(need::RunbookNamed{name, 0});
  see.want(need::LatestVersion{name});
}

void foresee_join(std::int64_t batch_id, const std::vector<DataRow>& members, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.whole_batch(batch_id);
  for (const DataRow& row : members) see.want(need::MembersNamed{batch_id, row.member_key});
}

void foresee_removal(std::int64_t batch_id, const std::vector<std::int64_t>& member_ids, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  see.whole_batch(batch_id);
  for (const std::int64_t id : member_ids) {
    see.want(need::Member{id});
    see.want(need::StepsOfMember{id});
    see.want(need::RemovalsOf{id});
  }
}

void foresee_member(std::int64_t member_id, Ledger& ledger, Needs& needs) {
  Foresight(ledger, needs).want(need::Member{member_id});
}

void foresee_phases(const std::vector<std::int64_t>& phase_ids, Ledger& ledger, Needs& needs) {
  Foresight see(ledger, needs);
  for (const std::int64_t id : phase_ids) see.want(need::Phase{id});
}

}  // namespace baton::runbook
