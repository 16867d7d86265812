#include "core/runbook/definition/parse_step.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/runbook/definition/parse_policy.hpp"
#include "core/runbook/definition/variable.hpp"
#include "core/workflow/definition/definition.hpp"

namespace baton::runbook {
namespace {

using yaml::NodeKind;
using Words = std::vector<std::string_view>;

constexpr std::size_t steps_max = 100;
constexpr std::size_t outputs_max = 100;
constexpr std::size_t variables_max = 1000;  // of a step, each time it is used: what it costs to resolve it

const Words& step_keys() {
  static const Words keys{"name",       "worker_id", "function", "params", "output_params",
                          "on_failure", "timeout",   "poll",     "retry"};
  return keys;
}

const Words& batch_variables() {
  static const Words names{batch_id_variable, batch_start_time_variable};
  return names;
}

bool is_batch_variable(std::string_view name) {
  return std::ranges::find(batch_variables(), name) != batch_variables().end();
}

class StepReader {
 public:
  StepReader(const yaml::Node& body, StepKind kind, std::string where, Step& step, Sketch& sketch,
             Diagnostics& diagnostics)
      : body_(body), kind_(kind), where_(std::move(where)), step_(step), sketch_(sketch), diagnostics_(diagnostics) {}

  void read() {
    diagnostics_.check_keys(body_, step_keys(), where_);
    if (const auto* name = needed("name")) step_.name = read_fixed(*name, of("name"), diagnostics_);
    if (const auto* worker = needed("worker_id")) read_worker_id(*worker);
    if (const auto* function = needed("function")) {
      step_.function = diagnostics_.short_text(*function, of("function"));
      if (function->kind == NodeKind::string) read_template(*function, of("function"));
    }
    if (const auto* params = body_.find("params");
        params && diagnostics_.expect(*params, NodeKind::mapping, of("params"))) {
      read_params(*params);
      step_.params = yaml::to_json(*params);
    }
    if (too_many_variables())
      diagnostics_.error(body_.at, "too_many",
                         where_ + " refers to variables more than " + std::to_string(variables_max) + " times");
    if (const auto* outputs = body_.find("output_params"); outputs && belongs("output_params"))
      read_outputs(*outputs);
    if (const auto* rollback = body_.find("on_failure"); rollback && belongs("on_failure")) {
      step_.on_failure = read_fixed(*rollback, of("on_failure"), diagnostics_);
      if (!step_.on_failure.empty()) sketch_.rollbacks.push_back({step_.on_failure, rollback->at, where_});
    }
    if (const auto* timeout = body_.find("timeout"))
      step_.timeout = read_duration(*timeout, of("timeout"), diagnostics_).value_or(step_.timeout);
    if (const auto* poll = body_.find("poll"); poll && belongs("poll")) {
      step_.poll = read_poll(*poll, where_, diagnostics_);
      if (const auto* name = body_.find("name")) sketch_.polls.push_back({step_.name, name->at, where_});
    }
    if (const auto* retry = body_.find("retry")) step_.retry = read_retry(*retry, where_, diagnostics_);
  }

 private:
  [[nodiscard]] std::string of(std::string_view key) const {
    return "'" + std::string(key) + "' of " + where_;
  }

  const yaml::Node* needed(std::string_view key) {
    const auto* value = body_.find(key);
    if (!value)
      diagnostics_.error(body_.at, "missing_key", where_ + " has no '" + std::string(key) + "'",
                         key == "worker_id" ? "the queue that its workers poll" : "");
    return value;
  }

  // Whether a key may stand in a step of this kind. If not it is not read, so that it has no effect in a
  // stored runbook either.
  bool belongs(std::string_view key) {
    if (kind_ == StepKind::member || (kind_ == StepKind::init && key != "output_params")) return true;
    const auto at = std::ranges::find(body_.entries, key, &yaml::Entry::key)->key_at;
    diagnostics_.error(at, "misplaced_key", of(key) + " is not allowed",
                       kind_ == StepKind::init ? "variables belong to members, and init runs once for all of them"
                                               : "rollbacks and removals are steps that run once, in order");
    return false;
  }

  void read_worker_id(const yaml::Node& value) {
    step_.worker_id = read_fixed(value, of("worker_id"), diagnostics_);
    if (workflow::is_reserved_queue(step_.worker_id))
      diagnostics_.error(value.at, "reserved_queue",
                         "the queue '" + step_.worker_id + "' is the server's own: no worker may poll it",
                         "name the queue that your workers poll");
  }

  // ---- Templates ----

  [[nodiscard]] bool too_many_variables() const { return sketch_.variables.size() > variables_end_; }

  void read_template(const yaml::Node& value, const std::string& what) {
    for (std::size_t from = 0;;) {
      const auto found = next_variable(value.text, from);
      if (!found)
        return diagnostics_.error(value.written.position(found.error().at), "template_syntax",
                                  what + ": " + found.error().why, "as {{UserPrincipalName}}");
      if (!*found || too_many_variables()) return;
      const Position at = value.written.position((*found)->begin);
      sketch_.variables.push_back({std::string((*found)->name), at, what});
      if (kind_ != StepKind::init) check_system_variable(sketch_.variables.back());
      from = (*found)->end;
    }
  }

