#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <iterator>

#include "core/runbook/definition/definition.hpp"
#include "tests/support/source_dir.hpp"

namespace baton::runbook {
namespace {

using namespace std::chrono_literals;

std::string shown(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& each : diagnostics) text += render("runbook", each) + "\n";
  return text;
}

std::shared_ptr<const Definition> read(const std::string& yaml) {
  const Parsed parsed = parse(yaml);
  EXPECT_EQ(shown(parsed.diagnostics), "");
  return parsed.definition;
}

// Everything that there is.
const std::string contoso = R"(name: contoso-mailboxes
description: Moves the Contoso mailboxes
progression: lockstep
data_source:
  type: postgres
  connection: WAVES_DB
  query: select * from waves
  interval: 10m
  primary_key: UserPrincipalName
  batch_time_column: MigrationDate
  max_removal_percent: 40
  multi_valued_columns:
    - {name: Aliases, format: semicolon_delimited}
    - {name: Groups, format: comma_delimited}
    - {name: Licences, format: json_array}
retry: {max_retries: 2, interval: 30s, backoff: exponential, max_interval: 1h}
init:
  - {name: make-group, worker_id: pool-1, function: New-Group, params: {Name: "wave-{{_batch_id}}"}, on_failure: drop-group}
phases:
  - name: prepare
    offset: T-5d
    steps:
      - name: create-user
        worker_id: pool-1
        function: "New-{{ObjectType}}"
        params: {Upn: "{{UserPrincipalName}}", Aliases: "{{Aliases}}", Options: {Retries: 3, Dry: false}}
        output_params: {TargetId: id, Mail: profile.mail}
        on_failure: undo-user
        timeout: 30m
        retry: {max_retries: 0}
  - name: cut-over
    offset: T-0
    steps:
      - {name: move, worker_id: pool-2, function: Start-Move, params: {Id: "{{TargetId}}"}, poll: {interval: 5m, timeout: 8h}}
  - name: thank
    offset: T+90s
    steps:
      - {name: mail, worker_id: pool-1, function: Send-Mail}
rollbacks:
  undo-user: [{name: remove-user, worker_id: pool-1, function: Remove-User, params: {Upn: "{{UserPrincipalName}}"}}]
  drop-group: [{name: drop, worker_id: pool-1, function: Remove-Group, params: {Name: "wave-{{_batch_id}}"}}]
on_member_removed: [{name: disable, worker_id: pool-1, function: Disable-User, params: {Upn: "{{UserPrincipalName}}"}}]
)";

const std::string smallest = R"(name: r
data_source: {type: csv, connection: C, primary_key: K, batch_time: immediate}
phases: [{name: p, offset: T-0, steps: [{name: s, worker_id: w, function: f}]}]
)";

TEST(RunbookParse, reads_the_document_and_its_source) {
  const auto runbook = read(contoso);
  ASSERT_TRUE(runbook);
  EXPECT_EQ(runbook->name, "contoso-mailboxes");
  EXPECT_EQ(runbook->description, "Moves the Contoso mailboxes");
  EXPECT_EQ(runbook->progression, Progression::lockstep);
  const DataSource& source = runbook->data_source;
  EXPECT_EQ(source.type, SourceType::postgres);
  EXPECT_EQ(source.connection, "WAVES_DB");
  EXPECT_EQ(source.query, "select * from waves");
  EXPECT_EQ(source.interval, 10min);
  EXPECT_EQ(source.primary_key, "UserPrincipalName");
  EXPECT_EQ(source.batch_time_column, "MigrationDate");
  EXPECT_FALSE(source.immediate);
  EXPECT_EQ(source.max_removal_percent, 40);
  ASSERT_EQ(source.multi_valued_columns.size(), 3u);
  EXPECT_EQ(source.multi_valued_columns[0].name, "Aliases");
  EXPECT_EQ(source.multi_valued_columns[0].format, MultiFormat::semicolon_delimited);
  EXPECT_EQ(source.multi_valued_columns[1].format, MultiFormat::comma_delimited);
  EXPECT_EQ(source.multi_valued_columns[2].format, MultiFormat::json_array);
}

