// What a new version of a runbook differs in, and what each answer would do to the batches that are open. Nothing is
// stored.
#include <algorithm>
#include <array>

#include "core/runbook/definition/diff.hpp"
#include "core/runbook/machine/impact.hpp"
#include "http/api/definition_body.hpp"
#include "http/api/routes.hpp"
#include "http/api/runbook_impact.hpp"
#include "http/json/answer.hpp"
#include "http/json/problem.hpp"

namespace baton::http {

namespace {

using runbook::OpenBatches;

constexpr std::size_t impacted_max = 50;  // of each status
constexpr std::size_t impacted_keys_max = 10;     // members of a batch that are named

struct ImpactedBatch {
  BatchSummary summary;
  std::vector<runbook::PhaseExecution> phases;
  std::int64_t members = 0;  // active ones
  std::vector<std::string> keys;
};

struct AllVersions {
  std::optional<runbook::Runbook> current;  // the active version, else the newest
  Definition definition;                    // its; null: there is none, or it cannot be read
  std::int32_t newest = 0;
  std::vector<ImpactedBatch> batches;  // by id
  bool are_more = false;
};

Result<ImpactedBatch> read_impacted(Reads& reads, BatchSummary summary) {
  ImpactedBatch open{.summary = std::move(summary), .phases = {}, .members = 0, .keys = {}};
  const std::int64_t id = open.summary.batch.id;
  TRY_ASSIGN(open.phases, reads.phases(id));
  TRY_ASSIGN(const auto counts, reads.counts(id));
  for (const runbook::Count& count : counts)
    if (count.phase_execution_id == 0 && count.lane == "member" && count.status == "active") open.members += count.n;
  TRY_ASSIGN(const auto members, reads.members(id, runbook::MemberStatus::active, 0, impacted_keys_max));
  for (const runbook::Member& member : members) open.keys.push_back(member.member_key);
  return open;
}

Result<> read_all_impacted(Reads& reads, const std::string& name, AllVersions& published) {
  using enum runbook::BatchStatus;
  for (const auto status : {detected, init_dispatched, active}) {
    TRY_ASSIGN(auto page, reads.batches({name, status}, 0, impacted_max + 1));
    published.are_more = published.are_more || page.size() > impacted_max;
    page.resize(std::min(page.size(), impacted_max));
    for (BatchSummary& summary : page) {
      TRY_ASSIGN(auto batch, read_impacted(reads, std::move(summary)));
      published.batches.push_back(std::move(batch));
    }
  }
  std::ranges::sort(published.batches, {}, [](const ImpactedBatch& open) { return open.summary.batch.id; });
  return {};
}

// The text that is active already changes nothing, so that no batch is read for it.
Result<AllVersions> read_all_versions(Reads& reads, const std::string& name, const std::string& text) {
  AllVersions published;
  TRY_ASSIGN(published.current, reads.runbook(name, 0));
  if (!published.current) return published;
  published.definition = runbook::parse(published.current->yaml_content, runbook::Strictness::stored).definition;
  TRY_ASSIGN(const auto versions, reads.versions(name));
  for (const auto& row : versions) published.newest = std::max(published.newest, row.version);
  if (published.current->is_active && published.current->yaml_content == text) return published;
  TRY(read_all_impacted(reads, name, published));
  return published;
}

void append_difference(std::string& out, const runbook::Difference& change) {
  out += '{';
  append_member(out, "change", name(change.what));
  append_member(out, "where", change.where);
  if (change.what == runbook::Difference::What::changed) {
    append_member(out, "field", change.field);
    append_member(out, "from", change.from);
    append_member(out, "to", change.to);
  }
  out += '}';
}

void append_phase_impact(std::string& out, const runbook::PhaseImpact& phase) {
  out += '{';
  append_member(out, "phase_name", phase.phase_name);
  append_member(out, "version", phase.version);
  append_member(out, "what", name(phase.what));
  append_member(out, "due_at", phase.due_at);
  append_member(out, "at_once", phase.at_once);
  out += '}';
}

struct NewVersion {
  const runbook::Definition& definition;
  std::int32_t version;
  Time now;
};

void append_impacted(std::string& out, const ImpactedBatch& open, const NewVersion& to) {
  std::vector<const runbook::PhaseExecution*> phases;
  for (const auto& phase : open.phases) phases.push_back(&phase);
  const runbook::Batch& batch = open.summary.batch;
  out += '{';
  append_member(out, "batch_id", batch.id);
  append_member(out, "batch_start_time", batch.batch_start_time);
  append_member(out, "status", name(batch.status));
  append_member(out, "runbook_version", open.summary.runbook_version);
  append_member(out, "has_begun", has_begun(batch, phases));
  append_member(out, "member_count", open.members);
  append_member(out, "member_keys", open.keys);
  constexpr std::array answers{OpenBatches::keep, OpenBatches::ignore, OpenBatches::rerun};
  append_list(out, "answers", answers, [&](std::string& into, OpenBatches how) {
    into += '{';
    append_member(into, "answer", name(how));
    append_list(into, "phases", impact_on(batch, phases, to.definition, to.version, how, to.now), append_phase_impact);
    into += '}';
  });
  out += '}';
}

std::string impact_text(const AllVersions& published, const runbook::Definition& definition, const std::string& text,
                        Time now) {
  const bool is_unchanged = published.current && published.current->is_active && published.current->yaml_content == text;
  const NewVersion to{definition, is_unchanged ? published.current->version : published.newest + 1, now};
  std::string out = "{";
  append_member(out, "name", definition.name);
  append_member(out, "version", to.version);
  append_member(out, "current_version",
                published.current ? std::optional(published.current->version) : std::nullopt);
  append_member(out, "unchanged", is_unchanged);
  std::vector<runbook::Difference> changes;
  if (published.definition) changes = differences(*published.definition, definition);
  append_list(out, "changes", changes, append_difference);
  append_list(out, "open_batches", published.batches,
              [&](std::string& into, const ImpactedBatch& open) { append_impacted(into, open, to); });
  append_member(out, "are_more", published.are_more);
  out += '}';
  return out;
}

runbook::Parsed parse_impacting(std::string_view text) { return runbook::parse(text); }

}  // namespace

Task<Result<std::string>> read_impact(Context& context, const Definition& definition, const std::string& text) {
  const Time now = context.services.clock.now();
  auto query = [definition, text, now](Reads& reads) -> Result<std::string> {
    TRY_ASSIGN(const auto published, read_all_versions(reads, definition->name, text));
    return impact_text(published, *definition, text, now);
  };
  auto impact = co_await context.read(std::move(query));
  co_return impact;
}

Task<Response> show_impact(Context& context) {
  if (auto wrong = check_definition(context.request)) co_return std::move(*wrong);
  auto parsed = co_await parse_definition(context, context.request.body, parse_impacting);
  if (!parsed) co_return problem(stopping());
  if (!parsed->definition) co_return problem(parsed->diagnostics);
  auto impact = co_await read_impact(context, parsed->definition, context.request.body);
  if (!impact) co_return problem(impact.error());
  impact->pop_back();
  append_diagnostics(*impact, "warnings", parsed->diagnostics, Diagnostic::Level::warning);
  co_return json_response(200, *std::move(impact) + '}');
}

}  // namespace baton::http
