#include "base/yaml.hpp"

#include <yaml.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "base/result.hpp"
#include "base/yaml_scalar.hpp"

namespace baton::yaml {
namespace {

// ---- Positions ----

// libyaml counts characters, diagnostics count bytes. Marks come almost in order, so that walking on from the
// last one makes the whole document linear.
class Positions {
 public:
  explicit Positions(std::string_view text) : text_(text) {}

  Position at(const yaml_mark_t& mark) {
    const std::size_t line_index = mark.index - std::min(mark.column, mark.index);
    if (line_index != line_.index) {
      if (line_index < line_.index) line_ = {};
      if (here_.index <= line_index && here_.index > line_.index) line_ = here_;
      walk(line_, line_index);
      here_ = line_;
    }
    if (mark.index < here_.index) here_ = line_;
    walk(here_, mark.index);
    return {static_cast<int>(mark.line) + 1, static_cast<int>(here_.offset - line_.offset) + 1};
  }

  // Of a byte that libyaml could not read, where it gives no mark.
  [[nodiscard]] Position at_offset(std::size_t offset) const {
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0: the first line
    return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
            static_cast<int>(before.size() - line_start) + 1};
  }

  // What stands between two marks.
  [[nodiscard]] std::string_view between(const yaml_mark_t& from, const yaml_mark_t& to) {
    (void)at(from);
    const std::size_t begin = here_.offset;
    (void)at(to);
    return text_.substr(begin, std::max(here_.offset, begin) - begin);
  }

  [[nodiscard]] bool is_tab(const yaml_mark_t& mark) {
    (void)at(mark);
    return here_.offset < text_.size() && text_[here_.offset] == '\t';
  }

 private:
  struct Place {
    std::size_t index = 0;   // in characters
    std::size_t offset = 0;  // in bytes
  };

  void walk(Place& place, std::size_t index) const {
    const auto continues = [&] { return (static_cast<unsigned char>(text_[place.offset]) & 0xc0) == 0x80; };
    for (; place.index < index && place.offset < text_.size(); ++place.index) do
        ++place.offset;
      while (place.offset < text_.size() && continues());
  }

  std::string_view text_;
  Place line_;  // where the line of the last mark begins
  Place here_;  // the last mark
};

// ---- Events to nodes ----

// Nodes as they are read. Children are numbers of other nodes, so that an alias costs nothing until it is
// expanded.
struct Draft {
  struct Child {
    std::size_t node;
    std::string key;  // of mappings
    Position key_at;
  };
  NodeKind kind = NodeKind::null;
  Position at;
  std::string text;
  Written written;
  std::vector<Child> children;
  bool open = false;  // its end has not been read: an alias to it would make a circle
};

struct Key {
  std::string text;
  Position at;
};

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&raw); }
  yaml_event_t raw{};
};

std::string_view view(const yaml_char_t* text) {
  return text ? reinterpret_cast<const char*>(text) : std::string_view{};
}

