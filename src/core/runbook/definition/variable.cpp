#include "core/runbook/definition/variable.hpp"

#include <algorithm>

#include "base/diagnostic.hpp"
#include "base/text.hpp"

namespace baton::runbook {
namespace {

constexpr std::size_t name_bytes_max = 200;

}  // namespace

bool is_variable_name(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ' ' || static_cast<unsigned char>(c) >= 0x80;
  };
  return !text.empty() && text.size() <= name_bytes_max && text.front() != ' ' && text.back() != ' ' &&
         std::ranges::all_of(text, allowed);
}

std::expected<std::optional<Variable>, Broken> next_variable(std::string_view text, std::size_t from) {
  const auto begin = text.find("{{", from);
  if (begin == std::string_view::npos) return std::nullopt;
  const auto end = text.find("}}", begin + 2);
  const std::string_view inside = text.substr(begin + 2, std::min(end, text.size()) - begin - 2);
  if (end == std::string_view::npos || inside.find("{{") != std::string_view::npos)
    return std::unexpected(Broken{begin, "'{{' without '}}'"});
  const std::string_view name = trimmed(inside);
  if (name.empty()) return std::unexpected(Broken{begin, "'{{' and '}}' without a name between them"});
  if (!is_variable_name(name))
    return std::unexpected(Broken{begin, in_quotes(name) + " cannot be the name of a variable, which has " +
                                             std::string(variable_rule)});
  return Variable{name, begin, end + 2};
}

}  // namespace baton::runbook
