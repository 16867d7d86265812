#include "core/runbook/definition/diff.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace baton::runbook {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

// A phase, a step or a section, by its name.
struct Part {
  std::string where;
  std::string within;  // `where` of the part that it belongs to; empty: of none
  std::string name;    // of a step
  Fields fields;
};

std::string text(std::chrono::seconds seconds) { return std::to_string(seconds.count()) + "s"; }
std::string text(std::int32_t number) { return std::to_string(number); }
std::string text(const Retry& retry) {
  return std::to_string(retry.max_retries) + " times, every " + text(retry.interval) +
         (retry.backoff == Backoff::exponential ? ", exponential" : "") +
         (retry.max_interval ? ", at most " + text(*retry.max_interval) : "");
}
std::string text(const PollPolicy& poll) {
  return "every " + text(poll.interval) + " for " + text(poll.timeout) + (poll.strict ? ", strict" : "");
}
std::string text(const Gate& gate) {
  constexpr const char* words[] = {"hold", "skip", "go"};
  return "approval" + (gate.timeout ? ", timeout " + text(*gate.timeout) + ", then " +
                                          words[static_cast<std::size_t>(gate.on_timeout)]
                                    : "");
}
std::string text(const Requirement& required) {
  return std::to_string(required.succeeded_percent) + " % of phase '" + required.phase + "'";
}
std::string text(const Threshold& threshold) {
  return std::to_string(threshold.max_failed_percent) + " %, at least " + std::to_string(threshold.min_failed);
}
std::string text(const std::map<std::string, std::string>& outputs) {
  std::string all;
  for (const auto& [variable, field] : outputs) all += (all.empty() ? "" : ", ") + variable + " from " + field;
  return all;
}
std::string text(SourceType type) {
  constexpr const char* words[] = {"csv", "sqlite", "postgres", "http", "unsupported"};
  return words[static_cast<std::size_t>(type)];
}
std::string text(const std::vector<MultiValuedColumn>& columns) {
  constexpr const char* formats[] = {"semicolon_delimited", "comma_delimited", "json_array"};
  std::string all;
  for (const auto& column : columns)
    all += (all.empty() ? "" : ", ") + column.name + " " + formats[static_cast<std::size_t>(column.format)];
  return all;
}

template <class T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "";
}

// As a runbook says it: T-2h, T+30m.
std::string offset(std::int32_t minutes) {
  const std::int32_t size = std::abs(minutes);
  const std::string number = size % (24 * 60) == 0 && size > 0 ? std::to_string(size / (24 * 60)) + "d"
                             : size % 60 == 0                  ? std::to_string(size / 60) + "h"
                                                               : std::to_string(size) + "m";
  return (minutes < 0 ? "T+" : "T-") + (size == 0 ? "0" : number);
}

// A key that a step, a phase or a runbook learns to have gets a line here.
Fields fields_of(const Step& step) {
  return {{"worker_id", step.worker_id},
          {"function", step.function},
          {"params", step.params.text},
          {"output_params", text(step.output_params)},
          {"on_failure", step.on_failure},
          {"timeout", text(step.timeout)},
          {"poll", text(step.poll)},
          {"retry", text(step.retry)}};
}
Fields fields_of(const Phase& phase) {
  return {{"offset", offset(phase.offset_minutes)},
          {"gate", text(phase.gate)},
          {"requires", text(phase.required)},
          {"max_failed_percent", text(phase.threshold)}};
}
Fields fields_of(const DataSource& source) {
  return {{"type", text(source.type)},
          {"connection", source.connection},
          {"query", source.query},
          {"interval", text(source.interval)},
          {"primary_key", source.primary_key},
          {"batch_time_column", source.batch_time_column},
          {"batch_time", source.immediate ? "immediate" : ""},
          {"max_removal_percent", text(source.max_removal_percent)},
          {"multi_valued_columns", text(source.multi_valued_columns)}};
}
Fields fields_of(const Definition& definition) {
  const auto overlap = definition.phase_overlap;
  return {{"description", definition.description},
          {"progression", definition.progression == Progression::lockstep ? "lockstep" : "per_member"},
          {"retry", text(definition.retry)},
          {"max_failed_percent", text(definition.threshold)},
          {"late_after", text(definition.late_after)},
          {"phase_overlap", !overlap ? "" : *overlap == PhaseOverlap::allow ? "allow" : "wait"}};
}

class Parts {
 public:
  explicit Parts(const Definition& definition) {
    parts.push_back({"the runbook", "", "", fields_of(definition)});
    parts.push_back({"data_source", "", "", fields_of(definition.data_source)});
    add("init", definition.init, {});
    for (const Phase& phase : definition.phases) add("phase '" + phase.name + "'", phase.steps, fields_of(phase));
    for (const auto& [rollback, steps] : definition.rollbacks) add("rollback '" + rollback + "'", steps, {});
    add("on_member_removed", definition.on_member_removed, {});
  }

  [[nodiscard]] const Part* find(const std::string& where) const {
    const auto it = std::ranges::find(parts, where, &Part::where);
    return it == parts.end() ? nullptr : &*it;
  }
  // The names of its steps that the other has too.
  [[nodiscard]] std::string order(const std::string& within, const Parts& other) const {
    std::string all;
    for (const Part& part : parts)
      if (part.within == within && !part.name.empty() && other.find(part.where))
        all += (all.empty() ? "" : ", ") + part.name;
    return all;
  }

  std::vector<Part> parts;

 private:
  void add(const std::string& where, const std::vector<Step>& steps, Fields fields) {
    if (steps.empty() && fields.empty()) return;
    parts.push_back({where, "", "", std::move(fields)});
    for (const Step& step : steps)
      parts.push_back({where + ", step '" + step.name + "'", where, step.name, fields_of(step)});
  }
};

}  // namespace

std::string_view name(Difference::What what) {
  switch (what) {
    case Difference::What::added: return "added";
    case Difference::What::removed: return "removed";
    case Difference::What::changed: return "changed";
  }
  return "";
}

std::vector<Difference> differences(const Definition& from, const Definition& to) {
  using enum Difference::What;
  const Parts before(from), after(to);
  std::vector<Difference> found;
  const auto is_whole = [](const Part& part, const Parts& other) {
    return part.within.empty() || other.find(part.within) != nullptr;
  };
  for (const Part& part : after.parts) {
    const Part* old = before.find(part.where);
    if (!old) {
      if (is_whole(part, before)) found.push_back({added, part.where, "", "", ""});
      continue;
    }
    for (std::size_t i = 0; i < part.fields.size(); ++i)
      if (part.fields[i].second != old->fields[i].second)
        found.push_back({changed, part.where, part.fields[i].first, old->fields[i].second, part.fields[i].second});
    auto order_before = before.order(part.where, after), order_after = after.order(part.where, before);
    if (order_before != order_after)
      found.push_back({changed, part.where, "order of steps", std::move(order_before), std::move(order_after)});
  }
  for (const Part& part : before.parts)
    if (!after.find(part.where) && is_whole(part, after)) found.push_back({removed, part.where, "", "", ""});
  return found;
}

}  // namespace baton::runbook
