// The questions that a decision asks the store. Answered in bulk; rows that do not exist are absent.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "base/time.hpp"

namespace baton::runbook {
namespace need {

using Id = std::int64_t;

struct Runbook {
  Id id;
  auto operator<=>(const Runbook&) const = default;
};
// Version 0: the active one, else the newest.
struct RunbookNamed {
  std::string name;
  std::int32_t version;
  auto operator<=>(const RunbookNamed&) const = default;
};
struct LatestVersion {
  std::string name;
  auto operator<=>(const LatestVersion&) const = default;
};
struct RunbooksOfTable {
  std::string data_table;
  auto operator<=>(const RunbooksOfTable&) const = default;
};

struct Batch {
  Id id;
  auto operator<=>(const Batch&) const = default;
};
// The newest open batch of that time.
struct BatchOfTime {
  std::string runbook;
  Time time;
  auto operator<=>(const BatchOfTime&) const = default;
};
// Batches that have not ended, by id.
struct OpenBatches {
  std::string runbook;
  Id after;
  std::int32_t limit;
  auto operator<=>(const OpenBatches&) const = default;
};

// Of those, where init or a phase was dispatched, by id.
struct BegunBatches {
  std::string runbook;
  std::int32_t limit;
  auto operator<=>(const BegunBatches&) const = default;
};

struct Phase {
  Id id;
  auto operator<=>(const Phase&) const = default;
};
struct PhasesOf {
  Id batch;
  auto operator<=>(const PhasesOf&) const = default;
};
struct Init {
  Id id;
  auto operator<=>(const Init&) const = default;
};
struct InitsOf {
  Id batch;
  auto operator<=>(const InitsOf&) const = default;
};

struct Member {
  Id id;
  auto operator<=>(const Member&) const = default;
};
// By id, any status; or only those that have failed.
struct MembersOf {
  Id batch, after;
  std::int32_t limit;
  auto operator<=>(const MembersOf&) const = default;
};
struct FailedMembersOf {
  Id batch, after;
  std::int32_t limit;
  auto operator<=>(const FailedMembersOf&) const = default;
};
struct MembersNamed {
  Id batch;
  std::string key;
  auto operator<=>(const MembersNamed&) const = default;
};

// The step, and its place.
struct Step {
  Id id;
  auto operator<=>(const Step&) const = default;
};
// By step_index; or only the first of those that have not succeeded.
struct StepsOf {
  Id member, phase;
  auto operator<=>(const StepsOf&) const = default;
};
struct StepsAhead {
  static constexpr std::int32_t limit = 2;  // one that is over now, and the next
  Id member, phase;
  auto operator<=>(const StepsAhead&) const = default;
};
struct StepsOfMember {
  Id member;
  auto operator<=>(const StepsOfMember&) const = default;
};
// Steps whose job_state is parked, by phase and id.
struct ParkedSteps {
  Id batch;
  std::int32_t limit;
  auto operator<=>(const ParkedSteps&) const = default;
};

// Steps of a phase whose job_state is limited: who has come furthest first, then by id.
struct LimitedSteps {
  Id phase;
  std::int32_t limit;
  auto operator<=>(const LimitedSteps&) const = default;
};
// Members that wait for a hold, by id.
struct HeldMembers {
  Id hold;
  std::int32_t limit;
  auto operator<=>(const HeldMembers&) const = default;
};

struct Cleanup {
  Id id;
  auto operator<=>(const Cleanup&) const = default;
};
struct CleanupsOfStep {
  Id step;
  auto operator<=>(const CleanupsOfStep&) const = default;
};
struct CleanupsOfInit {
  Id init;
  auto operator<=>(const CleanupsOfInit&) const = default;
};
struct RemovalsOf {
  Id member;
  auto operator<=>(const RemovalsOf&) const = default;
};
// Those pending, dispatched or polling.
struct OpenCleanupsOf {
  Id batch;
  auto operator<=>(const OpenCleanupsOf&) const = default;
};

// Those that were given up.
struct DeadCleanupsOf {
  Id batch;
  auto operator<=>(const DeadCleanupsOf&) const = default;
};

struct Hold {
  Id id;
  auto operator<=>(const Hold&) const = default;
};
// All of a batch, the answered ones too.
struct HoldsOf {
  Id batch;
  auto operator<=>(const HoldsOf&) const = default;
};

// Phase 0: what is counted for the batch as a whole.
struct CountsOf {
  Id batch, phase;
  auto operator<=>(const CountsOf&) const = default;
};
// The current row.
struct DataRow {
  std::string table, member_key;
  auto operator<=>(const DataRow&) const = default;
};

}  // namespace need

using Need =
    std::variant<need::Runbook, need::RunbookNamed, need::LatestVersion, need::RunbooksOfTable, need::Batch,
                 need::BatchOfTime, need::OpenBatches, need::BegunBatches, need::Phase, need::PhasesOf, need::Init, need::InitsOf,
                 need::Member, need::MembersOf, need::FailedMembersOf, need::MembersNamed, need::Step,
                 need::StepsOf, need::StepsAhead, need::StepsOfMember, need::ParkedSteps, need::LimitedSteps,
                 need::HeldMembers, need::Cleanup,
                 need::CleanupsOfStep, need::CleanupsOfInit, need::RemovalsOf, need::OpenCleanupsOf,
                 need::DeadCleanupsOf, need::Hold, need::HoldsOf, need::CountsOf, need::DataRow>;

struct HashNeed {
  std::size_t operator()(const Need& need) const noexcept;
};

}  // namespace baton::runbook
