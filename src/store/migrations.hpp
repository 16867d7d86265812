// The tables of both dialects, as the texts of numbered migrations. A version that was released never changes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "store/connection.hpp"

namespace baton::store {

// Version n is at n - 1.
[[nodiscard]] std::span<const std::string_view> migrations();

// DDL in the words of a dialect: {text}, {json}, {time}, {int}, {bigint}, {bool}, {id}, {now}, {heap} and so on.
[[nodiscard]] std::string in_dialect(std::string_view text, Dialect dialect);

}  // namespace baton::store
