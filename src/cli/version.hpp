#pragma once

#include <string_view>

namespace baton::cli {

inline constexpr std::string_view version = "0.1.0";

}  // namespace baton::cli
