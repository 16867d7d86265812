#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "core/workflow/definition/definition.hpp"

namespace baton::workflow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string listed(const std::vector<Diagnostic>& diagnostics) {
  std::string all;
  for (const Diagnostic& d : diagnostics) all += render("w", d) + "\n";
  return all;
}

// "line:column code" of each diagnostic, warnings with a question mark, separated by commas.
std::string summary(std::string_view yaml) {
  std::string all;
  for (const Diagnostic& d : parse(yaml).diagnostics) {
    all += (all.empty() ? "" : ", ") + std::to_string(d.at.line) + ':' + std::to_string(d.at.column) + ' ' +
           d.code;
    if (d.level == Diagnostic::Level::warning) all += '?';
  }
  return all;
}

std::shared_ptr<const Definition> accepted(std::string_view yaml) {
  Parsed parsed = parse(yaml);
  EXPECT_TRUE(parsed.definition) << listed(parsed.diagnostics);
  return parsed.definition ? parsed.definition : std::make_shared<const Definition>();
}

const Node& node(const Definition& definition, std::string_view id) {
  return definition.nodes.at(definition.find(id).value());
}

std::vector<std::string> following(const Definition& definition, std::string_view id) {
  std::vector<std::string> ids;
  for (const NodeIndex next : node(definition, id).next) ids.push_back(definition.nodes[next].id);
  return ids;
}

// One task between start and end; `task` is the rest of the task's flow mapping and begins in column 37 of
// line 4.
std::string with_task(std::string_view task) {
  return "workflow_id: w\nnodes:\n  s: {type: start, next: t}\n  t: {type: task, next: [e],        " +
         std::string(task) + "}\n  e: {type: end}\n";
}

// `inputs` begins in column 10 of line 1.
std::string with_inputs(std::string_view inputs) {
  return "inputs: {" + std::string(inputs) +
         "}\nworkflow_id: w\nnodes: {s: {type: start, next: e}, e: {type: end}}\n";
}

// `nodes` begins in line 3.
std::string with_nodes(std::string_view nodes) { return "workflow_id: w\nnodes:\n" + std::string(nodes); }

struct Case {
  std::string name;
  std::string yaml;
  std::string expected;
};

void check(const std::vector<Case>& cases) {
  for (const auto& [name, yaml, expected] : cases)
    EXPECT_EQ(summary(yaml), expected) << name << "\n" << yaml << listed(parse(yaml).diagnostics);
}

TEST(Parse, the_echo_example_is_accepted) {
  const auto definition = accepted(
      "workflow_id: echo_test\nnodes:\n  start:\n    type: start\n    next: [echo_handler]\n  "
      "echo_handler:\n    type: task\n"
      "    handler: echo\n    next: [end]\n  end:\n    type: end\n");
  EXPECT_EQ(definition->workflow_id, "echo_test");
  EXPECT_EQ(definition->version, 0);
  EXPECT_EQ(definition->on_failure, OnFailure::fail_fast);
  ASSERT_EQ(definition->nodes.size(), 3u);
  EXPECT_EQ(definition->start, 0u);
  const Node& echo = node(*definition, "echo_handler");
  EXPECT_EQ(echo.type, NodeType::task);
  EXPECT_EQ(echo.handler, "echo");
  EXPECT_EQ(echo.queue, "");
  EXPECT_FALSE(echo.params);
  EXPECT_EQ(echo.timeout, seconds{300});
  EXPECT_EQ(echo.retry.attempts_max, 1);
  EXPECT_EQ(echo.incoming.size(), 1u);
  EXPECT_EQ(following(*definition, "echo_handler"), std::vector<std::string>{"end"});
  EXPECT_EQ(node(*definition, "end").type, NodeType::end);
}

