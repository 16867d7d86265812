// Ids of different things are different types, all of them text. UUIDv7 is the form of the ids that we make:
// it sorts by time, which keeps the rows of one moment on neighbouring pages.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace baton {

template <class Tag>
struct Id {
  std::string value;
  friend auto operator<=>(const Id&, const Id&) = default;
  [[nodiscard]] bool empty() const { return value.empty(); }
};

// For maps of ids that are asked with the text alone.
struct IdHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view id) const noexcept { return std::hash<std::string_view>{}(id); }
  template <class Tag>
  std::size_t operator()(const Id<Tag>& id) const noexcept {
    return (*this)(std::string_view(id.value));
  }
};
struct IdEqual {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const noexcept {
    return text(a) == text(b);
  }

 private:
  static std::string_view text(std::string_view id) { return id; }
  template <class Tag>
  static std::string_view text(const Id<Tag>& id) {
    return id.value;
  }
};

using Tenant = Id<struct TenantTag>;  // every row belongs to one; "default" where nobody cares

// 74 random bits come from the caller, so that code without a source of chance can make ids too.
[[nodiscard]] std::string uuid7(Time now, std::uint64_t random_high, std::uint64_t random_low);
[[nodiscard]] bool is_uuid(std::string_view text);

}  // namespace baton

template <class Tag>
struct std::hash<baton::Id<Tag>> {
  std::size_t operator()(const baton::Id<Tag>& id) const noexcept {
    return std::hash<std::string>{}(id.value);
  }
};
