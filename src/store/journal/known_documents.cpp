#include "store/journal/known_documents.hpp"

#include <algorithm>

#include "store/tables.hpp"

namespace baton::store {
namespace {

using namespace workflow;

constexpr std::size_t known_bytes_max = 16 << 20;

// Calls use(column, text) for each.
template <class Use>
void for_each_large(const NodeState& row, std::size_t large, Use&& use) {
  ColumnSet bit = 1;
  for_each_column<NodeState>([&](const auto& column) {
    if constexpr (std::is_same_v<std::decay_t<decltype(row.*column.member)>, OptionalJson>)
      if (const OptionalJson& document = row.*column.member; document && document->text.size() > large) use(bit, document->text);
    bit <<= 1;
  });
}

}  // namespace

std::vector<Unchanged> KnownDocuments::unchanged(const std::vector<NodeState>& changed) const {
  std::vector<Unchanged> found;
  if (nodes_.empty()) return found;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    Unchanged row{.row = i};
    const auto known = nodes_.find(baton::key_of(changed[i]));
    if (known == nodes_.end()) continue;
    for_each_large(changed[i], large_, [&](ColumnSet column, const std::string& text) {
      const auto is_same = [&](const Document& document) { return document.column == column && document.text == text; };
      if (std::ranges::any_of(known->second, is_same)) row.columns |= column;
    });
    if (row.columns != 0) found.push_back(row);
  }
  return found;
}

void KnownDocuments::committed(const WriteSet& writes) {
  for (const auto* rows : {&writes.nodes_new, &writes.nodes_changed})
    for (const NodeState& row : *rows) committed(row);
  if (bytes_ > known_bytes_max) clear();
}

// A node that has ended hardly ever changes again.
void KnownDocuments::committed(const NodeState& row) {
  std::vector<Document> documents;
  if (!is_terminal(row.status))
    for_each_large(row, large_, [&](ColumnSet column, const std::string& text) { documents.push_back({column, text}); });
  if (documents.empty() && nodes_.empty()) return;
  const NodeKey key = baton::key_of(row);
  forget(key);
  if (documents.empty()) return;
  for (const Document& document : documents) bytes_ += document.text.size();
  nodes_.emplace(key, std::move(documents));
}

void KnownDocuments::forget(const NodeKey& key) {
  const auto known = nodes_.find(key);
  if (known == nodes_.end()) return;
  for (const Document& document : known->second) bytes_ -= document.text.size();
  nodes_.erase(known);
}

void KnownDocuments::clear() {
  nodes_.clear();
  bytes_ = 0;
}

}  // namespace baton::store