TEST(RunbookParse, reads_phases_and_steps) {
  const auto runbook = read(contoso);
  ASSERT_TRUE(runbook);
  ASSERT_EQ(runbook->phases.size(), 3u);
  EXPECT_EQ(runbook->phases[0].offset_minutes, 5 * 24 * 60);
  EXPECT_EQ(runbook->phases[1].offset_minutes, 0);
  EXPECT_EQ(runbook->phases[2].offset_minutes, -2);
  EXPECT_EQ(runbook->phase("cut-over"), &runbook->phases[1]);
  EXPECT_EQ(runbook->phase("Cut-over"), nullptr);
  const Step& create = runbook->phases[0].steps.at(0);
  EXPECT_EQ(create.name, "create-user");
  EXPECT_EQ(create.worker_id, "pool-1");
  EXPECT_EQ(create.function, "New-{{ObjectType}}");
  EXPECT_EQ(create.params.text,
            R"({"Upn":"{{UserPrincipalName}}","Aliases":"{{Aliases}}","Options":{"Retries":3,"Dry":false}})");
  EXPECT_EQ(create.output_params,
            (std::map<std::string, std::string>{{"TargetId", "id"}, {"Mail", "profile.mail"}}));
  EXPECT_EQ(create.on_failure, "undo-user");
  EXPECT_EQ(create.timeout, 30min);
  EXPECT_FALSE(create.poll);
  const Step& move = runbook->phases[1].steps.at(0);
  ASSERT_TRUE(move.poll);
  EXPECT_EQ(move.poll->interval, 5min);
  EXPECT_EQ(move.poll->timeout, 8h);
  EXPECT_EQ(move.timeout, 1h);
  EXPECT_EQ(runbook->phases[2].steps.at(0).params.text, "{}");
}

TEST(RunbookParse, reads_init_and_cleanup) {
  const auto runbook = read(contoso);
  ASSERT_TRUE(runbook);
  EXPECT_EQ(runbook->init.at(0).on_failure, "drop-group");
  EXPECT_EQ(runbook->rollback("undo-user").at(0).function, "Remove-User");
  EXPECT_EQ(runbook->rollback("drop-group").at(0).name, "drop");
  EXPECT_TRUE(runbook->rollback("nothing").empty());
  EXPECT_EQ(runbook->on_member_removed.at(0).name, "disable");
}

TEST(RunbookParse, a_steps_retry_replaces_the_runbooks_whole) {
  const auto runbook = read(contoso);
  ASSERT_TRUE(runbook);
  const Retry own = runbook->retry_of(runbook->phases[0].steps[0]);
  EXPECT_EQ(own.max_retries, 0);
  EXPECT_EQ(own.interval, 1min);  // the default, not the runbook's
  EXPECT_EQ(own.backoff, Backoff::fixed);
  const Retry general = runbook->retry_of(runbook->phases[1].steps[0]);
  EXPECT_EQ(general.max_retries, 2);
  EXPECT_EQ(general.interval, 30s);
  EXPECT_EQ(general.backoff, Backoff::exponential);
  EXPECT_EQ(general.max_interval, 1h);
}

TEST(RunbookParse, the_smallest_runbook_has_defaults) {
  const auto runbook = read(smallest);
  ASSERT_TRUE(runbook);
  EXPECT_EQ(runbook->progression, Progression::per_member);
  EXPECT_TRUE(runbook->data_source.immediate);
  EXPECT_EQ(runbook->data_source.interval, 5min);
  EXPECT_EQ(runbook->data_source.max_removal_percent, 25);
  EXPECT_FALSE(runbook->retry);
  EXPECT_EQ(runbook->retry_of(runbook->phases[0].steps[0]).max_retries, 0);
  EXPECT_EQ(runbook->phases[0].steps[0].timeout, 1h);
}

TEST(RunbookParse, queries_may_be_empty_where_there_is_none) {
  const auto with = [](const std::string& source) {
    return "name: r\ndata_source: {connection: C, primary_key: K, batch_time: immediate, " + source + "}\n" +
           smallest.substr(smallest.find("phases"));
  };
  EXPECT_TRUE(read(with("type: csv, query: ''")));
  EXPECT_TRUE(read(with("type: http")));
  EXPECT_TRUE(read(with("type: http, query: /members")));
  EXPECT_TRUE(read(with("type: sqlite, query: select 1")));
}

