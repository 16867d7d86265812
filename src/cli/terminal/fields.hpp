// A forgiving look into JSON that a server sent: what is missing or of another type reads as nothing. Values
// are pieces of the text itself, so that numbers are shown with the digits they were sent with.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::cli {

class Fields {
 public:
  explicit Fields(std::string_view json);

  [[nodiscard]] bool has(std::string_view key) const;                   // present and not null
  [[nodiscard]] std::string text(std::string_view key) const;           // a string, or ""
  [[nodiscard]] std::int64_t number(std::string_view key) const;        // an integer, or 0
  [[nodiscard]] bool flag(std::string_view key) const;                  // true only when it is
  [[nodiscard]] std::string document(std::string_view key) const;       // any value as JSON, or ""
  [[nodiscard]] std::vector<Fields> items(std::string_view key) const;  // of an array
  [[nodiscard]] std::vector<std::pair<std::string, Fields>> members(
      std::string_view key) const;          // of an object
  [[nodiscard]] std::string whole() const;  // this very value: a string as its text, anything else as JSON

 private:
  Fields(std::shared_ptr<const std::string> text, std::string_view value)
      : text_(std::move(text)), value_(value) {}
  [[nodiscard]] std::string_view find(std::string_view key) const;

  std::shared_ptr<const std::string> text_;  // well-formed and compact
  std::string_view value_;                   // the part of it that this is
};

}  // namespace baton::cli
