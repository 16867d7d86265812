// What something is about: the key under which commands are routed, waits are kept and changes are told. A
// subject belongs to one partition, and a partition has one writer, with its own term and commit numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace baton {

struct Subject {
  // A workflow, runbook, queue or worker goes by its name; a version is one of a runbook, by the id of its row;
  // an execution is a step, an init step or a cleanup: step-7.
  enum class Type : std::uint8_t {
    none, workflow, job, runbook, batch, execution, call, queue, version, phase, member, worker
  };
  Type type = Type::none;
  std::string id;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

[[nodiscard]] std::string_view name(Subject::Type type);
[[nodiscard]] std::optional<Subject::Type> subject_type(std::string_view name);

// Which one it is, whoever wires the parts together says.
struct Partition {
  std::int32_t number = 0;
  friend auto operator<=>(const Partition&, const Partition&) = default;
};

struct HashSubject {
  std::size_t operator()(const Subject& subject) const noexcept {
    return std::hash<std::string>{}(subject.id) ^ static_cast<std::size_t>(subject.type);
  }
};

}  // namespace baton
