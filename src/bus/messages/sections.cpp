#include "bus/messages/sections.hpp"

#include <algorithm>

namespace baton::bus {
namespace {

bool fits(std::uint64_t section, const wire::Item& value) {
  switch (section) {
    case header_section:
    case properties_section:
    case sequence_section: return wire::is_list(value);
    case data_section: return wire::is_binary(value);
    case value_section: return true;
    default: return wire::is_map(value);
  }
}

bool is_of_body(std::uint64_t section) { return section >= data_section && section <= value_section; }

// Sections come in the order of their numbers, each once; data and sequences may come again.
bool may_follow(std::uint64_t section, std::uint64_t last, std::uint64_t body_type) {
  if (section == last) return section == data_section || section == sequence_section;
  return section > last && !(is_of_body(section) && body_type != 0);
}

void note(Sections& sections, std::uint64_t section, const wire::Item& value) {
  switch (section) {
    case header_section: sections.header = value; return;
    case annotations_section: sections.annotations = value; return;
    case properties_section: sections.properties = value; return;
    case application_section: sections.application = value; return;
    default: return;
  }
}

template <class Visit>
void for_each_of_body(const Sections& sections, Visit&& visit) {
  std::string_view rest = sections.body;
  while (!rest.empty()) {
    const auto section = wire::take(rest);
    const auto what = section ? wire::described(*section) : std::nullopt;
    if (!what) return;
    visit(what->value);
  }
}

// Nobody else's data begin like that.
bool begins_as_message(std::string_view data) {
  return data.size() > 3 && data[0] == 0 && (data[1] == 0x53 || static_cast<unsigned char>(data[1]) == 0x80);
}

}  // namespace

std::expected<Sections, std::string> split(std::string_view encoded) {
  const auto wrong = [](const char* why) { return std::unexpected(std::string("not an AMQP message: ") + why); };
  Sections sections;
  std::uint64_t last = 0;
  std::string_view rest = encoded;
  while (!rest.empty()) {
    const std::string_view from = rest;
    const auto item = wire::take(rest);
    const auto what = item ? wire::described(*item) : std::nullopt;
    if (!what) return wrong("a section cannot be decoded");
    const auto number = wire::integer_of(what->descriptor);
    if (!number || *number < static_cast<std::int64_t>(header_section) || *number > static_cast<std::int64_t>(footer_section))
      return wrong("an unknown section");
    const auto section = static_cast<std::uint64_t>(*number);
    if (!may_follow(section, last, sections.body_type)) return wrong("its sections are not in order");
    if (!fits(section, what->value) || !wire::is_well_formed(what->value)) return wrong("a section is malformed");
    note(sections, section, what->value);
    if (section >= properties_section && sections.content.empty()) sections.content = from;
    if (is_of_body(section)) {
      const char* begin = sections.body.empty() ? from.data() : sections.body.data();
      sections.body = {begin, static_cast<std::size_t>(rest.data() - begin)};
      sections.body_type = section;
    }
    last = section;
  }
  if (last == 0) return wrong("it is empty");
  return sections;
}

std::optional<wire::Item> field(const std::optional<wire::Item>& list, std::size_t place) {
  std::optional<wire::Item> found;
  if (!list) return found;
  std::size_t at = 0;
  wire::for_each(*list, [&](const wire::Item& item) {
    if (at++ != place) return true;
    if (!wire::is_null(item)) found = item;
    return false;
  });
  return found;
}

std::vector<std::string_view> data_of(const Sections& sections) {
  std::vector<std::string_view> parts;
  if (sections.body_type == data_section)
    for_each_of_body(sections, [&](const wire::Item& value) { parts.push_back(value.payload); });
  return parts;
}

std::string text_of_body(const Sections& sections) {
  std::string text;
  for_each_of_body(sections, [&](const wire::Item& value) {
    if (sections.body_type == data_section || wire::is_text(value)) text += value.payload;
  });
  return text;
}

std::optional<Time> scheduled_for(const Sections& sections) {
  const auto at = sections.annotations ? wire::find(*sections.annotations, "x-opt-scheduled-enqueue-time") : std::nullopt;
  return at ? wire::time_of(*at) : std::nullopt;
}

std::expected<std::vector<Sections>, std::string> split_transfer(std::string_view encoded) {
  auto whole = split(encoded);
  if (!whole) return std::unexpected(std::move(whole.error()));
  const auto parts = data_of(*whole);
  if (parts.empty() || !std::ranges::all_of(parts, begins_as_message)) return std::vector{*whole};
  std::vector<Sections> all;
  all.reserve(parts.size());
  for (const std::string_view part : parts) {
    auto one = split(part);
    if (!one) return std::vector{*std::move(whole)};
    all.push_back(*std::move(one));
  }
  return all;
}

}  // namespace baton::bus
