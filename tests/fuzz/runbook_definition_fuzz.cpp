// Whatever is published as a runbook, reading it must not crash, what is accepted must hold together, and its
// templates must give well-formed JSON or name a variable.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "core/runbook/definition/definition.hpp"
#include "core/runbook/definition/template.hpp"

namespace {

namespace runbook = baton::runbook;

boost::json::value check_json(const baton::Json& json) {
  boost::json::parse_options options;
  options.max_depth = 256;
  boost::json::error_code error;
  auto value = boost::json::parse(json.text, error, {}, options);
  ENSURE(!error);
  return value;
}

// All variables that the step names, and nothing else.
runbook::Scope scope_of(const runbook::Step& step) {
  boost::json::object data;
  for (const auto& name : runbook::variables_in_text(step.function)) data[name] = "text \"{{";
  for (const auto& name : runbook::variables_in_json(step.params))
    data[name] = boost::json::array{"a", 1.5, nullptr};
  return {baton::Json{boost::json::serialize(data)}, std::nullopt, 1, baton::from_millis(0)};
}

void check_step(const runbook::Step& step, bool stored) {
  ENSURE(check_json(step.params).is_object());
  ENSURE(step.timeout.count() > 0);
  if (step.poll) ENSURE(step.poll->interval.count() > 0 && step.poll->timeout >= step.poll->interval);
  const runbook::Scope scope = scope_of(step);
  const auto params = scope.json(step.params);
  ENSURE(params && scope.text(step.function));
  check_json(*params);
  const runbook::Scope empty(std::nullopt, std::nullopt, 1, std::nullopt);
  if (const auto refused = empty.json(step.params); !refused) ENSURE(!refused.error().variable.empty() || refused.error().is_too_long);
  if (const auto merged = runbook::merge_outputs(std::nullopt, step.params, step.output_params))
    check_json(*merged);
  ENSURE(stored || (!step.name.empty() && !step.worker_id.empty()));
}

void check_cleanup(const std::vector<runbook::Step>& steps, bool stored) {
  for (const auto& step : steps) {
    check_step(step, stored);
    ENSURE(!step.poll && step.on_failure.empty() && step.output_params.empty());
  }
}

void check_definition(const runbook::Definition& definition, bool stored) {
  ENSURE(!definition.phases.empty());
  ENSURE(stored || definition.data_source.immediate == definition.data_source.batch_time_column.empty());
  ENSURE(stored || definition.data_source.type != runbook::SourceType::unsupported);
  for (const auto& step : definition.init) {
    check_step(step, stored);
    ENSURE(stored || step.on_failure.empty() || !definition.rollback(step.on_failure).empty());
  }
  for (const auto& phase : definition.phases) {
    ENSURE(!phase.steps.empty() && definition.phase(phase.name) == &phase);
    for (const auto& step : phase.steps) {
      check_step(step, stored);
      ENSURE(stored || step.on_failure.empty() || !definition.rollback(step.on_failure).empty());
      ENSURE(definition.retry_of(step).max_retries >= 0);
    }
  }
  for (const auto& [name, steps] : definition.rollbacks) check_cleanup(steps, stored);
  check_cleanup(definition.on_member_removed, stored);
  ENSURE(runbook::data_table_name(definition.name, 1).size() <= 63);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto strictness : {runbook::Strictness::publish, runbook::Strictness::stored}) {
    const auto parsed = runbook::parse(text, strictness);
    ENSURE((parsed.definition == nullptr) == baton::has_errors(parsed.diagnostics));
    if (parsed.definition) check_definition(*parsed.definition, strictness == runbook::Strictness::stored);
  }
  (void)runbook::parse_duration(text);
  (void)runbook::parse_offset(text);
  const runbook::Scope scope(baton::Json{std::string(text)}, std::nullopt, 1, std::nullopt);
  ENSURE(scope.text(text).has_value() <= runbook::template_error(text).empty());
  return 0;
}
