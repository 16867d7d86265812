#include "bus/messages/message_changes.hpp"

#include <algorithm>
#include <array>

#include "bus/messages/sections.hpp"

namespace baton::bus {
namespace {

struct PlaceOf {
  std::string_view name;  // for rules
  Property place;
};
constexpr std::array<PlaceOf, 8> places{{{"MessageId", Property::message_id},
                                         {"To", Property::to},
                                         {"Label", Property::subject},
                                         {"ReplyTo", Property::reply_to},
                                         {"CorrelationId", Property::correlation_id},
                                         {"ContentType", Property::content_type},
                                         {"SessionId", Property::group_id},
                                         {"ReplyToSessionId", Property::reply_to_group_id}}};

struct AnnotationOf {
  std::string_view name, annotation;
};
constexpr std::array<AnnotationOf, 2> annotations{{{"PartitionKey", "x-opt-partition-key"}, {"ViaPartitionKey", "x-opt-via-partition-key"}}};

bool touches_properties(const message::Changes& changes) {
  return std::ranges::any_of(places, [&](const PlaceOf& one) { return changes.system.contains(std::string(one.name)); });
}

void write_properties(wire::Writer& writer, const std::optional<wire::Item>& before, const message::Changes& changes) {
  std::array<std::optional<wire::Item>, properties_count> fields;
  std::size_t at = 0;
  if (before)
    wire::for_each(*before, [&](const wire::Item& item) {
      if (at < fields.size()) fields[at++] = item;
      return true;
    });
  writer.descriptor(properties_section);
  writer.list([&] {
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const auto place = std::ranges::find(places, static_cast<Property>(i), &PlaceOf::place);
      const auto change = place == places.end() ? changes.system.end() : changes.system.find(std::string(place->name));
      if (change == changes.system.end()) fields[i] ? writer.encoded(fields[i]->encoded) : writer.null();
      else if (!change->second) writer.null();
      else if (place->place == Property::content_type) writer.symbol(*change->second);
      else writer.text(*change->second);
    }
  });
}

void write_application(wire::Writer& writer, const std::optional<wire::Item>& before, const message::Changes& changes) {
  writer.descriptor(application_section);
  writer.map([&] {
    if (before)
      wire::for_each_pair(*before, [&](const wire::Item& key, const wire::Item& value) {
        const std::string name(wire::text_of(key).value_or(""));
        if (!changes.removed.contains(name) && !changes.set.contains(name)) writer.encoded(key.encoded), writer.encoded(value.encoded);
        return true;
      });
    for (const auto& [name, value] : changes.set) writer.text(name), writer.value(value);
  });
}

}  // namespace

message::Changes changes_of(const message::Message& message) {
  message::Changes changes;
  if (message.changes)
    if (auto read = message::read_changes(*message.changes)) changes = *std::move(read);
  if (message.dead_letter_reason) changes.set.insert_or_assign("DeadLetterReason", *message.dead_letter_reason);
  if (message.dead_letter_description) changes.set.insert_or_assign("DeadLetterErrorDescription", *message.dead_letter_description);
  return changes;
}

void write_changed(std::string& out, std::string_view content, const message::Changes& changes) {
  const auto sections = split(content);
  if (!sections) return void(out += content);  // it was read before it was stored
  wire::Writer writer(out);
  std::string_view rest = content;
  const auto take_section = [&] { return wire::take(rest)->encoded; };
  if (sections->properties) {
    const std::string_view before = take_section();
    if (touches_properties(changes)) write_properties(writer, sections->properties, changes);
    else out += before;
  } else if (touches_properties(changes)) {
    write_properties(writer, std::nullopt, changes);
  }
  if (sections->application) (void)take_section();
  write_application(writer, sections->application, changes);
  out += rest;
}

void write_annotations_sent(wire::Writer& writer, const wire::Item& sent, const message::Changes& changes) {
  if (changes.system.empty()) return writer.encoded(sent.payload, sent.count);
  wire::for_each_pair(sent, [&](const wire::Item& key, const wire::Item& value) {
    const auto changed = std::ranges::find(annotations, wire::text_of(key).value_or(""), &AnnotationOf::annotation);
    if (changed == annotations.end() || !changes.system.contains(std::string(changed->name)))
      writer.encoded(key.encoded), writer.encoded(value.encoded);
    return true;
  });
}

void write_annotations_changed(wire::Writer& writer, const message::Changes& changes) {
  for (const AnnotationOf& one : annotations) {
    const auto change = changes.system.find(std::string(one.name));
    if (change != changes.system.end() && change->second) writer.symbol(one.annotation), writer.text(*change->second);
  }
}

message::Changes changes_in(const wire::Item& map) {
  message::Changes changes;
  wire::for_each_pair(map, [&](const wire::Item& key, const wire::Item& value) {
    const auto name = wire::text_of(key);
    if (name && !name->empty()) changes.set.insert_or_assign(std::string(*name), wire::value_of(value));
    return true;
  });
  return changes;
}

}  // namespace baton::bus
