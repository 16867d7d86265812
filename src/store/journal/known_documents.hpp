// The large documents of nodes that are under way, as they are stored. A node changes several times while it has its params and
// its checkpoint, and a commit that changes something else of it need not tell them to the journal again.
//
// Bounded: whatever was forgotten is told once more. Owned by whoever commits.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "store/journal/backlog.hpp"
#include "store/journal/codec.hpp"

namespace baton::store {

class KnownDocuments {
 public:
  // Those of fewer bytes are told each time: it costs less than knowing them.
  explicit KnownDocuments(std::size_t large) : large_(large) {}

  // What a commit may leave out, in the order of its rows.
  [[nodiscard]] std::vector<Unchanged> unchanged(const std::vector<workflow::NodeState>& changed) const;
  void committed(const WriteSet& writes);
  void clear();

 private:
  struct Document {
    ColumnSet column = 0;
    std::string text;
  };
  void committed(const workflow::NodeState& row);
  void forget(const NodeKey& key);

  const std::size_t large_;
  std::unordered_map<NodeKey, std::vector<Document>, HashNode> nodes_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::store
