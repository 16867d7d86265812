#include "bus/messages/message_encoding.hpp"

#include <algorithm>
#include <array>

#include "base/base64.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"
#include "bus/messages/message_changes.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t id_length_max = 128;  // characters
constexpr std::string_view taken_mark = "x-opt-baton-taken";

// What a broker says of a message, so that nobody else does.
constexpr std::array<std::string_view, 7> own_annotations{
    "x-opt-sequence-number", "x-opt-enqueued-time",   "x-opt-locked-until", "x-opt-enqueue-sequence-number",
    "x-opt-deadletter-source", "x-opt-message-state", taken_mark};

bool is_own(const wire::Item& key) {
  const auto name = wire::text_of(key);
  return name && std::ranges::find(own_annotations, *name) != own_annotations.end();
}

Bytes annotations_of(const Sections& sections) {
  if (!sections.annotations || sections.annotations->count == 0) return {};
  bool has_own = false;
  wire::for_each_pair(*sections.annotations, [&](const wire::Item& key, const wire::Item&) { return !(has_own = is_own(key)); });
  if (!has_own) return {std::string(sections.annotations->encoded)};
  Bytes kept;
  wire::Writer writer(kept.value);
  writer.map([&] {
    wire::for_each_pair(*sections.annotations, [&](const wire::Item& key, const wire::Item& value) {
      if (!is_own(key)) writer.encoded(key.encoded), writer.encoded(value.encoded);
      return true;
    });
  });
  return kept;
}

std::string hyphened(std::string_view uuid) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid[i]);
    text.append({digits[byte >> 4], digits[byte & 15]});
  }
  return text;
}

Time time_at(const Sections& sections, Property property) {
  const auto item = field(sections, property);
  return item ? wire::time_of(*item).value_or(Time{}) : Time{};
}

// A header has no room for more than 49 days. Clients say the rest by when it expires.
std::optional<Duration> time_to_live(const Sections& sections) {
  const auto header = field(sections.header, 2);
  const auto millis = header ? wire::integer_of(*header) : std::nullopt;
  if (!millis || *millis <= 0) return std::nullopt;
  if (*millis < UINT32_MAX) return Duration{*millis};
  const Time created = time_at(sections, Property::creation_time), expires = time_at(sections, Property::absolute_expiry_time);
  return created == Time{} ? Duration{*millis} : std::max(expires - created, Duration{*millis});
}

// The content with that id among the properties, which had none.
std::string with_message_id(const Sections& sections, std::string_view id) {
  std::string out;
  wire::Writer writer(out);
  writer.descriptor(properties_section);
  writer.list([&] {
    writer.text(id);
    bool is_first = true;
    if (sections.properties)
      wire::for_each(*sections.properties, [&](const wire::Item& item) {
        if (!std::exchange(is_first, false)) writer.encoded(item.encoded);
        return true;
      });
  });
  std::string_view rest = sections.content;
  if (sections.properties) (void)wire::take(rest);
  return out.append(rest);
}

std::optional<std::string> text_of_field(const Sections& sections, Property property) {
  const auto item = field(sections, property);
  const auto text = item ? wire::text_of(*item) : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::optional<std::string> text_of_annotation(const Sections& sections, std::string_view name) {
  const auto item = sections.annotations ? wire::find(*sections.annotations, name) : std::nullopt;
  const auto text = item ? wire::text_of(*item) : std::nullopt;
  return text ? std::optional<std::string>(*text) : std::nullopt;
}

std::unexpected<Condition> invalid(std::string why) { return std::unexpected(Condition{"amqp:invalid-field", std::move(why)}); }

}  // namespace

std::optional<std::string> text_of_id(const wire::Item& id) {
  if (wire::is_text(id)) return std::string(id.payload);
  if (wire::is_uuid(id)) return hyphened(id.payload);
  if (wire::is_binary(id)) return base64(id.payload);
  if (id.code == 0x80 || id.code == 0x53 || id.code == 0x44) {
    std::uint64_t number = 0;
    for (const char c : id.payload) number = number << 8 | static_cast<unsigned char>(c);
    return std::to_string(number);
  }
  return std::nullopt;
}

message::Envelope envelope_of(const Sections& sections) {
  message::Envelope envelope;
  const auto id = field(sections, Property::message_id), correlation = field(sections, Property::correlation_id);
  if (id) envelope.message_id = text_of_id(*id);
  if (correlation) envelope.correlation_id = text_of_id(*correlation);
  envelope.to = text_of_field(sections, Property::to);
  envelope.reply_to = text_of_field(sections, Property::reply_to);
  envelope.label = text_of_field(sections, Property::subject);
  envelope.session_id = text_of_field(sections, Property::group_id);
  envelope.reply_to_session_id = text_of_field(sections, Property::reply_to_group_id);
  envelope.content_type = text_of_field(sections, Property::content_type);
  envelope.partition_key = text_of_annotation(sections, "x-opt-partition-key");
  envelope.via_partition_key = text_of_annotation(sections, "x-opt-via-partition-key");
  envelope.time_to_live = time_to_live(sections);
  envelope.scheduled_enqueue_time = scheduled_for(sections);
  envelope.size = static_cast<std::int64_t>(sections.content.size());
  if (sections.application)
    wire::for_each_pair(*sections.application, [&](const wire::Item& key, const wire::Item& value) {
      if (const auto name = wire::text_of(key)) envelope.properties.insert_or_assign(std::string(*name), wire::value_of(value));
      return true;
    });
  return envelope;
}

