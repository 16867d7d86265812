#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/diagnostics.hpp"
#include "base/yaml.hpp"
#include "core/workflow/definition/definition.hpp"
#include "core/workflow/definition/graph.hpp"
#include "core/workflow/definition/input.hpp"
#include "core/workflow/definition/parse_node.hpp"

namespace baton::workflow {
namespace {

using yaml::NodeKind;
using Words = std::vector<std::string_view>;

constexpr std::size_t nodes_max = 1000;
constexpr std::size_t inputs_max = 1000;

// Words are short-lived lists of literals; these are made once.
const Words& document_keys() {
  static const Words keys{"workflow_id", "version", "description", "on_failure", "inputs", "nodes"};
  return keys;
}
class Parser {
 public:
  Parsed parse(std::string_view text, Strictness strictness) {
    auto document = yaml::parse(text);
    if (!document) return {nullptr, std::move(document).error()};
    read_document(*document);
    Parsed parsed{nullptr, diagnostics_.take()};
    if (strictness == Strictness::stored)  // a job may still be running by what a later version forbids
      forgive(parsed.diagnostics, {"unknown_key", "reserved_queue", "invalid_name"});
    if (!has_errors(parsed.diagnostics)) parsed.definition = std::move(definition_);
    return parsed;
  }

 private:
  void read_document(const yaml::Node& document) {
    if (!diagnostics_.expect(document, NodeKind::mapping, "the document")) return;
    diagnostics_.check_keys(document, document_keys(), "the workflow");
    read_workflow_id(document);
    if (const auto* version = document.find("version")) {
      const auto value = diagnostics_.integer(*version, "'version'", 1, std::numeric_limits<std::int32_t>::max());
      definition_->version = static_cast<std::int32_t>(value.value_or(0));
    }
    if (const auto* description = document.find("description"))
      definition_->description = diagnostics_.text(*description, "'description'").value_or("");
    if (const auto* on_failure = document.find("on_failure")) {
      const auto word = diagnostics_.word(*on_failure, "'on_failure'", {"fail_fast", "finish_running"});
      definition_->on_failure = static_cast<OnFailure>(word.value_or(0));
    }
    if (const auto* inputs = document.find("inputs")) read_inputs(*inputs);
    if (const auto* nodes = document.find("nodes")) {
      read_nodes(*nodes, std::ranges::find(document.entries, "nodes", &yaml::Entry::key)->key_at);
    } else {
      diagnostics_.error(document.at, "missing_key", "the workflow has no 'nodes'");
    }
  }

  void read_workflow_id(const yaml::Node& document) {
    const auto* node = document.find("workflow_id");
    if (!node) return diagnostics_.error(document.at, "missing_key", "the workflow has no 'workflow_id'");
    definition_->workflow_id = diagnostics_.text(*node, "'workflow_id'").value_or("");
    if (node->kind == NodeKind::string && !is_name(node->text))
      diagnostics_.error(node->at, "invalid_name",
                         "'workflow_id' must be " + std::string(name_rule) + ", found " + in_quotes(node->text));
  }

  // ---- Inputs ----

  void read_inputs(const yaml::Node& inputs) {
    if (!diagnostics_.expect(inputs, NodeKind::mapping, "'inputs'")) return;
    if (inputs.entries.size() > inputs_max)
      return diagnostics_.error(inputs.at, "too_many_inputs",
                                "a workflow has at most " + std::to_string(inputs_max) + " inputs");
    for (const yaml::Entry& entry : inputs.entries) {
      if (!is_name(entry.key))
        diagnostics_.error(
            entry.key_at, "invalid_name",
            "the name of an input must be " + std::string(name_rule) + ", found " + in_quotes(entry.key));
      read_input(entry, definition_->inputs.emplace_back());
    }
  }