  // Names with '_' in front are the system's, so that a slip in one is no column.
  void check_system_variable(const Sketch::Mention& variable) {
    if (!variable.name.starts_with('_') || is_batch_variable(variable.name)) return;
    const std::string message =
        variable.where + " refers to the unknown variable " + in_quotes(variable.name);
    std::string guess = diagnostics_.did_you_mean(variable.name, batch_variables());
    if (!guess.empty())
      diagnostics_.error(variable.at, "unknown_variable", message, std::move(guess));
    else
      diagnostics_.warning(variable.at, "unknown_variable", message + ", unless a column has that name",
                           "variables of the batch are _batch_id and _batch_start_time");
  }

  void read_params(const yaml::Node& value) {
    if (value.kind == NodeKind::string) read_template(value, of("params"));
    if (value.kind == NodeKind::real && !std::isfinite(value.as_real()))
      diagnostics_.error(value.at, "invalid_number",
                         of("params") + " has the number " + in_quotes(value.text) + ", which JSON cannot carry",
                         "quote it, if a text is meant");
    for (const yaml::Node& item : value.items) read_params(item);
    for (const yaml::Entry& entry : value.entries) {
      if (entry.key.find("{{") != std::string::npos)
        diagnostics_.error(entry.key_at, "template_in_key",
                           of("params") + " has the key " + in_quotes(entry.key) + ": only values are replaced");
      read_params(entry.value);
    }
  }

  void read_outputs(const yaml::Node& outputs) {
    if (!diagnostics_.expect(outputs, NodeKind::mapping, of("output_params"))) return;
    if (outputs.entries.size() > outputs_max)
      return diagnostics_.error(
          outputs.at, "too_many",
          of("output_params") + " has more than " + std::to_string(outputs_max) + " variables");
    for (const yaml::Entry& entry : outputs.entries) {
      if (!is_variable_name(entry.key) || entry.key.starts_with('_'))
        diagnostics_.error(
            entry.key_at, "invalid_variable",
            in_quotes(entry.key) + " in " + of("output_params") + " cannot be the name of a variable",
            entry.key.starts_with('_') ? "names with '_' in front are the system's"
                                       : "it has " + std::string(variable_rule));
      sketch_.outputs.push_back({{entry.key, entry.key_at, where_}, sketch_.variables.size()});
      step_.output_params[entry.key] =
          diagnostics_.short_text(entry.value, in_quotes(entry.key) + " in " + of("output_params"));
    }
  }

  const yaml::Node& body_;
  const StepKind kind_;
  const std::string where_;
  Step& step_;
  Sketch& sketch_;
  Diagnostics& diagnostics_;
  const std::size_t variables_end_ = sketch_.variables.size() + variables_max;
};

}  // namespace

std::string read_fixed(const yaml::Node& node, const std::string& what, Diagnostics& diagnostics) {
  std::string text = diagnostics.short_text(node, what);
  if (text.find("{{") != std::string::npos)
    diagnostics.error(node.at, "unsupported_template", what + " must be a fixed text, without {{",
                      "variables are known in 'function' and 'params'");
  return text;
}

void read_steps(const yaml::Node& list, StepKind kind, const std::string& where, std::vector<Step>& steps,
                Sketch& sketch, Diagnostics& diagnostics) {
  if (list.items.size() > steps_max)
    return diagnostics.error(list.at, "too_many",
                             where + " has " + std::to_string(list.items.size()) + " steps; the limit is " +
                                 std::to_string(steps_max));
  std::set<std::string_view> names;
  for (const yaml::Node& item : list.items) {
    const std::string number = std::to_string(steps.size() + 1);
    Step& step = steps.emplace_back();
    if (!diagnostics.expect(item, NodeKind::mapping, "step " + number + " of " + where)) continue;
    const auto* name = item.find("name");
    const bool named = name && name->kind == NodeKind::string && !name->text.empty();
    StepReader(item, kind, "step " + (named ? in_quotes(name->text) : number) + " of " + where, step, sketch,
               diagnostics)
        .read();
    if (named && !names.insert(name->text).second)
      diagnostics.error(name->at, "duplicate_step", where + " has two steps named " + in_quotes(name->text));
  }
}

void check_batch_variables(const std::vector<Sketch::Mention>& variables, const std::string& why,
                           Diagnostics& diagnostics) {
  for (const Sketch::Mention& variable : variables) {
    if (is_batch_variable(variable.name)) continue;
    std::string guess = diagnostics.did_you_mean(variable.name, batch_variables());
    diagnostics.error(variable.at, "not_a_batch_variable",
                      variable.where + " refers to " + in_quotes(variable.name) + ", but " + why,
                      guess.empty() ? "only _batch_id and _batch_start_time are known there" : std::move(guess));
  }
}

}  // namespace baton::runbook
