#include "tests/contract/runbook/shapes.hpp"

#include <ctime>
#include <stdexcept>

namespace baton::runbook_contract {
namespace {

std::string calling(const std::string& name, const std::string& params, const std::string& more) {
  return "{name: " + name + ", worker_id: POOL, function: Do-" + name + ", params: " + params +
         (more.empty() ? "" : ", " + more) + "}";
}

std::string listed(const Lines& lines, const std::string& indent) {
  std::string text;
  for (const std::string& line : lines) text += indent + "- " + line + "\n";
  return text;
}

}  // namespace

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

const json::value* found(const json::value& body, std::string_view key) {
  const auto* object = body.if_object();
  return object ? object->if_contains(key) : nullptr;
}

std::string doing(const std::string& name, const std::string& more) {
  return calling(name, R"({Upn: "{{Upn}}"})", more);
}
std::string preparing(const std::string& name, const std::string& more) {
  return calling(name, R"({Batch: "{{_batch_id}}"})", more);
}
std::string phase_of(const std::string& name, const Lines& steps, const std::string& offset) {
  return "  - name: " + name + "\n    offset: " + offset + "\n    steps:\n" + listed(steps, "      ");
}
std::string phases(const Lines& phases) {
  std::string text = "phases:\n";
  for (const std::string& phase : phases) text += phase;
  return text;
}
std::string section(const std::string& key, const Lines& steps) { return key + ":\n" + listed(steps, "  "); }
std::string rollback(const std::string& name, const Lines& steps) {
  return "rollbacks:\n  " + name + ":\n" + listed(steps, "    ");
}

std::string Job::text(std::string_view field) const {
  return std::string(body.at(field).as_string());
}
std::string Job::parameter(std::string_view name) const {
  const auto* value = found(body.at("parameters"), name);
  if (!value) return "(none)";
  return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}
Id Job::correlated(std::string_view name) const {
  const auto* value = found(body.at("correlationData"), name);
  return value && value->is_number() ? value->to_number<Id>() : 0;
}

std::map<std::string, Job> by_member(const std::vector<Job>& jobs) {
  std::map<std::string, Job> map;
  for (const Job& job : jobs)
    if (!map.emplace(job.parameter("Upn"), job).second)
      throw std::runtime_error("two jobs of one member: " + job.id());
  return map;
}

json::object result_of(const Job& job, std::string_view status, const json::value& result,
                       const json::value& error) {
  return {{"jobId", job.id()},        {"status", status},
          {"resultType", "Object"},   {"result", result},
          {"error", error},           {"durationMs", 12},
          {"timestamp", timestamp()}, {"correlationData", job.body.at("correlationData")}};
}

bool is_accepted(const Answer& answer) {
  const auto* accepted = found(answer.body, "accepted");
  return (answer.status == 200 || answer.status == 202) && (!accepted || *accepted != json::value(false));
}
bool is_ignored(const Answer& answer) {
  const auto* accepted = found(answer.body, "accepted");
  return answer.status == 200 && accepted && *accepted == json::value(false);
}

std::string timestamp(std::chrono::seconds from_now) {
  const std::time_t time = std::time(nullptr) + from_now.count();
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

json::value parsed(const std::string& text) {
  boost::system::error_code error;
  return json::parse(text, error);
}

}  // namespace baton::runbook_contract
