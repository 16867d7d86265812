// What something is about: the key under which commands are routed, waits are kept and changes are told. A
// subject belongs to one partition, and a partition has one writer, with its own term and commit numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace baton {

struct Subject {
  enum class Type : std::uint8_t { none, workflow, job, runbook, batch, execution, call, queue };
  Type type = Type::none;
  std::string id;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

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
