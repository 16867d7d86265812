// XML as the management API of Service Bus has it, over pugixml: which reads no DTD and resolves no entity but the five
// of XML and characters by their number, and whose parser does not recurse.
//
// Clients choose the prefixes of namespaces, so elements and attributes are found by their local names alone.
#pragma once

#include <concepts>
#include <expected>
#include <memory>
#include <pugixml.hpp>
#include <string>
#include <string_view>

namespace baton::http::admin {

inline constexpr const char* atom_namespace = "http://www.w3.org/2005/Atom";
inline constexpr const char* bus_namespace = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
inline constexpr const char* schema_namespace = "http://www.w3.org/2001/XMLSchema";
inline constexpr const char* instance_namespace = "http://www.w3.org/2001/XMLSchema-instance";

[[nodiscard]] std::string_view local_name(std::string_view name);
[[nodiscard]] pugi::xml_node find(pugi::xml_node parent, std::string_view local);
[[nodiscard]] std::string text_of(pugi::xml_node node);                        // all of it, with its blanks
[[nodiscard]] std::string type_of(pugi::xml_node node);                        // of i:type="d6p1:string" the word
[[nodiscard]] bool is_given(pugi::xml_node node);                              // there, with something in it, and not nil

// <entry>…<content><QueueDescription>…: what the content describes.
struct Entry {
  std::unique_ptr<pugi::xml_document> document;
  pugi::xml_node described;
};
[[nodiscard]] std::expected<Entry, std::string> parse_entry(std::string_view body);

pugi::xml_node add(pugi::xml_node parent, const char* name);
void add(pugi::xml_node parent, const char* name, const std::string& text);
void add(pugi::xml_node parent, const char* name, const char* text);
void add(pugi::xml_node parent, const char* name, std::same_as<bool> auto value) { add(parent, name, value ? "true" : "false"); }
template <std::integral T>
  requires(!std::same_as<T, bool>)
void add(pugi::xml_node parent, const char* name, T value) {
  add(parent, name, std::to_string(value));
}
void set(pugi::xml_node node, const char* attribute, const std::string& value);

[[nodiscard]] std::string write(const pugi::xml_document& document);

}  // namespace baton::http::admin
