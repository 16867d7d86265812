#include "ports/subject.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace baton {
namespace {

struct SubjectTraits {
  std::string_view name;
  IdForm id{};
  bool has_topic = false;
};

// In the order of Subject::Type.
constexpr std::array<SubjectTraits, 16> subject_types = {{{"none", IdForm::name},
                                                          {"workflow", IdForm::name},
                                                          {"job", IdForm::uuid, true},
                                                          {"runbook", IdForm::name, true},
                                                          {"version", IdForm::number},
                                                          {"batch", IdForm::number, true},
                                                          {"phase", IdForm::number},
                                                          {"member", IdForm::number},
                                                          {"step", IdForm::number},
                                                          {"init", IdForm::number},
                                                          {"cleanup", IdForm::number},
                                                          {"call", IdForm::uuid, true},
                                                          {"queue", IdForm::name, true},
                                                          {"worker", IdForm::name},
                                                          {"entity", IdForm::name},
                                                          {"message", IdForm::name}}};
static_assert(subject_types.size() == static_cast<std::size_t>(Subject::Type::message) + 1);

}  // namespace

std::string_view name(Subject::Type type) { return subject_types[static_cast<std::size_t>(type)].name; }

std::optional<Subject::Type> subject_type(std::string_view name) {
  const auto found = std::ranges::find(subject_types, name, &SubjectTraits::name);
  if (found == subject_types.end()) return std::nullopt;
  return static_cast<Subject::Type>(found - subject_types.begin());
}

IdForm id_form(Subject::Type type) { return subject_types[static_cast<std::size_t>(type)].id; }

std::span<const Subject::Type> subjects_with_topics() {
  static const std::vector<Subject::Type> all = [] {
    std::vector<Subject::Type> types;
    for (std::size_t i = 0; i < subject_types.size(); ++i)
      if (subject_types[i].has_topic) types.push_back(static_cast<Subject::Type>(i));
    return types;
  }();
  return all;
}

Subject::Type subject_type(runbook::RowType type) {
  switch (type) {
    case runbook::RowType::none: break;
    case runbook::RowType::step: return Subject::Type::step;
    case runbook::RowType::init: return Subject::Type::init;
    case runbook::RowType::cleanup: return Subject::Type::cleanup;
    case runbook::RowType::phase: return Subject::Type::phase;
    case runbook::RowType::batch: return Subject::Type::batch;
    case runbook::RowType::runbook: return Subject::Type::version;
  }
  return Subject::Type::none;
}

runbook::RowType row_type(Subject::Type type) {
  using enum runbook::RowType;
  for (const runbook::RowType candidate : {step, init, cleanup, phase, batch, runbook})
    if (subject_type(candidate) == type) return candidate;
  return none;
}

runbook::Ref ref_of(const Subject& subject) {
  runbook::Ref ref{.type = row_type(subject.type)};
  if (ref.type != runbook::RowType::none)
    std::from_chars(subject.id.data(), subject.id.data() + subject.id.size(), ref.id);
  return ref;
}

}  // namespace baton
