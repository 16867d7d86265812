#include "core/message/changes.hpp"

#include <boost/json.hpp>

#include "base/json_write.hpp"
#include "core/message/typed_json.hpp"

namespace baton::message {
namespace {

std::optional<boost::json::object> parse_object(const Json& json) {
  boost::system::error_code error;
  auto value = boost::json::parse(json.text, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

// The fields of an envelope under their first names: some have two.
template <class Visit>
void for_each_field(Visit&& visit) {
  const std::string_view second_names[] = {"Subject", "TransactionPartitionKey", "ScheduledEnqueueTime"};
  for (const SystemProperty& each : system_properties())
    if (std::ranges::find(second_names, each.name()) == std::end(second_names)) visit(each);
}

std::optional<std::string> text_of_value(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text ? std::optional{*text} : std::nullopt;
}

}  // namespace

void Changes::add(const Changes& later) {
  for (const auto& [name, value] : later.set) {
    removed.erase(name);
    set.insert_or_assign(name, value);
  }
  for (const std::string& name : later.removed) {
    set.erase(name);
    removed.insert(name);
  }
  for (const auto& [name, value] : later.system) system.insert_or_assign(name, value);
}

Changes changes_between(const Envelope& before, const Envelope& after) {
  Changes changes;
  for (const auto& [name, value] : after.properties) {
    const auto was = before.properties.find(name);
    if (was == before.properties.end() || was->second != value) changes.set.emplace(name, value);
  }
  for (const auto& [name, value] : before.properties)
    if (!after.properties.contains(name)) changes.removed.insert(name);
  for_each_field([&](const SystemProperty& field) {
    const Value was = field.get(before), is = field.get(after);
    const bool is_text = std::holds_alternative<std::string>(was) || std::holds_alternative<std::string>(is);
    if (field.settable() && is_text && was != is) changes.system.emplace(field.name(), text_of_value(is));
  });
  return changes;
}

Json to_json(const Changes& changes) {
  Json json{"{"};
  if (!changes.set.empty()) {
    append_key(json.text, "set");
    append_typed(json.text, changes.set);
  }
  if (!changes.removed.empty()) append_member(json.text, "removed", changes.removed);
  if (!changes.system.empty()) append_member(json.text, "system", changes.system);
  json.text += '}';
  return json;
}

std::expected<Changes, std::string> read_changes(const Json& json) {
  const auto wrong = [] { return std::unexpected(std::string("the changes of a message cannot be read")); };
  const auto object = parse_object(json);
  if (!object) return wrong();
  Changes changes;
  if (const auto* set = object->if_contains("set")) {
    auto read = read_typed_properties(*set);
    if (!read) return wrong();
    changes.set = *std::move(read);
  }
  if (const auto* removed = object->if_contains("removed")) {
    if (!removed->is_array()) return wrong();
    for (const auto& each : removed->get_array())
      if (each.is_string()) changes.removed.emplace(each.get_string());
  }
  if (const auto* system = object->if_contains("system")) {
    if (!system->is_object()) return wrong();
    for (const auto& [name, value] : system->get_object())
      changes.system.emplace(std::string(name), value.is_string() ? std::optional{std::string(value.get_string())} : std::nullopt);
  }
  return changes;
}

Json to_json(const Envelope& envelope) {
  Json json{"{"};
  for_each_field([&](const SystemProperty& field) {
    const Value value = field.get(envelope);
    if (is_null(value)) return;
    append_key(json.text, field.name());
    append_typed(json.text, value);
  });
  append_key(json.text, "properties");
  append_typed(json.text, envelope.properties);
  json.text += '}';
  return json;
}

std::expected<Envelope, std::string> read_envelope(const Json& json) {
  const auto wrong = [] { return std::unexpected(std::string("the envelope of a message cannot be read")); };
  const auto object = parse_object(json);
  if (!object || !object->contains("properties")) return wrong();
  Envelope envelope;
  for (const auto& [name, each] : *object) {
    if (name == "properties") continue;
    const SystemProperty* field = find_system_property(name);
    const auto value = read_typed(each);
    if (!field || !value || !field->set(envelope, *value)) return wrong();
  }
  auto properties = read_typed_properties(object->at("properties"));
  if (!properties) return wrong();
  envelope.properties = *std::move(properties);
  return envelope;
}

}  // namespace baton::message
