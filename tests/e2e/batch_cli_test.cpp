// The commands for runbooks and batches against a server that says what the test wants it to say.
#include <atomic>
#include <fstream>

#include "tests/e2e/fake_server.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e::batch_cli_test {
namespace {

using Request = FakeServer::Request;
using Reply = FakeServer::Reply;

struct Ran {
  int code = -1;
  std::string out, err;
};

class BatchCommands : public testing::Test {
 protected:
  Ran baton(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BATON_BINARY);
    support::Process process(std::move(arguments), {"BATON_SERVER=" + server_.url()});
    const auto code = process.wait(60s);
    return {code.value_or(-1), process.out(), process.err()};
  }
  static std::string batch(const std::string& status, int done) {
    return R"({"id":42,"runbook_name":"contoso","runbook_version":3,"status":")" + status +
           R"(","batch_start_time":null,"members":{"active":100},"phases":[{"phase_name":"prepare",)" +
           R"("offset_minutes":0,"due_at":null,"status":"dispatched","counts":{"succeeded":)" +
           std::to_string(done) + R"(,"pending":)" + std::to_string(100 - done) + "}}]}";
  }
  void answer_with(std::function<Reply(const Request&)> answer) {
    server_.between_requests([&] { answer_ = std::move(answer); });
  }
  // Without a stream the batch is looked at twice a second.
  static bool is_stream(const Request& request) {
    return request.target.find("/stream?") != std::string::npos;
  }
  static bool is_failures(const Request& request) {
    return request.target.find("/failures?") != std::string::npos;
  }

  std::atomic<int> looks_ = 0;
  std::function<Reply(const Request&)> answer_ = [](const Request&) { return Reply{}; };
  FakeServer server_{[this](const Request& request) { return answer_(request); }};
};

TEST_F(BatchCommands, WatchPrintsALineForEachChangeAndEndsWithTheBatch) {
  answer_with([this](const Request& request) -> Reply {
    if (is_stream(request)) return {404, "{}"};
    if (is_failures(request)) return {200, R"({"failures":[]})"};
    const int look = looks_++;
    return {200, look < 3 ? batch("active", 10) : batch("completed", 100)};
  });
  const Ran ran = baton({"batch", "watch", "42"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("batch 42 active | prepare dispatched 10 %"), std::string::npos) << ran.out;
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 2) << ran.out;
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);
}

