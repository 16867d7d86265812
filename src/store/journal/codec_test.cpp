#include "store/journal/codec.hpp"

#include <gtest/gtest.h>

#include "store/tables.hpp"

namespace baton::store {
namespace {

using namespace workflow;

const Time noon = from_millis(1'800'000'000'000);

template <class Row>
void expect_same(const std::vector<Row>& expected, const std::vector<Row>& actual) {
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    for_each_column<Row>([&](const auto& column) {
      EXPECT_TRUE(expected[i].*column.member == actual[i].*column.member) << column.name << " of row " << i;
    });
}

// With something in each list, and a value of each type.
WriteSet everything() {
  WriteSet w;
  w.jobs_new = {{.job_id = {"0190a0b0-1111-7111-8111-111111111111"},
                 .tenant = {"default"},
                 .workflow_id = "w",
                 .workflow_version = 7,
                 .status = JobStatus::running,
                 .priority = -3,
                 .tags = "[\"a\"]",
                 .input_data = {"{\"x\": 1}"},
                 .nodes_active = 2,
                 .created_at = noon,
                 .due_at = noon + std::chrono::hours{1},
                 .paused_at = noon - std::chrono::hours{1}}};
  w.jobs_changed = {{.job_id = {"0190a0b0-1111-7111-8111-111111111112"}, .status = JobStatus::failed, .error = ""}};
  w.nodes_new = {{.job_id = w.jobs_new[0].job_id, .item_index = 12, .node_id = "split_12", .lease_until = noon}};
  w.nodes_changed = {{.job_id = w.jobs_new[0].job_id,
                      .node_id = "a",
                      .status = NodeStatus::completed,
                      .items_total = 0,
                      .output = Json{std::string(100'000, '7')}}};
  w.task_results_new = {{.task_id = "t", .job_id = w.jobs_new[0].job_id, .status = "completed",
                         .execution_duration_ms = std::numeric_limits<std::int64_t>::min(), .processed = false}};
  w.events_new = {{.job_id = w.jobs_new[0].job_id, .event_id = std::int64_t{9} << 40,
                   .event_type = EventType::node_lease_expired, .node_id = "a", .created_at = noon}};
  w.timers_new = {{noon, {Subject::Type::job, w.jobs_new[0].job_id.value}, "a"}, {Time{}, {Subject::Type::phase, "3"}, ""}};
  w.timers_gone = {{noon + Duration{1}, {Subject::Type::none, "of a later version"}, "b"}};
  w.tags_new = {{{"default"}, "blue", w.jobs_new[0].job_id}};
  w.logs_new = {{w.jobs_new[0].job_id, "a", 5, 1, "stderr", noon, "a line\n"}};
  w.idempotency_keys_new = {{{"default"}, "once", w.jobs_new[0].job_id, "hash"}};
  w.calls.calls_new = {{.tenant_id = {"t"}, .service_call_id = {"c1"}, .version = 2, .name = "n", .due_at = noon, .origin = "http://a:80"}};
  w.calls.calls_changed = {{.tenant_id = {"t"}, .service_call_id = {"c2"}, .version = 4, .status = call::Status::failed,
                            .started_at = noon, .error_meta = Json{"{}"}}};
  w.calls.events_new = {{.tenant_id = {"t"}, .service_call_id = {"c2"}, .version = 4, .event_type = call::EventType::failed,
                         .occurred_at = noon, .correlation_id = "r", .causation_id = "s", .data = Json{"{}"}}};
  w.calls.requests_new = {{.tenant_id = {"t"}, .service_call_id = {"c1"}, .method = "GET", .url = "http://a/", .body = "b"}};
  w.calls.tags_new = {{{"t"}, "blue", {"c1"}}};
  w.calls.keys_new = {{{"t"}, "once", {"c1"}, "hash"}};
  return w;
}

JournalRow row(const WriteSet& writes) { return {4, journal_format, encode_journal(writes).value().data}; }

TEST(JournalCodecTest, WhatIsWrittenIsRead) {
  const WriteSet written = everything();
  const WriteSet read = decode_journal(row(written)).value().writes;
  expect_same(written.jobs_new, read.jobs_new);
  expect_same(written.jobs_changed, read.jobs_changed);
  expect_same(written.nodes_new, read.nodes_new);
  expect_same(written.nodes_changed, read.nodes_changed);
  expect_same(written.task_results_new, read.task_results_new);
  expect_same(written.events_new, read.events_new);
  EXPECT_EQ(written.timers_new, read.timers_new);
  EXPECT_EQ(written.timers_gone, read.timers_gone);
  expect_same(written.tags_new, read.tags_new);
  expect_same(written.logs_new, read.logs_new);
  expect_same(written.idempotency_keys_new, read.idempotency_keys_new);
  expect_same(written.calls.calls_new, read.calls.calls_new);
  expect_same(written.calls.calls_changed, read.calls.calls_changed);
  expect_same(written.calls.events_new, read.calls.events_new);
  expect_same(written.calls.requests_new, read.calls.requests_new);
  expect_same(written.calls.tags_new, read.calls.tags_new);
  expect_same(written.calls.keys_new, read.calls.keys_new);
}

// What a server of this version has written must be read by later ones: who changes these bytes makes a new format.
TEST(JournalCodecTest, TheFormatStaysAsItIs) {
  WriteSet w;
  w.nodes_changed = {{.job_id = {"job1"}, .node_id = "n", .status = NodeStatus::running, .lease_until = noon}};
  w.timers_gone = {{noon, {Subject::Type::job, "job1"}, "n"}};
  const std::string expected(
      "\0\0\0"                  // jobs_new, jobs_changed, nodes_new
      "\x01\x8d\x80\x01"        // one node: columns 0, 2, 3 and 14
      "\x08job1\x02n\x0eRUNNING"
      "\x80\xc0\xe2\x85\xe3\x68"  // its lease
      "\0\0\0"                  // task_results_new, events_new, timers_new
      "\x01\0\x06job\x01\x02n"  // one timer, at the time before; its subject was told
      "\0\0\0\0",
      3 + 4 + 5 + 2 + 8 + 6 + 3 + 2 + 4 + 1 + 2 + 4);
  const std::string no_calls(6, '\0'), no_unchanged(1, '\0');
  EXPECT_EQ(encode_journal(w).value().data, expected + no_calls + no_unchanged);
  // Servers before format 2 have written no lists of calls, and those before format 3 nothing of what is unchanged.
  const std::string of_format[] = {expected, expected + no_calls, expected + no_calls + no_unchanged};
  for (std::int32_t format = 1; format <= 3; ++format) {
    const auto read = decode_journal({4, format, of_format[format - 1]});
    ASSERT_TRUE(read) << format;
    expect_same(w.nodes_changed, read->writes.nodes_changed);
    EXPECT_EQ(w.timers_gone, read->writes.timers_gone);
    EXPECT_FALSE(decode_journal({4, format % 3 + 1, of_format[format - 1]})) << format;
  }
}

// Servers before format 3 have told a large text each time.
TEST(JournalCodecTest, TextsOfFormat2AreRead) {
  WriteSet w;
  const OptionalJson output = Json{std::string(20'000, '7')};
  w.task_results_new = {{.task_id = "task1", .output = output}, {.task_id = "task2", .output = output}};
  std::string of_format_2("\0\0\0\0\x02", 5);
  for (const char number : {'1', '2'}) of_format_2 += "\x81\x08\x0atask" + std::string(1, number) + "\xc0\xb8\x02" + output->text;
  of_format_2 += std::string(13, '\0');
  const auto read = decode_journal({4, 2, of_format_2});
  ASSERT_TRUE(read);
  expect_same(w.task_results_new, read->writes.task_results_new);
}

TEST(JournalCodecTest, ALargeTextIsToldOnce) {
  WriteSet w;
  const OptionalJson output = Json{std::string(100'000, '7')};
  w.nodes_changed = {{.job_id = {"job1"}, .node_id = "a", .output = output}};
  w.task_results_new = {{.task_id = "task1", .output = output}};
  const auto encoded = encode_journal(w);
  ASSERT_TRUE(encoded);
  EXPECT_LT(encoded->data.size(), 100'100U);
  EXPECT_EQ(encoded->left_out, 100'000U);
  const auto read = decode_journal({4, journal_format, encoded->data});
  ASSERT_TRUE(read);
  expect_same(w.nodes_changed, read->writes.nodes_changed);
  expect_same(w.task_results_new, read->writes.task_results_new);
}

TEST(JournalCodecTest, WhatIsUnchangedIsSaidAndNotTold) {
  WriteSet w;
  w.nodes_changed = {{.job_id = {"job1"}, .node_id = "a", .status = NodeStatus::running},
                     {.job_id = {"job1"}, .node_id = "b", .status = NodeStatus::running, .params = Json{std::string(50'000, '7')}}};
  constexpr ColumnSet params = ColumnSet{1} << 29;
  const auto encoded = encode_journal(w, {{1, params}});
  ASSERT_TRUE(encoded);
  EXPECT_LT(encoded->data.size(), 100U);
  EXPECT_EQ(encoded->left_out, 50'000U);
  const auto read = decode_journal({4, journal_format, encoded->data});
  ASSERT_TRUE(read);
  ASSERT_EQ(read->unchanged.size(), 1U);
  EXPECT_EQ(read->unchanged[0].row, 1U);
  EXPECT_EQ(read->unchanged[0].columns, params);
  EXPECT_EQ(read->writes.nodes_changed[1].status, NodeStatus::running);
  EXPECT_FALSE(read->writes.nodes_changed[1].params);
}

// The same for every list and type of value, without spelling it out.
TEST(JournalCodecTest, EveryRowStaysAsItIs) {
  const std::string data = encode_journal(everything()).value().data;
  std::uint64_t hash = 14'695'981'039'346'656'037U;  // FNV-1a
  for (const char byte : data) hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  EXPECT_EQ(data.size(), 100'464U);
  EXPECT_EQ(hash, 7'647'503'323'871'731'981U);
}

// As long as no text is large, that is what servers of format 2 have written, but for its last byte.
TEST(JournalCodecTest, EveryRowOfFormat2IsRead) {
  WriteSet written = everything();
  written.nodes_changed[0].output = Json{std::string(10'000, '7')};
  std::string data = encode_journal(written).value().data;
  data.pop_back();
  const auto read = decode_journal({4, 2, data});
  ASSERT_TRUE(read);
  expect_same(written.nodes_changed, read->writes.nodes_changed);
  expect_same(written.events_new, read->writes.events_new);
  expect_same(written.calls.calls_changed, read->writes.calls.calls_changed);
  expect_same(written.calls.keys_new, read->writes.calls.keys_new);
}

TEST(JournalCodecTest, ATextThatADatabaseRefusesIsRefusedBeforeItIsDurable) {
  for (const std::string& bad : {std::string("a\0b", 3), std::string("\xff\xfe")}) {
    WriteSet w;
    w.jobs_changed = {{.job_id = {"j"}, .error = bad}};
    EXPECT_EQ(encode_journal(w).error().code, Code::invalid);
  }
}

TEST(JournalCodecTest, BytesThatAreCutOffOrOfAnotherFormatAreNoticed) {
  const JournalRow whole = row(everything());
  for (std::size_t size = 0; size < whole.data.size(); size += size < 2'000 ? 1 : 997)
    EXPECT_FALSE(decode_journal({4, whole.format, whole.data.substr(0, size)})) << size;
  EXPECT_FALSE(decode_journal({4, whole.format, whole.data + '\0'}));
  EXPECT_FALSE(decode_journal({4, journal_format + 1, whole.data}));
}

}  // namespace
}  // namespace baton::store
