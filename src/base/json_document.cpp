#include "base/json_document.hpp"

#include <array>
#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <limits>

namespace baton {

namespace {

namespace bj = boost::json;

constexpr std::size_t depth_max = 64;
constexpr int node_depth_max = 3;  // object, its array, the objects in that, their fields

using Node = JsonDocument::Node;

// Receives the parser's events and writes compact text, plus a node for each value near the root.
struct Builder {
  constexpr static std::size_t max_object_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_array_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_key_size = static_cast<std::size_t>(-1);
  constexpr static std::size_t max_string_size = static_cast<std::size_t>(-1);

  std::vector<Node> nodes;
  std::string compact, strings, part, number;
  JsonDocument::Span key;
  int depth = 0;
  std::array<bool, depth_max + 2> filled{};              // a comma is due
  std::array<std::uint32_t, node_depth_max + 2> open{};  // the node of each container near the root
  bool after_key = false;

  static std::uint32_t at(const std::string& text) { return static_cast<std::uint32_t>(text.size()); }

  void comma() {
    if (after_key) {
      after_key = false;
    } else {
      if (filled[static_cast<std::size_t>(depth)]) compact += ',';
      filled[static_cast<std::size_t>(depth)] = true;
    }
  }

  Node* begin_value(JsonKind kind) {
    comma();
    if (depth > node_depth_max) return nullptr;
    auto& node = nodes.emplace_back();
    node.kind = kind;
    node.key = std::exchange(key, {});
    node.text.begin = at(compact);
    node.next = static_cast<std::uint32_t>(nodes.size());
    return &node;
  }
  void end_value(Node* node) {
    if (node != nullptr) node->text.end = at(compact);
  }

  bool begin_container(JsonKind kind, char bracket) {
    Node* node = begin_value(kind);
    if (node != nullptr) open[static_cast<std::size_t>(depth)] = static_cast<std::uint32_t>(nodes.size() - 1);
    compact += bracket;
    ++depth;
    filled[static_cast<std::size_t>(depth)] = false;
    return true;
  }
  bool end_container(char bracket) {
    compact += bracket;
    --depth;
    if (depth > node_depth_max) return true;
    auto& node = nodes[open[static_cast<std::size_t>(depth)]];
    node.text.end = at(compact);
    node.next = static_cast<std::uint32_t>(nodes.size());
    return true;
  }

  bool literal(JsonKind kind, std::string_view text, bool truth = false) {
    Node* node = begin_value(kind);
    compact += text;
    if (node != nullptr) node->truth = truth;
    end_value(node);
    return true;
  }
  bool finish_number(JsonKind kind, std::int64_t value, std::string_view tail) {
    number += tail;
    Node* node = begin_value(kind);
    compact += number;
    number.clear();
    if (node != nullptr) node->integer = value;
    end_value(node);
    return true;
  }