TEST_F(BatchCommands, WatchOutlivesARestartOfTheServerAndTellsFailures) {
  answer_with([this](const Request& request) -> Reply {
    if (is_stream(request)) return {404, "{}"};
    if (is_failures(request))
      return {
          200,
          R"({"failures":[{"phase_name":"prepare","step_name":"move","member_key":"ada","error_message":"full"}]})"};
    const int look = looks_++;
    if (look == 1) return {503, R"({"status":503,"code":"stopping","detail":"the server is stopping"})"};
    return {200, look < 2 ? batch("active", 10) : batch("failed", 20)};
  });
  const Ran ran = baton({"batch", "watch", "42"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "baton: the server is stopping; waiting for the server\nbaton: the server is back\n");
  EXPECT_NE(ran.out.find("prepare/move  ada  full"), std::string::npos) << ran.out;
}

TEST_F(BatchCommands, WatchOfABatchThatIsNotThereEndsAtOnce) {
  answer_with([](const Request&) -> Reply {
    return {404, R"({"code":"batch_not_found","detail":"no batch '42'"})"};
  });
  const Ran ran = baton({"batch", "watch", "42"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "baton: no batch '42'\n");
}

TEST_F(BatchCommands, AMemberIsFoundByItsKey) {
  answer_with([](const Request& request) -> Reply {
    if (request.target.ends_with("/phases")) return {200, R"({"phases":[{"id":5,"phase_name":"prepare"}]})"};
    if (request.target.ends_with("/members/8"))
      return {
          200,
          R"({"id":8,"batch_id":42,"member_key":"bob","status":"failed","steps":[{"type":"step","id":12,)"
          R"("phase_execution_id":5,"step_name":"move","status":"failed","error_message":"full"}],"cleanups":[]})"};
    if (request.target.ends_with("/members?key=bob"))
      return {200, R"({"members":[{"id":8,"member_key":"bob","status":"failed"}],"next_cursor":null})"};
    return {200, R"({"members":[],"next_cursor":null})"};
  });
  const Ran ran = baton({"member", "show", "42", "bob"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("prepare  step-12  move  failed"), std::string::npos) << ran.out;
  EXPECT_EQ(baton({"member", "show", "42", "eve"}).code, 1);
  EXPECT_NE(baton({"member", "list", "42", "--key", "bob"}).out.find("bob"), std::string::npos);
}

TEST_F(BatchCommands, StepLogsPrintsEveryPage) {
  answer_with([](const Request& request) -> Reply {
    const bool is_first = request.target.find("after=0") != std::string::npos;
    if (!request.target.starts_with("/api/v1/cleanups/5/logs")) return {404, "{}"};
    return {200, is_first
                     ? R"({"lines":[{"log_id":3,"at":"2026-11-16T19:00:00.000Z","retry_count":1,"stream":"stderr",)"
                       R"("text":"opening"}],"next_after":3})"
                     : R"({"lines":[],"next_after":3})"};
  });
  const Ran ran = baton({"step", "logs", "rollback-5"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "2026-11-16T19:00:00.000Z #2 stderr opening\n");
}

TEST_F(BatchCommands, PublishTellsWhatBecomesOfOpenBatches) {
  std::atomic<int> status = 201;
  answer_with([&](const Request& request) -> Reply {
    const auto how = request.target.find("open_batches=");
    if (request.target.starts_with("/api/v1/runbooks"))
      return {status, R"({"name":"contoso","version":2,"in_transition":true,"warnings":[],"open_batches":")" +
                          (how == std::string::npos ? "keep" : request.target.substr(how + 13, request.target.find('&') - how - 13)) +
                          "\"}"};
    if (request.target.find("status=active") == std::string::npos) return {200, R"({"batches":[]})"};
    return {200, R"({"batches":[{"id":1,"batch_start_time":"2026-11-20T22:00:00.000Z"},)"
                 R"({"id":2,"batch_start_time":"2026-11-21T22:00:00.000Z"},{"id":3,"batch_start_time":null}],)"
                 R"("next_cursor":null})"};
  });
  const support::TemporaryDirectory directory;
  const std::string file = directory.path() / "r.yaml";
  std::ofstream(file) << "name: contoso\n";
  EXPECT_EQ(baton({"runbook", "publish", file}).out,
            file + ": contoso version 2 is published\n" +
                "3 open batches go over to version 2, unless it has begun: then it finishes on its version\n");
  EXPECT_EQ(baton({"runbook", "publish", file, "--open-batches", "rerun"}).out,
            file + ": contoso version 2 is published\n" +
                "3 open batches go over to version 2; phases that are past due run again; in batches by hand all phases "
                "wait for 'baton batch advance' again\n");
  EXPECT_NE(baton({"runbook", "publish", file, "--open-batches", "ignore", "--rerun-init"})
                .out.find("; what is past due or has begun before is left out; init steps run again\n"),
            std::string::npos);
  status = 200;
  EXPECT_EQ(baton({"runbook", "publish", file}).out, file + ": contoso version 2 was published before\n");
  EXPECT_EQ(baton({"runbook", "publish", file, "--rerun-init"}).out,
            file + ": contoso version 2 was published before\n" +
                "nothing changed: --rerun-init, --open-batches and --overdue-behavior only count for a new version\n");
}

const std::string impact_json =
    R"({"name":"contoso","version":2,"current_version":1,"unchanged":false,)"
    R"("changes":[{"change":"changed","where":"phase 'late', step 'b'","field":"function","from":"Bb","to":"B"},)"
    R"({"change":"added","where":"phase 'after'"}],)"
    R"("open_batches":[{"batch_id":42,"batch_start_time":"2026-11-20T22:00:00.000Z","status":"active","runbook_version":1,)"
    R"("has_begun":true,"member_count":30,"member_keys":["ada","bob"],"answers":[)"
    R"({"answer":"keep","phases":[{"phase_name":"early","version":1,"what":"goes_on","due_at":null,"at_once":false},)"
    R"({"phase_name":"late","version":1,"what":"stays","due_at":null,"at_once":false}]},)"
    R"({"answer":"ignore","phases":[{"phase_name":"late","version":1,"what":"superseded","due_at":null,"at_once":false},)"
    R"({"phase_name":"early","version":2,"what":"skipped","due_at":null,"at_once":false}]},)"
    R"({"answer":"rerun","phases":[{"phase_name":"early","version":2,"what":"begins_again","due_at":null,"at_once":true},)"
    R"({"phase_name":"late","version":2,"what":"begins","due_at":null,"at_once":false}]}]}],"are_more":false})";
const std::string impact_lines =
    "contoso version 2, against version 1\n"
    "  phase 'late', step 'b': function was Bb, is B\n"
    "  phase 'after' is added\n"
    "\n"
    "batch 42, T 2026-11-20 22:00 UTC, 30 members (ada, bob, …), has begun in version 1\n"
    "  keep    early goes on in version 1; late stays in version 1\n"
    "  ignore  late of version 1 is replaced; early is skipped\n"
    "  rerun   early BEGINS AGAIN at once; late begins by hand\n";

TEST_F(BatchCommands, ImpactTellsWhatEachAnswerWouldDo) {
  answer_with([](const Request& request) -> Reply {
    return {request.target == "/api/v1/runbooks/impact" ? 200 : 404, impact_json};
  });
  const support::TemporaryDirectory directory;
  const std::string file = directory.path() / "r.yaml";
  std::ofstream(file) << "name: contoso\n";
  const Ran ran = baton({"runbook", "impact", file});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, impact_lines);
}

TEST_F(BatchCommands, PublishOverABatchThatHasBegunIsRefusedWithThePreviewAndWhatToType) {
  answer_with([](const Request&) -> Reply {
    return {409, R"({"code":"open_batches","detail":"open batches have begun: 42","impact":)" + impact_json + "}"};
  });
  const support::TemporaryDirectory directory;
  const std::string file = directory.path() / "r.yaml";
  std::ofstream(file) << "name: contoso\n";
  const Ran ran = baton({"runbook", "publish", file});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "baton: open batches have begun: 42\n");
  EXPECT_TRUE(ran.out.starts_with(impact_lines)) << ran.out;
  EXPECT_NE(ran.out.find("  baton runbook publish " + file + " --open-batches keep    they finish on their version\n"),
            std::string::npos)
      << ran.out;
}

TEST_F(BatchCommands, WhatPeopleDoIsSentWithTheirNames) {
  answer_with([](const Request&) -> Reply {
    return {200, R"({"id":42,"status":"active","changed":true,"note":"","count":1,"left_out":0})"};
  });
  EXPECT_EQ(baton({"batch", "pause", "42", "--by", "ada", "--reason", "lunch"}).out,
            "Paused batch 42; it is active.\n");
  EXPECT_EQ(server_.asked("/batches/42/pause"), std::vector<std::string>{R"({"by":"ada","reason":"lunch"})"});
  EXPECT_EQ(baton({"member", "retry", "42", "bob", "--by", "ada"}).out, "Retried 1 member.\n");
  EXPECT_EQ(server_.asked("/members:retry"),
            std::vector<std::string>{R"({"member_keys":["bob"],"by":"ada"})"});
  EXPECT_EQ(baton({"member", "retry", "42"}).code, 2);
  EXPECT_EQ(baton({"member", "retry", "42", "--all", "--by", "ada"}).code, 0);
  EXPECT_EQ(server_.asked("/members:retry").back(), R"({"all":true,"by":"ada"})");
  EXPECT_EQ(baton({"step", "skip", "init-3"}).code, 0);
  EXPECT_EQ(server_.asked("/inits/3/skip").size(), 1U);
  EXPECT_EQ(baton({"step", "cancel", "removal-5-retry-1"}).code, 0);
  EXPECT_EQ(server_.asked("/cleanups/5/cancel").size(), 1U);
}

TEST_F(BatchCommands, WhoIsLeftOutIsToldAndNothingDoneIsAFailure) {
  answer_with([](const Request& request) -> Reply {
    const std::string left =
        R"("left_out":7,"left_out_because":[{"reason":"not_failed","message":"not failed","count":6,)"
        R"("member_keys":["a","b","c","d","e"]},{"reason":"removed","message":"removed","count":1,"member_keys":["x"]}],)";
    if (request.target.ends_with(":remove")) return {200, R"({"count":2,)" + left + R"("note":"","phases":[]})"};
    if (request.body.find("all") == std::string::npos)
      return {200, R"({"count":0,)" + left + R"("note":"","phases":[]})"};
    return {200, R"({"count":0,"left_out":0,"left_out_because":[],"note":"no member of batch 42 has failed","phases":[]})"};
  });
  const std::string why = "left out:\n  not failed (6): a, b, c, d, e, …\n  removed (1): x\n";
  const Ran none = baton({"member", "retry", "42", "bob"});
  EXPECT_EQ(none.out, "Retried 0 members; 7 were " + why);
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(baton({"member", "retry", "42", "bob", "--json"}).code, 1);
  const Ran some = baton({"member", "remove", "42", "bob"});
  EXPECT_EQ(some.out, "Removed 2 members; 7 were " + why);
  EXPECT_EQ(some.code, 0);
  const Ran all = baton({"member", "retry", "42", "--all"});
  EXPECT_EQ(all.out, "Retried 0 members: no member of batch 42 has failed.\n");
  EXPECT_EQ(all.code, 1);
}

TEST_F(BatchCommands, APlanWithUnknownVariablesFails) {
  answer_with([](const Request&) -> Reply {
    return {200, R"({"name":"contoso","version":3,"member_count":0,"batches":[],"warnings":[],)"
                 R"("unresolved":[{"phase_name":"prepare","step_name":"move","variable":"Id","count":2}]})"};
  });
  const Ran ran = baton({"runbook", "plan", "contoso"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("prepare/move: {{Id}}, 2 times"), std::string::npos) << ran.out;
  EXPECT_EQ(server_.asked("/runbooks/plan"), std::vector<std::string>{R"({"limit":5,"runbook":"contoso"})"});
  EXPECT_EQ(baton({"runbook", "plan", "not/there.yaml"}).code, 2);
}

TEST_F(BatchCommands, WatchEndsWithACodeOfItsOwnWhenMembersFailed) {
  answer_with([](const Request& request) -> Reply {
    if (is_stream(request)) return {404, "{}"};
    if (is_failures(request)) return {200, R"({"failures":[]})"};
    return {200, R"({"id":42,"runbook_name":"contoso","runbook_version":3,"status":"completed",)"
                 R"("outcome":"completed_with_failures","members":{"active":1,"failed":29},"phases":[]})"};
  });
  const Ran ran = baton({"batch", "watch", "42"});
  EXPECT_EQ(ran.code, 5);
  EXPECT_NE(ran.out.find("batch 42 completed_with_failures | members 1 active, 29 failed"), std::string::npos) << ran.out;
  EXPECT_EQ(baton({"batch", "watch"}).code, 2);
  EXPECT_EQ(baton({"batch", "watch", "42", "--all"}).code, 2);
}

TEST_F(BatchCommands, WatchFollowsAllOpenBatchesToTheirEnd) {
  answer_with([this](const Request& request) -> Reply {
    if (request.target.find("status=active") != std::string::npos)
      return {200, looks_++ == 0 ? R"({"batches":[{"id":41},{"id":42}]})" : R"({"batches":[]})"};
    if (request.target.find("/batches?") != std::string::npos) return {200, R"({"batches":[]})"};
    const bool first = request.target.find("/41") != std::string::npos;
    const std::string status = looks_ < 2 ? "active" : first ? "failed" : "completed";
    return {200, R"({"id":)" + std::string(first ? "41" : "42") + R"(,"status":")" + status + R"(","members":{},"phases":[]})"};
  });
  const Ran ran = baton({"batch", "watch", "--runbook", "contoso"});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_NE(ran.out.find("batch 41 failed"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("batch 42 completed"), std::string::npos) << ran.out;
}

TEST_F(BatchCommands, WhatNeedsAPersonIsListedAndAnswered) {
  answer_with([](const Request& request) -> Reply {
    if (request.head.starts_with("POST")) return {200, R"({"id":"hold-7","answer":"go","changed":true})"};
    return {200, R"({"needs":[{"id":"hold-7","kind":"gate","runbook":"contoso","batch_id":42,"phase":"cut","message":"go?",)"
                 R"("since":"2026-11-16T18:57:00.000Z","answers":[{"answer":"go","does":"x"},{"answer":"skip","does":"y"}],"answer_by":null}]})"};
  });
  const Ran list = baton({"needs-you"});
  EXPECT_NE(list.out.find("go|skip"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("contoso, batch 42, cut"), std::string::npos) << list.out;
  const Ran answered = baton({"needs-you", "answer", "hold-7", "go", "--by", "ann", "--reason", "green"});
  EXPECT_EQ(answered.out, "Answered hold-7: go.\n") << answered.err;
  EXPECT_EQ(server_.asked("/needs-you/hold-7/answer").back(), R"({"answer":"go","by":"ann","reason":"green"})");
}

TEST_F(BatchCommands, WhyIsOneSentenceAndTheReportIsCsv) {
  answer_with([](const Request& request) -> Reply {
    if (request.target.find("/report") != std::string::npos)
      return {200, request.target.ends_with("after=0")
                       ? R"({"members":[{"id":1,"member_key":"ada","status":"failed","outcome":"failed","first_at":null,"last_at":null,)"
                         R"("phases_done":["a","b"],"failed_phase":"cut","failed_step":"move","error":"said \"no\""}],"next_after":1})"
                       : R"({"members":[],"next_after":1})"};
    return {200, R"({"id":"42","status":"active","reason":"paused","summary":"the batch is paused by ann","reasons":[)"
                 R"({"reason":"paused","message":"the batch is paused by ann"},{"reason":"not_due","message":"phase 'x' is not due"}]})"};
  });
  EXPECT_EQ(baton({"batch", "why", "42"}).out, "batch 42 is active: the batch is paused by ann\n  phase 'x' is not due\n");
  EXPECT_EQ(baton({"batch", "report", "42", "--csv"}).out,
            "member_key,status,outcome,first_at,last_at,phases_done,failed_phase,failed_step,error\n"
            "ada,failed,failed,,,a;b,cut,move,\"said \"\"no\"\"\"\n");
  EXPECT_EQ(std::ranges::count(baton({"batch", "report", "42", "--json"}).out, '\n'), 1);
}

}  // namespace
}  // namespace baton::e2e::batch_cli_test
