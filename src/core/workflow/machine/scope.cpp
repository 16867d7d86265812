#include "core/workflow/machine/scope.hpp"

#include "base/result.hpp"
#include "core/template/read_json.hpp"

namespace baton::workflow {
// At most half as deep, by the rules of what comes in.
boost::json::value parsed(const std::string& text) {
  auto value = expression::read_json(text, 2 * expression::depth_max);
  ENSURE(value);
  return *std::move(value);
}

const boost::json::value& Values::input(const Run& run, Decided& decided) {
  if (input_) return *input_;
  const std::string& text = run.input().text;
  decided.spend(text.size() / json_per_step);
  return input_.emplace(parsed(text));
}

const boost::json::value* Values::output(NodeIndex node, const NodeState& state, Decided& decided) {
  if (const auto found = outputs_.find(node); found != outputs_.end()) return &found->second;
  if (!state.output || !is_terminal(state.status)) return nullptr;
  decided.spend(state.output->text.size() / json_per_step);
  return &outputs_.emplace(node, parsed(state.output->text)).first->second;
}

RunScope::RunScope(Run& run, const Environment& environment, Decided& decided)
    : run_(run), environment_(environment), decided_(decided) {
  if (!run_.values) run_.values = std::make_shared<Values>();
}

const boost::json::value* RunScope::inputs() const { return &run_.values->input(run_, decided_); }

const boost::json::value* RunScope::node(std::string_view name, std::string_view field) const {
  const auto index = run_.definition->find(name);
  if (!index) return nullptr;
  const NodeState& state = run_.at(*index).state;
  if (field == "output") return run_.values->output(*index, state, decided_);
  std::string key = "node ";
  key.append(name).append(" ").append(field);
  if (field == "status") return &words_.insert_or_assign(key, workflow::name(state.status)).first->second;
  if (field == "error" && state.error) return &words_.insert_or_assign(key, *state.error).first->second;
  return nullptr;
}

const boost::json::value* RunScope::env(std::string_view name) const {
  const auto found = environment_.find(std::string(name));
  if (found == environment_.end()) return nullptr;
  return &words_.insert_or_assign("env " + found->first, found->second).first->second;
}

}  // namespace baton::workflow
