#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/diagnostics.hpp"
#include "base/text.hpp"
#include "base/yaml.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/runbook/definition/parse_policy.hpp"
#include "core/runbook/definition/parse_rules.hpp"
#include "core/runbook/definition/parse_source.hpp"
#include "core/runbook/definition/parse_step.hpp"

namespace baton::runbook {
namespace {

using yaml::NodeKind;
using Words = std::vector<std::string_view>;

constexpr std::size_t phases_max = 100;
constexpr std::size_t rollbacks_max = 100;

const Words& document_keys() {
  static const Words keys{"name",       "description",   "progression",        "data_source", "retry",      "init",
                          "phases",     "rollbacks",     "on_member_removed",  "late_after",  "max_failed_percent",
                          "min_failed", "phase_overlap"};
  return keys;
}

// What another scheduler has accepted, or an earlier version: the batches that run by it must go on. None of
// these keeps the definition from being what it says.
const Words& forgiven() {
  static const Words codes{"unknown_key",         "misplaced_key",           "invalid_name",
                           "reserved_queue",      "invalid_connection",      "unexpected_query",
                           "unknown_source_type", "unsupported_source_type", "unknown_rollback",
                           "unknown_variable",    "not_a_batch_variable",    "duplicate_step",
                           "column_clash",        "invalid_number",          "interval_order",
                           "template_in_key",     "empty_list"};
  return codes;
}

class Parser {
 public:
  Parsed parse(std::string_view text, Strictness strictness) {
    auto document = yaml::parse(text);
    if (!document) return {nullptr, std::move(document).error()};
    strictness_ = strictness;
    read_document(*document);
    Parsed parsed{nullptr, diagnostics_.take()};
    if (strictness == Strictness::stored) forgive(parsed.diagnostics, forgiven());
    if (!has_errors(parsed.diagnostics)) parsed.definition = std::move(definition_);
    return parsed;
  }

 private:
  void read_document(const yaml::Node& document) {
    if (!diagnostics_.expect(document, NodeKind::mapping, "the document")) return;
    check_keys(document);
    read_name(document);
    if (const auto* description = document.find("description"))
      definition_->description = diagnostics_.text(*description, "'description'").value_or("");
    if (const auto* progression = document.find("progression")) {
      const auto word = diagnostics_.word(*progression, "'progression'", {"per_member", "lockstep"});
      definition_->progression = static_cast<Progression>(word.value_or(0));
    }
    read_data_source(document);
    if (const auto* retry = document.find("retry"))
      definition_->retry = read_retry(*retry, "the runbook", diagnostics_);
    read_rules(document);
    if (const auto* init = document.find("init"))
      read_list(*init, StepKind::init, "'init'", definition_->init, init_);
    if (const auto* phases = needed(document, "phases")) read_phases(*phases);
    if (const auto* rollbacks = document.find("rollbacks")) read_rollbacks(*rollbacks);
    if (const auto* removed = document.find("on_member_removed"))
      read_list(*removed, StepKind::cleanup, "'on_member_removed'", definition_->on_member_removed, removal_);
    check_rollbacks();
    check_requirements();
    check_polls();
    check_outputs();
  }

  // What is decided anew with every version is not part of the document.
  void check_keys(const yaml::Node& document) {
    yaml::Node others{.kind = NodeKind::mapping, .at = document.at};
    for (const yaml::Entry& entry : document.entries) {
      if (entry.key != "overdue_behavior" && entry.key != "open_batches" && entry.key != "rerun_init")
        others.entries.push_back({entry.key, entry.key_at, {}});
      else
        diagnostics_.error(entry.key_at, "misplaced_key", "'" + entry.key + "' is not part of a runbook",
                           "give it when you publish");
    }
    diagnostics_.check_keys(others, document_keys(), "the runbook");
  }

