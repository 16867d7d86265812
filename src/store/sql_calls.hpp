// What the store does for service calls; see sql_store.cpp.
#pragma once

#include "core/call/rows.hpp"
#include "store/statements.hpp"

namespace baton::store {

class SqlCalls {
 public:
  explicit SqlCalls(Dialect dialect);
  // `request` and `out` are used until the calls have run.
  void add_load(std::vector<Call>& calls, const call::LoadRequest& request, call::Loaded& out) const;
  void add_writes(std::vector<Call>& calls, const call::Writes& writes) const;

 private:
  Statement call_insert_, call_update_, call_select_;
  Statement event_insert_, request_insert_, request_select_, tag_insert_, key_insert_, key_select_;
};

}  // namespace baton::store
