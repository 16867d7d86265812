// What people and the built-in scheduler ask about runbooks: each command is one call into core.
#include "engine/batch_runbooks.hpp"

namespace baton::engine {
namespace {

Refusal refusal(runbook::Outcome::Problem problem) {
  using Problem = runbook::Outcome::Problem;
  switch (problem) {
    case Problem::runbook_not_found: return Refusal::runbook_not_found;
    case Problem::batch_not_found: return Refusal::batch_not_found;
    case Problem::phase_not_found: return Refusal::phase_not_found;
    case Problem::member_not_found: return Refusal::member_not_found;
    case Problem::step_not_found: return Refusal::step_not_found;
    default: return Refusal::not_possible;
  }
}

bool is_wrong(const runbook::Outcome& outcome) {
  return outcome.problem != runbook::Outcome::Problem::none;
}
Reply refused(const runbook::Outcome& outcome) { return Refused{refusal(outcome.problem), outcome.why, {}}; }

Reply members_reply(const runbook::Joined& joined) {
  if (is_wrong(joined.outcome)) return refused(joined.outcome);
  return MembersReply{joined.member_ids, joined.left_out, joined.more, joined.phases};
}

}  // namespace

// The message as it is known outside: what is written is moved away, so replies are made while deciding.
Reply Writer::Batch::decide(const PublishRunbook& c) {
  return runbook_reply([&]() -> Reply {
    const auto published = runbook::publish(*c.definition, c.text, c.overdue_behavior, c.rerun_init, context());
    return RunbookReply{published.runbook->row, published.created};
  });
}

Reply Writer::Batch::decide(const ChangeRunbook& c) {
  return runbook_reply([&]() -> Reply {
    using What = ChangeRunbook::What;
    if (c.what == What::activate || c.what == What::deactivate) {
      const auto outcome = runbook::set_active(c.name, c.version, c.what == What::activate, context());
      if (is_wrong(outcome)) return refused(outcome);
      const auto* latest = c.version > 0 ? ledger_.runbook(c.name, c.version) : ledger_.latest_version(c.name);
      return RunbookReply{latest->row, outcome.changed};
    }
    auto* book = ledger_.runbook(c.name, c.version);
    if (!book) return Refused{Refusal::runbook_not_found, "there is no runbook '" + c.name + "'", {}};
    const bool enabled = c.what == What::automation_on;
    const bool changes = book->row.automation_enabled != enabled;
    book->row.automation_enabled = enabled;
    book->changed = book->changed || changes;
    return RunbookReply{book->row, changes};
  });
}

// What the scheduler found out of a version that is not active any more is not worth anything.
std::optional<Refused> Writer::Batch::replaced(std::int64_t of_runbook) {
  if (of_runbook == 0) return std::nullopt;
  const auto* book = ledger_.runbook(of_runbook);
  if (!book) return Refused{Refusal::runbook_not_found, "there is no such runbook", {}};
  if (book->row.is_active) return std::nullopt;
  return Refused{Refusal::runbook_replaced,
                 "version " + std::to_string(book->row.version) + " of runbook '" + book->row.name +
                     "' is not active any more",
                 {}};
}

Reply Writer::Batch::decide(const NoteSync& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.runbook_id)) return *std::move(no);
    auto* book = ledger_.runbook(c.runbook_id);
    if (c.error) {
      book->row.last_error = clean_text(*c.error, 8 << 10);
      book->row.last_error_at = now_;
    } else {
      book->row.last_error.reset();
      book->row.last_synced_at = now_;
      book->row.held_removals = c.held_removals;
      runbook::note_approvals(c.approvals_seen, c.held_removals, context());
    }
    book->changed = true;
    return RunbookReply{book->row, true};
  });
}

