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

message::Writes all_of_messages() {
  using message::Lane;
  message::Writes w;
  w.entities_new = {{7, {"acme"}, message::EntityType::topic, "events", noon, noon, {"{}"}, {"[]"}}};
  w.entities_changed = {{.entity_id = 8, .updated_at = noon, .settings = {R"({"lock_time":1})"}, .rules = {""}}};
  w.entities_gone = {9, std::numeric_limits<std::int64_t>::max()};
  w.counters_new = {{.entity_id = 7, .last_sequence_number = 5, .active = 1, .accessed_at = noon}};
  w.counters_changed = {{.entity_id = 8, .dead = 2, .scheduled = 3, .deferred = 4, .bytes = 5, .wake_at = noon + Duration{7}}};
  w.messages_new = {{.entity_id = 7, .lane = Lane::scheduled, .sequence_number = 5, .message_id = "m-5", .enqueued_at = noon,
                     .due_at = noon + Duration{9}, .time_to_live_ms = 60'000, .enqueued_sequence_number = 5, .envelope = Json{"{}"},
                     .annotations = {std::string("\0\xff", 2)}, .content = {std::string(200, '\xfe')}},
                    {.entity_id = 7, .lane = Lane::dead, .sequence_number = 4, .dead_letter_source = "orders", .dead_letter_reason = "r",
                     .dead_letter_description = "", .content = {std::string(200, '\xfe')}}};
  w.messages_changed = {{.entity_id = 7, .lane = Lane::deferred, .sequence_number = 2, .delivery_count = 3, .locked_until = noon,
                         .changes = Json{"{}"}}};
  w.messages_gone = {{7, Lane::active, 6}, {7, Lane::active, 7}, {std::numeric_limits<std::int64_t>::min(), Lane::shelved, -1}};
  w.history_new = {{7, "m-5", noon}};
  w.history_gone = {{7, "m-4"}};
  return w;
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
  w.messages = all_of_messages();
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
  const message::Writes &messages = written.messages, &read_messages = read.messages;
  expect_same(messages.entities_new, read_messages.entities_new);
  expect_same(messages.entities_changed, read_messages.entities_changed);
  EXPECT_EQ(messages.entities_gone, read_messages.entities_gone);
  expect_same(messages.counters_new, read_messages.counters_new);
  expect_same(messages.counters_changed, read_messages.counters_changed);
  expect_same(messages.messages_new, read_messages.messages_new);
  expect_same(messages.messages_changed, read_messages.messages_changed);
  EXPECT_EQ(messages.messages_gone, read_messages.messages_gone);
  expect_same(messages.history_new, read_messages.history_new);
  EXPECT_EQ(messages.history_gone, read_messages.history_gone);
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
  const std::string of_format_2 = expected + std::string(6, '\0'), of_format_3 = of_format_2 + '\0', of_format_4 = of_format_3 + std::string(10, '\0');
  EXPECT_EQ(encode_journal(w).value().data, of_format_4);
  // Servers before format 2 have written no lists of calls, those before format 3 nothing of what is unchanged, and those before
  // format 4 no lists of messages.
  const std::string of_format[] = {expected, of_format_2, of_format_3, of_format_4};
  for (std::int32_t format = 1; format <= 4; ++format) {
    const auto read = decode_journal({4, format, of_format[format - 1]});
    ASSERT_TRUE(read) << format;
    expect_same(w.nodes_changed, read->writes.nodes_changed);
    EXPECT_EQ(w.timers_gone, read->writes.timers_gone);
    EXPECT_FALSE(decode_journal({4, format % 4 + 1, of_format[format - 1]})) << format;
  }
}