TEST(Parse, every_key_reaches_the_definition) {
  const auto definition = accepted(R"(
workflow_id: all.keys-1
version: 7
description: everything
on_failure: finish_running
inputs:
  urls: {type: array, required: true, description: what to fetch}
  size: {type: integer, default: 256}
  ratio: {type: number, default: 1}
  name: string
  free: {}
nodes:
  START: {type: start, next: work}
  work:
    type: task
    handler: h
    queue: images
    params: {b: 1, a: [x, null, 1.5]}
    timeout_seconds: 60
    retry: {max_attempts: 3, backoff: fixed, initial_delay_seconds: 0.25, max_delay_seconds: 10}
    next: END
  END: {type: end}
)");
  EXPECT_EQ(definition->version, 7);
  EXPECT_EQ(definition->description, "everything");
  EXPECT_EQ(definition->on_failure, OnFailure::finish_running);
  ASSERT_EQ(definition->inputs.size(), 5u);
  EXPECT_EQ(definition->inputs[0].type, InputType::array);
  EXPECT_TRUE(definition->inputs[0].required);
  EXPECT_EQ(definition->inputs[1].default_value, Json{"256"});
  EXPECT_EQ(definition->inputs[3].type, InputType::string);
  EXPECT_FALSE(definition->inputs[3].required);
  EXPECT_EQ(definition->inputs[4].type, InputType::any);
  const Node& work = node(*definition, "work");
  EXPECT_EQ(work.queue, "images");
  ASSERT_TRUE(work.params);
  EXPECT_EQ(work.params->constant(), Json{R"({"b":1,"a":["x",null,1.5]})"});
  EXPECT_EQ(work.timeout, seconds{60});
  EXPECT_EQ(work.retry.attempts_max, 3);
  EXPECT_EQ(work.retry.backoff, Backoff::fixed);
  EXPECT_EQ(work.retry.initial_delay, milliseconds{250});
  EXPECT_EQ(work.retry.delay_max, seconds{10});
}