  // ---- what the parser calls ----
  bool on_document_begin(bj::error_code&) { return true; }
  bool on_document_end(bj::error_code&) { return true; }
  bool on_object_begin(bj::error_code&) { return begin_container(JsonKind::object, '{'); }
  bool on_object_end(std::size_t, bj::error_code&) { return end_container('}'); }
  bool on_array_begin(bj::error_code&) { return begin_container(JsonKind::array, '['); }
  bool on_array_end(std::size_t, bj::error_code&) { return end_container(']'); }
  bool on_key_part(bj::string_view s, std::size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    return true;
  }
  bool on_key(bj::string_view s, std::size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    comma();
    append_quoted(compact, part);
    compact += ':';
    after_key = true;
    if (depth <= node_depth_max) {
      key.begin = at(strings);
      strings += part;
      key.end = at(strings);
    }
    part.clear();
    return true;
  }
  bool on_string_part(bj::string_view s, std::size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    return true;
  }
  bool on_string(bj::string_view s, std::size_t, bj::error_code&) {
    part.append(s.data(), s.size());
    Node* node = begin_value(JsonKind::string);
    append_quoted(compact, part);
    if (node != nullptr) {
      node->string.begin = at(strings);
      strings += part;
      node->string.end = at(strings);
    }
    end_value(node);
    part.clear();
    return true;
  }
  bool on_number_part(bj::string_view s, bj::error_code&) {
    number.append(s.data(), s.size());
    return true;
  }
  bool on_int64(std::int64_t i, bj::string_view s, bj::error_code&) {
    return finish_number(JsonKind::integer, i, {s.data(), s.size()});
  }
  bool on_uint64(std::uint64_t, bj::string_view s, bj::error_code&) {
    return finish_number(JsonKind::real, 0, {s.data(), s.size()});  // beyond what an integer field can hold
  }
  bool on_double(double d, bj::string_view s, bj::error_code& error) {
    if (!std::isfinite(d)) {
      error = bj::error::exponent_overflow;
      return false;
    }
    return finish_number(JsonKind::real, 0, {s.data(), s.size()});
  }
  bool on_bool(bool b, bj::error_code&) { return literal(JsonKind::boolean, b ? "true" : "false", b); }
  bool on_null(bj::error_code&) { return literal(JsonKind::null, "null"); }
  bool on_comment_part(bj::string_view, bj::error_code&) { return true; }
  bool on_comment(bj::string_view, bj::error_code&) { return true; }
};

std::string describe(const bj::error_code& error, std::size_t offset, std::size_t size) {
  if (error == bj::error::too_deep) return "JSON is nested deeper than 64 levels";
  if (error == bj::error::incomplete) return "JSON ends too early, after " + std::to_string(size) + " bytes";
  return "malformed JSON at byte " + std::to_string(offset) + ": " + error.message();
}

}  // namespace

std::string_view name(JsonKind kind) {
  switch (kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return "a boolean";
    case JsonKind::integer: return "an integer";
    case JsonKind::real: return "a number";
    case JsonKind::string: return "a string";
    case JsonKind::array: return "an array";
    case JsonKind::object: return "an object";
  }
  return "";
}

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  bj::parse_options options;
  options.max_depth = depth_max;
  bj::basic_parser<Builder> parser(options);
  auto& built = parser.handler();
  built.compact.reserve(text.size());
  bj::error_code error;
  const auto consumed = parser.write_some(false, text.data(), text.size(), error);
  if (!error && consumed < text.size()) error = bj::error::extra_data;
  if (!error && !parser.done()) error = bj::error::incomplete;
  if (error) return fail(Code::invalid, describe(error, consumed, text.size()));
  JsonDocument document;
  document.nodes_ = std::move(built.nodes);
  document.compact_ = std::move(built.compact);
  document.strings_ = std::move(built.strings);
  return document;
}

JsonKind JsonView::kind() const { return document_->nodes_[index_].kind; }
bool JsonView::boolean() const { return document_->nodes_[index_].truth; }
std::int64_t JsonView::integer() const { return document_->nodes_[index_].integer; }

std::string_view JsonView::string() const {
  const auto span = document_->nodes_[index_].string;
  return std::string_view(document_->strings_).substr(span.begin, span.end - span.begin);
}

Json JsonView::json() const {
  const auto span = document_->nodes_[index_].text;
  return Json{document_->compact_.substr(span.begin, span.end - span.begin)};
}

template <class Same>
JsonView JsonView::find_if(Same same) const {
  JsonView found;
  const auto& nodes = document_->nodes_;
  if (nodes[index_].kind != JsonKind::object) return found;
  for (auto child = index_ + 1; child < nodes[index_].next; child = nodes[child].next) {
    const auto span = nodes[child].key;
    if (same(std::string_view(document_->strings_).substr(span.begin, span.end - span.begin))) {
      found = JsonView{document_, child};
    }
  }
  return found;
}

JsonView JsonView::find(std::string_view key) const {
  return find_if([key](std::string_view name) { return name == key; });
}

JsonView JsonView::find_any_case(std::string_view key) const {
  return find_if([key](std::string_view name) { return equal_ignoring_case(name, key); });
}

std::vector<JsonView> JsonView::items() const {
  std::vector<JsonView> items;
  const auto& nodes = document_->nodes_;
  if (nodes[index_].kind != JsonKind::array) return items;
  for (auto child = index_ + 1; child < nodes[index_].next; child = nodes[child].next) {
    items.push_back(JsonView{document_, child});
  }
  return items;
}

std::vector<std::pair<std::string_view, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string_view, JsonView>> members;
  const auto& nodes = document_->nodes_;
  if (nodes[index_].kind != JsonKind::object) return members;
  for (auto child = index_ + 1; child < nodes[index_].next; child = nodes[child].next) {
    const auto span = nodes[child].key;
    const auto key = std::string_view(document_->strings_).substr(span.begin, span.end - span.begin);
    members.emplace_back(key, JsonView{document_, child});
  }
  return members;
}

}  // namespace baton
