#include "http/admin/xml.hpp"

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/xml_text.hpp"

namespace baton::http::admin {
namespace {

constexpr std::size_t text_bytes_max = 64 * 1024;

struct ToString final : pugi::xml_writer {
  std::string text;
  void write(const void* data, std::size_t size) override { text.append(static_cast<const char*>(data), size); }
};

pugi::xml_attribute find_attribute(pugi::xml_node node, std::string_view local) {
  return node.find_attribute([&](pugi::xml_attribute each) {
    const std::string_view name = each.name();
    return !name.starts_with("xmlns") && local_name(name) == local;
  });
}

}  // namespace

std::string_view local_name(std::string_view name) {
  const auto colon = name.find(':');
  return colon == name.npos ? name : name.substr(colon + 1);
}

pugi::xml_node find(pugi::xml_node parent, std::string_view local) {
  for (const pugi::xml_node each : parent.children())
    if (each.type() == pugi::node_element && local_name(each.name()) == local) return each;
  return {};
}

std::string text_of(pugi::xml_node node) {
  std::string text;
  for (const pugi::xml_node each : node.children())
    if (each.type() == pugi::node_pcdata || each.type() == pugi::node_cdata) text += each.value();
  return clean_text(text, text_bytes_max);
}

std::string type_of(pugi::xml_node node) { return std::string(local_name(find_attribute(node, "type").value())); }

bool is_given(pugi::xml_node node) {
  return node && std::string_view(find_attribute(node, "nil").value()) != "true" && (node.first_child() || !type_of(node).empty());
}

std::expected<Entry, std::string> parse_entry(std::string_view body) {
  if (body.empty()) return std::unexpected("the request has no body");
  if (!is_utf8(body) || body.contains('\0')) return std::unexpected("the body is not UTF-8");
  Entry entry{std::make_unique<pugi::xml_document>(), {}};
  // A value that is nothing but a blank is a value.
  const auto parsed = entry.document->load_buffer(body.data(), body.size(), pugi::parse_default | pugi::parse_ws_pcdata_single, pugi::encoding_utf8);
  if (!parsed) return std::unexpected(std::string("the body is not well-formed XML: ") + parsed.description() + " at byte " + std::to_string(parsed.offset));
  const pugi::xml_node root = entry.document->document_element();
  if (local_name(root.name()) != "entry") return std::unexpected("the body is not an Atom entry");
  for (const pugi::xml_node each : find(root, "content").children())
    if (each.type() == pugi::node_element) entry.described = each;
  if (!entry.described) return std::unexpected("the entry has no content");
  return entry;
}

pugi::xml_node add(pugi::xml_node parent, const char* name) { return parent.append_child(name); }

void add(pugi::xml_node parent, const char* name, const char* text) { parent.append_child(name).append_child(pugi::node_pcdata).set_value(text); }

// What is written may have been stored before it was checked, or be what a client sent.
void add(pugi::xml_node parent, const char* name, const std::string& text) { add(parent, name, xml_text(text).c_str()); }

void set(pugi::xml_node node, const char* attribute, const std::string& value) { node.append_attribute(attribute).set_value(xml_text(value).c_str()); }

std::string write(const pugi::xml_document& document) {
  ToString out;
  document.save(out, "", pugi::format_raw | pugi::format_no_declaration, pugi::encoding_utf8);
  return std::move(out.text);
}

}  // namespace baton::http::admin
