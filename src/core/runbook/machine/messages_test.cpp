#include "core/runbook/machine/messages.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace baton::runbook {
namespace {

template <class T>
T read(std::string_view fields) {
  const std::string text =
      R"({"runbookName":"move","runbookVersion":3,"batchId":42,)" + std::string(fields) + "}";
  const auto message = parse_message(text);
  EXPECT_TRUE(message) << text << ": " << (message ? "" : message.error());
  if (!message) return {};
  EXPECT_EQ(message->batch_id, 42);
  EXPECT_TRUE(std::holds_alternative<T>(message->what)) << text;
  return std::holds_alternative<T>(message->what) ? std::get<T>(message->what) : T{};
}

std::string error_of(std::string_view text) {
  const auto message = parse_message(text);
  EXPECT_FALSE(message) << text;
  return message ? "" : message.error();
}

WorkerResult result(std::string_view fields) {
  const auto read = parse_worker_result(R"({"jobId":"step-7",)" + std::string(fields) + "}");
  EXPECT_TRUE(read) << fields << ": " << (read ? "" : read.error());
  return read ? *read : WorkerResult{};
}

TEST(SchedulerMessages, each_type_of_the_contract_is_read) {
  read<BatchInit>(R"("messageType":"batch-init","batchStartTime":"2025-03-15T00:00:00Z","memberCount":150)");
  const auto due = read<PhaseDue>(
      R"("messageType":"phase-due","phaseExecutionId":108,"phaseName":"p","offsetMinutes":7200,"memberIds":[501,"502"])");
  EXPECT_EQ(due.phase_execution_id, 108);
  EXPECT_EQ(due.member_ids, (std::vector<std::int64_t>{501, 502}));
  EXPECT_TRUE(read<PhaseDue>(R"("messageType":"phase-due","phaseExecutionId":108)").member_ids.empty());
  EXPECT_EQ(read<MemberAdded>(R"("messageType":"member-added","batchMemberId":505)").batch_member_id, 505);
  EXPECT_EQ(read<MemberRemoved>(R"("messageType":"member-removed","batchMemberId":503)").batch_member_id,
            503);
  const auto retry = read<RetryCheck>(
      R"("messageType":"retry-check","stepExecutionId":9,"initExecutionId":null,"isInitStep":false,"retryCount":2)");
  EXPECT_EQ(retry.step_execution_id, 9);
  EXPECT_EQ(retry.init_execution_id, std::nullopt);
  EXPECT_EQ(retry.retry_count, 2);
}

TEST(SchedulerMessages, names_match_without_regard_to_case_and_numbers_may_be_texts) {
  const auto message = parse_message(
      R"({"MessageType":"Member-Added","RUNBOOKNAME":"move","RunbookVersion":"3","batchid":"42","BatchMemberId":"505"})");
  ASSERT_TRUE(message) << message.error();
  EXPECT_EQ(message->runbook_name, "move");
  EXPECT_EQ(message->runbook_version, 3);
  EXPECT_EQ(message->batch_id, 42);
  EXPECT_EQ(std::get<MemberAdded>(message->what).batch_member_id, 505);
}

TEST(SchedulerMessages, a_poll_check_names_a_step_an_init_step_or_leaves_it_open) {
  const auto poll = [](const std::string& fields) {
    return read<PollCheck>(R"("messageType":"poll-check","stepName":"s",)" + fields);
  };
  const auto open = poll(R"("stepExecutionId":7,"pollCount":5)");
  EXPECT_EQ(open.step_execution_id, 7);
  EXPECT_EQ(open.init_execution_id, 7);
  EXPECT_EQ(open.step_name, "s");
  const auto init = poll(R"("stepExecutionId":7,"isInitStep":true)");
  EXPECT_EQ(init.step_execution_id, std::nullopt);
  EXPECT_EQ(init.init_execution_id, 7);
  const auto step = poll(R"("stepExecutionId":7,"isInitStep":"False")");
  EXPECT_EQ(step.step_execution_id, 7);
  EXPECT_EQ(step.init_execution_id, std::nullopt);
  const auto named = poll(R"("stepExecutionId":0,"initExecutionId":8)");
  EXPECT_EQ(named.step_execution_id, std::nullopt);
  EXPECT_EQ(named.init_execution_id, 8);
}

TEST(SchedulerMessages, a_retry_check_without_isInitStep_means_the_table_of_its_id) {
  const auto step = read<RetryCheck>(R"("messageType":"retry-check","stepExecutionId":7)");
  EXPECT_EQ(step.step_execution_id, 7);
  EXPECT_EQ(step.init_execution_id, std::nullopt);
  const auto init = read<RetryCheck>(R"("messageType":"retry-check","initExecutionId":7)");
  EXPECT_EQ(init.step_execution_id, std::nullopt);
  EXPECT_EQ(init.init_execution_id, 7);
}

TEST(SchedulerMessages, what_is_missing_or_wrong_is_told_all_at_once) {
  EXPECT_EQ(error_of(R"({"messageType":"member-added","runbookVersion":0,"batchId":-1})"),
            "batchMemberId is required; runbookName is required; "
            "runbookVersion must be an integer from 1 to 2147483647; batchId must be a positive integer");
  EXPECT_NE(error_of(R"({"messageType":"tea-time"})").find("messageType must be batch-init"),
            std::string::npos);
  EXPECT_NE(error_of("{}").find("messageType is required"), std::string::npos);
  EXPECT_EQ(error_of("[]"), "must be an object, not an array");
  EXPECT_NE(error_of("{").find("JSON"), std::string::npos);
  EXPECT_NE(error_of(R"({"messageType":"phase-due","memberIds":[1,"x"]})").find("memberIds[1]"),
            std::string::npos);
  EXPECT_NE(
      error_of(R"({"messageType":"poll-check","stepExecutionId":1,"initExecutionId":2})").find("differ"),
      std::string::npos);
}

TEST(WorkerResults, the_body_of_the_contract_is_read) {
  const auto read = parse_worker_result(
      R"({"jobId":"step-7-poll-2","status":"Success","resultType":"Object","result":{ "complete": true, "data": {"n":1.50} },
          "error":null,"durationMs":1234,"timestamp":"2024-01-15T10:30:00Z","correlationData":{"stepExecutionId":7}})");
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(read->job_id, "step-7-poll-2");
  EXPECT_TRUE(read->success);
  EXPECT_EQ(read->result->text, R"({"complete":true,"data":{"n":1.50}})");
  EXPECT_EQ(read->error, std::nullopt);
  EXPECT_EQ(read->duration_ms, 1234);
  EXPECT_EQ(read->lease, std::nullopt);
}