  // Of a stored runbook another scheduler may read the source: a defect in it must not stop the batches. Our own
  // scheduler leaves such a source alone.
  void read_data_source(const yaml::Node& document) {
    Diagnostics of_source;
    const auto found = std::ranges::find(document.entries, "data_source", &yaml::Entry::key);
    if (found != document.entries.end())
      read_source(*found, definition_->data_source, of_source);
    else
      of_source.error(document.at, "missing_key", "the runbook has no 'data_source'");
    auto diagnostics = of_source.take();
    if (strictness_ == Strictness::stored) {
      forgive(diagnostics, forgiven());
      if (has_errors(diagnostics)) definition_->data_source.type = SourceType::unsupported;
      for (Diagnostic& each : diagnostics) each.level = Diagnostic::Level::warning;
    }
    diagnostics_.add(std::move(diagnostics));
  }

  const yaml::Entry* needed(const yaml::Node& document, std::string_view key) {
    const auto found = std::ranges::find(document.entries, key, &yaml::Entry::key);
    if (found != document.entries.end()) return &*found;
    diagnostics_.error(document.at, "missing_key", "the runbook has no '" + std::string(key) + "'");
    return nullptr;
  }

  void read_name(const yaml::Node& document) {
    const auto* entry = needed(document, "name");
    if (!entry) return;
    const yaml::Node& node = entry->value;
    definition_->name = diagnostics_.text(node, "'name'").value_or("");
    if (node.kind == NodeKind::string && !is_name(node.text))
      diagnostics_.error(node.at, "invalid_name",
                         "'name' must be " + std::string(name_rule) + ", found " + in_quotes(node.text));
    if (node.text == "." || node.text == "..")
      diagnostics_.error(node.at, "invalid_name", "'name' must not be " + in_quotes(node.text),
                         "it is part of a path, where that means something else");
  }

  bool read_list(const yaml::Node& list, StepKind kind, const std::string& where, std::vector<Step>& steps,
                 Sketch& sketch) {
    if (!diagnostics_.expect(list, NodeKind::sequence, where)) return false;
    read_steps(list, kind, where, steps, sketch, diagnostics_);
    if (kind == StepKind::init)
      check_batch_variables(sketch.variables, "init runs for the batch, without a member", diagnostics_);
    return true;
  }

  // ---- Phases ----

  void read_phases(const yaml::Entry& entry) {
    const yaml::Node& phases = entry.value;
    if (!diagnostics_.expect(phases, NodeKind::sequence, "'phases'")) return;
    if (phases.items.empty())
      return diagnostics_.error(entry.key_at, "empty_list", "the runbook has no phase",
                                "as phases: [{name: cut-over, offset: T-0, steps: [...]}]");
    if (phases.items.size() > phases_max)
      return diagnostics_.error(entry.key_at, "too_many",
                                "the runbook has " + std::to_string(phases.items.size()) +
                                    " phases; the limit is " + std::to_string(phases_max));
    for (const yaml::Node& item : phases.items) read_phase(item);
  }

  void read_phase(const yaml::Node& body) {
    Phase& phase = definition_->phases.emplace_back();
    Sketch& sketch = phases_.emplace_back();
    std::string where = "phase " + std::to_string(definition_->phases.size());
    if (!diagnostics_.expect(body, NodeKind::mapping, where)) return;
    const auto* name = body.find("name");
    if (name && name->kind == NodeKind::string && !name->text.empty())
      where = "phase " + in_quotes(name->text);
    diagnostics_.check_keys(body, {"name", "offset", "steps", "gate", "requires", "max_failed_percent", "min_failed"}, where);
    if (name) {
      read_phase_name(*name, where, phase);
    } else {
      diagnostics_.error(body.at, "missing_key", where + " has no 'name'");
    }
    if (const auto* offset = body.find("offset")) {
      if (const auto minutes = read_offset(*offset, "'offset' of " + where, diagnostics_)) {
        phase.offset_minutes = *minutes;
        check_offset(phase, *offset, where);
      }
    } else {
      diagnostics_.error(body.at, "missing_key", where + " has no 'offset'", "as offset: T-5d, or T-0");
    }
    phase.gate = read_gate(body, where, diagnostics_);
    phase.required = read_requirement(body, where, diagnostics_);
    phase.threshold = read_threshold(body, where, diagnostics_);
    if (const auto* required = body.find("requires")) required_at_.push_back({definition_->phases.size() - 1, required->at});
    const auto* steps = body.find("steps");
    if (!steps) return diagnostics_.error(body.at, "missing_key", where + " has no 'steps'");
    if (!read_list(*steps, StepKind::member, where, phase.steps, sketch)) return;
    if (steps->items.empty()) diagnostics_.error(steps->at, "empty_list", where + " has no step");
  }

