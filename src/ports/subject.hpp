// What something is about: the key under which commands are routed, waits are kept and changes are told. A
// subject belongs to one partition, and a partition has one writer.
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

struct HashSubject {
  std::size_t operator()(const Subject& subject) const noexcept {
    return std::hash<std::string>{}(subject.id) ^ static_cast<std::size_t>(subject.type);
  }
};

}  // namespace baton
