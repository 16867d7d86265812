#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/yaml.hpp"
#include "core/workflow/definition.hpp"
#include "core/workflow/graph.hpp"
#include "core/workflow/input.hpp"
#include "core/workflow/report.hpp"

namespace baton::workflow {
namespace {

using yaml::Kind;
using Words = std::vector<std::string_view>;

constexpr std::size_t nodes_max = 1000;
constexpr std::size_t inputs_max = 1000;
constexpr std::int64_t timeout_seconds_max = 365 * 24 * 3600;
constexpr double delay_seconds_max = 30 * 24 * 3600;

// Words are short-lived lists of literals; these are made once.
const Words& document_keys() {
  static const Words keys{"workflow_id", "version", "description", "on_failure", "inputs", "nodes"};
  return keys;
}
const Words& node_keys() {
  static const Words keys{"type",  "handler", "queue",     "params", "timeout_seconds",
                          "retry", "next",    "depends_on"};
  return keys;
}
const Words& node_types() {  // the first three in the order of NodeType
  static const Words types{"start",  "end",  "task",     "conditional", "fan_out",
                           "fan_in", "wait", "approval", "http",        "workflow"};
  return types;
}
constexpr std::size_t node_types_supported = 3;

class Parser {
 public:
  Parsed parse(std::string_view text, Strictness strictness) {
    auto document = yaml::parse(text);
    if (!document) return {nullptr, std::move(document).error()};
    read_document(*document);
    Parsed parsed{nullptr, report_.take()};
    if (strictness == Strictness::stored) forgive(parsed.diagnostics);
    if (!has_errors(parsed.diagnostics)) parsed.definition = std::move(definition_);
    return parsed;
  }

 private:
  // What a later version forbids, a job of an earlier one may still be running by.
  static void forgive(std::vector<Diagnostic>& diagnostics) {
    for (Diagnostic& each : diagnostics)
      if (each.code == "unknown_key" || each.code == "reserved_queue" || each.code == "invalid_name")
        each.level = Diagnostic::Level::warning;
  }

  void read_document(const yaml::Node& document) {
    if (!report_.expect(document, Kind::mapping, "the document")) return;
    report_.check_keys(document, document_keys(), "the workflow");
    read_workflow_id(document);
    if (const auto* version = document.find("version")) {
      const auto value = report_.integer(*version, "'version'", 1, std::numeric_limits<std::int32_t>::max());
      definition_->version = static_cast<std::int32_t>(value.value_or(0));
    }
    if (const auto* description = document.find("description"))
      definition_->description = report_.text(*description, "'description'").value_or("");
    if (const auto* on_failure = document.find("on_failure")) {
      const auto word = report_.word(*on_failure, "'on_failure'", {"fail_fast", "finish_running"});
      definition_->on_failure = static_cast<OnFailure>(word.value_or(0));
    }
    if (const auto* inputs = document.find("inputs")) read_inputs(*inputs);
    if (const auto* nodes = document.find("nodes")) {
      read_nodes(*nodes, std::ranges::find(document.entries, "nodes", &yaml::Entry::key)->key_at);
    } else {
      report_.error(document.at, "missing_key", "the workflow has no 'nodes'");
    }
  }

  void read_workflow_id(const yaml::Node& document) {
    const auto* node = document.find("workflow_id");
    if (!node) return report_.error(document.at, "missing_key", "the workflow has no 'workflow_id'");
    definition_->workflow_id = report_.text(*node, "'workflow_id'").value_or("");
    if (node->kind == Kind::string && !is_name(node->text))
      report_.error(node->at, "invalid_name",
                    "'workflow_id' must be " + std::string(name_rule) + ", found " + in_quotes(node->text));
  }

  // ---- Inputs ----

  void read_inputs(const yaml::Node& inputs) {
    if (!report_.expect(inputs, Kind::mapping, "'inputs'")) return;
    if (inputs.entries.size() > inputs_max)
      return report_.error(inputs.at, "too_many_inputs",
                           "a workflow has at most " + std::to_string(inputs_max) + " inputs");
    for (const yaml::Entry& entry : inputs.entries) {
      if (!is_name(entry.key))
        report_.error(
            entry.key_at, "invalid_name",
            "the name of an input must be " + std::string(name_rule) + ", found " + in_quotes(entry.key));
      read_input(entry, definition_->inputs.emplace_back());
    }
  }