Reply Writer::Batch::decide(const OpenBatch& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.of_runbook)) return *std::move(no);
    const auto opened = runbook::open_batch(c.runbook_name, c.version, c.batch_start_time, c.by, context());
    if (is_wrong(opened.outcome)) return refused(opened.outcome);
    return BatchReply{opened.batch->row, opened.outcome.changed, ""};
  });
}

Reply Writer::Batch::decide(const AddMembers& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.of_runbook)) return *std::move(no);
    return members_reply(runbook::add_members(c.batch_id, c.members, context()));
  });
}

Reply Writer::Batch::decide(const StartBatch& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.of_runbook)) return *std::move(no);
    const auto outcome = runbook::start_batch(c.batch_id, context());
    if (is_wrong(outcome)) return refused(outcome);
    return BatchReply{ledger_.batch(c.batch_id)->row, outcome.changed, ""};
  });
}

Reply Writer::Batch::decide(const RefreshMembers& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.of_runbook)) return *std::move(no);
    MembersReply reply;
    for (const auto& one : c.members) {
      if (runbook::refresh_member(one.member_id, one.row, context()))
        reply.member_ids.push_back(one.member_id);
      else
        ++reply.left_out;
    }
    return reply;
  });
}

Reply Writer::Batch::decide(const RemoveMembers& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.of_runbook)) return *std::move(no);
    return members_reply(runbook::remove_members(c.batch_id, c.member_ids, c.member_keys, c.by, c.of_runbook == 0,
                                                 context()));
  });
}

Reply Writer::Batch::decide(const SyncData& c) {
  return runbook_reply([&]() -> Reply {
    if (auto no = replaced(c.runbook_id)) return *std::move(no);
    return RunbookReply{ledger_.runbook(c.runbook_id)->row, true};
  });
}

Reply Writer::Batch::decide(const RetryMembers& c) {
  return runbook_reply([&] {
    return members_reply(runbook::retry_members(c.batch_id, c.member_ids, c.member_keys, c.by, context()));
  });
}

Reply Writer::Batch::decide(const ChangeBatch& c) {
  return runbook_reply([&]() -> Reply {
    using What = ChangeBatch::What;
    runbook::Outcome outcome;
    switch (c.what) {
      case What::pause: outcome = runbook::pause(c.batch_id, c.by, c.reason, context()); break;
      case What::resume: outcome = runbook::resume(c.batch_id, c.by, context()); break;
      case What::cancel: outcome = runbook::cancel(c.batch_id, c.by, c.reason, context()); break;
      case What::advance: outcome = runbook::advance(c.batch_id, c.phase, c.by, context()); break;
      case What::approve_removals: outcome = runbook::approve_removals(c.batch_id, c.by, context()); break;
    }
    if (is_wrong(outcome)) return refused(outcome);
    return BatchReply{ledger_.batch(c.batch_id)->row, outcome.changed, outcome.why};
  });
}

Reply Writer::Batch::decide(const ChangeStep& c) {
  return runbook_reply([&]() -> Reply {
    using What = ChangeStep::What;
    const auto outcome = c.what == What::retry  ? runbook::retry_step(c.ref, c.by, context())
                         : c.what == What::skip ? runbook::skip_step(c.ref, c.by, context())
                                                : runbook::cancel_step(c.ref, c.by, context());
    if (is_wrong(outcome)) return refused(outcome);
    return StepReply{c.ref, ledger_.job(c.ref)->row->status};
  });
}

Reply Writer::Batch::decide(const RunbookEvent& c) {
  return runbook_reply([&]() -> Reply {
    const auto outcome = runbook::handle(c.message, context());
    if (is_wrong(outcome)) return refused(outcome);
    return EventReply{outcome.changed, outcome.why};
  });
}

Reply Writer::Batch::decide(const AdoptPhases& c) {
  return runbook_reply([&]() -> Reply {
    for (const std::int64_t id : c.phase_ids) runbook::adopt_phase(id, context());
    return EventReply{true, ""};
  });
}

}  // namespace baton::engine
