// What something is about: the key under which commands are routed, waits are kept and changes are told. A
// subject belongs to one partition, and a partition has one writer, with its own term and commit numbers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/runbook/machine/rows.hpp"
#include "core/workflow/machine/rows.hpp"

namespace baton {

struct Subject {
  // A workflow, runbook, queue or worker goes by its name, everything else by its id. A version is one of a
  // runbook, a row of the table runbooks. An entity is a queue, a topic or a subscription of the bus, by its id as a
  // timer's and by its path as a command's; a message has the id of a task.
  enum class Type : std::uint8_t {
    none, workflow, job, runbook, version, batch, phase, member, step, init, cleanup, call, queue, worker, entity, message
  };
  Type type = Type::none;
  std::string id;
  friend auto operator<=>(const Subject&, const Subject&) = default;
};

enum class IdForm { name, number, uuid };

[[nodiscard]] std::string_view name(Subject::Type type);
[[nodiscard]] std::optional<Subject::Type> subject_type(std::string_view name);
[[nodiscard]] IdForm id_form(Subject::Type type);
// Those whose changes are told one by one, so that a client can listen to one of them.
[[nodiscard]] std::span<const Subject::Type> subjects_with_topics();

// The subjects of rows, and back.
[[nodiscard]] inline Subject subject_of(const workflow::JobId& id) { return {Subject::Type::job, id.value}; }
[[nodiscard]] Subject::Type subject_type(runbook::RowType type);
[[nodiscard]] runbook::RowType row_type(Subject::Type type);  // none: it is not of a runbook
[[nodiscard]] inline Subject subject_of(runbook::Ref ref) { return {subject_type(ref.type), std::to_string(ref.id)}; }
[[nodiscard]] runbook::Ref ref_of(const Subject& subject);  // RowType::none: it is not of a runbook

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
