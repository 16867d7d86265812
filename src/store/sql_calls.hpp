// What the store does for service calls; see sql_store.cpp.
#pragma once

#include <map>
#include <optional>

#include "core/call/rows.hpp"
#include "store/statements.hpp"

namespace baton::store {

// A row beside the last event of its stream.
struct RowAtHead {
  call::CallKey key;
  std::optional<call::Call> row;  // none: there is none, or it cannot be read
  bool is_snapshot = false;       // it may stand for its stream
};

// The last event of a stream, then the row, which may be missing: both by their primary keys. Without events
// there is no answer.
[[nodiscard]] std::string columns_at_head(const std::string& event);  // of an event by that name and of a row as t
[[nodiscard]] std::string select_row_at_head();  // of one call, ?1 and ?2, in either dialect
[[nodiscard]] Statement rows_at_head_statement(Dialect dialect);
[[nodiscard]] Result<RowAtHead> read_row_at_head(const RowView& view);
// What a whole stream comes to. Code::invalid: it cannot be folded.
[[nodiscard]] Result<call::Call> fold_stream(const std::vector<call::EventRow>& events);

class SqlCalls {
 public:
  explicit SqlCalls(Dialect dialect);
  void add_writes(std::vector<Query>& queries, const call::Writes& writes) const;

 private:
  friend class CallLoad;
  Statement call_insert_, call_update_, call_replace_, call_select_;
  Statement event_insert_, event_select_, request_insert_, request_select_, tag_insert_, key_insert_,
      key_select_;
};

// One load, in two rounds: rows beside the heads of their streams, then the streams whose rows are no
// snapshots.
class CallLoad {
 public:
  // Both must outlive this object, and this object the queries.
  CallLoad(const SqlCalls& sql, const call::LoadRequest& request) : sql_(sql), request_(request) {}
  void add_rows(std::vector<Query>& queries);
  void add_streams(std::vector<Query>& queries);
  [[nodiscard]] Result<call::Loaded> finish();

 private:
  const SqlCalls& sql_;
  const call::LoadRequest& request_;
  std::vector<RowAtHead> rows_;
  std::map<call::CallKey, std::optional<call::Call>> to_fold_;  // with the row that there is
  std::vector<call::EventRow> events_;
  call::Loaded loaded_;
};

}  // namespace baton::store
