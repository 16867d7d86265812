#include "cli/commands/targets.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/remote.hpp"
#include "core/runbook/machine/messages.hpp"

namespace baton::cli {

std::string runbook_target(const std::string& name) { return "/api/v1/runbooks/" + escaped(name); }

std::string batch_target(std::int64_t batch_id) { return fmt::format("/api/v1/batches/{}", batch_id); }

void add_batch_id(Parser command, const std::string& name, std::int64_t& batch_id) {
  command.add_option(name, batch_id, "the batch's number")
      .required()
      .type_name("BATCH")
      .check([](const std::string& text) {
        const bool is_number = !text.empty() && text.size() < 19 && text != "0" &&
                               std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
        return is_number
                   ? std::string{}
                   : fmt::format("'{}' is not the number of a batch; `baton batch list` has them", text);
      });
}

namespace {

// Whether it can be one; `target` is then where it is kept.
bool find_job(std::string_view job_id, std::string& target) {
  const auto name = runbook::parse_job_id(job_id);
  if (!name) return false;
  const std::string_view list = name->ref.type == runbook::RowType::step   ? "steps"
                                : name->ref.type == runbook::RowType::init ? "inits"
                                                                        : "cleanups";
  target = fmt::format("/api/v1/{}/{}", list, name->ref.id);
  return true;
}

}  // namespace

std::string job_target(const std::string& job_id) {
  std::string target = "/api/v1/steps/" + escaped(job_id);
  find_job(job_id, target);
  return target;
}

void add_job_id(Parser command, std::string& job_id) {
  command.add_option("JOB", job_id, "such as step-12, init-3, rollback-4 or removal-5")
      .required()
      .check([](const std::string& text) {
        std::string target;
        return find_job(text, target)
                   ? std::string{}
                   : fmt::format(
                         "'{}' is not a job of a batch, such as step-12, init-3, rollback-4 or removal-5",
                         text);
      });
}

std::string job_of(const Fields& step) {
  const std::string type = step.text("type");
  return fmt::format("{}-{}", type == "cleanup" ? step.text("kind") : type, step.number("id"));
}

Time now() { return std::chrono::floor<Duration>(std::chrono::system_clock::now()); }

}  // namespace baton::cli
