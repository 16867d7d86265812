// Every rule of a runbook, broken; see broken_rules.hpp.
#include <gtest/gtest.h>

#include "core/runbook/definition/definition.hpp"
#include "tests/support/broken_rules.hpp"

namespace baton::runbook::parse_rules_test {
namespace {

using support::Rules;

// ---- documents ----

const std::string source =
    "data_source: {type: csv, connection: WAVES, primary_key: Upn, batch_time_column: Day}\n";
const std::string phases =
    "phases: [{name: p, offset: T-0, steps: [{name: s, worker_id: w, function: f}]}]\n";
const std::string head = "name: r\n" + source;
const std::string smallest = head + phases;

std::string with_source(const std::string& keys) { return "name: r\ndata_source: {" + keys + "}\n" + phases; }
// A source that lacks nothing but what is given.
std::string csv(const std::string& keys) {
  return with_source("type: csv, connection: C, primary_key: K, " + keys);
}
std::string timed(const std::string& keys) { return csv("batch_time_column: T, " + keys); }
std::string phase(const std::string& keys) { return head + "phases:\n  - {" + keys + "}\n"; }
std::string steps(const std::string& list) { return phase("name: p, offset: T-0, steps: " + list); }
std::string step(const std::string& keys) { return steps("[{" + keys + "}]"); }
// A step that lacks nothing but what is given.
std::string task(const std::string& keys) { return step("name: s, worker_id: w, function: f, " + keys); }
std::string init(const std::string& keys) {
  return smallest + "init: [{name: i, worker_id: w, function: f, " + keys + "}]\n";
}
std::string removed(const std::string& keys) {
  return smallest + "on_member_removed: [{name: i, worker_id: w, function: f, " + keys + "}]\n";
}
std::string offsets(const std::string& first, const std::string& second) {
  const std::string rest = ", steps: [{name: s, worker_id: w, function: f}]}\n";
  return head + "phases:\n  - {name: a, offset: " + first + rest + "  - {name: b, offset: " + second + rest;
}
std::string many(int count, const std::string& before, const std::string& after) {
  std::string text;
  for (int i = 0; i < count; ++i) text += before + std::to_string(i) + after;
  return text;
}

const std::string nothing = "give it a value or remove the key";
const std::string source_types = "types are csv, sqlite, postgres and http";
const std::string durations = "as 30s, 15m, 2h or 7d";
const std::string offset_hint = "as T-5d, T-4h, T-30m, T-90s, T-0 or T+2h";
const std::string connection_hint = "put that into an environment variable, and its name here";
const std::string batch_hint = "only _batch_id and _batch_start_time are known there";
const std::string cleanup_hint = "rollbacks and removals are steps that run once, in order";
const std::string fixed_hint = "variables are known in 'function' and 'params'";
const std::string braces_hint = "as {{UserPrincipalName}}";

// ---- the table ----

Rules document_rules() {
  return {
      {"an empty document", "@", {{"wrong_type", nothing}}},
      {"not YAML", "a: b@: c\n", {{"yaml_syntax"}}},
      {"nothing in it", "@@@{}", {{"missing_key"}, {"missing_key"}, {"missing_key"}}},
      {"name is a number", "name: @12\n" + source + phases, {{"wrong_type", "quote it: \"12\""}}},
      {"name with a blank", "name: @a b\n" + source + phases, {{"invalid_name"}}},
      {"name is a dot",
       "name: @.\n" + source + phases,
       {{"invalid_name", "it is part of a path, where that means something else"}}},
      {"name is two dots",
       "name: @..\n" + source + phases,
       {{"invalid_name", "it is part of a path, where that means something else"}}},
      {"name is empty", "name: @''\n" + source + phases, {{"invalid_name"}}},
      {"description is a list", "description: @[]\n" + smallest, {{"wrong_type"}}},
      {"progression misspelt",
       "progression: @lock_step\n" + smallest,
       {{"invalid_value", "did you mean 'lockstep'?"}}},
      {"a slip in a key", "@rollback: {}\n" + smallest, {{"unknown_key", "did you mean 'rollbacks'?"}}},
      {"a foreign key",
       "@owner: me\n" + smallest,
       {{"unknown_key?",
         "known keys are name, description, progression, data_source, retry, init, phases, rollbacks, "
         "on_member_removed, late_after, max_failed_percent, min_failed, phase_overlap"}}},
      {"late_after without a unit", "late_after: @60\n" + smallest, {{"invalid_duration", "add a unit: 60s"}}},
      {"phase_overlap misspelt", "phase_overlap: @waits\n" + smallest, {{"invalid_value", "did you mean 'wait'?"}}},
      {"a threshold over a hundred", "max_failed_percent: @101\n" + smallest, {{"out_of_range"}}},
      {"min_failed alone", "min_failed: @3\n" + smallest, {{"missing_key", "add max_failed_percent: 10"}}},
      {"what is given at publish",
       "@overdue_behavior: rerun\n@rerun_init: true\n" + smallest,
       {{"misplaced_key", "give it when you publish"}, {"misplaced_key", "give it when you publish"}}},
      {"no source", "@name: r\n" + phases, {{"missing_key"}}},
      {"no phases", "@name: r\n" + source, {{"missing_key"}}},
      {"init is a mapping", smallest + "init: @{}\n", {{"wrong_type"}}},
      {"on_member_removed is nothing", smallest + "on_member_removed:@\n", {{"wrong_type", nothing}}},
  };
}

Rules source_rules() {
  const std::string columns = "as {name: Aliases, format: semicolon_delimited}";
  const std::string a_file = "put the path into an environment variable, and its name here";
  return {
      {"no mapping", "name: r\ndata_source: @csv\n" + phases, {{"wrong_type"}}},
      {"nothing in it",
       "name: r\n@@@@data_source: {}\n" + phases,
       {{"missing_key", source_types},
        {"missing_key", "the name of an environment variable or of a connection"},
        {"missing_key", "the column that tells members apart"},
        {"invalid_batch_time"}}},
      {"a slip in a key", timed("@intervall: 5m"), {{"unknown_key", "did you mean 'interval'?"}}},
      {"type is no text",
       with_source("type: @[csv], connection: C, primary_key: K, batch_time_column: T"),
       {{"wrong_type"}}},
      {"a misspelt type",
       with_source("type: @postgresql, connection: C, primary_key: K, batch_time_column: T"),
       {{"unknown_source_type", "did you mean 'postgres'?"}}},
      {"an unknown type",
       with_source("type: @excel, connection: C, primary_key: K, batch_time_column: T"),
       {{"unknown_source_type", source_types}}},
      {"odbc comes later",
       with_source("type: @odbc, connection: C, query: q, primary_key: K, batch_time_column: T"),
       {{"unsupported_source_type", source_types}}},
      {"databricks comes later",
       with_source("type: @databricks, connection: C, query: q, primary_key: K, batch_time_column: T"),
       {{"unsupported_source_type", source_types}}},
      {"connection is empty",
       with_source("type: csv, connection: @'', primary_key: K, batch_time_column: T"),
       {{"empty_value"}}},
      {"connection is a number",
       with_source("type: csv, connection: @7, primary_key: K, batch_time_column: T"),
       {{"wrong_type", "quote it: \"7\""}}},
      {"connection is a path",
       with_source("type: csv, connection: @/data/waves.csv, primary_key: K, batch_time_column: T"),
       {{"invalid_connection", connection_hint}}},
      {"connection is an address",
       with_source("type: csv, connection: @'C:waves', primary_key: K, batch_time_column: T"),
       {{"invalid_connection", connection_hint}}},
      {"connection is a setting",
       with_source("type: csv, connection: @host=db, primary_key: K, batch_time_column: T"),
       {{"invalid_connection", connection_hint}}},
      {"connection has a blank",
       with_source("type: csv, connection: @my waves, primary_key: K, batch_time_column: T"),
       {{"invalid_connection", connection_hint}}},
      {"connection is a file, it seems",
       with_source("type: csv, connection: @waves.csv, primary_key: K, batch_time_column: T"),
       {{"file_as_connection?", a_file}}},
      {"a query for csv",
       timed("query: @select 1"),
       {{"unexpected_query", "remove it: all rows of the file are members"}}},
      {"query is nothing", timed("query: @"), {{"wrong_type", nothing}}},
      {"no query for sqlite",
       "name: r\n@data_source: {type: sqlite, connection: C, primary_key: K, batch_time_column: T}\n" +
           phases,
       {{"missing_key", "the SQL that lists the members"}}},
      {"an empty query for postgres",
       with_source("type: postgres, connection: C, query: @' ', primary_key: K, batch_time_column: T"),
       {{"empty_value", "the SQL that lists the members"}}},
      {"an interval without a unit", timed("interval: @300"), {{"invalid_duration", "add a unit: 300s"}}},
      {"primary_key is empty",
       with_source("type: csv, connection: C, primary_key: @'', batch_time_column: T"),
       {{"empty_value"}}},
      {"both times", csv("batch_time_column: T, batch_time: @immediate"), {{"invalid_batch_time"}}},
      {"both times, the other way round",
       csv("batch_time: immediate, batch_time_column: @T"),
       {{"invalid_batch_time"}}},
      {"batch_time is no known word",
       csv("batch_time: @imediate"),
       {{"invalid_value", "did you mean 'immediate'?"}}},
      {"the time is the key", csv("batch_time_column: @K"), {{"column_clash"}}},
      {"more than everybody", timed("max_removal_percent: @101"), {{"out_of_range"}}},
      {"a fraction of percent", timed("max_removal_percent: @2.5"), {{"wrong_type"}}},
      {"columns are a mapping", timed("multi_valued_columns: @{}"), {{"wrong_type"}}},
      {"a column is a text", timed("multi_valued_columns: [@Aliases]"), {{"wrong_type"}}},
      {"a column without name and format",
       timed("multi_valued_columns: [@@{}]"),
       {{"missing_key", columns}, {"missing_key", columns}}},
      {"a format misspelt",
       timed("multi_valued_columns: [{name: A, format: @comma_delimitd}]"),
       {{"invalid_value", "did you mean 'comma_delimited'?"}}},
      {"a slip in a column's key",
       timed("multi_valued_columns: [{name: A, format: json_array, @nam: B}]"),
       {{"unknown_key", "did you mean 'name'?"}}},
      {"a column twice",
       timed("multi_valued_columns: [{name: A, format: json_array}, {name: @A, format: json_array}]"),
       {{"duplicate_column"}}},
      {"a key of several values",
       timed("multi_valued_columns: [{name: @K, format: json_array}]"),
       {{"column_clash"}}},
      {"too many columns",
       timed("multi_valued_columns: @[" + many(101, "{format: json_array, name: A", "}, ") + "]"),
       {{"too_many"}}},
  };
}

Rules policy_rules() {
  const std::string poll_hint = "as poll: {interval: 5m, timeout: 8h}";
  const std::string retry_hint = "add max_retries: 2, or 0 if that is meant";
  return {
      {"retry is a number", "retry: @3\n" + smallest, {{"wrong_type"}}},
      {"too many retries", "retry: {max_retries: @101}\n" + smallest, {{"out_of_range"}}},
      {"retries below none", "retry: {max_retries: @-1}\n" + smallest, {{"out_of_range"}}},
      {"retry without retries",
       "retry: @{interval: 5m}\n" + smallest,
       {{"retry_without_max_retries?", retry_hint}}},
      {"retry of no length", "retry: {max_retries: 1, interval: @0s}\n" + smallest, {{"out_of_range"}}},
      {"a slip in a key",
       "retry: {max_retries: 1, @max_intervall: 5m}\n" + smallest,
       {{"unknown_key", "did you mean 'max_interval'?"}}},
      {"a backoff of no kind",
       "retry: {max_retries: 1, backoff: @exponentail}\n" + smallest,
       {{"invalid_value", "did you mean 'exponential'?"}}},
      {"max_interval of fixed backoff",
       "retry: {max_retries: 1, interval: 5m, max_interval: @1m}\n" + smallest,
       {{"ignored_key?", "add backoff: exponential"}}},
      {"max_interval below interval",
       task("retry: {max_retries: 1, interval: 5m, backoff: exponential, max_interval: @1m}"),
       {{"interval_order"}}},
      {"max_interval below the default interval",
       task("retry: {max_retries: 1, backoff: exponential, max_interval: @30s}"),
       {{"interval_order"}}},
      {"poll is a text", task("poll: @5m"), {{"wrong_type"}}},
      {"poll of nothing", task("poll: @@{}"), {{"missing_key", poll_hint}, {"missing_key", poll_hint}}},
      {"poll ends before it begins", task("poll: {interval: 5m, timeout: @1m}"), {{"interval_order"}}},
      {"a slip in a key of poll",
       task("poll: {interval: 5m, timeout: 1h, @time-out: 2h}"),
       {{"unknown_key", "did you mean 'timeout'?"}}},
      {"a timeout of two units", task("timeout: @1h30m"), {{"invalid_duration", durations}}},
      {"a timeout with a blank", task("timeout: @30 m"), {{"invalid_duration", durations}}},
      {"a timeout below nothing", task("timeout: @-5m"), {{"invalid_duration", durations}}},
      {"a timeout is a list", task("timeout: @[5m]"), {{"wrong_type"}}},
      {"a timeout is nothing", task("timeout: @~"), {{"wrong_type", nothing}}},
      {"a timeout beyond a year", task("timeout: @366d"), {{"out_of_range"}}},
      {"a timeout of no length", task("timeout: @0m"), {{"out_of_range"}}},
  };
}

Rules phase_rules() {
  const std::string some = "as phases: [{name: cut-over, offset: T-0, steps: [...]}]";
  const std::string merge = "make one phase of them, if one is to come after the other";
  const std::string rest = ", steps: [{name: s, worker_id: w, function: f}]";
  return {
      {"phases is a mapping", head + "phases: @{}\n", {{"wrong_type"}}},
      {"phases is empty", head + "@phases: []\n", {{"empty_list", some}}},
      {"too many phases",
       head + "@phases:\n" + many(101, "  - {offset: T-0, steps: [], name: p", "}\n"),
       {{"too_many"}}},
      {"a phase is a text", head + "phases: [@prepare]\n", {{"wrong_type"}}},
      {"a phase of nothing",
       head + "phases: [@@@{}]\n",
       {{"missing_key"}, {"missing_key", "as offset: T-5d, or T-0"}, {"missing_key"}}},
      {"a slip in a key",
       phase("name: p, offset: T-0, @step: []" + rest),
       {{"unknown_key", "did you mean 'steps'?"}}},
      {"a gate of an unknown type", phase("name: p, offset: T-0, gate: @vote" + rest), {{"invalid_value"}}},
      {"a gate without a type",
       phase("name: p, offset: T-0, gate: @{timeout: 1h}" + rest),
       {{"missing_key", "as {type: approval, timeout: 1h, on_timeout: hold}"}}},
      {"a gate that does something in no time",
       phase("name: p, offset: T-0, gate: {type: approval, on_timeout: @go}" + rest),
       {{"missing_key", "add timeout: 1h"}}},
      {"requires a phase that is not there",
       phase("name: p, offset: T-0, requires: @{phase: q}" + rest),
       {{"unknown_phase"}}},
      {"requires itself",
       phase("name: p, offset: T-0, requires: @{phase: p}" + rest),
       {{"phase_order", "a phase can require one with an earlier offset"}}},
      {"requires no phase",
       phase("name: p, offset: T-0, requires: @{succeeded_percent: 90}" + rest),
       {{"missing_key", "as {phase: prepare, succeeded_percent: 95}"}}},
      {"the name is empty", phase("name: @'', offset: T-0" + rest), {{"empty_value"}}},
      {"the name has a variable",
       phase("name: @'{{Upn}}', offset: T-0" + rest),
       {{"unsupported_template", fixed_hint}}},
      {"the name has a line break", phase("name: @\"a\\nb\", offset: T-0" + rest), {{"invalid_name"}}},
      {"the name is a number", phase("name: @1, offset: T-0" + rest), {{"wrong_type", "quote it: \"1\""}}},
      {"steps is nothing", phase("name: p, offset: T-0, steps: @~"), {{"wrong_type", nothing}}},
      {"steps is empty", phase("name: p, offset: T-0, steps: @[]"), {{"empty_list"}}},
      {"too many steps",
       steps("@[" + many(101, "{worker_id: w, function: f, name: s", "}, ") + "]"),
       {{"too_many"}}},
      {"an offset without T",
       phase("name: p, offset: @5d" + rest),
       {{"invalid_offset", "did you mean 'T-5d'?"}}},
      {"an offset without T, with a sign",
       phase("name: p, offset: @+2h" + rest),
       {{"invalid_offset", "did you mean 'T+2h'?"}}},
      {"a small t and blanks",
       phase("name: p, offset: @t - 5d" + rest),
       {{"invalid_offset", "did you mean 'T-5d'?"}}},
      {"an offset is a number",
       phase("name: p, offset: @0" + rest),
       {{"invalid_offset", "did you mean 'T-0'?"}}},
      {"an offset without a unit", phase("name: p, offset: @T-5" + rest), {{"invalid_offset", offset_hint}}},
      {"an offset in weeks", phase("name: p, offset: @T-2w" + rest), {{"invalid_offset", offset_hint}}},
      {"an offset is a list", phase("name: p, offset: @[T-0]" + rest), {{"wrong_type"}}},
      {"a phase twice",
       head + "phases:\n  - {name: p, offset: T-1h" + rest + "}\n  - {name: @p, offset: T-0" + rest + "}\n",
       {{"duplicate_phase"}}},
      {"phases out of order",
       offsets("T-1h", "@T-2h"),
       {{"phase_order?", "write phases in the order of time"}}},
      {"phases at one time", offsets("T-60m", "@T-1h"), {{"same_offset?", merge}}},
      {"a phase before a batch that begins at once",
       "name: r\ndata_source: {type: csv, connection: C, primary_key: K, batch_time: immediate}\n"
       "phases: [{name: p, offset: @T-1h" +
           rest + "}]\n",
       {{"before_immediate?", "use T-0 or T+..."}}},
  };
}

Rules step_rules() {
  return {
      {"a step is a text", steps("[@move]"), {{"wrong_type"}}},
      {"a step of nothing",
       steps("[@@@{}]"),
       {{"missing_key"}, {"missing_key", "the queue that its workers poll"}, {"missing_key"}}},
      {"a slip in a key", task("@param: {}"), {{"unknown_key", "did you mean 'params'?"}}},
      {"a foreign key",
       task("@colour: red"),
       {{"unknown_key?",
         "known keys are name, worker_id, function, params, output_params, on_failure, timeout, poll, "
         "retry"}}},
      {"a name twice",
       steps("[{name: s, worker_id: w, function: f}, {name: @s, worker_id: w, function: f}]"),
       {{"duplicate_step"}}},
      {"a name with a variable",
       step("name: @'{{Upn}}', worker_id: w, function: f"),
       {{"unsupported_template", fixed_hint}}},
      {"a queue that is the server's",
       step("name: s, worker_id: @builtin, function: f"),
       {{"reserved_queue", "name the queue that your workers poll"}}},
      {"a queue that is for people",
       step("name: s, worker_id: @approval, function: f"),
       {{"reserved_queue", "name the queue that your workers poll"}}},
      {"a queue with a variable",
       step("name: s, worker_id: @'w-{{Region}}', function: f"),
       {{"unsupported_template", fixed_hint}}},
      {"a queue with a tab", step("name: s, worker_id: @\"a\\tb\", function: f"), {{"invalid_name"}}},
      {"a queue that is too long",
       step("name: s, worker_id: @" + std::string(201, 'w') + ", function: f"),
       {{"invalid_name"}}},
      {"an empty function", step("name: s, worker_id: w, function: @''"), {{"empty_value"}}},
      {"params is a list", task("params: @[]"), {{"wrong_type"}}},
      {"params is nothing", task("params: @"), {{"wrong_type", nothing}}},
      {"a parameter without end", task("params: {a: [@.inf]}"), {{"invalid_number", "quote it, if a text is meant"}}},
      {"a parameter that is too large",
       task("params: {a: {b: @-1e400}}"),
       {{"invalid_number", "quote it, if a text is meant"}}},
      {"a parameter that is no number", task("params: {a: @.nan}"), {{"invalid_number", "quote it, if a text is meant"}}},
      {"outputs are a list", task("output_params: @[id]"), {{"wrong_type"}}},
      {"an output with a sign",
       task("output_params: {@a+b: id}"),
       {{"invalid_variable", "it has letters, digits, '_', '-', '.' and blanks inside"}}},
      {"an output of the system",
       task("output_params: {@_batch_id: id}"),
       {{"invalid_variable", "names with '_' in front are the system's"}}},
      {"an output of no field", task("output_params: {Id: @''}"), {{"empty_value"}}},
      {"an output of a number", task("output_params: {Id: @1}"), {{"wrong_type", "quote it: \"1\""}}},
      {"too many outputs", task("output_params: @{" + many(101, "a", ": f, ") + "}"), {{"too_many"}}},
  };
}

Rules template_rules() {
  const std::string system = "variables of the batch are _batch_id and _batch_start_time";
  const std::string later = "that is later; it is known only if a column has that name";
  std::string often = "'";
  for (int i = 0; i < 1001; ++i) often += "{{A}}";
  return {
      {"braces that do not end", task("params: {a: 'x @{{Upn'}"), {{"template_syntax", braces_hint}}},
      {"braces that end in others", task("params: {a: '@{{a {{b}}'}"), {{"template_syntax", braces_hint}}},
      {"braces in braces", task("params: {a: '@{{{{b}}}}'}"), {{"template_syntax", braces_hint}}},
      {"three braces", task("params: {a: '@{{{b}}}'}"), {{"template_syntax", braces_hint}}},
      {"braces without a name",
       task("params: {a: [{b: \"\\t@{{ }}\"}]}"),
       {{"template_syntax", braces_hint}}},
      {"an expression", task("params: {a: '{{b}}@{{a | upper}}'}"), {{"template_syntax", braces_hint}}},
      {"braces in a block",
       head + "phases:\n  - name: p\n    offset: T-0\n    steps:\n      - name: s\n        worker_id: w\n"
              "        function: f\n        params:\n          a: @|\n            x {{\n",
       {{"template_syntax", braces_hint}}},
      {"a function with broken braces",
       step("name: s, worker_id: w, function: New-@{{Type"),
       {{"yaml_syntax"}}},
      {"a quoted function with broken braces",
       step("name: s, worker_id: w, function: 'New-@{{Type'"),
       {{"template_syntax", braces_hint}}},
      {"a variable as a key", task("params: {a: {@'{{b}}': 1}}"), {{"template_in_key"}}},
      {"a slip in a variable of the batch",
       task("params: {a: 'x@{{_batchid}}'}"),
       {{"unknown_variable", "did you mean '_batch_id'?"}}},
      {"a variable that is the system's, it seems",
       task("params: {a: '@{{_member_key}}'}"),
       {{"unknown_variable?", system}}},
      {"a variable of a later step",
       steps("[{name: a, worker_id: w, function: 'f-@{{id}}', params: {x: '@{{ID}}{{Upn}}'}, "
             "output_params: {Id: id}}, {name: b, worker_id: w, function: '{{Id}}'}]"),
       {{"used_before_output?", later}, {"used_before_output?", later}}},
      {"a variable of a later phase, which stands before",
       head +
           "phases:\n  - {name: b, offset: T-0, steps: [{name: b, worker_id: w, function: f, output_params: "
           "{Id: id}}]}\n  - {name: a, offset: @T-5d, steps: [{name: a, worker_id: w, function: "
           "'@{{Id}}'}]}\n",
       {{"phase_order?", "write phases in the order of time"}, {"used_before_output?", later}}},
      {"a variable a thousand times",
       steps("[@{name: s, worker_id: w, function: f, params: {a: " + often + "'}}]"),
       {{"too_many"}}},
  };
}

Rules init_and_cleanup_rules() {
  const std::string init_outputs = "variables belong to members, and init runs once for all of them";
  return {
      {"init with a column",
       init("params: {a: '{{_batch_id}} @{{Upn}}'}"),
       {{"not_a_batch_variable", batch_hint}}},
      {"init with a slip",
       init("params: {a: '@{{batch_start_time}}'}"),
       {{"not_a_batch_variable", "did you mean '_batch_start_time'?"}}},
      {"a function of init with a column",
       smallest + "init: [{name: i, worker_id: w, function: 'f-@{{Upn}}'}]\n",
       {{"not_a_batch_variable", batch_hint}}},
      {"outputs of init", init("@output_params: {A: a}"), {{"misplaced_key", init_outputs}}},
      {"a rollback of init with a column",
       init("on_failure: undo") +
           "rollbacks: {undo: [{name: u, worker_id: w, function: f, params: {a: '@{{Upn}}'}}]}\n",
       {{"not_a_batch_variable", batch_hint}}},
      {"a rollback of init that is not there",
       init("on_failure: @und") + "rollbacks:\n  undo: [{name: u, worker_id: w, function: f}]\n",
       {{"unknown_rollback", "did you mean 'undo'?"}}},
      {"a rollback that is not there", task("on_failure: @undo"), {{"unknown_rollback"}}},
      {"a rollback with a variable in its name",
       task("on_failure: @@'{{a}}'"),
       {{"unsupported_template", fixed_hint}, {"unknown_rollback"}}},
      {"rollbacks is a list", smallest + "rollbacks: @[]\n", {{"wrong_type"}}},
      {"a rollback is a mapping", task("on_failure: u") + "rollbacks: {u: @{name: a}}\n", {{"wrong_type"}}},
      {"a rollback without steps", task("on_failure: u") + "rollbacks: {u: @[]}\n", {{"empty_list"}}},
      {"a rollback without a name",
       smallest + "rollbacks: {@@'': [{name: u, worker_id: w, function: f}]}\n",
       {{"empty_value"}, {"unused_rollback?"}}},
      {"too many rollbacks", smallest + "rollbacks: @{" + many(101, "r", ": [], ") + "}\n", {{"too_many"}}},
      {"a rollback of a rollback",
       task("on_failure: u") + "rollbacks: {u: [{name: u, worker_id: w, function: f, @on_failure: u, @poll: "
                               "{}, @output_params: {}}]}\n",
       {{"misplaced_key", cleanup_hint}, {"misplaced_key", cleanup_hint}, {"misplaced_key", cleanup_hint}}},
      {"a poll after a removal",
       removed("@poll: {interval: 1m, timeout: 5m}"),
       {{"misplaced_key", cleanup_hint}}},
      {"a slip after a removal",
       removed("params: {a: '@{{_batchid}}'}"),
       {{"unknown_variable", "did you mean '_batch_id'?"}}},
      {"two polls that cannot be told apart",
       "name: r\n" + source +
           "init: [{name: s, worker_id: w, function: f, poll: {interval: 1m, timeout: 5m}}]\n" +
           "phases:\n  - {name: p, offset: T-0, steps: [{name: @s, worker_id: w, function: f, poll: "
           "{interval: "
           "1m, timeout: 5m}}]}\n",
       {{"ambiguous_step_name?",
         "give one another name, or a poll-check from outside may be taken for the other"}}},
  };
}

Rules many_at_once() {
  return {
      {"a hurried runbook",
       "name: @my book\n"
       "data_source: {type: @csvs, connection: @a/b, primary_key: K, batch_time_column: T}\n"
       "phases:\n"
       "  - name: p\n"
       "    offset: @5d\n"
       "    steps:\n"
       "      - name: s\n"
       "        worker_id: @builtin\n"
       "        function: 'New-@{{'\n"
       "        @timeot: 5m\n"
       "        on_failure: @undoo\n"
       "rollbacks:\n"
       "  undo: [{name: u, worker_id: w, function: f, @on_failure: undo}]\n",
       {{"invalid_name"},
        {"unknown_source_type", "did you mean 'csv'?"},
        {"invalid_connection", connection_hint},
        {"invalid_offset", "did you mean 'T-5d'?"},
        {"reserved_queue", "name the queue that your workers poll"},
        {"template_syntax", braces_hint},
        {"unknown_key", "did you mean 'timeout'?"},
        {"unknown_rollback", "did you mean 'undo'?"},
        {"misplaced_key", cleanup_hint}}},
  };
}

// ---- checks ----

void check(const Rules& rules) {
  support::check(rules, [](const std::string& text) { return parse(text); });
}

TEST(RunbookRules, of_the_document) { check(document_rules()); }
TEST(RunbookRules, of_data_sources) { check(source_rules()); }
TEST(RunbookRules, of_retries_polls_and_timeouts) { check(policy_rules()); }
TEST(RunbookRules, of_phases) { check(phase_rules()); }
TEST(RunbookRules, of_steps) { check(step_rules()); }
TEST(RunbookRules, of_templates) { check(template_rules()); }
TEST(RunbookRules, of_init_and_cleanup) { check(init_and_cleanup_rules()); }
TEST(RunbookRules, that_are_broken_together_are_told_together) { check(many_at_once()); }

TEST(RunbookRules, are_all_in_the_table_and_in_the_guide) {
  Rules all;
  for (const auto& part : {document_rules(), source_rules(), policy_rules(), phase_rules(), step_rules(),
                           template_rules(), init_and_cleanup_rules()})
    all.insert(all.end(), part.begin(), part.end());
  const auto covered = support::codes_of(all);
  const auto in_guide = support::codes_in("../docs/guide/runbooks.md", R"re(`([a-z_]+)`)re");
  for (const char* file : {"core/runbook/definition/parse.cpp", "core/runbook/definition/parse_policy.cpp",
                           "core/runbook/definition/parse_rules.cpp", "core/runbook/definition/parse_source.cpp", "core/runbook/definition/parse_step.cpp", "base/diagnostics.cpp"})
    for (const std::string& code : support::codes_in(file, support::reported)) {
      EXPECT_TRUE(covered.contains(code)) << code << " of " << file << " is not in the table";
      EXPECT_TRUE(in_guide.contains(code)) << code << " of " << file << " is not in the guide";
    }
}

}  // namespace
}  // namespace baton::runbook::parse_rules_test
