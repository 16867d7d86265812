// What would happen, without storing anything: the batches that a data source makes now, and the steps of
// their members with everything filled in that is known before they run.
#include <array>
#include <map>
#include <span>

#include "core/runbook/definition/plan.hpp"
#include "http/api/definition_body.hpp"
#include "http/api/routes.hpp"
#include "http/api/source_members.hpp"
#include "http/api/stored_runbook.hpp"
#include "http/json/answer.hpp"
#include "http/json/fields.hpp"
#include "http/json/problem.hpp"
#include "http/json/render.hpp"

namespace baton::http {

namespace {

// ---- preview ----

void append_wave(std::string& out, const Wave& wave, std::size_t& left) {
  out += '{';
  append_member(out, "batch_start_time", wave.batch_start_time);
  append_member(out, "member_count", wave.members.size());
  const auto shown = std::span(wave.members).first(std::min(left, wave.members.size()));
  left -= shown.size();
  append_list(out, "members", shown, [](std::string& to, const runbook::SourceMember* member) {
    to += '{';
    append_member(to, "member_key", member->member_key);
    append_member(to, "data", OptionalJson(member->data));
    to += '}';
  });
  out += '}';
}

void append_head(std::string& out, const std::string& name, std::int32_t version, std::size_t members) {
  append_member(out, "name", name);
  append_member(out, "version", version);
  append_member(out, "member_count", members);
}

std::optional<Time> time_of_others(const runbook::Definition& definition, Time now) {
  return definition.data_source.immediate ? std::optional(runbook::immediate_time(now)) : std::nullopt;
}

// ---- plan ----

struct PlanRequest {
  std::string runbook;  // one of the two
  std::string yaml;
  std::int32_t version = 0;
  std::optional<std::string> csv;  // instead of the data source
  std::optional<Time> batch_start_time;
  std::size_t limit = 5;
};

std::expected<PlanRequest, Response> read_plan_request(const Request& request) {
  PlanRequest plan;
  std::vector<FieldError> errors;
  constexpr Range limits{1, 100};
  if (!request.content_type.starts_with("application/json")) {
    if (auto wrong = check_definition(request)) return std::unexpected(std::move(*wrong));
    plan.yaml = request.body;
    plan.limit = static_cast<std::size_t>(query_integer(request, "limit", 5, limits, errors));
    if (!errors.empty()) return std::unexpected(problem("the query has invalid parameters", errors));
    return plan;
  }
  auto document = parse_object(request);
  if (!document) return std::unexpected(std::move(document.error()));
  Fields fields(document->root(), "", errors);
  plan.runbook = fields.text("runbook", 400).value_or("");
  plan.yaml = fields.prose("yaml").value_or("");
  if (plan.runbook.empty() == plan.yaml.empty() && errors.empty())
    fields.wrong("runbook", "is required, or yaml, but not both");
  plan.version = static_cast<std::int32_t>(fields.integer("version", {1, 2'147'483'647}).value_or(0));
  plan.csv = fields.prose("csv");
  if (const auto start = fields.text("batch_start_time", 100)) {
    plan.batch_start_time = runbook::parse_batch_time(*start);  // as in the source
    if (!plan.batch_start_time)
      fields.wrong("batch_start_time", "must be a time such as 2026-11-17 02:00 or 2026-11-17T02:00:00Z");
  }
  plan.limit = static_cast<std::size_t>(fields.integer("limit", limits).value_or(5));
  if (!errors.empty()) return std::unexpected(problem("the request has invalid fields", errors));
  return plan;
}

// What is unknown: for how many members, shown or not, and the first of them.
struct Unknown {
  std::int64_t count = 0;
  std::vector<std::string> member_keys;
};
using Unresolved = std::map<std::array<std::string, 3>, Unknown>;
constexpr std::size_t unknown_keys_max = 5;

class Planner {
 public:
  Planner(const runbook::Definition& of, Time at, std::size_t members_max)
      : definition_(of), now_(at), left_(members_max) {}

  void append_wave(std::string& out, const Wave& wave) {
    out += '{';
    append_member(out, "batch_start_time", wave.batch_start_time);
    append_member(out, "member_count", wave.members.size());
    append_init(out, wave.batch_start_time);
    append_phases(out, wave.batch_start_time);
    append_list(out, "members", std::span(wave.members).first(std::min(left_, wave.members.size())),
                [&](std::string& to, const runbook::SourceMember* member) {
                  append_member_plan(to, *member, wave.batch_start_time);
                });
    const std::size_t shown = std::min(left_, wave.members.size());
    left_ -= shown;
    for (const runbook::SourceMember* member : std::span(wave.members).subspan(shown))
      check_member(*member, wave.batch_start_time);
    out += '}';
  }

  void append_unresolved(std::string& out) const {
    append_list(out, "unresolved", unresolved_, [](std::string& to, const auto& entry) {
      to += '{';
      append_member(to, "phase_name", entry.first[0].empty() ? std::nullopt : std::optional(entry.first[0]));
      append_member(to, "step_name", entry.first[1]);
      append_member(to, "variable", entry.first[2]);
      append_member(to, "count", entry.second.count);
      append_member(to, "member_keys", entry.second.member_keys);
      to += '}';
    });
  }

 private:
  void append_step(std::string& out, const std::string& phase, const runbook::Step& step,
                   const runbook::PlannedStep& planned, const std::string& member_key = {}) {
    out += '{';
    append_member(out, "step_name", step.name);
    append_member(out, "worker_id", step.worker_id);
    append_member(out, "function_name", planned.function_name);
    append_member(out, "params", OptionalJson(planned.params));
    append_member(out, "unresolved", planned.unresolved);
    append_member(out, "from_earlier_steps", planned.later);
    out += '}';
    note_unknown(phase, step, planned.unresolved, member_key);
  }

  void note_unknown(const std::string& phase, const runbook::Step& step,
                    const std::vector<std::string>& variables, const std::string& member_key) {
    for (const auto& variable : variables) {
      Unknown& unknown = unresolved_[{phase, step.name, variable}];
      ++unknown.count;
      if (!member_key.empty() && unknown.member_keys.size() < unknown_keys_max)
        unknown.member_keys.push_back(member_key);
    }
  }

  // A member that is not shown: nobody sees its steps, but what they lack would fail them all the same.
  void check_member(const runbook::SourceMember& member, std::optional<Time> time) {
    runbook::Outputs outputs;
    for (const runbook::Phase* phase : runbook::phases_in_order(definition_))
      for (const runbook::Step& step : phase->steps) {
        note_unknown(phase->name, step, runbook::unresolved_of(step, member.data, time, outputs),
                     member.member_key);
        runbook::add_outputs(outputs, step);
      }
  }

  void append_init(std::string& out, std::optional<Time> time) {
    append_list(out, "init_steps", definition_.init, [&](std::string& to, const runbook::Step& step) {
      append_step(to, "", step, runbook::plan_step(step, std::nullopt, time, {}));
    });
  }

  void append_phases(std::string& out, std::optional<Time> time) {
    append_list(out, "phases", runbook::phases_in_order(definition_),
                [&](std::string& to, const runbook::Phase* phase) {
                  const auto due = time ? std::optional(runbook::due_at(*phase, *time)) : std::nullopt;
                  to += '{';
                  append_member(to, "phase_name", phase->name);
                  append_member(to, "offset_minutes", phase->offset_minutes);
                  append_member(to, "due_at", due);
                  append_member(to, "overdue", due && *due <= now_);
                  append_member(to, "step_count", phase->steps.size());
                  to += '}';
                });
  }

  void append_member_plan(std::string& out, const runbook::SourceMember& member, std::optional<Time> time) {
    runbook::Outputs outputs;
    out += '{';
    append_member(out, "member_key", member.member_key);
    append_list(out, "phases", runbook::phases_in_order(definition_),
                [&](std::string& to, const runbook::Phase* phase) {
                  to += '{';
                  append_member(to, "phase_name", phase->name);
                  append_list(to, "steps", phase->steps, [&](std::string& into, const runbook::Step& step) {
                    append_step(into, phase->name, step, runbook::plan_step(step, member.data, time, outputs),
                                member.member_key);
                    runbook::add_outputs(outputs, step);
                  });
                  to += '}';
                });
    out += '}';
  }

  const runbook::Definition& definition_;
  const Time now_;
  std::size_t left_;  // so many members are still to be shown
  Unresolved unresolved_;
};

// Only members of a CSV may lack both a T of their own and one of the request.
std::string note_of(const runbook::Definition& definition, const SourceMembers& members, std::optional<Time> otherwise) {
  if (otherwise || members.empty() || members.front().batch_time) return "";
  return "the CSV has no column '" + definition.data_source.batch_time_column +
         "', and no T is given: it is planned as a batch by hand";
}

runbook::Parsed parse_plan(std::string_view text) { return runbook::parse(text); }

Task<std::expected<StoredRunbook, Response>> choose(Context& context, const PlanRequest& request) {
  std::expected<StoredRunbook, Response> chosen = std::unexpected(problem(stopping()));
  if (!request.runbook.empty()) {
    chosen = co_await read_runbook(context, request.runbook, request.version);
    co_return chosen;
  }
  auto parsed = co_await parse_definition(context, request.yaml, parse_plan);
  if (parsed && !parsed->definition) chosen = std::unexpected(problem(parsed->diagnostics));
  if (parsed && parsed->definition)
    chosen = StoredRunbook{.definition = parsed->definition, .diagnostics = std::move(parsed->diagnostics)};
  co_return chosen;
}

}  // namespace

Task<Response> preview_runbook(Context& context) {
  std::vector<FieldError> errors;
  const auto version = query_version(context.request, errors);
  const auto limit = static_cast<std::size_t>(query_integer(context.request, "limit", 20, {1, 1000}, errors));
  if (!errors.empty()) co_return problem("the query has invalid parameters", errors);
  const auto name = context.request.captures[0];
  auto chosen = co_await read_runbook(context, name, version);
  if (!chosen) co_return std::move(chosen.error());
  auto members = co_await fetch_members(context, chosen->definition);
  if (!members) co_return std::move(members.error());
  const auto otherwise = time_of_others(*chosen->definition, context.services.clock.now());
  auto work = [members = *std::move(members), name, version = chosen->version, otherwise, limit] {
    std::string out = "{";
    append_head(out, name, version, members.size());
    append_list(out, "batches", group_by_time(members, otherwise),
                [left = limit](std::string& to, const Wave& wave) mutable { append_wave(to, wave, left); });
    out += '}';
    return out;
  };
  auto body = co_await context.compute(std::move(work));
  if (!body) co_return problem(stopping());
  co_return json_response(200, *std::move(body));
}

Task<Response> plan_runbook(Context& context) {
  auto request = read_plan_request(context.request);
  if (!request) co_return std::move(request.error());
  auto chosen = co_await choose(context, *request);
  if (!chosen) co_return std::move(chosen.error());
  const auto now = context.services.clock.now();
  const auto& start = request->batch_start_time;
  std::expected<SourceMembers, Response> members;
  if (request->csv) {
    members = co_await read_csv_members(context, chosen->definition, *request->csv,
                                        start ? CsvTimes::none : CsvTimes::if_there);
  } else {
    members = co_await fetch_members(context, chosen->definition);
  }
  if (!members) co_return std::move(members.error());
  const auto otherwise = start ? start : time_of_others(*chosen->definition, now);
  auto work = [members = *std::move(members), chosen = *std::move(chosen), otherwise, now,
               limit = request->limit] {
    std::string out = "{";
    append_head(out, chosen.definition->name, chosen.version, members.size());
    append_member(out, "note", note_of(*chosen.definition, members, otherwise));
    Planner planner(*chosen.definition, now, limit);
    append_list(out, "batches", group_by_time(members, otherwise),
                [&](std::string& to, const Wave& wave) { planner.append_wave(to, wave); });
    planner.append_unresolved(out);
    append_diagnostics(out, "warnings", chosen.diagnostics, Diagnostic::Level::warning);
    out += '}';
    return out;
  };
  auto body = co_await context.compute(std::move(work));
  if (!body) co_return problem(stopping());
  co_return json_response(200, *std::move(body));
}

}  // namespace baton::http