TEST(RunbookParse, closing_braces_alone_are_text) {
  EXPECT_TRUE(
      read("name: r\ndata_source: {type: csv, connection: C, primary_key: K, batch_time: immediate}\n"
           "phases: [{name: p, offset: T-0, steps: [{name: s, worker_id: w, function: f, params: {a: "
           "'{\"b\": {\"c\": 1}}', d: '{{ Display Name }}{'}}]}]\n"));
}

TEST(RunbookParse, a_rollback_of_init_and_of_members_knows_the_batch_only) {
  const std::string yaml =
      smallest +
      "init: [{name: i, worker_id: w, function: f, on_failure: u}, {name: j, worker_id: w, "
      "function: f, on_failure: u}]\n"
      "rollbacks: {u: [{name: a, worker_id: w, function: '{{K}}'}]}\n";
  const Parsed parsed = parse(yaml);
  ASSERT_EQ(parsed.diagnostics.size(), 1u) << shown(parsed.diagnostics);  // once, though two steps name it
  EXPECT_EQ(parsed.diagnostics[0].code, "not_a_batch_variable");
  EXPECT_NE(parsed.diagnostics[0].message.find("step 'i' of 'init'"), std::string::npos);
}

TEST(RunbookParse, a_secret_is_never_repeated) {
  for (const char* secret :
       {"postgres://me:hunter2@db/x", "host=db password=hunter2", "me@hunter2", "hunter2!"}) {
    const Parsed parsed =
        parse("name: r\ndata_source: {type: csv, connection: '" + std::string(secret) +
              "', primary_key: K, batch_time: immediate}\n" + smallest.substr(smallest.find("phases")));
    EXPECT_FALSE(parsed.definition);
    ASSERT_EQ(parsed.diagnostics.size(), 1u);
    EXPECT_EQ(parsed.diagnostics[0].code, "invalid_connection");
    EXPECT_EQ(shown(parsed.diagnostics).find("hunter2"), std::string::npos) << shown(parsed.diagnostics);
  }
}

TEST(RunbookParse, the_runbook_of_the_guide_is_valid_without_a_warning) {
  std::ifstream stream(support::source_dir() / "docs/guide/runbooks.md");
  const std::string guide(std::istreambuf_iterator<char>(stream), {});
  const auto begin = guide.find("```yaml\n") + 8;
  EXPECT_TRUE(read(guide.substr(begin, guide.find("```", begin) - begin)));
}

// ---- stored runbooks ----

TEST(RunbookParse, a_stored_runbook_is_read_although_it_would_not_be_accepted_now) {
  const std::string yaml = R"(name: my book
overdue_behavior: rerun
data_sorce: {}
data_source: {type: databricks, connection: "jdbc:x", warehouse_id: 7, primary_key: K, batch_time_column: T}
init: [{name: i, worker_id: w, function: "{{K}}", output_params: {A: a}}]
phases:
  - name: p
    offset: T-0
    steps:
      - {name: s, worker_id: builtin, function: f, params: {a: "{{_batchid}}"}, on_failure: gone}
      - {name: s, worker_id: w, function: f, on_failure: undo}
rollbacks: {undo: [{name: u, worker_id: w, function: f, on_failure: undo, poll: {interval: 1m, timeout: 5m}}]}
)";
  EXPECT_FALSE(parse(yaml).definition);
  const Parsed stored = parse(yaml, Strictness::stored);
  ASSERT_TRUE(stored.definition) << shown(stored.diagnostics);
  EXPECT_GE(stored.diagnostics.size(), 10u);
  EXPECT_EQ(stored.definition->name, "my book");
  EXPECT_EQ(stored.definition->data_source.type, SourceType::unsupported);
  EXPECT_TRUE(stored.definition->init[0].output_params.empty());
  EXPECT_EQ(stored.definition->phases[0].steps[0].on_failure, "gone");
  EXPECT_TRUE(stored.definition->rollback("gone").empty());
  EXPECT_EQ(stored.definition->rollback("undo")[0].on_failure, "");  // cleanup has no cleanup
  EXPECT_FALSE(stored.definition->rollback("undo")[0].poll);
}

