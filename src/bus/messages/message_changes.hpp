// What rules and receivers changed of a message, put into what its sender said. Only messages that were changed are written
// like this; all others leave as they came.
#pragma once

#include <string>
#include <string_view>

#include "bus/messages/wire.hpp"
#include "core/message/changes.hpp"
#include "core/message/rows.hpp"

namespace baton::bus {

// With why it is a dead letter, which receivers read among its properties.
[[nodiscard]] message::Changes changes_of(const message::Message& message);

// The content with the changes in it; what they do not touch stays as it was.
void write_changed(std::string& out, std::string_view content, const message::Changes& changes);

// Partition keys are annotations. Into a map that has been begun.
void write_annotations_sent(wire::Writer& writer, const wire::Item& sent, const message::Changes& changes);
void write_annotations_changed(wire::Writer& writer, const message::Changes& changes);

// What a receiver says with the settlement: a map of names and values.
[[nodiscard]] message::Changes changes_in(const wire::Item& map);

}  // namespace baton::bus
