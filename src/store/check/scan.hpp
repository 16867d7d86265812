// The rows of a table in the order of their keys, page by page, as they are after the journal.
#pragma once

#include <deque>

#include "store/check/replay.hpp"
#include "store/reader.hpp"

namespace baton::store {

template <class Row>
struct Scanned {
  Row row;  // without documents, where the tables have it
  bool is_readable = true;  // else it holds what this version does not know; its key is there
};

template <class Row>
class Scan {
 public:
  Scan(Snapshot& snapshot, const Changes<Row>& changes, const std::string& table = table_name<Row>())
      : snapshot_(snapshot), changes_(changes), change_(changes.begin()) {
    const std::string keys = names<Row>(Columns::keys);
    page_.parameters = types<Row>(Columns::keys);
    page_.sql = "SELECT " + names<Row>(Columns::summary) + " FROM " + table + " WHERE (" + keys + ")>(" +
                parameters(page_.parameters.size()) + ") ORDER BY " + keys + " LIMIT " + std::to_string(page_rows);
  }

  // The row that is next; null: there is none.
  [[nodiscard]] Result<const Scanned<Row>*> peek() {
    while (!current_) {
      if (rows_.empty() && !is_at_end_) TRY(read_page());
      const bool has_change = change_ != changes_.end();
      if (rows_.empty() && !has_change) return nullptr;
      if (has_change && (rows_.empty() || change_->first < owned_key(rows_.front().row))) {
        // A changed row that the tables do not have was told when it was replayed.
        if (change_->second.is_new) current_ = Scanned<Row>{*change_->second.row};
        ++change_;
        continue;
      }
      current_ = std::move(rows_.front());
      rows_.pop_front();
      if (has_change && change_->first == owned_key(current_->row)) {
        if (change_->second.is_new)
          current_ = Scanned<Row>{*change_->second.row};
        else
          copy_live(*change_->second.row, current_->row);
        ++change_;
      }
    }
    return &*current_;
  }
  void pop() { current_.reset(); }

  static const Changes<Row>& none() {
    static const Changes<Row> empty;
    return empty;
  }

 private:
  static constexpr std::size_t page_rows = 500;

  Result<> read_page() {
    const auto take = [&](const RowView& view) -> Result<> {
      Scanned<Row>& next = rows_.emplace_back();
      next.is_readable = read_into(next.row, view, Columns::summary).has_value();
      return {};
    };
    const Query query{&page_, 1, [&](std::size_t, std::span<Value> out) { fill_key(last_, out); }, take, {}};
    TRY(snapshot_.run({&query, 1}));
    is_at_end_ = rows_.size() < page_rows;
    if (!rows_.empty()) last_ = owned_key(rows_.back().row);
    return {};
  }

  Snapshot& snapshot_;
  const Changes<Row>& changes_;
  typename Changes<Row>::const_iterator change_;
  Statement page_;
  KeyOf<Row> last_;  // of the tables; at first less than any, because no key begins with an empty text
  std::deque<Scanned<Row>> rows_;
  std::optional<Scanned<Row>> current_;
  bool is_at_end_ = false;
};

}  // namespace baton::store