  void read_phase_name(const yaml::Node& name, const std::string& where, Phase& phase) {
    phase.name = read_fixed(name, "'name' of " + where, diagnostics_);
    if (!phase.name.empty() && definition_->phase(phase.name) != &phase)
      diagnostics_.error(name.at, "duplicate_phase", "there are two phases named " + in_quotes(phase.name));
  }

  void check_offset(const Phase& phase, const yaml::Node& offset, const std::string& where) {
    if (definition_->data_source.immediate && phase.offset_minutes > 0)
      diagnostics_.warning(offset.at, "before_immediate",
                           where + " is before T, but T is the moment a batch is found: it is overdue at once",
                           "use T-0 or T+...");
    const auto [same, is_new] = phase_at_.emplace(phase.offset_minutes, where);
    if (!is_new) {
      diagnostics_.warning(offset.at, "same_offset", where + " begins together with " + same->second,
                           "make one phase of them, if one is to come after the other");
    } else if (same != phase_at_.begin()) {  // an earlier one of the list is later in time
      diagnostics_.warning(offset.at, "phase_order",
                           where + " stands after " + std::prev(same)->second + ", but begins before it",
                           "write phases in the order of time");
    }
  }

  // ---- Rollbacks ----

  void read_rollbacks(const yaml::Node& rollbacks) {
    if (!diagnostics_.expect(rollbacks, NodeKind::mapping, "'rollbacks'")) return;
    if (rollbacks.entries.size() > rollbacks_max)
      return diagnostics_.error(rollbacks.at, "too_many",
                                "the runbook has " + std::to_string(rollbacks.entries.size()) +
                                    " rollbacks; the limit is " + std::to_string(rollbacks_max));
    for (const yaml::Entry& entry : rollbacks.entries) {
      const std::string where = "rollback " + in_quotes(entry.key);
      yaml::Node name{.kind = NodeKind::string, .at = entry.key_at, .text = entry.key};
      (void)read_fixed(name, "the name of a rollback", diagnostics_);
      Rollback& rollback = rollbacks_[entry.key];
      rollback.at = entry.key_at;
      auto& steps = definition_->rollbacks[entry.key];
      if (read_list(entry.value, StepKind::cleanup, where, steps, rollback.sketch) &&
          entry.value.items.empty())
        diagnostics_.error(entry.value.at, "empty_list", where + " has no step");
    }
  }

  void check_rollbacks() {
    Words names;
    for (const auto& [name, rollback] : rollbacks_) names.push_back(name);
    bool all_known = true;
    const auto link = [&](const Sketch::Mention& mention, bool from_init) {
      const auto found = rollbacks_.find(mention.name);
      all_known &= found != rollbacks_.end();
      if (found == rollbacks_.end())
        return diagnostics_.error(mention.at, "unknown_rollback",
                                  "'on_failure' of " + mention.where + " names the rollback " +
                                      in_quotes(mention.name) + ", which is not there",
                                  diagnostics_.did_you_mean(mention.name, names));
      Rollback& rollback = found->second;
      rollback.used = true;
      if (!from_init || std::exchange(rollback.of_init, true)) return;
      check_batch_variables(rollback.sketch.variables, mention.where + " rolls back by it, without a member",
                            diagnostics_);
    };
    for (const auto& mention : init_.rollbacks) link(mention, true);
    for (const Sketch& phase : phases_)
      for (const auto& mention : phase.rollbacks) link(mention, false);
    for (const auto& [name, rollback] : rollbacks_)
      if (!rollback.used && all_known)  // otherwise it is perhaps the one that was meant
        diagnostics_.warning(rollback.at, "unused_rollback",
                             "no 'on_failure' names the rollback " + in_quotes(name));
  }

  // ---- Across phases ----