  void read_input(const yaml::Entry& entry, Input& input) {
    input.name = entry.key;
    const std::string where = "input " + in_quotes(entry.key);
    if (entry.value.kind == Kind::string) {  // a type name stands for {type: name}
      read_input_type(entry.value, where, input);
      return;
    }
    if (entry.value.kind != Kind::mapping)
      return report_.wrong_type(entry.value, where, "a type name or a mapping");
    report_.check_keys(entry.value, {"type", "required", "default", "description"}, where);
    bool typed = true;
    if (const auto* type = entry.value.find("type")) typed = read_input_type(*type, where, input);
    const auto* required = entry.value.find("required");
    if (required && report_.expect(*required, Kind::boolean, "'required' of " + where))
      input.required = required->as_bool();
    if (const auto* text = entry.value.find("description"))
      (void)report_.text(*text, "'description' of " + where);
    const auto* preset = entry.value.find("default");
    if (!preset) return;
    if (typed && !matches(input.type, *preset))
      report_.error(preset->at, "wrong_default",
                    "'default' of " + where + " is not of its type " + std::string(to_string(input.type)));
    if (input.required)
      report_.warning(preset->at, "required_with_default",
                      where + " has a default, so that it is never missing",
                      "remove 'required' or 'default'");
    input.default_value = yaml::to_json(*preset);
  }