  void read_input(const yaml::Entry& entry, Input& input) {
    input.name = entry.key;
    const std::string where = "input " + in_quotes(entry.key);
    if (entry.value.kind == NodeKind::string) {  // a type name stands for {type: name}
      read_input_type(entry.value, where, input);
      return;
    }
    if (entry.value.kind != NodeKind::mapping)
      return diagnostics_.wrong_type(entry.value, where, "a type name or a mapping");
    diagnostics_.check_keys(entry.value, {"type", "required", "default", "description"}, where);
    bool typed = true;
    if (const auto* type = entry.value.find("type")) typed = read_input_type(*type, where, input);
    const auto* required = entry.value.find("required");
    if (required && diagnostics_.expect(*required, NodeKind::boolean, "'required' of " + where))
      input.required = required->as_bool();
    if (const auto* text = entry.value.find("description"))
      (void)diagnostics_.text(*text, "'description' of " + where);
    const auto* preset = entry.value.find("default");
    if (!preset) return;
    if (typed && !matches(input.type, *preset))
      diagnostics_.error(preset->at, "wrong_default",
                         "'default' of " + where + " is not of its type " + std::string(to_string(input.type)));
    if (input.required)
      diagnostics_.warning(preset->at, "required_with_default",
                           where + " has a default, so that it is never missing",
                           "remove 'required' or 'default'");
    input.default_value = yaml::to_json(*preset);
  }

  bool read_input_type(const yaml::Node& node, const std::string& where, Input& input) {
    if (!diagnostics_.expect(node, NodeKind::string, "'type' of " + where)) return false;
    Words names;
    for (const InputType type : {InputType::string, InputType::integer, InputType::number, InputType::boolean,
                                 InputType::array, InputType::object}) {
      names.push_back(to_string(type));
      if (names.back() != node.text) continue;
      input.type = type;
      return true;
    }
    diagnostics_.error(node.at, "unknown_input_type", where + " has the unknown type " + in_quotes(node.text),
                       input_type_hint(node.text, names));
    return false;
  }

  // What other languages call our types is not near them as words go.
  [[nodiscard]] std::string input_type_hint(std::string_view word, const Words& names) const {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 10> others{{{"str", "string"},
                                                                                    {"text", "string"},
                                                                                    {"int", "integer"},
                                                                                    {"float", "number"},
                                                                                    {"double", "number"},
                                                                                    {"real", "number"},
                                                                                    {"bool", "boolean"},
                                                                                    {"list", "array"},
                                                                                    {"dict", "object"},
                                                                                    {"map", "object"}}};
    for (const auto& [other, ours] : others)
      if (word == other) return "did you mean '" + std::string(ours) + "'?";
    if (word == "any") return "leave 'type' out to accept any value";
    std::string guess = diagnostics_.did_you_mean(word, names);
    return guess.empty() ? "types are string, integer, number, boolean, array, object" : guess;
  }

  static bool matches(InputType type, const yaml::Node& value) {
    const NodeKind kind = value.kind;
    switch (type) {
      case InputType::any: return true;
      case InputType::string: return kind == NodeKind::string;
      case InputType::integer: return kind == NodeKind::integer;
      case InputType::number:
        return kind == NodeKind::integer || (kind == NodeKind::real && std::isfinite(value.as_real()));
      case InputType::boolean: return kind == NodeKind::boolean;
      case InputType::array: return kind == NodeKind::sequence;
      case InputType::object: return kind == NodeKind::mapping;
    }
    return false;
  }

  // ---- Nodes ----

  void read_nodes(const yaml::Node& nodes, Position key_at) {
    if (!diagnostics_.expect(nodes, NodeKind::mapping, "'nodes'")) return;
    if (nodes.entries.size() > nodes_max)
      return diagnostics_.error(key_at, "too_many_nodes",
                                "the workflow has " + std::to_string(nodes.entries.size()) +
                                    " nodes; the limit is " + std::to_string(nodes_max));
    for (const yaml::Entry& entry : nodes.entries)
      read_node(entry, definition_->nodes.emplace_back(), sketches_.emplace_back(), diagnostics_);
    connect(*definition_, sketches_, key_at, diagnostics_);
  }

  Diagnostics diagnostics_;
  std::shared_ptr<Definition> definition_ = std::make_shared<Definition>();
  std::vector<Sketch> sketches_;  // beside definition_->nodes; they point into the document
};

}  // namespace

Parsed parse(std::string_view yaml, Strictness strictness) { return Parser().parse(yaml, strictness); }

}  // namespace baton::workflow