TEST(RunbookParse, a_stored_runbook_that_cannot_run_is_refused) {
  for (const char* yaml : {"name: r\n", "[]", "name: r\nphases: [{name: p, offset: soon, steps: []}]\n"})
    EXPECT_FALSE(parse(yaml, Strictness::stored).definition) << yaml;
}

// ---- durations, offsets, tables ----

TEST(RunbookParse, durations_have_one_unit) {
  EXPECT_EQ(parse_duration("30s"), 30s);
  EXPECT_EQ(parse_duration("15m"), 15min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("3650d"), std::chrono::days{3650});
  for (const char* wrong : {"", "s", "5", "m5", "-5m", "+5m", "5 m", " 5m", "5m ", "1.5h", "1h30m", "5M",
                            "5w", "5ms", "0x5m", "3651d", "99999999999999999999s", "9223372036854775807d"})
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
}

TEST(RunbookParse, offsets_are_minutes_before_T) {
  EXPECT_EQ(parse_offset("T-5d"), 7200);
  EXPECT_EQ(parse_offset("T-4h"), 240);
  EXPECT_EQ(parse_offset("T-30m"), 30);
  EXPECT_EQ(parse_offset("T-90s"), 2);
  EXPECT_EQ(parse_offset("T-60s"), 1);
  EXPECT_EQ(parse_offset("T-1s"), 1);
  EXPECT_EQ(parse_offset("T-0"), 0);
  EXPECT_EQ(parse_offset("T-0m"), 0);
  EXPECT_EQ(parse_offset("T+0"), 0);
  EXPECT_EQ(parse_offset("T+2h"), -120);
  EXPECT_EQ(parse_offset("T+90s"), -2);
  EXPECT_EQ(parse_offset("T-3650d"), 3650 * 24 * 60);
  for (const char* wrong : {"", "T", "T-", "t-5d", "T5d", "T -5d", "T- 5d", "T-5", "T--5d", "T-+5d", "5d",
                            "T-3651d", "T-00", "T-5d4h", "T*5d"})
    EXPECT_EQ(parse_offset(wrong), std::nullopt) << wrong;
}

RC_GTEST_PROP(RunbookParse, offsets_before_and_after_T_mirror_each_other, ()) {
  const auto number = *rc::gen::inRange(0, 3000);
  const std::string span = std::to_string(number) + *rc::gen::element<std::string>("s", "m", "h", "d");
  const auto before = parse_offset("T-" + span);
  RC_ASSERT(before.has_value());
  RC_ASSERT(parse_offset("T+" + span) == -*before);
  RC_ASSERT(std::chrono::minutes{*before} >= *parse_duration(span));
  RC_ASSERT(std::chrono::minutes{*before} - *parse_duration(span) < 60s);
}

TEST(RunbookParse, the_table_of_a_runbook_is_named_after_it) {
  EXPECT_EQ(data_table_name("contoso-mailbox-migration", 3), "runbook_contoso_mailbox_migration_v3");
  EXPECT_EQ(data_table_name("Contoso.Wave_2", 12), "runbook_contoso_wave_2_v12");
  EXPECT_EQ(data_table_name("a\"; drop table x--", 1), "runbook_a___drop_table_x___v1");
  const std::string fits(50, 'a');
  EXPECT_EQ(data_table_name(fits, 123), "runbook_" + fits + "_v123");
}

TEST(RunbookParse, long_names_of_tables_stay_apart) {
  const std::string long_name(100, 'a');
  const std::string table = data_table_name(long_name, 2147483647);
  EXPECT_EQ(table.size(), 63u);
  EXPECT_TRUE(table.ends_with("_v2147483647"));
  EXPECT_NE(data_table_name(long_name + "b", 1), data_table_name(long_name + "c", 1));
  EXPECT_NE(data_table_name(long_name, 1), data_table_name(long_name, 2));
}

}  // namespace
}  // namespace baton::runbook
