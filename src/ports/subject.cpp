#include "ports/subject.hpp"

#include <algorithm>
#include <array>

namespace baton {
namespace {

constexpr std::array<std::string_view, 12> subject_types = {
    "none", "workflow", "job", "runbook", "batch", "execution", "call", "queue", "version", "phase", "member", "worker"};
static_assert(subject_types.size() == static_cast<std::size_t>(Subject::Type::worker) + 1);

}  // namespace

std::string_view name(Subject::Type type) { return subject_types[static_cast<std::size_t>(type)]; }

std::optional<Subject::Type> subject_type(std::string_view name) {
  const auto found = std::ranges::find(subject_types, name);
  if (found == subject_types.end()) return std::nullopt;
  return static_cast<Subject::Type>(found - subject_types.begin());
}

}  // namespace baton
