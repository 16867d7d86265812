#include "cli/app.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands/input.hpp"
#include "cli/commands/token_text.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"

namespace baton::cli {
namespace {

// What the parser says to a line: empty when it understands it.
std::string complaint(std::vector<std::string> arguments) {
  Action chosen;
  const auto app = make_app(chosen);
  std::ranges::reverse(arguments);
  try {
    app->parse(arguments);
  } catch (const CLI::ParseError& error) {
    return explain(*app, error);
  }
  return chosen ? "" : "nothing chosen";
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(CommandLine, UnderstandsEveryCommand) {
  for (const std::vector<std::string>& line : std::vector<std::vector<std::string>>{
           {"serve", "--data", "d", "--listen", "127.0.0.1:0", "--insecure", "--builtin", "off", "--body-max",
            "1m"},
           {"run", "f.yaml", "--input", R"({"a":[1,2]})", "--json"},
           {"validate", "a.yaml", "b.yaml", "--json"},
           {"workflow", "publish", "a.yaml", "b.yaml"},
           {"workflow", "list", "--json"},
           {"workflow", "show", "w", "--version", "2"},
           {"job", "submit", "w", "--input", "{}", "--version", "1", "--idempotency-key", "k", "--wait"},
           {"job", "list", "--status", "FAILED", "--workflow", "w", "--limit", "5", "--cursor", "c"},
           {"job", "show", "id", "--server", "http://h:1", "--token", "t", "--tenant", "x"},
           {"job", "watch", "id"},
           {"job", "cancel", "id", "--reason", "because"},
           {"runbook", "validate", "a.yaml", "--json"},
           {"runbook", "publish", "a.yaml", "--overdue-behavior", "ignore", "--rerun-init"},
           {"runbook", "list"},
           {"runbook", "show", "r", "--version", "2", "--yaml"},
           {"runbook", "versions", "r", "--json"},
           {"runbook", "plan", "a.yaml", "--members", "3", "--csv", "m.csv", "--start",
            "2026-01-31T22:00:00Z"},
           {"runbook", "preview", "r", "--limit", "5"},
           {"runbook", "activate", "r", "--version", "2"},
           {"runbook", "automation", "r", "off"},
           {"batch", "list", "--runbook", "r", "--status", "active"},
           {"batch", "create", "r", "--csv", "m.csv", "--by", "ada"},
           {"batch", "advance", "42", "--phase", "p", "--by", "ada"},
           {"batch", "cancel", "42", "--reason", "because"},
           {"batch", "approve-removals", "42"},
           {"batch", "watch", "42"},
           {"member", "list", "42", "--status", "failed"},
           {"member", "show", "42", "ada@contoso.example"},
           {"member", "add", "42", "--csv", "m.csv"},
           {"member", "retry", "42", "ada", "bob"},
           {"member", "retry", "42", "--all", "--by", "ada"},
           {"member", "remove", "42", "ada"},
           {"step", "show", "step-12"},
           {"step", "retry", "init-3", "--by", "ada"},
           {"step", "skip", "rollback-4"},
           {"step", "cancel", "removal-5-retry-1"},
           {"worker", "--queue", "a", "--queue", "b", "--functions", "d", "--concurrency", "3"},
           {"worker", "--queue=a", "--functions=d", "--grace-seconds=1", "--drain-seconds=2", "--name=n"},
           {"worker", "--queue=a", "--functions=d", "--idle-exit-seconds=3", "--log-limit=64k", "--quiet"},
           {"worker", "--queue=a", "--functions=d", "--output-limit=1m", "--pass-token", "--token=t"},
           {"token", "create", "--role", "admin", "--tenant", "t", "--label", "l", "--data", "d"},
           {"token", "list", "--store", "postgres://h/d"},
           {"token", "revoke", "id"}})
    EXPECT_EQ(complaint(line), "") << line[0] << ' ' << line[1];
}

TEST(CommandLine, NamesTheNearestCommand) {
  EXPECT_TRUE(has(complaint({"sevre"}), "baton has no command 'sevre'; did you mean 'serve'?"))
      << complaint({"sevre"});
  EXPECT_TRUE(
      has(complaint({"job", "sumbit", "w"}), "baton job has no command 'sumbit'; did you mean 'submit'?"))
      << complaint({"job", "sumbit", "w"});
  EXPECT_TRUE(has(complaint({"zebra"}), "baton has no command 'zebra'\n")) << complaint({"zebra"});
}

TEST(CommandLine, NamesTheNearestOption) {
  const std::string said = complaint({"serve", "--lisen=127.0.0.1:0"});
  EXPECT_TRUE(has(said, "baton serve has no option '--lisen'; did you mean '--listen'?")) << said;
  EXPECT_TRUE(has(said, "Try 'baton serve --help'."));
  const std::string job = complaint({"job", "submit", "w", "--inptu", "{}"});
  EXPECT_TRUE(has(job, "did you mean '--input'?")) << job;
}

TEST(CommandLine, TellsWhatIsMissing) {
  EXPECT_TRUE(has(complaint({"run"}), "FILE")) << complaint({"run"});
  EXPECT_TRUE(has(complaint({"token", "create"}), "--role")) << complaint({"token", "create"});
  EXPECT_TRUE(has(complaint({"token", "create", "--role", "king"}), "king"));
  EXPECT_FALSE(complaint({}).empty());
  EXPECT_FALSE(complaint({"job"}).empty());
}

TEST(CommandLine, SaysWhatABatchAndAJobAreCalled) {
  EXPECT_TRUE(has(complaint({"batch", "show", "wave"}), "'wave' is not the number of a batch"))
      << complaint({"batch", "show", "wave"});
  EXPECT_TRUE(has(complaint({"step", "show", "12"}), "such as step-12")) << complaint({"step", "show", "12"});
  EXPECT_TRUE(has(complaint({"runbook", "automation", "r", "maybe"}), "maybe"));
  EXPECT_FALSE(complaint({"member", "retry", "42", "ada", "--all"}).empty());
}

TEST(CommandLine, DelaysAreSecondsOrSpans) {
  for (const std::string span : {"0", "90", "1.5", "90s", "1h30m", "2d"})
    EXPECT_EQ(complaint({"job", "submit", "w", "--delay", span}), "") << span;
  for (const std::string span : {"soon", "1h30", "-5m", ""}) {
    const std::string said = complaint({"job", "submit", "w", "--delay=" + span});
    EXPECT_TRUE(has(said, "--delay")) << span << ": " << said;
  }
  EXPECT_TRUE(has(complaint({"job", "submit", "w", "--delay", "soon"}),
                  "'soon' is neither seconds nor a span such as 90s, 1h30m or 2d"))
      << complaint({"job", "submit", "w", "--delay", "soon"});
  EXPECT_FALSE(complaint({"job", "submit", "w", "--delay=1", "--due=2030-01-01T00:00:00Z"}).empty());
}

void expect_no_general_examples(const CLI::App& command) {
  for (const CLI::App* each : command.get_subcommands({})) {
    EXPECT_FALSE(has(each->help(), "start the server")) << each->get_name();
    expect_no_general_examples(*each);
  }
}

TEST(CommandLine, TheHelpOfACommandEndsWithItsOwnExamples) {
  Action chosen;
  const auto app = make_app(chosen);
  EXPECT_TRUE(has(app->help(), "start the server"));
  EXPECT_TRUE(has(app->help(), "6 the server could not be reached"));
  expect_no_general_examples(*app);
}

TEST(Input, IsAnObjectMadeCompactWithItsNumbersAsTheyWere) {
  EXPECT_EQ(parse_input(" { \"a b\" : [ 1.50 , \"x \\\" y\" ] } ", "it")->text, R"({"a b":[1.50,"x \" y"]})");
  EXPECT_EQ(read_input("{}")->text, "{}");
}

TEST(Input, TellsTheByteWhereItStopsBeingJson) {
  const auto broken = parse_input(R"({"a":tru})", "the input");
  ASSERT_FALSE(broken);
  EXPECT_TRUE(has(broken.error().message, "the input is not JSON")) << broken.error().message;
  EXPECT_TRUE(has(broken.error().message, "at byte 5, before 'tru}'")) << broken.error().message;
  EXPECT_TRUE(has(parse_input("{} x", "it").error().message, "at byte 3"))
      << parse_input("{} x", "it").error().message;
  EXPECT_TRUE(has(parse_input("{\"a\":", "it").error().message, "at byte 5"));
  EXPECT_TRUE(has(parse_input("", "it").error().message, "at byte 0"));
  EXPECT_TRUE(has(parse_input("[1]", "it").error().message, "must be a JSON object"));
  EXPECT_TRUE(has(read_input("@/does/not/exist").error().message, "/does/not/exist"));
}

TEST(Output, PrettyJsonChangesOnlyBlanks) {
  EXPECT_EQ(pretty(R"({"a":[1.0,{}],"b":"x,y:{"})"),
            "{\n  \"a\": [\n    1.0,\n    {}\n  ],\n  \"b\": \"x,y:{\"\n}");
  EXPECT_EQ(compact(pretty(R"({"a":[],"b":"\\"})")), R"({"a":[],"b":"\\"})");
}

TEST(Output, TablesAlignAndKeepTheTerminalSafe) {
  EXPECT_EQ(table({{"ID", "NAME"}, {"1", "\x1b[31m"}, {"long", "ü"}}), "ID    NAME\n1     ?[31m\nlong  ü\n");
}

TEST(Output, WhatTurnsTheTerminalOrTheTextAroundIsNotPrinted) {
  EXPECT_EQ(printable("a\tb\x7f\n"), "a?b??");
  EXPECT_EQ(printable("\u0080x\u009f\u00a0\u00e9"), "?x?\u00a0\u00e9");
  EXPECT_EQ(printable("\u202a\u202e\u2066\u2069"), "????");
  EXPECT_EQ(printable("\u2029\u202f\u2065\u206a\u2013"), "\u2029\u202f\u2065\u206a\u2013");
  EXPECT_EQ(printable("cut \xc2"), "cut \xc2");
  EXPECT_EQ(printable("cut \xe2\x80"), "cut \xe2\x80");
  EXPECT_EQ(table({{"A", "B"}, {"\u202e", "x"}}), "A  B\n?  x\n");
}

TEST(Output, TextsAreCutAtColumnsNotBytes) {
  EXPECT_EQ(cut("äöü", 3), "äöü");
  EXPECT_EQ(cut("äöüß", 3), "äö…");
  EXPECT_EQ(cut("abc", 0), "");
}

TEST(Output, LinesOfAnErrorAreJoined) {
  EXPECT_EQ(one_line("first\r\n\nsecond\x1b\n"), "first | second?");
  EXPECT_EQ(one_line("one"), "one");
  EXPECT_EQ(one_line("\n"), "");
}

TEST(ProgressLines, TellTheNodeAndTheReason) {
  EXPECT_EQ(
      progress_line({"node_failed", "pay", R"({"error":"no money"})", {}}, Duration{1500}, false, false),
      "   1.500 s  x pay failed: no money");
  EXPECT_EQ(progress_line({"job_completed", "", "", {}}, Duration{2}, false, false),
            "   0.002 s  + job completed");
  EXPECT_EQ(progress_line({"something_new", "n", "", {}}, Duration{0}, false, false),
            "   0.000 s  * n something_new");
  EXPECT_EQ(progress_line({"node_failed", "n", R"({"error":"a\nb"})", {}}, Duration{0}, false, false),
            "   0.000 s  x n failed: a | b");
}

TEST(ProgressLines, TellWhoAndWhichWay) {
  const auto line = [](const std::string& type, const std::string& node, const std::string& data) {
    return progress_line({type, node, data, {}}, Duration{0}, false, false).substr(12);
  };
  EXPECT_EQ(line("job_paused", "", R"({"by":"ada","reason":"lunch"})"), "= job paused by ada: lunch");
  EXPECT_EQ(line("job_paused", "", ""), "= job paused");
  EXPECT_EQ(line("job_resumed", "", R"({"by":"ada"})"), "> job resumed by ada");
  EXPECT_EQ(line("job_retried", "", R"({"reason":"mended"})"), "~ job retried: mended");
  EXPECT_EQ(line("node_completed", "check", R"({"branch":"true"})"), "+ check completed: branch true");
  EXPECT_EQ(line("node_skipped", "n", ""), "- n skipped");
  EXPECT_EQ(line("checkpoint", "n", R"({"bytes":7})"), "* n checkpoint stored");
  EXPECT_TRUE(has(progress_line({"job_paused", "", "", {}}, Duration{0}, true, true), "\x1b[33mjob paused"));
}

TEST(TokenText, HasThirtyTwoRandomBytesBehindItsPrefix) {
  const std::string text = new_token_text();
  EXPECT_TRUE(text.starts_with("baton_"));
  EXPECT_EQ(text.size(), 6U + 43U);
  EXPECT_NE(text, new_token_text());
  EXPECT_EQ(new_token_id().size(), 12U);
}

}  // namespace
}  // namespace baton::cli