class Reader {
 public:
  Reader(std::string_view text, const Limits& limits)
      : limits_(limits), positions_(text), bytes_left_(text_max()) {
    ENSURE(yaml_parser_initialize(&parser_));
    yaml_parser_set_encoding(&parser_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { yaml_parser_delete(&parser_); }

  std::expected<Node, std::vector<Diagnostic>> read() {
    while (!done_) {
      Event event;
      if (!yaml_parser_parse(&parser_, &event.raw)) {
        syntax_error();
        break;
      }
      on(event.raw);
    }
    Node root;
    if (diagnostics_.empty() && !drafts_.empty()) {
      nodes_left_ = limits_.nodes;
      bytes_left_ = text_max();
      expand(0, limits_.depth, root);
    }
    if (!diagnostics_.empty()) {
      std::ranges::stable_sort(diagnostics_, {}, &Diagnostic::at);
      return std::unexpected(std::move(diagnostics_));
    }
    return root;
  }

 private:
  struct Frame {
    std::size_t node;
    std::optional<Key> key;  // a mapping whose key has been read and whose value has not
  };

  void error(Position at, std::string code, std::string message, std::string hint = {}) {
    diagnostics_.push_back(
        {Diagnostic::Level::error, at, std::move(code), std::move(message), std::move(hint)});
    if (diagnostics_.size() >= diagnostics_max) done_ = true;
  }

  void fatal(Position at, std::string code, std::string message, std::string hint = {}) {
    error(at, std::move(code), std::move(message), std::move(hint));
    done_ = true;
  }

  void syntax_error() {
    std::string message = parser_.problem ? parser_.problem : "the document cannot be read";
    if (parser_.error == YAML_READER_ERROR) {
      fatal(positions_.at_offset(parser_.problem_offset), "yaml_encoding", std::move(message),
            "the document must be UTF-8 without control characters");
      return;
    }
    if (parser_.context) {
      message += std::string(" ") + parser_.context;
      const Position from = positions_.at(parser_.context_mark);
      if (parser_.context_mark.line != parser_.problem_mark.line)
        message += " (line " + std::to_string(from.line) + ')';
    }
    const bool tab = positions_.is_tab(parser_.problem_mark);
    fatal(positions_.at(parser_.problem_mark), "yaml_syntax", std::move(message),
          tab ? "indent with blanks, tabs are not allowed" : "");
  }

  void on(const yaml_event_t& event) {
    const Position at = positions_.at(event.start_mark);
    switch (event.type) {
      case YAML_DOCUMENT_START_EVENT:
        if (documents_++ > 0)
          fatal(at, "yaml_second_document", "a second document begins here; only one is allowed");
        break;
      case YAML_SCALAR_EVENT: on_scalar(event, at); break;
      case YAML_ALIAS_EVENT: on_alias(view(event.data.alias.anchor), at); break;
      case YAML_SEQUENCE_START_EVENT: {
        const auto& start = event.data.sequence_start;
        on_collection(NodeKind::sequence, YAML_SEQ_TAG, view(start.tag), view(start.anchor), at);
        break;
      }
      case YAML_MAPPING_START_EVENT: {
        const auto& start = event.data.mapping_start;
        on_collection(NodeKind::mapping, YAML_MAP_TAG, view(start.tag), view(start.anchor), at);
        break;
      }
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: on_collection_end(); break;
      case YAML_STREAM_END_EVENT: done_ = true; break;
      case YAML_NO_EVENT:
      case YAML_STREAM_START_EVENT:
      case YAML_DOCUMENT_END_EVENT: break;
    }
  }

  void on_scalar(const yaml_event_t& event, Position at) {
    const auto& scalar = event.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(scalar.value), scalar.length);
    const bool plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (plain && text == "<<" && expects_key()) {
      error(at, "yaml_merge_key", "merge keys (<<) are not part of YAML 1.2",
            "write the keys out, or quote it: '<<'");
    }
    const std::string_view tag = view(scalar.tag);
    const NodeKind kind =
        tag.empty() ? (plain ? resolve_plain(text) : NodeKind::string) : tagged(tag, text, at);
    if (expects_key()) {
      if (!count(at)) return;
      // An anchor on a key is rare, but legal; it may be used as a value later.
      if (!view(scalar.anchor).empty()) anchor(view(scalar.anchor), add(kind, at, text));
      frames_.back().key = Key{std::string(text), at};
      return;
    }
    if (!count(at)) return;
    const std::size_t node = add(kind, at, text);
    if (kind == NodeKind::string) drafts_[node].written = written(event, at);
    anchor(view(scalar.anchor), node);
    attach(node);
  }

  Written written(const yaml_event_t& event, Position at) {
    const auto& scalar = event.data.scalar;
    const bool block = scalar.style == YAML_LITERAL_SCALAR_STYLE || scalar.style == YAML_FOLDED_SCALAR_STYLE;
    if (block || event.start_mark.line != event.end_mark.line) return {Written::Style::lines, at, {}};
    const std::string_view all = positions_.between(event.start_mark, event.end_mark);
    std::string_view rest = all;
    while (rest.starts_with('&') || rest.starts_with('!'))  // an anchor or a tag comes first
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t", rest.find_first_of(" \t")), rest.size()));
    at.column += static_cast<int>(all.size() - rest.size());
    if (scalar.style == YAML_PLAIN_SCALAR_STYLE) return {Written::Style::plain, at, {}};
    ++at.column;
    rest = rest.substr(std::min<std::size_t>(1, rest.size()), rest.size() < 2 ? 0 : rest.size() - 2);
    const bool escaped = rest != std::string_view(reinterpret_cast<const char*>(scalar.value), scalar.length);
    return {scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE ? Written::Style::single_quoted
                                                            : Written::Style::double_quoted,
            at, escaped ? std::string(rest) : std::string()};
  }

  NodeKind tagged(std::string_view tag, std::string_view text, Position at) {
    const NodeKind plain = resolve_plain(text);
    if (tag == "!" || tag == YAML_STR_TAG) return NodeKind::string;
    NodeKind wanted = plain;
    if (tag == YAML_INT_TAG)
      wanted = NodeKind::integer;
    else if (tag == YAML_FLOAT_TAG)
      wanted = NodeKind::real;
    else if (tag == YAML_BOOL_TAG)
      wanted = NodeKind::boolean;
    else if (tag == YAML_NULL_TAG)
      wanted = NodeKind::null;
    else
      error(at, "yaml_unknown_tag", "unknown tag " + in_quotes(tag));
    const bool widened = wanted == NodeKind::real && plain == NodeKind::integer;
    if (plain != wanted && !widened)
      error(at, "yaml_bad_value", in_quotes(text) + " is not a value of the tag " + in_quotes(tag));
    return wanted;
  }

  void on_collection(NodeKind kind, std::string_view own_tag, std::string_view tag, std::string_view name,
                     Position at) {
    if (expects_key())
      return fatal(at, "yaml_complex_key", "a key must be a scalar", "quote it if it is text");
    if (!tag.empty() && tag != "!" && tag != own_tag)
      error(at, "yaml_unknown_tag", "unknown tag " + in_quotes(tag));
    if (std::cmp_greater_equal(frames_.size(), limits_.depth)) return too_deep(at);
    if (!count(at)) return;
    const std::size_t node = add(kind, at, {});
    drafts_[node].open = true;
    anchor(name, node);
    attach(node);
    frames_.push_back({node, std::nullopt});
  }

  void on_collection_end() {
    Draft& draft = drafts_[frames_.back().node];
    draft.open = false;
    frames_.pop_back();
    if (draft.kind == NodeKind::mapping) check_duplicates(draft);
  }

  void on_alias(std::string_view name, Position at) {
    const auto found = anchors_.find(std::string(name));
    if (found == anchors_.end())
      return fatal(at, "yaml_unknown_alias", "no anchor " + in_quotes(name) + " before this alias");
    const Draft& target = drafts_[found->second];
    if (target.open)
      return fatal(at, "yaml_recursive_alias", "the alias " + in_quotes(name) + " contains itself");
    if (!count(at)) return;
    if (!expects_key()) return attach(found->second);
    if (target.kind == NodeKind::sequence || target.kind == NodeKind::mapping)
      return fatal(at, "yaml_complex_key", "a key must be a scalar");
    if (target.text.size() > bytes_left_) return too_many(at);
    bytes_left_ -= target.text.size();
    frames_.back().key = Key{target.text, at};
  }

  // Sorts instead of looking up each key, so that a large mapping costs n log n.
  void check_duplicates(const Draft& mapping) {
    std::vector<std::size_t> order(mapping.children.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {},
                             [&](std::size_t i) { return std::string_view(mapping.children[i].key); });
    std::size_t first = 0;
    for (std::size_t i = 1; i < order.size(); ++i) {
      const auto& child = mapping.children[order[i]];
      if (child.key != mapping.children[order[first]].key) {
        first = i;
        continue;
      }
      const int line = mapping.children[order[first]].key_at.line;
      error(child.key_at, "yaml_duplicate_key",
            "duplicate key " + in_quotes(child.key) + ", first used in line " + std::to_string(line));
    }
  }

  [[nodiscard]] bool expects_key() const {
    return !frames_.empty() && drafts_[frames_.back().node].kind == NodeKind::mapping && !frames_.back().key;
  }

  [[nodiscard]] bool count(Position at) {
    if (++nodes_read_ <= limits_.nodes) return true;
    too_many(at);
    return false;
  }

  std::size_t add(NodeKind kind, Position at, std::string_view text) {
    drafts_.push_back({kind, at, std::string(text), {}, {}, false});
    return drafts_.size() - 1;
  }

  void anchor(std::string_view name, std::size_t node) {
    if (!name.empty()) anchors_.insert_or_assign(std::string(name), node);
  }

  void attach(std::size_t node) {
    if (frames_.empty()) return;  // the root
    Frame& frame = frames_.back();
    Key key = std::move(frame.key).value_or(Key{});
    frame.key.reset();
    drafts_[frame.node].children.push_back({node, std::move(key.text), key.at});
  }

  // Escapes can make text a little longer than it is written.
  [[nodiscard]] std::size_t text_max() const { return 2 * limits_.bytes; }

  // Aliases multiply nodes and text; both have a budget.
  [[nodiscard]] bool spend(std::size_t bytes) {
    if (nodes_left_ == 0 || bytes_left_ < bytes) return false;
    --nodes_left_;
    bytes_left_ -= bytes;
    return true;
  }

  // Recursion ends at the depth limit.
  void expand(std::size_t number, int depth, Node& out) {
    const Draft& draft = drafts_[number];
    if (!spend(draft.text.size() + draft.written.escaped.size())) return too_many(draft.at);
    out.kind = draft.kind;
    out.at = draft.at;
    out.text = draft.text;
    out.written = draft.written;
    if (out.is_scalar()) return;
    if (depth == 0) return too_deep(draft.at);
    if (draft.kind == NodeKind::sequence) out.items.reserve(draft.children.size());
    if (draft.kind == NodeKind::mapping) out.entries.reserve(draft.children.size());
    for (const auto& child : draft.children) {
      if (draft.kind == NodeKind::mapping && !spend(child.key.size())) return too_many(child.key_at);
      Node& slot = draft.kind == NodeKind::sequence
                       ? out.items.emplace_back()
                       : out.entries.emplace_back(Entry{child.key, child.key_at, {}}).value;
      expand(child.node, depth - 1, slot);
      if (!diagnostics_.empty()) return;
    }
  }

  void too_deep(Position at) {
    fatal(at, "yaml_too_deep", "nested deeper than " + std::to_string(limits_.depth) + " levels");
  }
  void too_many(Position at) {
    fatal(at, "yaml_too_many_nodes",
          "the document holds more than " + std::to_string(limits_.nodes) +
              " values or, with its aliases, too much text");
  }

  static constexpr std::size_t diagnostics_max = 200;

  Limits limits_;
  Positions positions_;
  yaml_parser_t parser_{};
  std::vector<Draft> drafts_;  // the first is the root
  std::vector<Frame> frames_;  // the collections that are open, outermost first
  std::unordered_map<std::string, std::size_t> anchors_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t nodes_read_ = 0;
  std::size_t nodes_left_ = 0;  // for the expansion
  std::size_t bytes_left_;      // of text, first for keys that are aliases, then for the expansion
  int documents_ = 0;
  bool done_ = false;
};

// ---- Nodes to JSON ----

// Integers beyond 64 bits keep all their digits.
void append_real(std::string& out, const Node& node) {
  const std::string_view digits = big_integer_digits(node.text);
  if (digits.empty() || !std::isfinite(node.as_real())) return baton::append_real(out, node.as_real());
  if (node.text.front() == '-') out += '-';
  out += digits;
}

// Recursion is bounded by the depth limit of parse().
void append_json(std::string& out, const Node& node) {
  bool first = true;
  switch (node.kind) {
    case NodeKind::null: out += "null"; break;
    case NodeKind::boolean: out += node.as_bool() ? "true" : "false"; break;
    case NodeKind::integer: out += std::to_string(node.as_int()); break;
    case NodeKind::real: append_real(out, node); break;
    case NodeKind::string: append_quoted(out, node.text); break;
    case NodeKind::sequence:
      out += '[';
      for (const Node& item : node.items) {
        if (!std::exchange(first, false)) out += ',';
        append_json(out, item);
      }
      out += ']';
      break;
    case NodeKind::mapping:
      out += '{';
      for (const Entry& entry : node.entries) {
        if (!std::exchange(first, false)) out += ',';
        append_quoted(out, entry.key);
        out += ':';
        append_json(out, entry.value);
      }
      out += '}';
      break;
  }
}

// libyaml compares each %TAG directive with all others, before any event: a document of nothing else takes
// it many seconds. We know no tags of that kind anyway.
bool has_many_tag_directives(std::string_view text) {
  constexpr std::string_view directive = "%TAG";
  int count = 0;
  for (std::size_t at = text.find(directive); at != text.npos; at = text.find(directive, at + 1))
    if ((at == 0 || text[at - 1] == '\n' || text[at - 1] == '\r') && ++count > 100) return true;
  return false;
}

std::unexpected<std::vector<Diagnostic>> refuse(std::string code, std::string message) {
  return std::unexpected(
      std::vector{Diagnostic{Diagnostic::Level::error, {}, std::move(code), std::move(message), {}}});
}

// How many bytes the escape at the front of `written` takes, and how many the text that it means.
struct Escape {
  std::size_t written;
  std::size_t text;
};

Escape look_at_escape(std::string_view written) {
  constexpr std::string_view sized = "xuU";
  constexpr std::array<std::size_t, 3> digits{2, 4, 8};
  const char letter = written.size() > 1 ? written[1] : '\\';
  if (letter == 'N' || letter == '_') return {2, 2};
  if (letter == 'L' || letter == 'P') return {2, 3};
  const std::size_t which = sized.find(letter);
  if (which == sized.npos) return {2, 1};
  const std::string_view hex = written.substr(2, digits[which]);
  std::uint32_t code = 0;
  (void)std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
  return {2 + digits[which], code < 0x80 ? 1u : code < 0x800 ? 2u : code < 0x10000 ? 3u : 4u};
}

}  // namespace

