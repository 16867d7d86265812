// Ids of different things are different types, all of them text. UUIDv7 is the form of the ids that we make:
// it sorts by time, which keeps the rows of one moment on neighbouring pages.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "base/time.hpp"

namespace baton {

template <class Tag>
struct Id {
  std::string value;
  friend auto operator<=>(const Id&, const Id&) = default;
  [[nodiscard]] bool empty() const { return value.empty(); }
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
