// Whatever a scheduler or a worker says, reading it must not crash; ids are positive, a job has one name only,
// and what is wrong is told as text that every store takes.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "base/json.hpp"
#include "base/json_document.hpp"
#include "base/result.hpp"
#include "core/runbook/machine/messages.hpp"

namespace {

namespace runbook = baton::runbook;

void check_message(std::string_view text) {
  const auto message = runbook::parse_message(text);
  if (!message) {
    ENSURE(!message.error().empty() && baton::is_utf8(message.error()));
    return;
  }
  ENSURE(message->batch_id > 0 && message->runbook_version > 0 && baton::is_utf8(message->runbook_name));
  if (const auto* due = std::get_if<runbook::PhaseDue>(&message->what)) {
    ENSURE(due->phase_execution_id > 0);
    for (const auto id : due->member_ids) ENSURE(id > 0);
  }
  if (const auto* added = std::get_if<runbook::MemberAdded>(&message->what)) ENSURE(added->batch_member_id > 0);
}

void check_result(std::string_view text) {
  const auto result = runbook::parse_worker_result(text);
  if (!result) {
    ENSURE(!result.error().empty() && baton::is_utf8(result.error()));
    return;
  }
  ENSURE(baton::is_utf8(result->job_id) && (!result->error || baton::is_utf8(*result->error)));
  ENSURE(!result->result || baton::JsonDocument::parse(result->result->text));
  ENSURE(!result->duration_ms || *result->duration_ms >= 0);
}

void check_name(std::string_view text) {
  const auto name = runbook::parse_job_id(text);
  if (!name) return;
  const auto prefix = text.substr(0, text.find('-'));
  ENSURE(runbook::job_id(prefix, name->ref.id, name->retry, name->poll) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_message(text);
  check_result(text);
  check_name(text);
  return 0;
}
