#include "core/runbook/definition/plan.hpp"

#include <algorithm>

#include "core/runbook/definition/template.hpp"
#include "core/runbook/definition/variable.hpp"

namespace baton::runbook {
namespace {

std::vector<std::string> variables_of(const Step& step) {
  std::vector<std::string> names = variables_in_text(step.function);
  for (std::string& name : variables_in_json(step.params))
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  return names;
}

std::string in_braces(std::string_view name) { return "{{" + std::string(name) + "}}"; }

bool is_output(const Outputs& outputs, std::string_view name) {
  return std::ranges::any_of(outputs, [&](const auto& output) { return equal_ignoring_case(output, name); });
}

// No batch gets this id. It marks where the id will stand that the batch does not have yet.
constexpr std::int64_t stand_in = 8'070'450'532'247'928'901;

std::string with_id_open(std::string text) {
  const std::string id = std::to_string(stand_in);
  const std::string open = in_braces(batch_id_variable);
  for (auto at = text.find(id); at != std::string::npos; at = text.find(id, at + open.size()))
    text.replace(at, id.size(), open);
  return text;
}

// Names that stand for themselves, so that the rest can be resolved around them.
class Placeholders {
 public:
  void add(std::string_view name) {
    text_ += text_.empty() ? '{' : ',';
    append_quoted(text_, name);
    text_ += ':';
    append_quoted(text_, in_braces(name));
  }
  [[nodiscard]] OptionalJson json() const {
    return text_.empty() ? OptionalJson{} : OptionalJson{Json{text_ + "}"}};
  }

 private:
  std::string text_;
};

}  // namespace

void add_outputs(Outputs& outputs, const Step& step) {
  for (const auto& [variable, field] : step.output_params)
    if (!is_output(outputs, variable)) outputs.push_back(variable);
}

PlannedStep plan_step(const Step& step, const OptionalJson& data, std::optional<Time> batch_start_time,
                      const Outputs& outputs) {
  const Scope known(data, std::nullopt, stand_in, batch_start_time);
  PlannedStep planned;
  Placeholders placeholders;
  for (const std::string& name : variables_of(step)) {
    // What a step puts out wins over a column of that name.
    if (is_output(outputs, name) || name == batch_id_variable) {
      planned.later.push_back(name);
    } else if (!known.text(in_braces(name))) {
      planned.unresolved.push_back(name);
    } else {
      continue;
    }
    placeholders.add(name);
  }
  const Scope scope(data, placeholders.json(), stand_in, batch_start_time);
  // Nothing can stand for a T that is not there: then the whole stays as it is written.
  planned.function_name = with_id_open(scope.text(step.function).value_or(step.function));
  planned.params = Json{with_id_open(scope.json(step.params).value_or(step.params).text)};
  return planned;
}

std::vector<std::string> unresolved_of(const Step& step, const OptionalJson& data,
                                       std::optional<Time> batch_start_time, const Outputs& outputs) {
  std::vector<std::string> unresolved = variables_of(step);
  std::erase_if(unresolved, [&](const std::string& name) {
    return is_output(outputs, name) || name == batch_id_variable;
  });
  if (unresolved.empty()) return unresolved;
  const Scope known(data, std::nullopt, stand_in, batch_start_time);
  std::erase_if(unresolved, [&](const std::string& name) { return known.text(in_braces(name)).has_value(); });
  return unresolved;
}

std::vector<const Phase*> phases_in_order(const Definition& definition) {
  std::vector<const Phase*> phases;
  for (const Phase& phase : definition.phases) phases.push_back(&phase);
  std::ranges::stable_sort(phases, std::greater{}, &Phase::offset_minutes);
  return phases;
}

Time due_at(const Phase& phase, Time batch_start_time) {
  return batch_start_time - std::chrono::minutes{phase.offset_minutes};
}

}  // namespace baton::runbook
