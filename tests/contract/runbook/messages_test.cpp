// The two doors: messages of the scheduler and results of workers, good, bad, many at once, in any case of
// letters (000 message schemas, 002 message types).
#include "tests/contract/runbook/fixture.hpp"

namespace baton::runbook_contract {
namespace {

// With every first letter turned to upper case, as .NET writes it.
json::value in_pascal_case(const json::value& value) {
  if (const auto* array = value.if_array()) {
    json::array turned;
    for (const json::value& item : *array) turned.push_back(in_pascal_case(item));
    return turned;
  }
  const auto* object = value.if_object();
  if (!object) return value;
  json::object turned;
  for (const auto& [key, item] : *object) {
    std::string name(key);
    name[0] = static_cast<char>(std::toupper(name[0]));
    turned[name] = in_pascal_case(item);
  }
  return turned;
}

class Messages : public Contract {
 protected:
  void is_refused(const std::string& body, Here here = Here::current()) {
    const std::string before = snapshot();
    const auto response = client().request("POST", "/api/v1/events", body);
    ASSERT_TRUE(response);
    const auto line = static_cast<int>(here.line());
    if (response->status < 400 || response->status >= 500)
      ADD_FAILURE_AT(here.file_name(), line) << body << " was answered " << response->status;
    else if (response->content_type.find("application/problem+json") == std::string::npos)
      ADD_FAILURE_AT(here.file_name(), line) << body << " was answered in " << response->content_type;
    EXPECT_EQ(snapshot(), before);
  }
  void is_refused(const json::object& message, Here here = Here::current()) {
    is_refused(json::serialize(message), here);
  }
};
class Results : public Contract {};
ON_EACH_STORE(Messages);
ON_EACH_STORE(Results);

TEST_P(Messages, OfAnUnknownTypeAreRefused) {
  given(two_steps);
  phase("p1");
  is_refused(event("phase-over"));
  is_refused(json::object{{"batchId", batch_}, {"runbookName", name_}, {"runbookVersion", 1}});
}

TEST_P(Messages, WithoutTheirIdsAreRefused) {
  given(two_steps);
  const Id p1 = phase("p1");
  for (const std::string field : {"batchId", "phaseExecutionId"}) {
    json::object message = phase_due(p1);
    message.erase(field);
    is_refused(message);
  }
  is_refused(event("member-added"));
  is_refused(event("member-removed"));
  is_refused(event("poll-check"));
  is_refused(event("retry-check", {{"retryCount", 1}}));
  quiet();
}

TEST_P(Messages, AboutThingsThatAreNotThereAreRefused) {
  given(two_steps);
  const Id p1 = phase("p1");
  const Id nowhere = 99'999'999;
  json::object message = phase_due(p1);
  message["batchId"] = nowhere;
  is_refused(message);
  message = phase_due(p1);
  message["phaseExecutionId"] = nowhere;
  is_refused(message);
  is_refused(event("member-added", {{"batchMemberId", nowhere}, {"memberKey", "x"}}));
  is_refused(event("member-removed", {{"batchMemberId", nowhere}, {"memberKey", "x"}}));
  quiet();
}

TEST_P(Messages, ThatAreNoMessagesAreRefused) {
  given(two_steps);
  is_refused(std::string("{"));
  is_refused(std::string("7"));
  is_refused(std::string("{}"));
}

// A phase of another batch under this batch's id is a mix-up, and doing half of it would be worse than
// nothing.
TEST_P(Messages, AboutAPhaseOfAnotherBatchChangeNothing) {
  given(two_steps);
  const Id theirs = phase("p1");
  const Id their_batch = batch_;
  batch(runbook_);
  member("m1");
  phase("p1");
  const json::object message = phase_due(theirs);
  batch_ = their_batch;
  changes_nothing([&] { (void)send(message); });
}

TEST_P(Messages, MatchTheirFieldsInAnyCase) {
  given(section("init", {preparing("i1")}) + two_steps, 1, "init_dispatched");
  tell(in_pascal_case(batch_init()));
  EXPECT_TRUE(is_accepted(report(in_pascal_case(result_of(one(), "Success", json::object{{"ok", true}})))));
  expect_batch("active");
  const Id p1 = phase("p1");
  tell(in_pascal_case(phase_due(p1)));
  EXPECT_TRUE(is_accepted(report(in_pascal_case(result_of(one(), "Success", json::object{{"ok", true}})))));
  expect_steps(p1, members_[0], "succeeded,dispatched");
  set_removed(members_[0]);
  tell(in_pascal_case(member_removed(members_[0])));
  expect_steps(p1, members_[0], "succeeded,cancelled");
}

TEST_P(Messages, CanComeManyAtOnce) {
  given(phases({phase_of("p1", {doing("s1")}), phase_of("p2", {doing("s2")})}));
  const Id p1 = phase("p1");
  const Id p2 = phase("p2");
  json::object lost = phase_due(p1);
  lost["batchId"] = 99'999'999;
  const Answer answer = send(json::array{phase_due(p1), lost, phase_due(p2)});
  EXPECT_LT(answer.status, 300);
  ASSERT_TRUE(answer.body.is_object()) << json::serialize(answer.body);
  ASSERT_TRUE(answer.body.as_object().contains("results")) << json::serialize(answer.body);
  EXPECT_EQ(answer.body.at("results").as_array().size(), 3u);
  work(2);  // the good ones were done
  expect_batch("completed");
}

// One that is no message among good ones: all are refused, or each is answered on its own; not something
// between.
TEST_P(Messages, AreNotHalfDoneWhenOneOfManyIsNone) {
  given(two_steps);
  const Id p1 = phase("p1");
  const std::string before = snapshot();
  const Answer answer = send(json::array{phase_due(p1), event("nonsense")});
  if (answer.status < 300) {
    EXPECT_EQ(answer.body.at("results").as_array().size(), 2u);
    (void)one();
    return;
  }
  EXPECT_LT(answer.status, 500);
  quiet();
  EXPECT_EQ(snapshot(), before);
  tell(phase_due(p1));
  (void)one();
}

// Application properties are the bus's; fields that we do not know are somebody else's.
TEST_P(Messages, MayHaveFieldsThatWeDoNotKnow) {
  given(two_steps);
  json::object message = phase_due(phase("p1"));
  message["enqueuedBy"] = json::object{{"host", "x"}};
  tell(message);
  (void)one();
}

// 000: runbooks are read only here, and their data source is the scheduler's business.
TEST_P(Messages, NeedNoDataSourceThatWeUnderstand) {
  const std::string source = "data_source: {type: csv, connection: WAVES_CSV, interval: 5m, primary_key: Upn, "
                             "batch_time_column: MigrationDate}";
  int version = 0;
  for (const std::string other :
       {"data_source: {type: databricks, connection: 'jdbc:x', warehouse_id: 7, primary_key: K, batch_time_column: T}",
        "data_source: {type: 7, interval: often, batch_time: soon, multi_valued_columns: 3}", "data_source: []",
        "data_source: {type: csv, interval: 999d, primary_key: Upn, multi_valued_columns: [{name: A}, {name: A}]}",
        "description: none at all"}) {
    SCOPED_TRACE(other);
    batch(runbook(two_steps, ++version));
    member("m1");
    sql().exec("UPDATE runbooks SET yaml_content=replace(yaml_content, '" + source + "', '" +
               replaced(other, "'", "''") + "') WHERE id=" + std::to_string(runbook_));
    ASSERT_EQ(text("SELECT count(*) FROM runbooks WHERE yaml_content LIKE '%WAVES%' AND id=" + std::to_string(runbook_)),
              "0");
    tell(phase_due(phase("p1")));
    work(2);
    expect_batch("completed");
  }
}

// A runbook that cannot be read is told, and nothing is half done.
TEST_P(Messages, AboutABrokenRunbookChangeNothing) {
  given(two_steps);
  sql().exec("UPDATE runbooks SET yaml_content='phases: [{{{' WHERE id=" + std::to_string(runbook_));
  const Id p1 = phase("p1");
  (void)send(phase_due(p1));
  quiet();
  EXPECT_EQ(text("SELECT count(*) FROM step_executions WHERE status='dispatched' AND phase_execution_id=" +
                 std::to_string(p1)),
            "0");
}

// 002 ResultProcessor: what a worker sends that knows nothing of leases is enough.
TEST_P(Results, AreTakenWithAndWithoutALease) {
  const Id p1 = given_due(two_steps);
  succeed(one());
  const Job second = one();
  json::object result = result_of(second, "Success", json::object{});
  result["lease"] = second.text("lease");
  EXPECT_TRUE(is_accepted(report(result)));
  expect_steps(p1, members_[0], "succeeded,succeeded");
}

TEST_P(Results, WithAnOldLeaseAreRefused) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  json::object result = result_of(job, "Success", json::object{});
  result["lease"] = job.text("lease") + "9";
  changes_nothing([&] { EXPECT_EQ(report(result).status, 409); });
  succeed(job);
  expect_steps(p1, members_[0], "succeeded,dispatched");
}

TEST_P(Results, WithALeaseThatAnotherWorkerHasNowAreRefused) {
  restart({"--lease-seconds", "1"});
  const Id p1 = given_due(two_steps);
  const json::object asks{{"max", 1}, {"wait_ms", 5'000}, {"worker", "silent"}, {"heartbeat", true}};
  const Answer given = e2e::ask(client(), "POST", "/workers/" + pool_ + "/jobs:poll", json::serialize(asks));
  const Job lost{given.body.at("jobs").as_array().at(0).as_object()};
  const Job job = one();
  EXPECT_EQ(job.id(), lost.id());
  json::object result = result_of(lost, "Success", json::object{});
  result["lease"] = lost.text("lease");
  changes_nothing([&] { EXPECT_EQ(report(result).status, 409); });
  succeed(job);
  EXPECT_TRUE(is_ignored(report(result))) << "the step is over";
  expect_steps(p1, members_[0], "succeeded,dispatched");
  restart();
}

TEST_P(Results, CanComeManyAtOnce) {
  const Id p1 = given_due(two_steps, 3);
  auto jobs = by_member(take(3));
  const Answer answer = report(json::array{
      result_of(jobs["m1"], "Success", json::object{}), result_of(jobs["m2"], "Failure", nullptr, "boom"),
      result_of(jobs["m1"], "Success", json::object{}), result_of(jobs["m3"], "Success", json::object{})});
  EXPECT_EQ(answer.status, 200) << json::serialize(answer.body);
  expect_steps(p1, members_[0], "succeeded,dispatched");
  expect_steps(p1, members_[1], "failed,cancelled");
  expect_steps(p1, members_[2], "succeeded,dispatched");
  work(2);
  expect_phase(p1, "completed");
}

// Specification: recorded as ignored; the worker gets 200.
TEST_P(Results, ForAFinishedStepAreIgnored) {
  given_due(two_steps);
  const Job first = one();
  succeed(first);
  const Job second = one();
  changes_nothing([&] {
    EXPECT_EQ(report(result_of(first, "Success", json::object{{"ok", true}})).status, 200);  // a duplicate
    EXPECT_TRUE(is_ignored(report(result_of(first, "Failure", nullptr, "late"))));
    EXPECT_TRUE(is_ignored(report(result_of(first, "Success", json::object{{"complete", false}}))));
  });
  succeed(second);
  expect_batch("completed");
  changes_nothing([&] { EXPECT_TRUE(is_ignored(report(result_of(second, "Failure", nullptr, "late")))); });
}

TEST_P(Results, ForJobsThatNeverWereChangeNothing) {
  given_due(two_steps);
  Job job = one();
  changes_nothing([&] {
    for (const std::string id : {"step-99999999", "nonsense", "step-", "step-1x", ""}) {
      job.body["jobId"] = id;
      job.body["correlationData"] = json::object{};
      EXPECT_LT(report(result_of(job, "Success", json::object{})).status, 500) << id;
    }
  });
}

TEST_P(Results, ThatAreNoResultsAreRefused) {
  given_due(two_steps);
  const Job job = one();
  changes_nothing([&] {
    json::object result = result_of(job, "Success", json::object{});
    result["status"] = "Perhaps";
    const int status = report(result).status;
    EXPECT_TRUE(status >= 400 && status < 500) << status;
    result.erase("status");
    EXPECT_GE(report(result).status, 400);
    EXPECT_GE(report(7).status, 400);
  });
  succeed(job);
}

// Specification: correlationData names the step, jobId the attempt.
TEST_P(Results, WhoseJobIdAndCorrelationDisagreeAreRefused) {
  given_due(two_steps, 2);
  auto jobs = by_member(take(2));
  json::object result = result_of(jobs["m1"], "Success", json::object{});
  result["correlationData"] = jobs["m2"].body.at("correlationData");
  changes_nothing([&] {
    const Answer answer = report(result);
    EXPECT_EQ(answer.status, 422);
    EXPECT_NE(json::serialize(answer.body).find("do not mean the same step"), std::string::npos);
    result["correlationData"] = json::object{{"initExecutionId", jobs["m1"].correlated("stepExecutionId")}};
    EXPECT_GE(report(result).status, 400);  // there is no such init step, whatever jobId says
  });
}

TEST_P(Results, WithoutCorrelationAreFoundByTheirJobId) {
  const Id p1 = given_due(two_steps);
  const Job first = one();
  json::object result = result_of(first, "Success", json::object{});
  result.erase("correlationData");
  EXPECT_TRUE(is_accepted(report(result)));
  result = result_of(one(), "Success", json::object{});
  result["correlationData"] = json::object{{"stepExecutionId", 0}, {"initExecutionId", nullptr}};
  EXPECT_TRUE(is_accepted(report(result)));
  expect_steps(p1, members_[0], "succeeded,succeeded");
}

TEST_P(Results, OfAJobThatTheStepNeverHadAreRefused) {
  const Id p1 = given_due(two_steps);
  const Job job = one();
  json::object result = result_of(job, "Success", json::object{});
  result["jobId"] = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
  changes_nothing([&] { EXPECT_EQ(report(result).status, 409); });
  succeed(job);
  expect_steps(p1, members_[0], "succeeded,dispatched");
}

// A result need not be an object.
TEST_P(Results, MayBeAnyJson) {
  const Id p1 = given_due(two_steps, 3);
  auto jobs = by_member(take(3));
  succeed(jobs["m1"], "done");
  succeed(jobs["m2"], json::array{1, "two"});
  succeed(jobs["m3"], nullptr);
  for (const Id member : members_) expect_steps(p1, member, "succeeded,dispatched");
  EXPECT_EQ(parsed(text("SELECT result_json FROM step_executions WHERE id=" +
                        std::to_string(step_id(p1, members_[1], 0)))),
            parsed(R"([1,"two"])"));
}

}  // namespace
}  // namespace baton::runbook_contract
