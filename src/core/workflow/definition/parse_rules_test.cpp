// Every rule of a definition, broken; see broken_rules.hpp.
#include <gtest/gtest.h>

#include "core/workflow/definition/definition.hpp"
#include "tests/support/broken_rules.hpp"

namespace baton::workflow::parse_rules_test {
namespace {

using support::Rules;

// ---- documents ----

std::string nodes(const std::string& text) { return "workflow_id: w\nnodes:\n" + text; }
// One more node, which the start leads to, and an end.
std::string with(const std::string& node) {
  return nodes("  s: {type: start, next: n}\n" + node + "  e: {type: end}\n");
}
std::string task(const std::string& keys) {
  return with("  n: {type: task, next: e, handler: h, " + keys + "}\n");
}
std::string node_of(const std::string& type, const std::string& keys) {
  return with("  n: {type: " + type + ", " + keys + "}\n");
}
std::string fan_out(const std::string& keys) { return node_of("fan_out", "next: e, " + keys); }
std::string cases(const std::string& keys) {
  return node_of("conditional", "condition_field: inputs.x, " + keys);
}
std::string inputs(const std::string& text) {
  return "inputs: {" + text + "}\nworkflow_id: w\nnodes: {s: {type: start, next: e}, e: {type: end}}\n";
}
const std::string smallest = "nodes: {s: {type: start, next: e}, e: {type: end}}\n";

const std::string types = "types are start, end, task, conditional, fan_out, fan_in, wait and approval";
const std::string names_hint = "names are inputs, nodes, item, index and env; text stands in quotes";
const std::string task_keys =
    "known keys are type, handler, queue, params, timeout_seconds, retry, on_failure, next, depends_on, "
    "description";

// ---- the table ----

Rules document_rules() {
  return {
      {"an empty document", "@", {{"wrong_type", "give it a value or remove the key"}}},
      {"not YAML", "a: b@: c\n", {{"yaml_syntax"}}},
      {"a key twice", "workflow_id: w\n@workflow_id: w\n" + smallest, {{"yaml_duplicate_key"}}},
      {"nothing in it", "@@{}", {{"missing_key"}, {"missing_key"}}},
      {"no workflow_id", "@" + smallest, {{"missing_key"}}},
      {"workflow_id is a number", "workflow_id: @12\n" + smallest, {{"wrong_type", "quote it: \"12\""}}},
      {"workflow_id with a blank", "workflow_id: @a b\n" + smallest, {{"invalid_name"}}},
      {"version below 1", "workflow_id: w\nversion: @0\n" + smallest, {{"out_of_range"}}},
      {"version as text", "workflow_id: w\nversion: @'1'\n" + smallest, {{"wrong_type"}}},
      {"on_failure misspelt",
       "workflow_id: w\non_failure: @fail_fats\n" + smallest,
       {{"invalid_value", "did you mean 'fail_fast'?"}}},
      {"a slip in a key",
       "workflow_id: w\n@verison: 1\n" + smallest,
       {{"unknown_key", "did you mean 'version'?"}}},
      {"a foreign key",
       "workflow_id: w\n@owner: me\n" + smallest,
       {{"unknown_key?", "known keys are workflow_id, version, description, on_failure, inputs, nodes"}}},
      {"nodes is nothing",
       "workflow_id: w\nnodes:@\n",
       {{"wrong_type", "give it a value or remove the key"}}},
      {"nodes is empty",
       "workflow_id: w\n@@nodes: {}\n",
       {{"no_start", "add one: start: {type: start, next: ...}"}, {"no_end", "add one: end: {type: end}"}}},
  };
}

Rules input_rules() {
  const std::string all = "types are string, integer, number, boolean, array, object";
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "i" + std::to_string(i) + ": string, ";
  return {
      {"inputs is a list", "inputs: @[]\nworkflow_id: w\n" + smallest, {{"wrong_type"}}},
      {"a bad name", inputs("@a b: string"), {{"invalid_name"}}},
      {"a type of another language", inputs("a: @int"), {{"unknown_input_type", "did you mean 'integer'?"}}},
      {"a misspelt type", inputs("a: {type: @strin}"), {{"unknown_input_type", "did you mean 'string'?"}}},
      {"an unknown type", inputs("a: {type: @blob}"), {{"unknown_input_type", all}}},
      {"any type", inputs("a: @any"), {{"unknown_input_type", "leave 'type' out to accept any value"}}},
      {"a default of another type", inputs("a: {type: integer, default: @'5'}"), {{"wrong_default"}}},
      {"a default that is never used",
       inputs("a: {type: integer, required: true, default: @5}"),
       {{"required_with_default?", "remove 'required' or 'default'"}}},
      {"required is text", inputs("a: {required: @'true'}"), {{"wrong_type"}}},
      {"too many", "inputs: @{" + many + "}\nworkflow_id: w\n" + smallest, {{"too_many_inputs"}}},
  };
}

Rules node_rules() {
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "  n" + std::to_string(i) + ": {type: end}\n";
  return {
      {"too many nodes", "workflow_id: w\n@nodes:\n" + many, {{"too_many_nodes"}}},
      {"a bad name", nodes("  s: {type: start, next: e!}\n  @e!: {type: end}\n"), {{"invalid_name"}}},
      {"no mapping", nodes("  s: {type: start, next: e}\n  e: @end\n"), {{"wrong_type"}}},
      {"no type", with("  @n: {next: e}\n"), {{"missing_key", types}}},
      {"an unknown type", with("  n: {type: @loop, next: e}\n"), {{"unknown_node_type", types}}},
      {"a misspelt type",
       with("  n: {type: @fan-out, next: e}\n"),
       {{"unknown_node_type", "did you mean 'fan_out'?"}}},
      {"http comes later", with("  n: {type: @http, url: x, next: e}\n"), {{"unsupported_node_type", types}}},
      {"workflow comes later", with("  n: {type: @workflow, next: e}\n"), {{"unsupported_node_type", types}}},
      {"an end with next",
       nodes("  s: {type: start, next: e}\n  e: {type: end, @next: s}\n"),
       {{"end_has_next"}}},
      {"a key of another type",
       with("  n: {type: wait, duration: 5, @handler: h, next: e}\n"),
       {{"ignored_key?"}}},
      {"a slip in a key", task("@timeout_second: 5"), {{"unknown_key", "did you mean 'timeout_seconds'?"}}},
      {"a foreign key", task("@colour: red"), {{"unknown_key?", task_keys}}},
      {"on_failure where nothing can fail",
       nodes("  s: {type: start, @on_failure: whatever, next: e}\n  e: {type: end}\n"),
       {{"ignored_key?"}}},
      {"on_failure of a node",
       task("on_failure: @contniue"),
       {{"invalid_value", "did you mean 'continue'?"}}},
      {"no start",
       "workflow_id: w\n@nodes:\n  e: {type: end}\n",
       {{"no_start", "add one: start: {type: start, next: ...}"}}},
      {"a second start",
       nodes("  s: {type: start, next: e}\n  @t: {type: start, next: e}\n  e: {type: end}\n"),
       {{"second_start"}}},
  };
}

Rules task_rules() {
  return {
      {"no handler", with("  @n: {type: task, next: e}\n"), {{"missing_key"}}},
      {"an empty handler", with("  n: {type: task, handler: @'', next: e}\n"), {{"empty_value"}}},
      {"a handler that is a number",
       with("  n: {type: task, handler: @5, next: e}\n"),
       {{"wrong_type", "quote it: \"5\""}}},
      {"an expression as queue", task("queue: @'{{ inputs.q }}'"), {{"unsupported_expression"}}},
      {"a queue too long", task("queue: @" + std::string(201, 'q')), {{"invalid_name"}}},
      {"the built-in queue",
       task("queue: @builtin"),
       {{"reserved_queue", "leave 'queue' out, and a built-in handler is found there"}}},
      {"the queue of approvals",
       task("queue: @approval"),
       {{"reserved_queue", "a node of type approval waits there"}}},
      {"params is a list", task("params: @[1]"), {{"wrong_type"}}},
      {"a timeout of 0", task("timeout_seconds: @0"), {{"out_of_range"}}},
      {"a timeout with a unit", task("timeout_seconds: @5m"), {{"wrong_type"}}},
      {"a retry without attempts", task("retry: @{backoff: fixed}"), {{"retry_without_attempts?"}}},
      {"too many attempts", task("retry: {max_attempts: @1001}"), {{"out_of_range"}}},
      {"an unknown backoff",
       task("retry: {max_attempts: 2, backoff: @exponentail}"),
       {{"invalid_value", "did you mean 'exponential'?"}}},
      {"a delay with a unit", task("retry: {max_attempts: 2, initial_delay_seconds: @5s}"), {{"wrong_type"}}},
      {"a negative delay", task("retry: {max_attempts: 2, initial_delay_seconds: @-1}"), {{"out_of_range"}}},
      {"delays in the wrong order",
       task("retry: {max_attempts: 2, initial_delay_seconds: 5, max_delay_seconds: @1}"),
       {{"delay_order?"}}},
  };
}

Rules edge_rules() {
  const std::string end = "  e: {type: end}\n";
  const auto t = [](const std::string& id, const std::string& keys) {
    return "  " + id + ": {type: task, handler: h, " + keys + "}\n";
  };
  const std::string start = "  s: {type: start, next: a}\n";
  return {
      {"an unknown target",
       nodes("  s: {type: start, next: @edn}\n  end: {type: end}\n"),
       {{"unknown_node", "did you mean 'end'?"}}},
      {"an unknown target in a list",
       nodes("  s: {type: start, next: [e, @xyz]}\n" + end),
       {{"unknown_node"}}},
      {"an unknown dependency",
       nodes(start + t("a", "depends_on: [@xyz], next: e") + end),
       {{"unknown_node"}}},
      {"an unknown target of a branch",
       with("  n: {type: conditional, condition: '{{ true }}', branches: {true: e, false: @edd}}\n"),
       {{"unknown_node"}}},
      {"next is a mapping", nodes("  s: {type: start, next: @{e: 1}}\n" + end), {{"wrong_type"}}},
      {"next holds a list", nodes("  s: {type: start, next: [e, @[e]]}\n" + end), {{"wrong_type"}}},
      {"depends_on of no kind",
       nodes(start + t("a", "depends_on: @{}, next: e") + end),
       {{"invalid_depends_on"}}},
      {"depends_on of both kinds",
       nodes(start + t("a", "depends_on: @{all_of: [s], any_of: [s]}, next: e") + end),
       {{"invalid_depends_on"}}},
      {"a slip in depends_on",
       nodes(start + t("a", "depends_on: @{@anyof: [s]}, next: e") + end),
       {{"invalid_depends_on"}, {"unknown_key", "did you mean 'any_of'?"}}},
      {"a node after itself", nodes(start + t("a", "next: [@a, e]") + end), {{"follows_itself"}}},
      {"an edge into the start", nodes(start + t("a", "next: [@s, e]") + end), {{"edge_into_start"}}},
      {"an edge out of the end",
       nodes(start + t("a", "next: [e, b]") + end + t("b", "depends_on: [@e], next: e")),
       {{"edge_out_of_end"}}},
      {"a dead end",
       nodes("  s: {type: start, next: [a, e]}\n  @a: {type: task, handler: h}\n" + end),
       {{"dead_end"}}},
      {"no end",
       "workflow_id: w\n@nodes:\n  @s: {type: start}\n",
       {{"no_end", "add one: end: {type: end}"}, {"dead_end"}}},
      {"an unreachable node",
       nodes("  s: {type: start, next: e}\n  @a: {type: task, handler: h, next: e}\n" + end),
       {{"unreachable"}}},
      {"an unreachable node says nothing of what others look at",
       nodes(start + t("a", "next: b") + t("b", "params: {x: '{{ nodes.a.output }}'}, next: e") + end +
             "  @u: {type: task, handler: h, next: a}\n"),
       {{"unreachable"}}},
      {"a cycle", nodes(start + t("a", "next: b") + t("b", "next: [@a, e]") + end), {{"cycle"}}},
      {"a cycle by depends_on",
       nodes(start + t("a", "depends_on: [@b], next: b") + t("b", "next: e") + end),
       {{"cycle"}}},
      {"a cycle through a branch",
       nodes(start + t("a", "next: c") +
             "  c: {type: conditional, condition: '{{ nodes.a.output.again }}', branches: {true: [@a], "
             "false: e}}\n" +
             end),
       {{"cycle"}}},
      {"a cycle through a case",
       nodes(start + t("a", "next: c") +
             "  c:\n    type: conditional\n    condition_field: nodes.a.output\n    branches:\n"
             "      - {name: again, condition: '> 1', next: @a}\n      - {default: true, next: e}\n" +
             end),
       {{"cycle"}}},
  };
}

Rules conditional_rules() {
  const std::string test = "condition: '{{ inputs.x }}', ";
  const std::string branch_hint = "add false: with the name of an end node, if nothing is to be done";
  return {
      {"neither condition nor condition_field",
       with("  @n: {type: conditional, branches: {true: e, false: e}}\n"),
       {{"invalid_condition"}}},
      {"both",
       node_of("conditional", test + "condition_field: @inputs.x, branches: {true: e, false: e}"),
       {{"invalid_condition"}}},
      {"no branches",
       with("  @n: {type: conditional, condition: '{{ inputs.x }}'}\n"),
       {{"missing_key", "as branches: {true: ..., false: ...}"}}},
      {"branches is a list", node_of("conditional", test + "branches: @[e]"), {{"wrong_type"}}},
      {"no false branch",
       node_of("conditional", test + "branches: @{true: e}"),
       {{"missing_branch", branch_hint}}},
      {"a third branch",
       node_of("conditional", test + "branches: {true: e, false: e, @maybe: e}"),
       {{"unknown_branch"}}},
      {"a branch to nowhere",
       node_of("conditional", test + "branches: {true: e, false: @[]}"),
       {{"empty_value", "name a node, an end node for example"}}},
      {"a branch without a name",
       node_of("conditional", test + "branches: {true: e, false: @}"),
       {{"wrong_type", "give it a value or remove the key"}}},
      {"next beside branches",
       node_of("conditional", test + "@next: e, branches: {true: e, false: e}"),
       {{"conditional_has_next"}}},
      {"a condition that is always the same",
       node_of("conditional", "condition: @inputs.x > 5, branches: {true: e, false: e}"),
       {{"not_an_expression", "write it as {{ ... }}"}}},
      {"a condition that is a list",
       node_of("conditional", "condition: @[1], branches: {true: e, false: e}"),
       {{"wrong_type"}}},
      {"a dependency on a conditional",
       nodes("  s: {type: start, next: n}\n  n: {type: conditional, condition: '{{ true }}', branches: "
             "{true: e, false: "
             "e}}\n  a: {type: task, handler: h, depends_on: [@n], next: e}\n  e: {type: end}\n"),
       {{"edge_past_branches"}}},
      {"cases that are a mapping", cases("branches: @{true: e, false: e}"), {{"wrong_type"}}},
      {"no cases", cases("branches: @[]"), {{"missing_branch"}}},
      {"cases without a default",
       cases("branches: @[{condition: '> 1', next: e}]"),
       {{"no_default_branch?", "add default: true to one"}}},
      {"two defaults",
       cases("branches: @[{default: true, next: e}, {default: true, next: e}]"),
       {{"second_default"}}},
      {"two cases of one name",
       cases("branches: [{name: a, condition: '> 1', next: e}, @{name: a, default: true, next: e}]"),
       {{"duplicate_branch"}}},
      {"a case that is no mapping", cases("branches: [{default: true, next: e}, @e]"), {{"wrong_type"}}},
      {"a case without next",
       cases("branches: [{condition: '> 1', next: e}, @{default: true}]"),
       {{"missing_key"}}},
      {"a case without a condition",
       cases("branches: [@{name: a, next: e}, {default: true, next: e}]"),
       {{"missing_key"}}},
      {"a slip in a case",
       cases("branches: [{@condtion: '> 1', default: true, next: e}]"),
       {{"unknown_key", "did you mean 'condition'?"}}},
      {"a case that does not compare",
       cases("branches: [{condition: @'1000', next: e}, {default: true, next: e}]"),
       {{"invalid_condition", "as \">= 1000\" or \"== 'gold'\""}}},
      {"a case that compares with nothing",
       cases("branches: [{condition: '>@', next: e}, {default: true, next: e}]"),
       {{"expression_syntax"}}},
      {"a case that looks at what is not there",
       cases("branches: [{condition: '== @nodes.x.output', next: e}, {default: true, next: e}]"),
       {{"unknown_node"}}},
      {"a case that looks at the item",
       cases("branches: [{condition: '== @item', next: e}, {default: true, next: e}]"),
       {{"item_outside_fan_out"}}},
      {"a field of two expressions",
       node_of("conditional",
               "condition_field: @'{{ inputs.x }}{{ inputs.y }}', branches: [{default: true, next: e}]"),
       {{"invalid_condition"}}},
      {"a field with text beside its expression",
       node_of("conditional", "condition_field: @'x{{ inputs.x }}', branches: [{default: true, next: e}]"),
       {{"invalid_condition"}}},
      {"a field that is no expression",
       node_of("conditional", "condition_field: inputs.x @y, branches: [{default: true, next: e}]"),
       {{"expression_syntax"}}},
  };
}

Rules fan_rules() {
  const std::string source = "source: '{{ inputs.l }}', ";
  return {
      {"no source",
       with("  @n: {type: fan_out, task: {handler: h}, next: e}\n"),
       {{"missing_key", "as source: \"{{ inputs.urls }}\""}}},
      {"a source that is a list", fan_out("source: @[1, 2], task: {handler: h}"), {{"wrong_type"}}},
      {"a source that is no expression",
       fan_out("source: @inputs.urls, task: {handler: h}"),
       {{"not_an_expression", "write it as {{ ... }}"}}},
      {"no task",
       with("  @n: {type: fan_out, source: '{{ inputs.l }}', next: e}\n"),
       {{"missing_key", "as task: {handler: ..., params: {url: \"{{ item }}\"}}"}}},
      {"a task that is a name", fan_out(source + "task: @h"), {{"wrong_type"}}},
      {"a task without a handler", fan_out(source + "task: @{queue: q}"), {{"missing_key"}}},
      {"a slip in its task",
       fan_out(source + "task: {handler: h, @param: {}}"),
       {{"unknown_key", "did you mean 'params'?"}}},
      {"the reserved queue in its task",
       fan_out(source + "task: {handler: h, queue: @builtin}"),
       {{"reserved_queue", "leave 'queue' out, and a built-in handler is found there"}}},
      {"a handler beside its task", fan_out(source + "@handler: h, task: {handler: h}"), {{"ignored_key?"}}},
      {"max_parallel of 0", fan_out(source + "max_parallel: @0, task: {handler: h}"), {{"out_of_range"}}},
      {"max_parallel as text", fan_out(source + "max_parallel: @all, task: {handler: h}"), {{"wrong_type"}}},
      {"an unknown on_item_failure",
       fan_out(source + "on_item_failure: @ignore, task: {handler: h}"),
       {{"invalid_value"}}},
      {"the item in its source",
       fan_out("source: '{{ @item }}', task: {handler: h}"),
       {{"item_outside_fan_out"}}},
      {"the index in the params of a task",
       task("params: {x: '{{ 1 + @index }}'}"),
       {{"item_outside_fan_out"}}},
      {"a fan_in without a fan_out",
       nodes("  s: {type: start, next: n}\n  @n: {type: fan_in, next: e}\n  e: {type: end}\n"),
       {{"fan_in_without_fan_out"}}},
      {"a fan_in behind two nodes",
       nodes("  s: {type: start, next: [f, a]}\n  f: {type: fan_out, source: '{{ inputs.l }}', task: "
             "{handler: h}, next: "
             "n}\n  a: {type: task, handler: h, next: n}\n  @n: {type: fan_in, next: e}\n  e: {type: end}\n"),
       {{"fan_in_without_fan_out"}}},
      {"an unknown aggregation",
       nodes("  s: {type: start, next: f}\n  f: {type: fan_out, source: '{{ inputs.l }}', task: {handler: "
             "h}, next: n}\n"
             "  n: {type: fan_in, aggregation: @colect, next: e}\n  e: {type: end}\n"),
       {{"invalid_value", "did you mean 'collect'?"}}},
      {"an empty field",
       nodes("  s: {type: start, next: f}\n  f: {type: fan_out, source: '{{ inputs.l }}', task: {handler: "
             "h}, next: n}\n"
             "  n: {type: fan_in, field: @'', next: e}\n  e: {type: end}\n"),
       {{"empty_value"}}},
      {"a name that is a child's",
       nodes("  s: {type: start, next: split}\n  split: {type: fan_out, source: '{{ inputs.l }}', task: "
             "{handler: h}, "
             "next: split_0}\n  @split_0: {type: task, handler: h, next: e}\n  e: {type: end}\n"),
       {{"name_clash"}}},
  };
}

Rules wait_and_approval_rules() {
  return {
      {"a wait for nothing", with("  @n: {type: wait, next: e}\n"), {{"invalid_wait"}}},
      {"a wait for both",
       node_of("wait", "duration: 5, until: @2026-01-31T08:00:00Z, next: e"),
       {{"invalid_wait"}}},
      {"a duration of no unit", node_of("wait", "duration: @5 minutes, next: e"), {{"wrong_value"}}},
      {"a negative duration", node_of("wait", "duration: @-5, next: e"), {{"wrong_value"}}},
      {"a duration of more than ten years", node_of("wait", "duration: @4000d, next: e"), {{"wrong_value"}}},
      {"units without numbers", node_of("wait", "duration: @hm, next: e"), {{"wrong_value"}}},
      {"an empty duration", node_of("wait", "duration: @'', next: e"), {{"wrong_value"}}},
      {"a duration that is a list", node_of("wait", "duration: @[5], next: e"), {{"wrong_type"}}},
      {"an instant without its zone",
       node_of("wait", "until: @2026-01-31T08:00:00, next: e"),
       {{"wrong_value"}}},
      {"an instant that is a word", node_of("wait", "until: @tomorrow, next: e"), {{"wrong_value"}}},
      {"a slip in a wait",
       node_of("wait", "duration: 5, @utnil: x, next: e"),
       {{"unknown_key", "did you mean 'until'?"}}},
      {"a message that is a list", node_of("approval", "message: @[a], next: e"), {{"wrong_type"}}},
      {"an approval's timeout of 0", node_of("approval", "timeout_seconds: @0, next: e"), {{"out_of_range"}}},
      {"an unknown on_timeout",
       node_of("approval", "timeout_seconds: 5, on_timeout: @aprove, next: e"),
       {{"invalid_value", "did you mean 'approve'?"}}},
      {"on_timeout without one", node_of("approval", "on_timeout: @approve, next: e"), {{"ignored_key?"}}},
      {"an unknown on_reject", node_of("approval", "on_reject: @go_on, next: e"), {{"invalid_value"}}},
      {"a queue of an approval", node_of("approval", "@queue: q, next: e"), {{"ignored_key?"}}},
      {"an unclosed expression in a message",
       node_of("approval", "message: 'Pay {{@ inputs.sum', next: e"),
       {{"expression_syntax"}}},
  };
}

Rules expression_rules() {
  std::string deep = "1";
  for (int i = 0; i < 100; ++i) deep = "(" + deep + ")";
  const std::string block =
      "  n:\n    type: task\n    handler: h\n    next: e\n    params:\n      x: @|\n        first line\n     "
      "   {{ foo }}\n";
  return {
      {"plain, inside of braces", task("params: {x: a @{{ foo }}}"), {{"yaml_syntax"}}},
      {"plain, outside of braces",
       with("  n:\n    type: task\n    handler: h\n    next: e\n    params:\n      x: a {{ @foo }} b\n"),
       {{"unknown_name", names_hint}}},
      {"single quotes", task("params: {x: '{{ @foo }}'}"), {{"unknown_name", names_hint}}},
      {"single quotes, doubled before it",
       task("params: {x: 'it''s {{ @foo }}'}"),
       {{"unknown_name", names_hint}}},
      {"double quotes", task("params: {x: \"{{ @foo }}\"}"), {{"unknown_name", names_hint}}},
      {"double quotes, escapes before it",
       task(R"(params: {x: "\u00e9\t\"{{ 'a' | @foo }}"})"),
       {{"unknown_filter"}}},
      {"a block", with(block), {{"unknown_name", names_hint}}},
      {"a folded block",
       with("  n:\n    type: task\n    handler: h\n    next: e\n    params:\n      x: @>-\n        {{ foo "
            "}}\n"),
       {{"unknown_name", names_hint}}},
      {"quotes on two lines", task("params: {x: @'a\n    {{ foo }}'}"), {{"unknown_name", names_hint}}},
      {"a misspelt name",
       task("params: {x: '{{ @input.a }}'}"),
       {{"unknown_name", "did you mean 'inputs'?"}}},
      {"nodes without a name",
       task("params: {x: '{{ @nodes }}'}"),
       {{"unknown_name",
         "write nodes.NAME.output, or nodes['NAME'].output when the name has other signs than letters, "
         "digits and '_'"}}},
      {"a field that nodes lack",
       task("params: {x: '{{ nodes.s.@outptu }}'}"),
       {{"unknown_name", "did you mean 'output'?"}}},
      {"an unknown filter",
       task("params: {x: '{{ 1 | @lenght }}'}"),
       {{"unknown_filter", "did you mean 'length'?"}}},
      {"an unknown test",
       task("params: {x: '{{ 1 is @define }}'}"),
       {{"unknown_test", "did you mean 'defined'?"}}},
      {"a filter with too many arguments",
       task("params: {x: '{{ [1] | join(1, 2, @3) }}'}"),
       {{"invalid_arguments"}}},
      {"a filter without its argument", task("params: {x: '{{ [1] | @replace }}'}"), {{"invalid_arguments"}}},
      {"one sign for a comparison",
       task("params: {x: '{{ 1 @= 2 }}'}"),
       {{"expression_syntax", "write '==' to compare"}}},
      {"and of another language",
       task("params: {x: '{{ true @&& false }}'}"),
       {{"expression_syntax", "write 'and'"}}},
      {"not closed", task("params: {x: '{{@ 1 + 2'}"), {{"expression_syntax"}}},
      {"empty", task("params: {x: '{{ @}}'}"), {{"expression_syntax"}}},
      {"a statement",
       task("params: {x: '@{% if true %}'}"),
       {{"expression_statement", "only {{ expressions }} are"}}},
      {"a key", task("params: {@'{{ 1 }}': 2}"), {{"expression_in_key"}}},
      {"deep in params", task("params: {a: [1, {b: ['{{ @x }}']}]}"), {{"unknown_name", names_hint}}},
      {"too long",
       task("params: {x: '{{@ " + std::string(17'000, ' ') + "1 }}'}"),
       {{"expression_too_long"}}},
      {"an unknown node",
       nodes("  s: {type: start, next: fetch}\n  fetch: {type: task, handler: h, next: n}\n  n: {type: task, "
             "handler: h, "
             "params: {x: '{{ @nodes.fecth.output }}'}, next: e}\n  e: {type: end}\n"),
       {{"unknown_node", "did you mean 'fetch'?"}}},
      {"an unknown input",
       "inputs: {customer: string}\n" + task("params: {x: '{{ @inputs.custmer }}'}"),
       {{"unknown_input", "did you mean 'customer'?"}}},
      {"a node that comes later",
       nodes("  s: {type: start, next: n}\n  n: {type: task, handler: h, params: {x: '{{ @nodes.m.output "
             "}}'}, next: m}\n"
             "  m: {type: task, handler: h, next: e}\n  e: {type: end}\n"),
       {{"not_upstream", "an expression can look only at nodes that are over by then"}}},
      {"a node beside it",
       nodes("  s: {type: start, next: [a, b]}\n  a: {type: task, handler: h, next: e}\n  b: {type: task, "
             "handler: h, "
             "params: {x: '{{ @nodes.a.status }}'}, next: e}\n  e: {type: end}\n"),
       {{"not_upstream", "an expression can look only at nodes that are over by then"}}},
      {"itself",
       task("params: {x: '{{ @nodes.n.output }}'}"),
       {{"not_upstream", "an expression can look only at nodes that are over by then"}}},
      {"too deep", task("params: {x: '{{ " + deep.insert(64, "@") + " }}'}"), {{"expression_too_deep"}}},
  };
}

Rules many_at_once() {
  return {
      {"of all kinds, in the order of the document",
       "@version: @0\nnodes:\n  s: {type: start, next: @aa1}\n  @a1: {type: task, next: e, timeout_seconds: "
       "@-1}\n"
       "  e: {type: end, @next: s}\ninputs: {x: @int}\n",
       {{"missing_key"},
        {"out_of_range"},
        {"unknown_node", "did you mean 'a1'?"},
        {"missing_key"},
        {"out_of_range"},
        {"end_has_next"},
        {"unknown_input_type", "did you mean 'integer'?"}}},
      {"several in one node",
       with("  n:\n    type: fan_out\n    source: '{{ @input.l }}'\n    max_parallel: @-1\n    @sorce: x\n"
            "    task: @{@handlr: h, queue: @builtin, params: {a: '{{ @foo }}', b: '{{ 1 | @lenght }}'}}\n   "
            " next: [e, @f]\n"),
       {{"unknown_name", "did you mean 'inputs'?"},
        {"out_of_range"},
        {"unknown_key", "did you mean 'source'?"},
        {"missing_key"},
        {"unknown_key", "did you mean 'handler'?"},
        {"reserved_queue", "leave 'queue' out, and a built-in handler is found there"},
        {"unknown_name", names_hint},
        {"unknown_filter", "did you mean 'length'?"},
        {"unknown_node"}}},
      {"wrong expressions in several nodes",
       nodes(
           "  s: {type: start, next: c}\n"
           "  c: {type: conditional, condition: '{{ @nodes.late.output }}', branches: {true: w, false: e}}\n"
           "  w: {type: wait, duration: '{{ @item }}', next: late}\n"
           "  late: {type: task, handler: h, params: {x: '{{ nodes.w.status }}', y: '{{ @nodes.lat.output "
           "}}'}, next: e}\n"
           "  e: {type: end}\n"),
       {{"not_upstream", "an expression can look only at nodes that are over by then"},
        {"item_outside_fan_out"},
        {"unknown_node", "did you mean 'late'?"}}},
  };
}

// ---- checks ----

void check(const Rules& rules) {
  support::check(rules, [](const std::string& text) { return parse(text); });
}

Rules all_rules() {
  Rules all;
  for (const auto& part :
       {document_rules(), input_rules(), node_rules(), task_rules(), edge_rules(), conditional_rules(),
        fan_rules(), wait_and_approval_rules(), expression_rules(), many_at_once()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(Rules, of_the_document) { check(document_rules()); }
TEST(Rules, of_inputs) { check(input_rules()); }
TEST(Rules, of_nodes) { check(node_rules()); }
TEST(Rules, of_tasks) { check(task_rules()); }
TEST(Rules, of_edges) { check(edge_rules()); }
TEST(Rules, of_conditionals) { check(conditional_rules()); }
TEST(Rules, of_fan_outs_and_fan_ins) { check(fan_rules()); }
TEST(Rules, of_waits_and_approvals) { check(wait_and_approval_rules()); }
TEST(Rules, of_expressions) { check(expression_rules()); }
TEST(Rules, that_are_broken_together_are_told_together) { check(many_at_once()); }

TEST(Rules, are_all_in_the_table) {
  const auto covered = support::codes_of(all_rules());
  for (const char* file : {"core/workflow/definition/parse.cpp", "core/workflow/definition/parse_node.cpp",
                           "core/workflow/definition/graph.cpp", "base/diagnostics.cpp"})
    for (const std::string& code : support::codes_in(file, support::reported))
      EXPECT_TRUE(covered.contains(code)) << code << " of " << file << " is not in the table";
  for (const char* file :
       {"core/template/lexer.cpp", "core/template/parser.cpp", "core/template/expression.cpp",
        "core/template/document.cpp", "core/template/emitter.hpp"})
    for (const std::string& code :
         support::codes_in(file, R"re("((?:expression|unknown|invalid)_[a-z_]+)")re"))
      EXPECT_TRUE(covered.contains(code)) << code << " of " << file << " is not in the table";
}

}  // namespace
}  // namespace baton::workflow::parse_rules_test
