#include "bus/messages/message_encoding.hpp"

#include <gtest/gtest.h>

#include "bus/messages/lock_token.hpp"
#include "bus/messages/message_changes.hpp"

namespace baton::bus {
namespace {

using namespace std::string_view_literals;

// One message, section by section.
class Sent {
 public:
  template <class Fill>
  Sent& list(std::uint64_t section, Fill&& fill) {
    writer_.descriptor(section);
    writer_.list([&] { fill(writer_); });
    return *this;
  }
  template <class Fill>
  Sent& map(std::uint64_t section, Fill&& fill) {
    writer_.descriptor(section);
    writer_.map([&] { fill(writer_); });
    return *this;
  }
  Sent& data(std::string_view bytes) {
    writer_.descriptor(data_section), writer_.binary(bytes);
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  wire::Writer writer_{bytes_};
};

Sent plain() {
  Sent sent;
  sent.list(header_section, [](wire::Writer& w) { w.truth(true), w.null(), w.uint(60'000); });
  sent.map(annotations_section, [](wire::Writer& w) {
    w.symbol("x-opt-scheduled-enqueue-time"), w.time(from_millis(1'800'000'000'000));
    w.symbol("x-opt-partition-key"), w.text("p");
  });
  sent.list(properties_section, [](wire::Writer& w) { w.text("m1"), w.null(), w.text("to"), w.text("label"); });
  sent.map(application_section, [](wire::Writer& w) { w.text("WorkerId"), w.text("a"), w.text("n"), w.uint(7), w.text("raw"), w.binary("\0\1"sv); });
  sent.data("body");
  return sent;
}

const Reading reading{.has_rules = true, .new_id = [] { return std::string("made-up"); }};

NewMessage read(std::string_view bytes) {
  const auto sections = split(bytes);
  EXPECT_TRUE(sections) << sections.error();
  auto message = read_message(*sections, reading);
  EXPECT_TRUE(message) << message.error().description;
  return *std::move(message);
}

message::Message stored(const NewMessage& sent) {
  message::Message message;
  message.entity_id = 3;
  message.sequence_number = message.enqueued_sequence_number = 12;
  message.delivery_count = 1;
  message.enqueued_at = from_millis(1'700'000'000'000);
  message.message_id = sent.message_id;
  if (sent.time_to_live) message.time_to_live_ms = sent.time_to_live->count();
  message.annotations = sent.annotations;
  message.content = sent.content;
  return message;
}

Sections sections_of(const std::string& bytes) {
  const auto sections = split(bytes);
  EXPECT_TRUE(sections) << sections.error();
  return *sections;
}

TEST(AMessageThatIsSent, is_kept_byte_for_byte_from_its_properties_on) {
  const Sent sent = plain();
  const NewMessage message = read(sent.bytes());
  EXPECT_TRUE(sent.bytes().ends_with(message.content.value));
  EXPECT_EQ(message.message_id, "m1");
  EXPECT_EQ(message.time_to_live, Duration{60'000});
  EXPECT_EQ(message.scheduled_for, from_millis(1'800'000'000'000));
  EXPECT_EQ(write_message(stored(message)).substr(write_message(stored(message)).size() - message.content.size()), message.content.value);
}

TEST(AMessageThatIsSent, shows_rules_its_envelope) {
  const auto envelope = read(plain().bytes()).envelope;
  ASSERT_TRUE(envelope);
  EXPECT_EQ(envelope->message_id, "m1");
  EXPECT_EQ(envelope->to, "to");
  EXPECT_EQ(envelope->label, "label");
  EXPECT_EQ(envelope->partition_key, "p");
  EXPECT_FALSE(envelope->correlation_id);
  EXPECT_EQ(envelope->properties.at("WorkerId"), message::Value(std::string("a")));
  EXPECT_EQ(envelope->properties.at("n"), message::Value(std::int64_t{7}));
  EXPECT_TRUE(std::holds_alternative<message::Opaque>(envelope->properties.at("raw")));
}

TEST(AMessageThatIsSent, gets_an_id_among_its_properties_if_it_has_none) {
  Sent bare;
  bare.data("body");
  const NewMessage first = read(bare.bytes());
  EXPECT_EQ(first.message_id, "made-up");
  EXPECT_EQ(wire::text_of(*field(sections_of(first.content.value), Property::message_id)), "made-up");
  EXPECT_TRUE(first.content.value.ends_with(bare.bytes()));

  Sent other;
  other.list(properties_section, [](wire::Writer& w) { w.null(), w.null(), w.text("to"); }).data("body");
  const NewMessage second = read(other.bytes());
  EXPECT_EQ(wire::text_of(*field(sections_of(second.content.value), Property::message_id)), "made-up");
  EXPECT_EQ(wire::text_of(*field(sections_of(second.content.value), Property::to)), "to");
}

TEST(AMessageThatIsSent, may_have_an_id_of_any_type) {
  const auto id_of = [](const std::function<void(wire::Writer&)>& put) {
    Sent sent;
    sent.list(properties_section, put).data("x");
    const NewMessage message = read(sent.bytes());
    EXPECT_EQ(message.content.value, sent.bytes());
    return message.message_id;
  };
  EXPECT_EQ(id_of([](wire::Writer& w) { w.encoded("\x80\xff\xff\xff\xff\xff\xff\xff\xff"sv); }), "18446744073709551615");
  EXPECT_EQ(id_of([](wire::Writer& w) { w.uuid("\x12\x34\x56\x78\x9a\xbc\xde\xf0\x12\x34\x56\x78\x9a\xbc\xde\xf0"sv); }), "12345678-9abc-def0-1234-56789abcdef0");
  EXPECT_EQ(id_of([](wire::Writer& w) { w.binary("\0\1"sv); }), "AAE=");
}

TEST(AMessageThatIsSent, with_an_id_that_cannot_be_stored_is_refused) {
  for (const std::string& id : {std::string(129, 'x'), std::string("a\0b"sv)}) {
    Sent sent;
    sent.list(properties_section, [&](wire::Writer& w) { w.text(id); }).data("x");
    EXPECT_FALSE(read_message(*split(sent.bytes()), reading));
  }
}

TEST(AMessageThatIsSent, cannot_say_what_only_a_broker_says) {
  Sent sent;
  sent.map(annotations_section, [](wire::Writer& w) {
    w.symbol("x-opt-sequence-number"), w.long_integer(5), w.symbol("x-opt-mine"), w.text("kept"), w.symbol("x-opt-baton-taken"), w.truth(true);
  });
  sent.data("x");
  const NewMessage message = read(sent.bytes());
  std::string_view rest = message.annotations.value;
  const auto map = wire::take(rest);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->count, 2U);
  EXPECT_TRUE(wire::find(*map, "x-opt-mine"));
  EXPECT_FALSE(is_marked_as_taken(message.annotations));
  EXPECT_TRUE(is_marked_as_taken(marked_as_taken(message.annotations)));
}

TEST(AMessageThatIsSent, may_live_longer_than_a_header_can_say) {
  Sent sent;
  sent.list(header_section, [](wire::Writer& w) { w.truth(true), w.null(), w.uint(UINT32_MAX); });
  sent.list(properties_section, [](wire::Writer& w) {
    w.text("m");
    for (int i = 0; i < 7; ++i) w.null();
    w.time(from_millis(10'000'000'000)), w.time(from_millis(1'000'000'000));
  });
  sent.data("x");
  EXPECT_EQ(read(sent.bytes()).time_to_live, Duration{9'000'000'000});
}

TEST(ATransfer, may_bring_a_batch) {
  Sent batch;
  batch.data(plain().bytes()).data(plain().bytes());
  const auto parts = split_transfer(batch.bytes());
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 2U);
  EXPECT_EQ(text_of_body(parts->front()), "body");
  Sent two;  // data that are no messages
  two.data("first").data("second");
  ASSERT_EQ(split_transfer(two.bytes())->size(), 1U);
  EXPECT_EQ(text_of_body(split_transfer(two.bytes())->front()), "firstsecond");
}

TEST(ATransfer, that_is_no_message_is_refused) {
  const std::string header = Sent().list(header_section, [](wire::Writer&) {}).bytes();
  const std::string data = Sent().data("x").bytes();
  for (const std::string& bytes : {std::string(), std::string("x"), data + header, header + header, data.substr(0, data.size() - 1),
                                   Sent().map(data_section, [](wire::Writer&) {}).bytes(), Sent().list(0x79, [](wire::Writer&) {}).bytes()})
    EXPECT_FALSE(split_transfer(bytes)) << bytes;
}

TEST(AMessageThatIsReceived, has_what_the_broker_says_of_it) {
  message::Message message = stored(read(plain().bytes()));
  message.delivery_count = 3;
  message.locked_until = from_millis(1'700'000'060'000);
  message.enqueued_sequence_number = 4;
  const std::string bytes = write_message(message);
  const Sections sections = sections_of(bytes);
  EXPECT_EQ(wire::integer_of(*field(sections.header, 2)), 60'000);
  EXPECT_EQ(wire::integer_of(*field(sections.header, 4)), 2);
  const auto annotation = [&](const char* name) { return wire::find(*sections.annotations, name); };
  EXPECT_EQ(wire::integer_of(*annotation("x-opt-sequence-number")), 12);
  EXPECT_EQ(wire::integer_of(*annotation("x-opt-enqueue-sequence-number")), 4);
  EXPECT_EQ(wire::time_of(*annotation("x-opt-locked-until")), message.locked_until);
  EXPECT_EQ(wire::time_of(*annotation("x-opt-enqueued-time")), message.enqueued_at);
  EXPECT_EQ(wire::text_of(*annotation("x-opt-partition-key")), "p");
  EXPECT_FALSE(annotation("x-opt-message-state"));
}

TEST(AMessageThatIsReceived, has_the_changes_of_rules_and_receivers_in_it) {
  message::Message message = stored(read(plain().bytes()));
  message::Changes changes;
  changes.set["n"] = std::string("eight");
  changes.set["more"] = 1.5;
  changes.removed.insert("WorkerId");
  changes.system["Label"] = "another";
  changes.system["To"] = std::nullopt;
  changes.system["PartitionKey"] = "q";
  message.changes = to_json(changes);
  message.dead_letter_reason = "tired";
  message.dead_letter_source = "orders";
  const std::string bytes = write_message(message);
  const Sections sections = sections_of(bytes);
  EXPECT_EQ(wire::text_of(*field(sections, Property::message_id)), "m1");
  EXPECT_EQ(wire::text_of(*field(sections, Property::subject)), "another");
  EXPECT_FALSE(field(sections, Property::to));
  const message::Envelope envelope = envelope_of(sections);
  EXPECT_EQ(envelope.properties.size(), 4U);
  EXPECT_EQ(envelope.properties.at("n"), message::Value(std::string("eight")));
  EXPECT_EQ(envelope.properties.at("more"), message::Value(1.5));
  EXPECT_EQ(envelope.properties.at("DeadLetterReason"), message::Value(std::string("tired")));
  EXPECT_EQ(envelope.properties.at("raw"), message::Value(message::Opaque{std::string("\xa0\x02\0\1"sv)}));
  EXPECT_EQ(envelope.partition_key, "q");
  EXPECT_EQ(wire::text_of(*wire::find(*sections.annotations, "x-opt-deadletter-source")), "orders");
  EXPECT_EQ(text_of_body(sections), "body");
}

TEST(AMessageThatIsReceived, may_get_properties_that_it_had_not) {
  Sent bare;
  bare.data("body");
  message::Message message = stored(read(bare.bytes()));
  message.content.value = bare.bytes();
  message::Changes changes;
  changes.system["Label"] = "new";
  changes.set["k"] = true;
  message.changes = to_json(changes);
  const std::string bytes = write_message(message);
  const Sections sections = sections_of(bytes);
  EXPECT_EQ(wire::text_of(*field(sections, Property::subject)), "new");
  EXPECT_EQ(envelope_of(sections).properties.at("k"), message::Value(true));
  EXPECT_EQ(text_of_body(sections), "body");
}

TEST(ALockToken, says_which_message_and_which_delivery_of_it) {
  const MessageLock lock{{0xfedcba98, message::Lane::shelved, 0x0123456789abcdef}, 0xabcdef};
  const auto back = lock_of(token_of(lock));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->message, lock.message);
  EXPECT_EQ(back->number, lock.number);
  EXPECT_EQ(swapped(swapped(token_of(lock))), token_of(lock));
  EXPECT_EQ(std::string_view(token_of(lock).data(), 16), "\xfe\xdc\xba\x98\x04\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"sv);
}

TEST(ALockToken, that_nobody_gave_is_none) {
  EXPECT_FALSE(lock_of(LockToken{}));
  LockToken token = token_of({{1, message::Lane::active, 5}, 1});
  token[4] = 9;  // no lane
  EXPECT_FALSE(lock_of(token));
}

}  // namespace
}  // namespace baton::bus