TEST(WorkerResults, status_has_three_words_for_either_outcome) {
  for (const auto* word : {"Success", "SUCCEEDED", "completed"})
    EXPECT_TRUE(result(R"("status":")" + std::string(word) + '"').success) << word;
  for (const auto* word : {"Failure", "failed", "ERROR"})
    EXPECT_FALSE(result(R"("status":")" + std::string(word) + '"').success) << word;
  const auto odd = parse_worker_result(R"({"jobId":"step-7","status":"Maybe"})");
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error(), "status must be Success or Failure");
  EXPECT_EQ(parse_worker_result("{}").error(), "jobId is required; status is required");
}

TEST(WorkerResults, an_error_is_a_text_the_message_of_an_object_or_its_json) {
  const auto error = [](const std::string& json) {
    return result(R"("Status":"Failed","Error":)" + json).error;
  };
  EXPECT_EQ(error("null"), std::nullopt);
  EXPECT_EQ(error(R"("no such mailbox")"), "no such mailbox");
  EXPECT_EQ(error(R"({"Message":"no","type":"X"})"), "no");
  EXPECT_EQ(error(R"({"type":"X", "code":5})"), R"({"type":"X","code":5})");
  EXPECT_EQ(error("[1, 2]"), "[1,2]");
  EXPECT_EQ(error(R"("")"), std::nullopt);
}

TEST(WorkerResults, a_lease_a_worker_and_a_duration_may_come_along) {
  const auto read =
      result(R"("status":"Success","lease":"0.1","workerId":"w","durationMs":"12","result":false)");
  EXPECT_EQ(read.lease, "0.1");
  EXPECT_EQ(read.worker, "w");
  EXPECT_EQ(read.duration_ms, 12);
  EXPECT_EQ(read.result->text, "false");
  EXPECT_EQ(result(R"("status":"Success","durationMs":12.9)").duration_ms, 12);
  EXPECT_FALSE(parse_worker_result(R"({"jobId":"step-7","status":"Success","durationMs":"soon"})"));
}

TEST(JobIds, are_written_as_the_contract_has_them) {
  EXPECT_EQ(job_id("step", 7, 0, 0), "step-7");
  EXPECT_EQ(job_id("init", 7, 2, 0), "init-7-retry-2");
  EXPECT_EQ(job_id("rollback", 7, 0, 3), "rollback-7-poll-3");
  EXPECT_EQ(job_id("removal", 7, 2, 3), "removal-7-retry-2-poll-3");
}

TEST(JobIds, that_nobody_has_written_are_none) {
  for (const auto* text :
       {"", "step", "step-", "step-0", "step-07", "step--7", "step-7-", "step-7-retry", "step-x",
        "step-7-retry-0", "step-7-retry-02", "step-7-poll-1-retry-2", "step-7-poll-1x", "Step-7", "task-7",
        "step-9223372036854775808", "step-7-retry-2147483648", "step-7 ", "j_echo_0"})
    EXPECT_FALSE(parse_job_id(text)) << text;
}

RC_GTEST_PROP(JobIds, come_back_as_they_went, ()) {
  constexpr std::string_view prefixes[] = {"step", "init", "rollback", "removal"};
  constexpr RowType types[] = {RowType::step, RowType::init, RowType::cleanup, RowType::cleanup};
  const auto which = *rc::gen::inRange<std::size_t>(0, 4);
  const auto id = *rc::gen::inRange<std::int64_t>(1, std::numeric_limits<std::int64_t>::max());
  const auto retry = *rc::gen::inRange<std::int32_t>(0, 1000);
  const auto poll = *rc::gen::inRange<std::int32_t>(0, std::numeric_limits<std::int32_t>::max());
  const auto read = parse_job_id(job_id(prefixes[which], id, retry, poll));
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->ref == (Ref{types[which], id}));
  RC_ASSERT(read->retry == retry && read->poll == poll);
}

RC_GTEST_PROP(JobIds, any_text_is_read_or_refused_and_what_is_read_has_one_name, (const std::string& text)) {
  const auto tail = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789-retrypol")));
  const std::string made = "step-" + tail;
  if (const auto read = parse_job_id(made))
    RC_ASSERT(job_id("step", read->ref.id, read->retry, read->poll) == made);
  RC_ASSERT(!parse_job_id(text) || parse_job_id(text)->ref.id > 0);
}

}  // namespace
}  // namespace baton::runbook
