// A strict YAML 1.2 reader on libyaml's event parser: every node knows its line and column; duplicate keys,
// unknown tags, a second document, and input beyond the limits are errors; aliases are expanded within the
// node limit. Plain scalars follow the core schema: true/false, null/~, decimal integers, 0o and 0x, floats,
// everything else (yes, no, on, dates) is a string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"

namespace baton::yaml {

struct Limits {
  std::size_t bytes = 1 << 20;
  std::size_t nodes = 100'000;
  int depth = 64;
};

enum class NodeKind { null, boolean, integer, real, string, sequence, mapping };

// Where the text of a scalar stands in the document, byte for byte as far as it is on one line.
struct Written {
  enum class Style { plain, single_quoted, double_quoted, lines /* on several lines, or a block */ };
  Style style = Style::plain;
  Position at;          // of the text, after an opening quote; of the scalar when it is on several lines
  std::string escaped;  // a quoted text as it is written, if that is not the text itself

  // Of the byte with this number in the node's text.
  [[nodiscard]] Position position(std::size_t offset) const;
};

struct Node;
struct Entry;

struct Node {
  NodeKind kind = NodeKind::null;
  Position at;
  std::string text;            // scalars: the value as written, after unquoting and folding
  Written written;             // scalars: where that text stands
  std::vector<Node> items;     // sequences
  std::vector<Entry> entries;  // mappings, in the order of the document

  [[nodiscard]] const Node* find(std::string_view key) const;  // mappings; nullptr when absent
  [[nodiscard]] bool is_scalar() const { return kind != NodeKind::sequence && kind != NodeKind::mapping; }
  // Of kind boolean, integer or real; ENSUREd.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_int() const;  // integers out of range are kind real
  [[nodiscard]] double as_real() const;
};

struct Entry {
  std::string key;  // the scalar key as written: `true:` is "true"
  Position key_at;
  Node value;
};

// An empty document is a null node.
[[nodiscard]] std::expected<Node, std::vector<Diagnostic>> parse(std::string_view text,
                                                                 const Limits& limits = {});

// The same value as compact JSON. Infinities and NaN, which JSON lacks, become null.
[[nodiscard]] Json to_json(const Node& node);

}  // namespace baton::yaml