TEST(JournalCodecTest, TheFormatOfMessagesStaysAsItIs) {
  WriteSet w;
  w.messages.messages_new = {{.entity_id = 3, .sequence_number = 9, .message_id = "m", .enqueued_at = noon,
                              .annotations = {std::string("\0", 1)}, .content = {"\xff\xfe"}}};
  w.messages.messages_changed = {{.entity_id = 3, .lane = message::Lane::dead, .sequence_number = 8, .locked_until = noon,
                                  .message_id = "is not told"}};
  w.messages.messages_gone = {{3, message::Lane::dead, 7}, {3, message::Lane::dead, 8}};
  w.messages.entities_gone = {-1};
  w.messages.history_gone = {{3, "m"}};
  std::string expected(19, '\0');         // all that is not about messages
  expected += std::string("\0\0\x01\x01"  // entities_new, entities_changed, entities_gone
                          "\0\0"           // counters_new, counters_changed
                          "\x01\x85\x83\x18"  // one message: columns 0, 2, 7, 8, 17 and 18
                          "\x06\x12\x02m\x80\xc0\xe2\x85\xe3\x68\x01\0\x02\xff\xfe"
                          "\x01\x27"  // one that was changed: columns 0, 1, 2 and 5
                          "\x06\x08" "dead\x10\0"
                          "\x02\x06\x01\x0e\0\x01\x02"  // two keys; the lane was told
                          "\0\x01\x06\x02m",
                          4 + 2 + 4 + 15 + 2 + 8 + 7 + 5);
  EXPECT_EQ(encode_journal(w).value().data, expected);
  w.messages.messages_changed[0].message_id = "";
  const auto read = decode_journal({4, 4, expected});
  ASSERT_TRUE(read);
  expect_same(w.messages.messages_new, read->writes.messages.messages_new);
  expect_same(w.messages.messages_changed, read->writes.messages.messages_changed);
  EXPECT_EQ(w.messages.messages_gone, read->writes.messages.messages_gone);
}

TEST(JournalCodecTest, BytesMayBeWhatNoTextMayBe) {
  for (const std::string& bytes : {std::string("a\0b", 3), std::string("\xff\xfe"), std::string(300'000, '\xff')}) {
    WriteSet w;
    w.messages.messages_new = {{.entity_id = 1, .content = {bytes}}, {.entity_id = 2, .content = {bytes}}};
    const auto encoded = encode_journal(w);
    ASSERT_TRUE(encoded);
    expect_same(w.messages.messages_new, decode_journal({4, journal_format, encoded->data}).value().writes.messages.messages_new);
    w.messages.messages_new[0].message_id = bytes;
    EXPECT_EQ(encode_journal(w).error().code, Code::invalid);
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

std::uint64_t hash_of(std::string_view data) {  // FNV-1a
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char byte : data) hash = (hash ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  return hash;
}

// The same for every list and type of value, without spelling it out.
TEST(JournalCodecTest, EveryRowStaysAsItIs) {
  const std::string data = encode_journal(everything()).value().data;
  EXPECT_EQ(data.size(), 101'057U);
  EXPECT_EQ(hash_of(data), 12'228'743'238'850'144'024U);
}

// What servers of format 3 have written: the same without the lists of messages.
TEST(JournalCodecTest, EveryRowOfFormat3StaysAsItIsAndIsRead) {
  WriteSet written = everything();
  written.messages = {};
  std::string data = encode_journal(written).value().data;
  data.resize(data.size() - 10);
  EXPECT_EQ(data.size(), 100'464U);
  EXPECT_EQ(hash_of(data), 7'647'503'323'871'731'981U);
  const auto read = decode_journal({4, 3, data});
  ASSERT_TRUE(read);
  expect_same(written.nodes_changed, read->writes.nodes_changed);
  expect_same(written.calls.keys_new, read->writes.calls.keys_new);
  EXPECT_TRUE(read->writes.messages.empty());
}

// As long as no text is large, that is what servers of format 2 have written, but for what is unchanged and messages.
TEST(JournalCodecTest, EveryRowOfFormat2IsRead) {
  WriteSet written = everything();
  written.nodes_changed[0].output = Json{std::string(10'000, '7')};
  written.messages = {};
  std::string data = encode_journal(written).value().data;
  data.resize(data.size() - 11);
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