TEST(Parse, depends_on_adds_edges_without_duplicates) {
  const auto definition = accepted(with_nodes(R"(
  s: {type: start, next: [a, b, a]}
  a: {type: task, handler: h}
  b: {type: task, handler: h, next: c}
  c: {type: task, handler: h, depends_on: {any_of: [a, b]}}
  d: {type: task, handler: h, depends_on: [a, c], next: e}
  f: {type: task, handler: h, depends_on: {all_of: d}, next: e}
  e: {type: end, depends_on: f}
)"));
  EXPECT_EQ(following(*definition, "s"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(following(*definition, "a"), (std::vector<std::string>{"c", "d"}));
  EXPECT_EQ(following(*definition, "b"), (std::vector<std::string>{"c"}));
  EXPECT_EQ(node(*definition, "c").join, Join::any_of);
  EXPECT_EQ(node(*definition, "c").incoming.size(), 2u);
  EXPECT_EQ(node(*definition, "d").join, Join::all_of);
  EXPECT_EQ(node(*definition, "e").incoming.size(), 2u);
}

TEST(Parse, names_that_look_like_other_values_are_names) {
  const auto definition = accepted(with_nodes("  1: {type: start, next: true}\n  true: {type: end}\n"));
  EXPECT_EQ(following(*definition, "1"), std::vector<std::string>{"true"});
}

TEST(Parse, the_document_is_checked) {
  const std::string nodes = "nodes: {s: {type: start, next: e}, e: {type: end}}\n";
  check({
      {"empty", "", "1:1 wrong_type"},
      {"a list", "- a\n", "1:1 wrong_type"},
      {"not YAML", "a: b: c\n", "1:5 yaml_syntax"},
      {"nothing in it", "{}", "1:1 missing_key, 1:1 missing_key"},
      {"no workflow_id", nodes, "1:1 missing_key"},
      {"workflow_id is a number", "workflow_id: 12\n" + nodes, "1:14 wrong_type"},
      {"workflow_id has a blank", "workflow_id: a b\n" + nodes, "1:14 invalid_name"},
      {"workflow_id is empty", "workflow_id: ''\n" + nodes, "1:14 invalid_name"},
      {"workflow_id is too long", "workflow_id: " + std::string(101, 'x') + "\n" + nodes,
       "1:14 invalid_name"},
      {"workflow_id is as long as may be", "workflow_id: " + std::string(100, 'x') + "\n" + nodes, ""},
      {"version is text", "workflow_id: w\nversion: one\n" + nodes, "2:10 wrong_type"},
      {"version is 0", "workflow_id: w\nversion: 0\n" + nodes, "2:10 out_of_range"},
      {"version is too large", "workflow_id: w\nversion: 2147483648\n" + nodes, "2:10 out_of_range"},
      {"version is beyond integers", "workflow_id: w\nversion: 99999999999999999999\n" + nodes,
       "2:10 wrong_type"},
      {"description is a list", "workflow_id: w\ndescription: []\n" + nodes, "2:14 wrong_type"},
      {"on_failure is unknown", "workflow_id: w\non_failure: fail_fats\n" + nodes, "2:13 invalid_value"},
      {"on_failure is a boolean", "workflow_id: w\non_failure: true\n" + nodes, "2:13 wrong_type"},
      {"a slip in a key", "workflow_id: w\nverison: 1\n" + nodes, "2:1 unknown_key"},
      {"a foreign key", "workflow_id: w\nowner: me\n" + nodes, "2:1 unknown_key?"},
      {"a key twice", "workflow_id: w\nworkflow_id: w\n" + nodes, "2:1 yaml_duplicate_key"},
      {"nodes is empty", "workflow_id: w\nnodes: {}\n", "2:1 no_start, 2:1 no_end"},
      {"nodes is nothing", "workflow_id: w\nnodes:\n", "2:7 wrong_type"},
      {"nodes is a list", "workflow_id: w\nnodes: []\n", "2:8 wrong_type"},
  });
}

TEST(Parse, inputs_are_checked) {
  check({
      {"a list", "inputs: []\nworkflow_id: w\nnodes: {s: {type: start, next: e}, e: {type: end}}\n",
       "1:9 wrong_type"},
      {"a bad name", with_inputs("a b: string"), "1:10 invalid_name"},
      {"no specification", with_inputs("a: "), "1:13 wrong_type"},
      {"a number for one", with_inputs("a: 5"), "1:13 wrong_type"},
      {"an alias of a type", with_inputs("a: int"), "1:13 unknown_input_type"},
      {"an unknown type", with_inputs("a: {type: blob}"), "1:20 unknown_input_type"},
      {"a type that is no text", with_inputs("a: {type: 5}"), "1:20 wrong_type"},
      {"required is text", with_inputs("a: {type: string, required: yes}"), "1:38 wrong_type"},
      {"description is a number", with_inputs("a: {description: 5}"), "1:27 wrong_type"},
      {"a slip in a key", with_inputs("a: {tpye: string}"), "1:14 unknown_key"},
      {"a foreign key", with_inputs("a: {colour: red}"), "1:14 unknown_key?"},
      {"required with a default", with_inputs("a: {type: string, required: true, default: x}"),
       "1:53 required_with_default?"},
      {"default of string", with_inputs("a: {type: string, default: 5}"), "1:37 wrong_default"},
      {"default of integer", with_inputs("a: {type: integer, default: 5.0}"), "1:38 wrong_default"},
      {"default of number", with_inputs("a: {type: number, default: x}"), "1:37 wrong_default"},
      {"default of number, not a number", with_inputs("a: {type: number, default: .nan}"),
       "1:37 wrong_default"},
      {"default of boolean", with_inputs("a: {type: boolean, default: yes}"), "1:38 wrong_default"},
      {"default of array", with_inputs("a: {type: array, default: {}}"), "1:36 wrong_default"},
      {"default of object", with_inputs("a: {type: object, default: []}"), "1:37 wrong_default"},
      {"default of null", with_inputs("a: {type: object, default: null}"), "1:37 wrong_default"},
      {"default of an unknown type", with_inputs("a: {type: int, default: x}"), "1:20 unknown_input_type"},
      {"defaults that fit",
       with_inputs("a: {type: number, default: 5}, b: {default: null}, c: {type: array, default: []}"), ""},
  });
}

TEST(Parse, nodes_are_checked) {
  check({
      {"a bad name", with_nodes("  s: {type: start, next: e e}\n  e e: {type: end}\n"), "4:3 invalid_name"},
      {"not a mapping", with_nodes("  s: {type: start, next: e}\n  e: end\n"), "4:6 wrong_type"},
      {"no type", with_nodes("  s: {type: start, next: e}\n  e: {}\n"), "4:3 missing_key"},
      {"type is a number", with_nodes("  s: {type: start, next: e}\n  e: {type: 5}\n"), "4:13 wrong_type"},
      {"type is unknown", with_nodes("  s: {type: start, next: e}\n  e: {type: edn}\n"),
       "4:13 unknown_node_type"},
      {"a later type",
       with_nodes("  s: {type: start, next: c}\n  c: {type: workflow, branches: {true: e}, next: e}\n  e: "
                  "{type: end}\n"),
       "4:13 unsupported_node_type"},
      {"the reserved queue",
       with_nodes("  s: {type: start, next: t}\n  t: {type: task, handler: echo, queue: builtin, next: e}\n  "
                  "e: {type: end}\n"),
       "4:41 reserved_queue"},
      {"no start", with_nodes("  e: {type: end}\n"), "2:1 no_start"},
      {"no end", with_nodes("  s: {type: start}\n"), "2:1 no_end, 3:3 dead_end"},
      {"two starts",
       with_nodes("  s: {type: start, next: e}\n  s2: {type: start, next: e}\n  e: {type: end}\n"),
       "4:3 second_start"},
      {"an end with next", with_nodes("  s: {type: start, next: e}\n  e: {type: end, next: s}\n"),
       "4:18 end_has_next"},
      {"a handler in a start", with_nodes("  s: {type: start, handler: h, next: e}\n  e: {type: end}\n"),
       "3:20 ignored_key?"},
      {"no handler", with_task(""), "4:3 missing_key"},
      {"handler is a number", with_task("handler: 5"), "4:46 wrong_type"},
      {"handler is empty", with_task("handler: ''"), "4:46 empty_value"},
      {"handler is an expression", with_task("handler: '{{ x }}'"), "4:46 unsupported_expression"},
      {"queue is a list", with_task("handler: h, queue: [a]"), "4:56 wrong_type"},
      {"queue is an expression", with_task("handler: h, queue: '{{ x }}'"), "4:56 unsupported_expression"},
      {"params is a list", with_task("handler: h, params: []"), "4:57 wrong_type"},
      {"an expression in params", with_task("handler: h, params: {a: '{{ b }}'}"), "4:65 unknown_name"},
      {"expressions deep in params", with_task("handler: h, params: {a: [x, {b: 'c {{'}], '{{k': 1}"),
       "4:74 expression_syntax, 4:79 expression_in_key"},
      {"timeout is text", with_task("handler: h, timeout_seconds: 5m"), "4:66 wrong_type"},
      {"timeout is a fraction", with_task("handler: h, timeout_seconds: 1.5"), "4:66 wrong_type"},
      {"timeout is 0", with_task("handler: h, timeout_seconds: 0"), "4:66 out_of_range"},
      {"timeout is above a year", with_task("handler: h, timeout_seconds: 31536001"), "4:66 out_of_range"},
      {"timeout is a year", with_task("handler: h, timeout_seconds: 31536000"), ""},
      {"a slip in a key", with_task("handlr: h"), "4:3 missing_key, 4:37 unknown_key"},
      {"a unit left out", with_task("handler: h, timeout: 5"), "4:49 unknown_key"},
      {"a foreign key", with_task("handler: h, colour: red"), "4:49 unknown_key?"},
  });
}

TEST(Parse, retries_are_checked) {
  const auto with_retry = [](std::string_view retry) {
    return with_task("handler: h, retry: {" + std::string(retry) + "}");
  };
  check({
      {"not a mapping", with_task("handler: h, retry: 3"), "4:56 wrong_type"},
      {"no attempts", with_retry("backoff: fixed"), "4:56 retry_without_attempts?"},
      {"attempts are 0", with_retry("max_attempts: 0"), "4:71 out_of_range"},
      {"attempts are too many", with_retry("max_attempts: 1001"), "4:71 out_of_range"},
      {"attempts are text", with_retry("max_attempts: many"), "4:71 wrong_type"},
      {"backoff is unknown", with_retry("max_attempts: 2, backoff: linear"), "4:83 invalid_value"},
      {"a negative delay", with_retry("max_attempts: 2, initial_delay_seconds: -1"), "4:97 out_of_range"},
      {"a delay that is no number", with_retry("max_attempts: 2, initial_delay_seconds: .nan"),
       "4:97 out_of_range"},
      {"a delay that is text", with_retry("max_attempts: 2, initial_delay_seconds: 5s"), "4:97 wrong_type"},
      {"a delay above 30 days", with_retry("max_attempts: 2, max_delay_seconds: 2592000.5"),
       "4:93 out_of_range"},
      {"delays in the wrong order",
       with_retry("max_attempts: 2, initial_delay_seconds: 5, max_delay_seconds: 1"), "4:119 delay_order?"},
      {"a slip in a key", with_retry("max_attempt: 2"), "4:56 retry_without_attempts?, 4:57 unknown_key"},
      {"all is well", with_retry("max_attempts: 1000, initial_delay_seconds: 0, max_delay_seconds: 2592000"),
       ""},
  });
}

TEST(Parse, edges_are_checked) {
  const std::string end = "  e: {type: end}\n";
  const auto task = [](std::string_view id, std::string_view rest) {
    return "  " + std::string(id) + ": {type: task, handler: h, " + std::string(rest) + "}\n";
  };
  const std::string start = "  s: {type: start, next: a}\n";
  check({
      {"next is nothing", with_nodes("  s: {type: start, next: }\n" + end), "3:26 wrong_type"},
      {"next is a mapping", with_nodes("  s: {type: start, next: {a: b}}\n" + end), "3:26 wrong_type"},
      {"next holds a list", with_nodes("  s: {type: start, next: [e, [e]]}\n" + end), "3:30 wrong_type"},
      {"an unknown target", with_nodes("  s: {type: start, next: [e, nowhere]}\n" + end),
       "3:30 unknown_node"},
      {"an unknown dependency", with_nodes(start + task("a", "depends_on: [x1], next: e") + end),
       "4:44 unknown_node"},
      {"depends_on of neither kind", with_nodes(start + task("a", "depends_on: {}, next: e") + end),
       "4:43 invalid_depends_on"},
      {"depends_on of both kinds",
       with_nodes(start + task("a", "depends_on: {all_of: [s], any_of: [s]}, next: e") + end),
       "4:43 invalid_depends_on"},
      {"depends_on is nothing", with_nodes(start + task("a", "depends_on: ~, next: e") + end),
       "4:43 wrong_type"},
      {"a slip in depends_on", with_nodes(start + task("a", "depends_on: {al_of: [s]}, next: e") + end),
       "4:43 invalid_depends_on, 4:44 unknown_key"},
      {"an edge into the start", with_nodes(start + task("a", "next: [s, e]") + end), "4:38 edge_into_start"},
      {"a start that depends",
       with_nodes("  s: {type: start, next: a, depends_on: a}\n" + task("a", "next: e") + end),
       "3:41 edge_into_start"},
      {"an edge out of the end",
       with_nodes(start + task("a", "next: e") + end + task("b", "depends_on: [a, e], next: e")),
       "6:47 edge_out_of_end"},
      {"a node after itself", with_nodes(start + task("a", "next: [a, e]") + end), "4:38 follows_itself"},
      {"a node that depends on itself", with_nodes(start + task("a", "depends_on: a, next: e") + end),
       "4:43 follows_itself"},
      {"a dead end", with_nodes("  s: {type: start, next: [a, e]}\n" + task("a", "queue: q") + end),
       "4:3 dead_end"},
      {"an empty next", with_nodes("  s: {type: start, next: [a, e]}\n" + task("a", "next: []") + end),
       "4:3 dead_end"},
      {"an unreachable node", with_nodes("  s: {type: start, next: e}\n" + task("a", "next: e") + end),
       "4:3 unreachable"},
      {"an unreachable end", with_nodes("  s: {type: start, next: e}\n  e2: {type: end}\n" + end),
       "4:3 unreachable"},
      {"a cycle of two", with_nodes(start + task("a", "next: b") + task("b", "next: [a, e]") + end),
       "5:38 cycle"},
      {"a cycle through depends_on",
       with_nodes(start + task("a", "depends_on: [b], next: b") + task("b", "next: e") + end), "4:44 cycle"},
      {"an unknown target hides nothing else",
       with_nodes("  s: {type: start, next: aa}\n" + task("a", "next: e") + end), "3:26 unknown_node"},
  });
}

TEST(Parse, every_later_node_type_is_named_as_such) {
  for (const std::string type : {"http", "workflow"}) {
    const auto parsed = parse(with_nodes("  s: {type: start, next: x}\n  x: {type: " + type +
                                         ", whatever: 1, next: e}\n  e: {type: end}\n"));
    ASSERT_EQ(parsed.diagnostics.size(), 1u) << listed(parsed.diagnostics);
    EXPECT_EQ(parsed.diagnostics[0].code, "unsupported_node_type");
    EXPECT_EQ(parsed.diagnostics[0].message, "the node type '" + type + "' is not supported by this version");
  }
}

TEST(Parse, hints_say_what_was_meant) {
  struct Hint {
    std::string yaml;
    std::string hint;
  };
  for (const auto& [yaml, hint] : std::vector<Hint>{
           {with_task("handler: h, queu: q"), "did you mean 'queue'?"},
           {with_nodes("  start: {type: start, next: edn}\n  end: {type: end}\n"), "did you mean 'end'?"},
           {with_nodes("  s: {type: START, next: e}\n  e: {type: end}\n"), "did you mean 'start'?"},
           {with_inputs("a: int"), "did you mean 'integer'?"},
           {with_inputs("a: float"), "did you mean 'number'?"},
           {with_inputs("a: bool"), "did you mean 'boolean'?"},
           {with_inputs("a: list"), "did you mean 'array'?"},
           {with_inputs("a: dict"), "did you mean 'object'?"},
           {with_inputs("a: sting"), "did you mean 'string'?"},
           {with_inputs("a: any"), "leave 'type' out to accept any value"},
           {with_task("handler: h, retry: {max_attempts: 2, backoff: exponentail}"),
            "did you mean 'exponential'?"},
           {with_task("handler: 5"), "quote it: \"5\""},
       }) {
    const auto parsed = parse(yaml);
    ASSERT_EQ(parsed.diagnostics.size(), 1u) << yaml << listed(parsed.diagnostics);
    EXPECT_EQ(parsed.diagnostics[0].hint, hint);
  }
}

TEST(Parse, messages_name_what_and_where) {
  const auto message = [](const std::string& yaml) { return parse(yaml).diagnostics.at(0).message; };
  EXPECT_EQ(message(with_task("handlr: h, handler: x")), "unknown key 'handlr' in node 't'");
  EXPECT_EQ(message(with_task("handler: h, timeout_seconds: soon")),
            "'timeout_seconds' of node 't' must be an integer, found a string");
  EXPECT_EQ(message(with_task("handler: h, timeout_seconds: 0")),
            "'timeout_seconds' of node 't' must be from 1 to 31536000, found 0");
  EXPECT_EQ(message(with_task("handler: h, params: {a: '{{ b }}'}")),
            "'params' of node 't': unknown name 'b'");
  EXPECT_EQ(message(with_nodes("  s: {type: start}\n  e: {type: end}\n")),
            "node 's' has no next; every path must reach an end node");
}

TEST(Parse, a_cycle_is_named_whole) {
  const auto parsed =
      parse(with_nodes("  s: {type: start, next: a}\n  a: {type: task, handler: h, next: b}\n  b: {type: "
                       "task, handler: h, next: c}\n"
                       "  c: {type: task, handler: h, next: [a, e]}\n  e: {type: end}\n"));
  ASSERT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_EQ(parsed.diagnostics[0].message, "the nodes form a cycle: a -> b -> c -> a");
}

TEST(Parse, all_errors_come_at_once_and_in_order) {
  const std::string yaml =
      "version: 0\nnodes:\n  s: {type: start, next: aa1}\n  a1: {type: task, next: e, timeout_seconds: -1}\n "
      " e: {type: end, next: s}\n"
      "inputs: {x: int}\n";
  EXPECT_EQ(summary(yaml),
            "1:1 missing_key, 1:10 out_of_range, 3:26 unknown_node, 4:3 missing_key, 4:46 out_of_range, 5:18 "
            "end_has_next, "
            "6:13 unknown_input_type");
  EXPECT_FALSE(parse(yaml).definition);
}

TEST(Parse, what_an_earlier_version_has_accepted_is_still_read) {
  for (const std::string& yaml : {with_task("handler: h, queue: builtin"), with_task("handlr: g, handler: h"),
                                  with_task("handler: " + std::string(300, 'h'))}) {
    EXPECT_FALSE(parse(yaml).definition);
    EXPECT_TRUE(parse(yaml, Strictness::stored).definition) << yaml;
  }
  EXPECT_FALSE(parse(with_task(""), Strictness::stored).definition);
}

TEST(Parse, warnings_do_not_stop_a_definition) {
  const auto parsed = parse("owner: me\n" + with_task("handler: h"));
  EXPECT_EQ(parsed.diagnostics.size(), 1u);
  EXPECT_TRUE(parsed.definition);
}

// A chain of `count` nodes, start and end included.
std::string chain(int count) {
  std::string nodes = "  n0: {type: start, next: n1}\n";
  for (int i = 1; i < count - 1; ++i)
    nodes += "  n" + std::to_string(i) + ": {type: task, handler: h, next: n" + std::to_string(i + 1) + "}\n";
  return with_nodes(nodes + "  n" + std::to_string(count - 1) + ": {type: end}\n");
}

TEST(Parse, a_thousand_nodes_are_the_limit) {
  const auto definition = accepted(chain(1000));
  for (NodeIndex i = 0; i < 1000; ++i) EXPECT_EQ(definition->find("n" + std::to_string(i)), i);
  EXPECT_EQ(definition->find("n1000"), std::nullopt);
  EXPECT_EQ(summary(chain(1001)), "2:1 too_many_nodes");
}

TEST(Parse, the_number_of_diagnostics_is_bounded) {
  std::string keys;
  for (int i = 0; i < 5000; ++i) keys += "zzzz" + std::to_string(i) + ": 1\n";
  const auto parsed = parse(keys);  // the warnings leave room for the errors
  EXPECT_LE(parsed.diagnostics.size(), 200u);
  EXPECT_TRUE(has_errors(parsed.diagnostics));
}

TEST(Definition, finds_nodes_without_an_index_too) {
  Definition definition;
  definition.nodes.resize(2);
  definition.nodes[1].id = "b";
  EXPECT_EQ(definition.find("b"), 1u);
  EXPECT_EQ(definition.find("c"), std::nullopt);
}

TEST(RetryPolicy, exponential_doubles_up_to_the_longest_delay) {
  const RetryPolicy policy{5, Backoff::exponential, seconds{5}, seconds{30}};
  EXPECT_EQ(policy.delay_before(1), seconds{5});
  EXPECT_EQ(policy.delay_before(2), seconds{10});
  EXPECT_EQ(policy.delay_before(3), seconds{20});
  EXPECT_EQ(policy.delay_before(4), seconds{30});
  EXPECT_EQ(policy.delay_before(1000), seconds{30});
}

TEST(RetryPolicy, fixed_stays_the_same) {
  const RetryPolicy policy{5, Backoff::fixed, seconds{600}, seconds{300}};
  EXPECT_EQ(policy.delay_before(1), seconds{600});
  EXPECT_EQ(policy.delay_before(9), seconds{600});
}

TEST(RetryPolicy, a_long_first_delay_is_not_cut_by_the_default) {
  const auto definition =
      accepted(with_task("handler: h, retry: {max_attempts: 2, initial_delay_seconds: 900}"));
  EXPECT_EQ(node(*definition, "t").retry.delay_before(1), seconds{900});
}

RC_GTEST_PROP(RetryPolicy, delays_grow_and_stay_within_bounds, ()) {
  const auto initial = Duration{*rc::gen::inRange<std::int64_t>(0, Duration::max().count())};
  const auto longest = Duration{*rc::gen::inRange<std::int64_t>(0, Duration::max().count())};
  const auto attempt = *rc::gen::inRange(1, 1'000'000);
  const RetryPolicy policy{1, Backoff::exponential, initial, longest};
  RC_ASSERT(policy.delay_before(attempt) <= longest);
  RC_ASSERT(policy.delay_before(attempt) >= std::min(initial, longest));
  RC_ASSERT(policy.delay_before(attempt + 1) >= policy.delay_before(attempt));
}

}  // namespace
}  // namespace baton::workflow
