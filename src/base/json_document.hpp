// JSON as it arrives: checked whole, made compact, and looked into three levels deep. Numbers keep the digits
// they were sent with, so that what passes through comes out as it went in. Duplicate keys: the last one
// wins. Depth at most 64, invalid UTF-8 is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"

namespace baton {

enum class JsonKind : std::uint8_t { null, boolean, integer, real, string, array, object };
[[nodiscard]] std::string_view name(JsonKind kind);

class JsonDocument;

// A place in a document, valid as long as the document is neither moved nor gone.
class JsonView {
 public:
  JsonView() = default;  // absent
  [[nodiscard]] explicit operator bool() const { return document_ != nullptr; }
  [[nodiscard]] JsonKind kind() const;
  [[nodiscard]] bool is_null() const { return kind() == JsonKind::null; }
  [[nodiscard]] bool boolean() const;                       // of kind boolean
  [[nodiscard]] std::int64_t integer() const;               // of kind integer
  [[nodiscard]] std::string_view string() const;            // of kind string
  [[nodiscard]] Json json() const;                          // the value as compact text
  [[nodiscard]] JsonView find(std::string_view key) const;  // in an object
  [[nodiscard]] JsonView find_any_case(std::string_view key) const;
  [[nodiscard]] std::vector<JsonView> items() const;  // of an array
  [[nodiscard]] std::vector<std::pair<std::string_view, JsonView>> members() const;  // of an object

 private:
  friend class JsonDocument;
  template <class Same>
  [[nodiscard]] JsonView find_if(Same same) const;
  JsonView(const JsonDocument* document, std::uint32_t index) : document_(document), index_(index) {}
  const JsonDocument* document_ = nullptr;
  std::uint32_t index_ = 0;
};

class JsonDocument {
 public:
  // Code::invalid with the byte offset in the message.
  [[nodiscard]] static Result<JsonDocument> parse(std::string_view text);
  [[nodiscard]] JsonView root() const { return {this, 0}; }

  struct Span {
    std::uint32_t begin = 0, end = 0;
  };
  struct Node {
    JsonKind kind{};
    bool truth = false;
    std::int64_t integer = 0;
    Span key, string;        // in strings
    Span text;               // in compact
    std::uint32_t next = 0;  // the node behind this one and all it holds
  };

 private:
  friend class JsonView;
  std::vector<Node> nodes_;
  std::string compact_;
  std::string strings_;
};

}  // namespace baton