std::expected<NewMessage, Condition> read_message(const Sections& sections, const Reading& how) {
  NewMessage message;
  const auto id = field(sections, Property::message_id);
  const auto text = id ? text_of_id(*id) : std::nullopt;
  if (id && !text) return invalid("a message id is a text, a number, a UUID or bytes");
  if (text && (character_count(*text) > id_length_max || text->find('\0') != text->npos))
    return invalid("a message id has at most 128 characters, and no NUL among them");
  const bool is_named = text && !text->empty();
  message.message_id = is_named ? *text : how.new_id();
  message.content.value = is_named ? std::string(sections.content) : with_message_id(sections, message.message_id);
  message.annotations = annotations_of(sections);
  message.time_to_live = time_to_live(sections);
  message.scheduled_for = scheduled_for(sections);
  if (how.has_rules) {
    auto envelope = std::make_shared<message::Envelope>(envelope_of(sections));
    envelope->message_id = message.message_id;
    message.envelope = std::move(envelope);
  }
  return message;
}

// ---- to receivers

namespace {

// A delivery that goes on is not counted.
void write_header(wire::Writer& writer, const message::Message& message, bool is_received) {
  const std::int32_t deliveries = message.delivery_count - (is_received || message.locked_until ? 1 : 0);
  writer.descriptor(header_section);
  writer.list([&] {
    writer.truth(true);  // durable
    writer.null();       // priority
    if (message.time_to_live_ms) writer.uint(static_cast<std::uint32_t>(std::clamp<std::int64_t>(*message.time_to_live_ms, 0, UINT32_MAX)));
    else writer.null();
    writer.null();  // first acquirer
    writer.uint(static_cast<std::uint32_t>(std::max(deliveries, 0)));
  });
}

// As the SDKs number them.
std::int32_t state_of(message::Lane lane) {
  switch (lane) {
    case message::Lane::deferred:
    case message::Lane::shelved: return 1;
    case message::Lane::scheduled: return 2;
    default: return 0;
  }
}

void write_annotations(wire::Writer& writer, const message::Message& message, const message::Changes& changes) {
  writer.descriptor(annotations_section);
  writer.map([&] {
    std::string_view rest = message.annotations.value;
    if (const auto sent = wire::take(rest); sent && wire::is_map(*sent)) write_annotations_sent(writer, *sent, changes);
    write_annotations_changed(writer, changes);
    writer.symbol("x-opt-sequence-number"), writer.long_integer(message.sequence_number);
    writer.symbol("x-opt-enqueued-time"), writer.time(message.enqueued_at);
    if (message.locked_until) writer.symbol("x-opt-locked-until"), writer.time(*message.locked_until);
    if (message.enqueued_sequence_number != message.sequence_number && message.enqueued_sequence_number != 0)
      writer.symbol("x-opt-enqueue-sequence-number"), writer.long_integer(message.enqueued_sequence_number);
    if (message.dead_letter_source) writer.symbol("x-opt-deadletter-source"), writer.text(*message.dead_letter_source);
    if (const std::int32_t state = state_of(message.lane); state != 0) writer.symbol("x-opt-message-state"), writer.integer(state);
  });
}

}  // namespace

std::string write_message(const message::Message& message, bool is_received) {
  const message::Changes changes = changes_of(message);
  std::string out;
  out.reserve(message.content.size() + message.annotations.size() + 256);
  wire::Writer writer(out);
  write_header(writer, message, is_received);
  write_annotations(writer, message, changes);
  if (changes.empty()) out += message.content.value;
  else write_changed(out, message.content.value, changes);
  return out;
}

Bytes marked_as_taken(const Bytes& annotations) {
  Bytes marked;
  wire::Writer writer(marked.value);
  writer.map([&] {
    std::string_view rest = annotations.value;
    if (const auto map = wire::take(rest); map && wire::is_map(*map)) writer.encoded(map->payload, map->count);
    writer.symbol(taken_mark), writer.truth(true);
  });
  return marked;
}

bool is_marked_as_taken(const Bytes& annotations) {
  std::string_view rest = annotations.value;
  const auto map = wire::take(rest);
  return map && wire::find(*map, taken_mark);
}

}  // namespace baton::bus