Position Written::position(std::size_t offset) const {
  if (style == Style::lines) return at;
  std::size_t in_text = 0;
  std::size_t in_document = 0;
  while (in_text < offset && in_document < escaped.size()) {
    const char sign = style == Style::single_quoted ? '\'' : '\\';
    Escape step{1, 1};
    if (escaped[in_document] == sign)
      step = style == Style::single_quoted ? Escape{2, 1}
                                           : look_at_escape(std::string_view(escaped).substr(in_document));
    in_text += step.text;
    in_document += step.written;
  }
  if (in_text < offset) in_document += offset - in_text;
  return {at.line, at.column + static_cast<int>(in_document)};
}

const Node* Node::find(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &found->value;
}

bool Node::as_bool() const {
  ENSURE(kind == NodeKind::boolean);
  return text.front() == 't' || text.front() == 'T';
}

std::int64_t Node::as_int() const {
  ENSURE(kind == NodeKind::integer);
  const auto value = to_int(text);
  ENSURE(value);
  return *value;
}

double Node::as_real() const {
  ENSURE(kind == NodeKind::real || kind == NodeKind::integer);
  return to_real(text);
}

std::expected<Node, std::vector<Diagnostic>> parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.bytes)
    return refuse("yaml_too_large", "the document has " + std::to_string(text.size()) +
                                        " bytes; the limit is " + std::to_string(limits.bytes));
  if (has_many_tag_directives(text))
    return refuse("yaml_too_many_directives", "the document has too many %TAG directives");
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  return Reader(text, limits).read();
}

Json to_json(const Node& node) {
  Json json;
  append_json(json.text, node);
  return json;
}

}  // namespace baton::yaml
