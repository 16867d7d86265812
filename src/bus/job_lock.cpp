#include "bus/job_lock.hpp"

#include <charconv>

#include "core/runbook/machine/machine.hpp"
#include "core/workflow/definition/definition.hpp"
#include "core/workflow/machine/machine.hpp"
#include "ports/access.hpp"

namespace baton::bus {
namespace {

constexpr std::size_t jobs_max = 16;    // whose ids begin alike: made in the same millisecond, and then one in 4,096
constexpr std::size_t nodes_max = 1'000;  // of a definition
constexpr std::int32_t item_max = (1 << 24) - 2;
constexpr std::size_t prefix_size = 18;  // of a UUID, in which its first 8 bytes are

// Eight bytes as a UUID has them in its text, with a dash before every second one from the third on.
std::optional<std::uint64_t> first_half(std::string_view uuid) {
  if (!is_uuid(uuid)) return std::nullopt;
  std::string digits;
  for (const char c : uuid.substr(0, prefix_size))
    if (c != '-') digits += c;
  std::uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return value;
}

std::string prefix_of(std::uint64_t first_half) {
  constexpr std::string_view hex = "0123456789abcdef";
  std::string text;
  for (int nibble = 0; nibble < 16; ++nibble) {
    if (nibble == 8 || nibble == 12) text += '-';
    text += hex[(first_half >> (60 - 4 * nibble)) & 0xf];
  }
  return text;
}

bool is_of_runbook(const LockToken& token) { return token[6] == 0; }

// Behind the place; one function for tokens that are made and for rows that are compared.
LockToken token_at(std::uint64_t place, std::int32_t item, std::int32_t delivery, std::string_view task_id, std::string_view lease) {
  LockToken token;
  put_number(token, 0, 8, place);
  put_number(token, 8, 3, static_cast<std::uint64_t>(item + 1));
  put_number(token, 11, 1, static_cast<std::uint64_t>(delivery));
  std::uint64_t hash = 0;
  const std::string digest = sha256_hex(std::string(task_id) + ' ' + std::string(lease));
  std::from_chars(digest.data(), digest.data() + 8, hash, 16);
  put_number(token, 12, 4, hash);
  return token;
}

// Of a node that is no child the number is of no use, and does no harm.
std::int32_t item_of(std::string_view node_id) {
  const auto name = workflow::parse_item_name(node_id);
  return name && name->item <= item_max ? name->item : workflow::no_item;
}

std::optional<std::uint64_t> place_of(runbook::Ref ref) {
  if (ref.id <= 0 || ref.id >= std::int64_t{1} << 48) return std::nullopt;
  return static_cast<std::uint64_t>(ref.id) << 16 | static_cast<std::uint64_t>(ref.type);
}

FoundJob as_found(std::string task_id, std::string lease, const std::optional<Time>& until, Time unkept_until) {
  return {.task = {std::move(task_id), std::move(lease)}, .is_kept = until && *until > unkept_until};
}

class Search {
 public:
  Search(Reads& reads, const Tenant& tenant, const std::string& queue, const LockToken& token, Time unkept_until)
      : reads_(reads), tenant_(tenant), queue_(queue), token_(token), unkept_until_(unkept_until), place_(number_in(token, 0, 8)) {}

  using Found = Result<std::optional<FoundJob>>;

  // Runbooks, and with them their jobs, are all in one tenant.
  Found of_runbook() {
    if (tenant_.value != "default") return std::nullopt;
    const runbook::Ref ref{static_cast<runbook::RowType>(place_ & 0xff), static_cast<std::int64_t>(place_ >> 16)};
    TRY_ASSIGN(const auto view, reads_.execution(ref));
    if (!view || !view->execution.job_id || view->execution.worker_id != queue_) return std::nullopt;
    const runbook::Execution& row = view->execution;
    std::string lease = runbook::lease_token(row);
    if (token_at(place_, workflow::no_item, row.delivery_count, *row.job_id, lease) != token_) return std::nullopt;
    return as_found(*row.job_id, std::move(lease), row.lease_until, unkept_until_);
  }

  Found of_workflow() {
    const std::string prefix = prefix_of(place_);
    // Ids sort by their text, the newest first; none has this end, where the variant of a UUID is.
    TRY_ASSIGN(const auto page, reads_.jobs({.tenant = tenant_}, workflow::JobId{prefix + "-ffff-ffffffffffff"}, jobs_max));
    for (const workflow::Job& job : page.jobs) {
      if (!job.job_id.value.starts_with(prefix)) break;
      TRY_ASSIGN(auto task, in_job(job.job_id));
      if (task) return task;
    }
    return std::nullopt;
  }

 private:
  Found in_job(const workflow::JobId& job) {
    TRY_ASSIGN(const auto nodes, reads_.nodes(job, nodes_max));
    for (const workflow::NodeState& node : nodes)
      if (auto task = matching(node)) return task;
    const std::uint64_t item = number_in(token_, 8, 3);
    for (const workflow::NodeState& node : nodes) {
      if (item == 0 || !node.items_total) continue;
      TRY_ASSIGN(const auto child, reads_.node(job, workflow::item_name(node.node_id, static_cast<std::int32_t>(item) - 1)));
      if (!child) continue;
      if (auto task = matching(*child)) return task;
    }
    return std::nullopt;
  }

  std::optional<FoundJob> matching(const workflow::NodeState& node) const {
    if (node.queue != queue_) return std::nullopt;
    std::string task_id = workflow::task_id(node.job_id, node.node_id, node.retry_count);
    std::string lease = workflow::lease_token(node);
    if (token_at(place_, item_of(node.node_id), node.delivery_count, task_id, lease) != token_) return std::nullopt;
    return as_found(std::move(task_id), std::move(lease), node.lease_until, unkept_until_);
  }

  Reads& reads_;
  const Tenant& tenant_;
  const std::string& queue_;
  const LockToken& token_;
  const Time unkept_until_;
  const std::uint64_t place_;
};

}  // namespace

// One of a job whose id is none of ours is not found again after a restart.
LockToken token_of(const Handout& job) {
  const auto place = job.runbook ? place_of(job.runbook->ref) : first_half(job.job_id.value);
  if (!place) return new_token();
  const std::int32_t item = job.runbook ? workflow::no_item : item_of(job.node_id);
  return token_at(*place, item, job.delivery_count, job.task_id, job.lease);
}

Result<std::optional<FoundJob>> find_job(Reads& reads, const Tenant& tenant, const std::string& queue, const LockToken& token, Time unkept_until) {
  Search search(reads, tenant, queue, token, unkept_until);
  return is_of_runbook(token) ? search.of_runbook() : search.of_workflow();
}

}  // namespace baton::bus
