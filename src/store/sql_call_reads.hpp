// The part of the Reads port that is about service calls.
#pragma once

#include "store/sql_runbook_reads.hpp"

namespace baton::store {

class SqlCallReads : public SqlRunbookReads {
 public:
  using SqlRunbookReads::SqlRunbookReads;

  Result<std::optional<call::Call>> service_call(const call::CallKey& key) override;
  Result<std::vector<call::EventRow>> call_events(const call::CallKey& key) override;
  Result<std::vector<call::Call>> calls(const CallFilter& filter, const std::optional<call::Due>& last,
                                        std::size_t limit) override;
  Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill& wanted) override;
  Result<std::vector<std::pair<call::Destination, Time>>> destinations_due(Time after, Time until) override;
  Result<std::vector<call::CallKey>> running_calls(const call::CallKey& after, std::size_t limit) override;
  Result<std::optional<call::Request>> call_request(const call::CallKey& key) override;
  Result<Streams> streams_without_row(const call::EventKey& after, std::size_t events) override;
  Result<std::optional<call::Call>> call_row(const call::CallKey& key) override;
  Result<std::vector<call::CallKey>> call_keys(const call::CallKey& after, std::size_t limit) override;
  Result<bool> has_tag(const call::CallKey& key, const std::string& tag) override;
  Result<std::int64_t> count_stray_rows() override;
};

// What is asked often, for a test that looks at the plans; but for a replay, which reads everything.
[[nodiscard]] std::vector<Statement> call_read_statements();

}  // namespace baton::store