  // A phase can only require one that is over when it is due.
  void check_requirements() {
    for (const auto& [place, at] : required_at_) {
      const Phase& phase = definition_->phases[place];
      if (!phase.required || phase.required->phase.empty()) continue;
      const Phase* other = definition_->phase(phase.required->phase);
      Words names;
      for (const Phase& each : definition_->phases) names.push_back(each.name);
      if (!other)
        diagnostics_.error(at, "unknown_phase",
                           "'requires' of phase " + in_quotes(phase.name) + " names the phase " +
                               in_quotes(phase.required->phase) + ", which is not there",
                           diagnostics_.did_you_mean(phase.required->phase, names));
      else if (other == &phase || other->offset_minutes <= phase.offset_minutes)
        diagnostics_.error(at, "phase_order",
                           "phase " + in_quotes(phase.name) + " requires phase " + in_quotes(other->name) +
                               ", which does not begin before it",
                           "a phase can require one with an earlier offset");
    }
  }

  // Another scheduler's poll-check tells an init step from a member's by its name.
  void check_polls() {
    for (const Sketch& phase : phases_)
      for (const auto& step : phase.polls)
        if (std::ranges::find(init_.polls, step.name, &Sketch::Mention::name) != init_.polls.end())
          diagnostics_.warning(step.at, "ambiguous_step_name",
                               step.where + " polls, and so does a step of 'init' of the same name",
                               "give one another name, or a poll-check from outside may be taken for the other");
  }

  // What only a later step puts out is unknown, unless the source has a column of that name.
  void check_outputs() {
    std::vector<std::size_t> in_time(phases_.size());
    std::iota(in_time.begin(), in_time.end(), std::size_t{0});
    const auto before_T = [&](std::size_t i) { return definition_->phases[i].offset_minutes; };
    std::ranges::stable_sort(in_time, std::greater{}, before_T);
    std::map<std::string, std::string> first;  // the step that first puts out a variable, by its name
    for (const std::size_t i : in_time)
      for (const auto& output : phases_[i].outputs) first.emplace(lower(output.name), output.where);
    std::set<std::string> known;
    for (const std::size_t i : in_time) {
      const Sketch& phase = phases_[i];
      auto output = phase.outputs.begin();
      for (std::size_t v = 0; v < phase.variables.size(); ++v) {
        for (; output != phase.outputs.end() && output->after <= v; ++output)
          known.insert(lower(output->name));
        check_known(phase.variables[v], first, known);
      }
      for (; output != phase.outputs.end(); ++output) known.insert(lower(output->name));
    }
  }

  void check_known(const Sketch::Mention& variable, const std::map<std::string, std::string>& first,
                   const std::set<std::string>& known) {
    const std::string name = lower(variable.name);
    const auto found = first.find(name);
    if (found == first.end() || known.contains(name)) return;
    diagnostics_.warning(variable.at, "used_before_output",
                         variable.where + " refers to " + in_quotes(variable.name) + ", which only " +
                             found->second + " puts out",
                         "that is later; it is known only if a column has that name");
  }

  // What keeps a batch from doing harm.
  void read_rules(const yaml::Node& document) {
    definition_->threshold = read_threshold(document, "the runbook", diagnostics_);
    if (const auto* late = document.find("late_after"))
      definition_->late_after = read_duration(*late, "'late_after'", diagnostics_).value_or(definition_->late_after);
    if (const auto* overlap = document.find("phase_overlap"))
      if (const auto word = diagnostics_.word(*overlap, "'phase_overlap'", {"allow", "wait"}))
        definition_->phase_overlap = static_cast<PhaseOverlap>(*word);
  }

  struct Rollback {
    Position at;
    Sketch sketch;
    bool used = false;
    bool of_init = false;
  };

  Strictness strictness_ = Strictness::publish;
  Diagnostics diagnostics_;
  std::shared_ptr<Definition> definition_ = std::make_shared<Definition>();
  std::map<std::int32_t, std::string> phase_at_;  // by offset
  std::vector<std::pair<std::size_t, Position>> required_at_;  // by place of the phase
  std::map<std::string, Rollback> rollbacks_;
  Sketch init_;
  std::vector<Sketch> phases_;  // beside definition_->phases
  Sketch removal_;
};

}  // namespace

Parsed parse(std::string_view yaml, Strictness strictness) { return Parser().parse(yaml, strictness); }

}  // namespace baton::runbook
