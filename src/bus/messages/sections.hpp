// A message on the wire is a row of sections (AMQP 1.0, part 3): what is for the broker first, then what is its sender's alone,
// from the properties on, which nobody on the way may change.
//
// Pure; nothing is copied.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bus/messages/wire.hpp"

namespace baton::bus {

enum : std::uint64_t {
  header_section = 0x70,
  delivery_section = 0x71,
  annotations_section = 0x72,
  properties_section = 0x73,
  application_section = 0x74,
  data_section = 0x75,
  sequence_section = 0x76,
  value_section = 0x77,
  footer_section = 0x78
};

// The fields of the section `properties`, in their order.
enum class Property : std::uint8_t {
  message_id, user_id, to, subject, reply_to, correlation_id, content_type, content_encoding, absolute_expiry_time,
  creation_time, group_id, group_sequence, reply_to_group_id
};
inline constexpr std::size_t properties_count = 13;

struct Sections {
  std::optional<wire::Item> header, annotations, properties, application;  // their values
  std::string_view content;     // the sections from the properties on
  std::string_view body;        // of them those of the body
  std::uint64_t body_type = 0;  // data, sequence or value; 0: there is no body
};

// Checked all the way down. The error says what is wrong.
[[nodiscard]] std::expected<Sections, std::string> split(std::string_view encoded);

// Of a list, by its place; none: it is not there, or null.
[[nodiscard]] std::optional<wire::Item> field(const std::optional<wire::Item>& list, std::size_t place);
[[nodiscard]] inline std::optional<wire::Item> field(const Sections& sections, Property property) {
  return field(sections.properties, static_cast<std::size_t>(property));
}

// The payloads of its data sections.
[[nodiscard]] std::vector<std::string_view> data_of(const Sections& sections);
// What its body says: its data, or its value if that is a text.
[[nodiscard]] std::string text_of_body(const Sections& sections);
// Not before then; none: at once.
[[nodiscard]] std::optional<Time> scheduled_for(const Sections& sections);

// What one transfer brings: a message, or the messages of a batch, which is a message whose data are messages. The format of a
// transfer would tell them apart, but proton does not: that of a single message is not mistaken for a batch unless its body
// is itself an encoded message.
[[nodiscard]] std::expected<std::vector<Sections>, std::string> split_transfer(std::string_view encoded);

}  // namespace baton::bus
