// Bytes that are no text: nothing is promised about their encoding, and a store keeps them as they are.
#pragma once

#include <string>

namespace baton {

struct Bytes {
  std::string value;
  friend bool operator==(const Bytes&, const Bytes&) = default;
  [[nodiscard]] std::size_t size() const { return value.size(); }
  [[nodiscard]] bool empty() const { return value.empty(); }
};

}  // namespace baton