  bool read_input_type(const yaml::Node& node, const std::string& where, Input& input) {
    if (!report_.expect(node, Kind::string, "'type' of " + where)) return false;
    Words names;
    for (const InputType type : {InputType::string, InputType::integer, InputType::number, InputType::boolean,
                                 InputType::array, InputType::object}) {
      names.push_back(to_string(type));
      if (names.back() != node.text) continue;
      input.type = type;
      return true;
    }
    report_.error(node.at, "unknown_input_type", where + " has the unknown type " + in_quotes(node.text),
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
    std::string guess = report_.did_you_mean(word, names);
    return guess.empty() ? "types are string, integer, number, boolean, array, object" : guess;
  }

  static bool matches(InputType type, const yaml::Node& value) {
    const Kind kind = value.kind;
    switch (type) {
      case InputType::any: return true;
      case InputType::string: return kind == Kind::string;
      case InputType::integer: return kind == Kind::integer;
      case InputType::number:
        return kind == Kind::integer || (kind == Kind::real && std::isfinite(value.as_real()));
      case InputType::boolean: return kind == Kind::boolean;
      case InputType::array: return kind == Kind::sequence;
      case InputType::object: return kind == Kind::mapping;
    }
    return false;
  }

  // ---- Nodes ----

  void read_nodes(const yaml::Node& nodes, Position key_at) {
    if (!report_.expect(nodes, Kind::mapping, "'nodes'")) return;
    if (nodes.entries.size() > nodes_max)
      return report_.error(key_at, "too_many_nodes",
                           "the workflow has " + std::to_string(nodes.entries.size()) +
                               " nodes; the limit is " + std::to_string(nodes_max));
    for (const yaml::Entry& entry : nodes.entries) read_node(entry);
    connect(*definition_, sketches_, key_at, report_);
  }

  void read_node(const yaml::Entry& entry) {
    Node& node = definition_->nodes.emplace_back();
    Sketch& sketch = sketches_.emplace_back();
    node.id = entry.key;
    sketch.at = entry.key_at;
    const std::string where = "node " + in_quotes(entry.key);
    if (!is_name(entry.key))
      report_.error(
          entry.key_at, "invalid_name",
          "the name of a node must be " + std::string(name_rule) + ", found " + in_quotes(entry.key));
    if (!report_.expect(entry.value, Kind::mapping, where)) {
      sketch.edges_known = false;
      return;
    }
    read_type(entry, where, sketch);
    read_edges(entry.value, where, sketch, node);
    if (sketch.unsupported) return;  // its other keys are those of a later version
    report_.check_keys(entry.value, node_keys(), where);
    if (sketch.type == NodeType::start || sketch.type == NodeType::end)
      return check_control_node(entry.value, where, sketch);
    node.type = NodeType::task;
    read_task(entry, where, sketch, node);
  }

  void read_type(const yaml::Entry& entry, const std::string& where, Sketch& sketch) {
    const auto* type = entry.value.find("type");
    if (!type) {
      report_.error(entry.key_at, "missing_key", where + " has no 'type'", "types are start, task and end");
      return;
    }
    if (!report_.expect(*type, Kind::string, "'type' of " + where)) return;
    const auto found = std::ranges::find(node_types(), std::string_view(type->text));
    if (found == node_types().end()) {
      std::string guess = report_.did_you_mean(type->text, node_types());
      report_.error(type->at, "unknown_node_type", where + " has the unknown type " + in_quotes(type->text),
                    guess.empty() ? "types are start, task and end" : std::move(guess));
      return;
    }
    const auto index = static_cast<std::size_t>(found - node_types().begin());
    if (index < node_types_supported) {
      sketch.type = static_cast<NodeType>(index);
      definition_->nodes.back().type = *sketch.type;
      return;
    }
    sketch.unsupported = true;
    report_.error(type->at, "unsupported_node_type",
                  "the node type '" + type->text + "' is not supported by this version",
                  "types are start, task and end");
  }

  void check_control_node(const yaml::Node& body, const std::string& where, const Sketch& sketch) {
    const std::string_view type = sketch.type == NodeType::start ? "a start" : "an end";
    for (const yaml::Entry& entry : body.entries) {
      if (entry.key == "next" && sketch.type == NodeType::end) {
        report_.error(entry.key_at, "end_has_next", where + " is an end node and cannot have 'next'");
      } else if (entry.key != "type" && entry.key != "next" && entry.key != "depends_on" &&
                 std::ranges::find(node_keys(), std::string_view(entry.key)) != node_keys().end()) {
        report_.warning(entry.key_at, "ignored_key",
                        "'" + entry.key + "' means nothing in " + std::string(type) + " node");
      }
    }
  }

  // ---- Edges ----

  void read_edges(const yaml::Node& body, const std::string& where, Sketch& sketch, Node& node) {
    const auto* next = body.find("next");
    if (next && sketch.type != NodeType::end)  // an end node's is reported as such
      sketch.edges_known &= read_names(*next, "'next' of " + where, sketch.next);
    if (const auto* depends_on = body.find("depends_on"))
      sketch.edges_known &= read_depends_on(*depends_on, where, sketch, node);
  }

  bool read_depends_on(const yaml::Node& value, const std::string& where, Sketch& sketch, Node& node) {
    const std::string what = "'depends_on' of " + where;
    if (value.kind != Kind::mapping) return read_names(value, what, sketch.depends_on);
    report_.check_keys(value, {"all_of", "any_of"}, what);
    const auto* all = value.find("all_of");
    const auto* any = value.find("any_of");
    if ((all == nullptr) == (any == nullptr)) {
      report_.error(value.at, "invalid_depends_on", what + " must have either 'all_of' or 'any_of'");
      return false;
    }
    if (any) node.join = Join::any_of;
    return any ? read_names(*any, "'any_of' of " + where, sketch.depends_on)
               : read_names(*all, "'all_of' of " + where, sketch.depends_on);
  }

  // A name or a list of names. Names are taken as they are written, as keys are: `1` and `true` can be nodes.
  bool read_names(const yaml::Node& value, const std::string& what, std::vector<Reference>& names) {
    const auto is_text = [](const yaml::Node& item) { return item.is_scalar() && item.kind != Kind::null; };
    if (is_text(value)) {
      names.push_back({value.text, value.at});
      return true;
    }
    if (value.kind != Kind::sequence) {
      report_.wrong_type(value, what, "a name or a list of names");
      return false;
    }
    bool all_read = true;
    for (const yaml::Node& item : value.items) {
      if (is_text(item)) {
        names.push_back({item.text, item.at});
      } else {
        report_.wrong_type(item, "a name in " + what, "a name");
        all_read = false;
      }
    }
    return all_read;
  }

  // ---- Tasks ----

  void read_task(const yaml::Entry& entry, const std::string& where, const Sketch& sketch, Node& node) {
    const yaml::Node& body = entry.value;
    if (const auto* handler = body.find("handler")) {
      node.handler = read_literal(*handler, "'handler' of " + where);
    } else if (sketch.type == NodeType::task) {
      report_.error(entry.key_at, "missing_key", where + " is a task and has no 'handler'");
    }
    if (const auto* queue = body.find("queue")) {
      node.queue = read_literal(*queue, "'queue' of " + where);
      if (node.queue == "builtin")
        report_.error(queue->at, "reserved_queue",
                      "the queue 'builtin' is reserved for the server's own handlers",
                      "leave 'queue' out, and a built-in handler is found there");
    }
    if (const auto* params = body.find("params");
        params && report_.expect(*params, Kind::mapping, "'params' of " + where)) {
      refuse_expressions(*params, where);
      node.params = yaml::to_json(*params);
    }
    if (const auto* timeout = body.find("timeout_seconds"))
      node.timeout = std::chrono::seconds{
          report_.integer(*timeout, "'timeout_seconds' of " + where, 1, timeout_seconds_max).value_or(1)};
    if (const auto* retry = body.find("retry")) read_retry(*retry, where, node.retry);
  }

  // Text that is not empty.
  std::string read_literal(const yaml::Node& value, const std::string& what) {
    std::string text = report_.text(value, what).value_or("");
    if (value.kind == Kind::string && text.empty())
      report_.error(value.at, "empty_value", what + " must not be empty");
    // The same rule as for the names in a worker's request: what breaks it could never be asked for.
    if (text.size() > 200 || std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      report_.error(value.at, "invalid_name",
                    what + " must have at most 200 bytes and no control characters");
    refuse_expression(text, value.at, what);
    return text;
  }

  void refuse_expression(std::string_view text, Position at, const std::string& what) {
    if (!text.contains("{{")) return;
    report_.error(at, "unsupported_expression", what + ": expressions are not supported by this version");
  }

  // A worker must never get the text of an expression for its value. Recursion is bounded by the depth limit
  // of the reader.
  void refuse_expressions(const yaml::Node& value, const std::string& where) {
    if (report_.is_full()) return;
    if (value.kind == Kind::string) refuse_expression(value.text, value.at, "'params' of " + where);
    for (const yaml::Node& item : value.items) refuse_expressions(item, where);
    for (const yaml::Entry& entry : value.entries) {
      refuse_expression(entry.key, entry.key_at, "'params' of " + where);
      refuse_expressions(entry.value, where);
    }
  }

  void read_retry(const yaml::Node& value, const std::string& where, RetryPolicy& retry) {
    if (!report_.expect(value, Kind::mapping, "'retry' of " + where)) return;
    report_.check_keys(value, {"max_attempts", "backoff", "initial_delay_seconds", "max_delay_seconds"},
                       "'retry' of " + where);
    if (const auto* attempts = value.find("max_attempts")) {
      const auto number = report_.integer(*attempts, "'max_attempts' of " + where, 1, 1000);
      retry.attempts_max = static_cast<std::int32_t>(number.value_or(1));
    } else {
      report_.warning(value.at, "retry_without_attempts",
                      "'retry' of " + where + " has no 'max_attempts', so that it is tried once");
    }
    if (const auto* backoff = value.find("backoff")) {
      const auto word = report_.word(*backoff, "'backoff' of " + where, {"fixed", "exponential"});
      retry.backoff = static_cast<Backoff>(word.value_or(0));
    }
    bool delays_known = true;
    if (const auto* initial = value.find("initial_delay_seconds"))
      delays_known &= read_delay(*initial, "'initial_delay_seconds' of " + where, retry.initial_delay);
    const auto* longest = value.find("max_delay_seconds");
    if (longest) delays_known &= read_delay(*longest, "'max_delay_seconds' of " + where, retry.delay_max);
    if (!delays_known || retry.delay_max >= retry.initial_delay) return;
    if (!longest) {  // whoever sets only the first delay does not mean to have it cut by a default
      retry.delay_max = retry.initial_delay;
    } else if (retry.backoff == Backoff::exponential) {
      report_.warning(longest->at, "delay_order",
                      "'max_delay_seconds' of " + where + " is less than the initial delay and replaces it");
    }
  }

  bool read_delay(const yaml::Node& value, const std::string& what, Duration& delay) {
    const auto number = report_.number(value, what, 0, delay_seconds_max);
    if (number) delay = Duration{std::llround(*number * 1000)};
    return number.has_value();
  }

  Report report_;
  std::shared_ptr<Definition> definition_ = std::make_shared<Definition>();
  std::vector<Sketch> sketches_;  // beside definition_->nodes; its names point into the document
};

}  // namespace

Parsed parse(std::string_view yaml, Strictness strictness) { return Parser().parse(yaml, strictness); }

}  // namespace baton::workflow
