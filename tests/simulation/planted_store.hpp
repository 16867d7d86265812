// The bugs of base/mutant.hpp that are seen in what is stored and nowhere else: core decides well, and the write set
// is changed on its way to the store. So core need not know of them.
#pragma once

#include "tests/support/forwarding_store.hpp"

namespace baton::simulation {

class PlantedStore final : public support::ForwardingStore<> {
 public:
  using ForwardingStore::ForwardingStore;
  Result<> commit(const WriteSet& writes, std::int64_t number) override;
  void begin_commit(WriteSet writes, std::int64_t number) override;
};

}  // namespace baton::simulation
